//! The history of one message, for whoever looks into why it was slow (`docs/spec/broadcast.md#trace`).

use std::io::{self, Write};
use std::time::{Duration, Instant};

use falconet_crypto::IdentityKey;

use crate::ids::{MessageId, NodeIndex, SymbolIndex};

/// Which symbol of a message came when and from whom, and who was late. Made if
/// [`EngineConfig::with_trace`](crate::EngineConfig::with_trace) says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageTrace {
    /// The message.
    pub id: MessageId,
    /// Who wrote it.
    pub author: IdentityKey,
    /// How it ended.
    pub outcome: Outcome,
    /// When its first valid symbol was handled.
    pub first_symbol_at: Instant,
    /// From then until it ended.
    pub took: Duration,
    /// K.
    pub source_symbols: u16,
    /// N.
    pub symbols: u16,
    /// Every valid symbol, in the order in which they came; at most N.
    pub arrivals: Vec<Arrival>,
    /// First hops some of whose symbols had not come at the end, and how many.
    pub late: Vec<(NodeIndex, u32)>,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It was delivered.
    Delivered,
    /// Its re-encoding had another root.
    Tainted,
    /// It was given up.
    GivenUp,
}

/// One symbol that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Which.
    pub symbol: SymbolIndex,
    /// Who sent it.
    pub from: NodeIndex,
    /// As what.
    pub via: Via,
    /// How long after the first.
    pub after: Duration,
}

/// In which part the sender of a symbol acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// The author, to us as the first hop.
    Author,
    /// The symbol's first hop.
    FirstHop,
    /// A peer that we asked.
    Repair,
}

impl Outcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Tainted => "tainted",
            Self::GivenUp => "given_up",
        }
    }
}

impl Via {
    const fn label(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::FirstHop => "first_hop",
            Self::Repair => "repair",
        }
    }
}

impl MessageTrace {
    /// Writes it as lines of JSON: one for the message, one a symbol, one a first hop that was late. Times are in
    /// microseconds after the first symbol.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn write_json_lines(&self, mut out: impl Write) -> io::Result<()> {
        let (id, outcome) = (self.id, self.outcome.label());
        writeln!(
            out,
            r#"{{"epoch":{},"round":{},"author":{},"identity":"{}","outcome":"{outcome}","took_us":{},"source_symbols":{},"symbols":{}}}"#,
            id.epoch,
            id.round,
            id.author,
            self.author,
            self.took.as_micros(),
            self.source_symbols,
            self.symbols,
        )?;
        for arrival in &self.arrivals {
            let (symbol, via) = (arrival.symbol.number(), arrival.via.label());
            let (from, after) = (arrival.from, arrival.after.as_micros());
            writeln!(
                out,
                r#"{{"symbol":{symbol},"from":{from},"via":"{via}","after_us":{after}}}"#
            )?;
        }
        for (node, missing) in &self.late {
            writeln!(out, r#"{{"late":{node},"missing":{missing}}}"#)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::test_support::{CALM, Cluster, EPOCH, payload};
    use crate::{Event, NodeIndex, Outcome, Round, Via};

    #[test]
    fn a_trace_tells_what_came_and_who_was_late() {
        let (leader, node, silent) = (NodeIndex::new(0), NodeIndex::new(1), NodeIndex::new(4));
        let mut cluster = Cluster::with_config(&[1; 6], |config| config.with_trace(true));
        let now = cluster.now;
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(1), payload(60_000, 1))
            .unwrap();
        cluster.collect(leader);
        cluster.in_flight.retain(|sent| sent.to != silent);
        cluster.run(&CALM);
        let delivery = cluster.deliveries(node)[0].clone();
        let Some(Event::Trace(trace)) = cluster.events[node.as_usize()]
            .iter()
            .find(|event| matches!(event, Event::Trace(_)))
        else {
            panic!("no trace")
        };
        assert_eq!(
            (trace.outcome, trace.symbols),
            (Outcome::Delivered, delivery.symbols)
        );
        assert_eq!(trace.arrivals.len() as u32, delivery.symbols_received);
        assert!(trace.arrivals.is_sorted_by_key(|arrival| arrival.after));
        for arrival in &trace.arrivals {
            let expected = if arrival.from == leader {
                Via::Author
            } else {
                Via::FirstHop
            };
            assert_eq!(arrival.via, expected);
        }
        let (_, missing) = trace.late.iter().find(|(late, _)| *late == silent).unwrap();
        assert!(
            trace.late.iter().all(|(_, others)| others <= missing),
            "{:?}",
            trace.late
        );
        let mut lines = Vec::new();
        trace.write_json_lines(&mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(lines.lines().count(), 1 + trace.arrivals.len() + trace.late.len());
        for line in lines.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert_eq!(
            (&first["outcome"], &first["round"]),
            (&"delivered".into(), &1.into())
        );
    }

    #[test]
    fn messages_that_are_given_up_leave_a_trace_and_nothing_does_unasked() {
        for is_wanted in [true, false] {
            let mut cluster = Cluster::with_config(&[1; 6], |config| config.with_trace(is_wanted));
            let now = cluster.now;
            cluster.engines[0]
                .broadcast(now, EPOCH, Round::from(1), payload(60_000, 1))
                .unwrap();
            cluster.collect(NodeIndex::new(0));
            let chunk = cluster.in_flight[0].clone();
            let engine = chunk.to.as_usize();
            assert_eq!(cluster.deliver(chunk), Ok(()));
            cluster.engines[engine].handle_timeout(now.after(Duration::from_secs(11)));
            cluster.poll_events(NodeIndex::new(engine as u16));
            let traces: Vec<_> = cluster.events[engine]
                .iter()
                .filter_map(|event| match event {
                    Event::Trace(trace) => Some((trace.outcome, trace.arrivals.len(), trace.took)),
                    _ => None,
                })
                .collect();
            let expected = [(Outcome::GivenUp, 1, Duration::from_secs(11))];
            assert_eq!(traces, expected[..usize::from(is_wanted)]);
        }
    }
}
