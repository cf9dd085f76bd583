//! The book of a run: which receiver got which round when, and whether it was intact.
//!
//! One round is open at a time. Payloads are kept until the round closes and are hashed only then: hashing
//! on arrival would take processor time from nodes that are still decoding, and so would change what is
//! measured. The price is memory of at most nodes x 3 MiB.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::plan::NodeNumber;
use crate::payload::{PayloadDigest, digest};
use crate::statistics::Statistics;

/// All rounds of one run.
#[derive(Debug)]
pub(crate) struct RoundBook {
    nodes: usize,
    open: Option<OpenRound>,
    statistics: Statistics,
    late: u64,
    unexpected: u64,
}

#[derive(Debug)]
struct OpenRound {
    round: u64,
    started: Instant,
    digest: PayloadDigest,
    /// By node number; the leader's stays empty.
    arrivals: Vec<Option<(Instant, Bytes)>>,
    missing: usize,
}

/// What became of a closed round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoundResult {
    /// Receivers that got the payload intact.
    pub(crate) intact: usize,
    /// Receivers that got nothing in time.
    pub(crate) lost: Vec<NodeNumber>,
    /// Receivers that got something else.
    pub(crate) corrupt: Vec<NodeNumber>,
    /// Latency of the last intact arrival.
    pub(crate) slowest: Option<Duration>,
}

impl RoundBook {
    /// An empty book for a cluster of `nodes`, of which node 0 leads.
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            open: None,
            statistics: Statistics::default(),
            late: 0,
            unexpected: 0,
        }
    }

    /// Opens a round: the leader begins to encode at `started`.
    pub(crate) fn open(&mut self, round: u64, started: Instant, digest: PayloadDigest) {
        let arrivals = vec![None; self.nodes];
        self.open = Some(OpenRound {
            round,
            started,
            digest,
            arrivals,
            missing: self.nodes - 1,
        });
    }

    /// Notes that `receiver` was handed `payload` of `round` at `at`.
    pub(crate) fn handle_delivery(&mut self, receiver: NodeNumber, round: u64, at: Instant, payload: Bytes) {
        let Some(open) = self.open.as_mut().filter(|open| open.round == round) else {
            self.late += 1;
            return;
        };
        match open.arrivals.get_mut(receiver.0) {
            Some(arrival @ None) if receiver != NodeNumber::LEADER => {
                *arrival = Some((at, payload));
                open.missing -= 1;
            }
            // Delivered twice, or to the leader itself: the node promises neither happens.
            _ => self.unexpected += 1,
        }
    }

    /// Notes a delivery that no broadcast explains.
    pub(crate) fn add_unexpected(&mut self) {
        self.unexpected += 1;
    }

    /// Forgets the open round, as if it had never begun.
    pub(crate) fn discard(&mut self) {
        self.open = None;
    }

    /// Every receiver was handed the open round.
    pub(crate) fn is_complete(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.missing == 0)
    }

    /// Closes the open round: checks every payload, and counts what is still missing as lost.
    pub(crate) fn close(&mut self) -> RoundResult {
        let mut result = RoundResult {
            intact: 0,
            lost: Vec::new(),
            corrupt: Vec::new(),
            slowest: None,
        };
        let Some(open) = self.open.take() else {
            return result;
        };
        for (number, arrival) in open.arrivals.into_iter().enumerate().skip(1) {
            match arrival {
                None => {
                    self.statistics.add_lost();
                    result.lost.push(NodeNumber(number));
                }
                Some((_, payload)) if digest(&payload) != open.digest => {
                    self.statistics.add_corrupt();
                    result.corrupt.push(NodeNumber(number));
                }
                Some((at, _)) => {
                    let latency = at.saturating_duration_since(open.started);
                    self.statistics.add_intact(latency);
                    result.intact += 1;
                    result.slowest = result.slowest.max(Some(latency));
                }
            }
        }
        result
    }

    /// Counts and latencies of all closed rounds.
    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Deliveries of a round that was closed already; their payloads are counted as lost.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Deliveries that should never happen: a second one of a round, one to the leader, or of another author.
    pub(crate) fn unexpected(&self) -> u64 {
        self.unexpected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &[u8] = b"payload";

    fn opened(nodes: usize) -> (RoundBook, Instant) {
        let mut book = RoundBook::new(nodes);
        let started = Instant::now();
        book.open(7, started, digest(PAYLOAD));
        (book, started)
    }

    #[test]
    fn a_round_is_complete_once_every_receiver_has_it() {
        let (mut book, started) = opened(3);
        for (node, ms) in [(1, 30), (2, 20)] {
            assert!(!book.is_complete());
            let at = started + Duration::from_millis(ms);
            book.handle_delivery(NodeNumber(node), 7, at, Bytes::from_static(PAYLOAD));
        }
        assert!(book.is_complete());
        let result = book.close();
        assert_eq!(
            (result.intact, result.slowest),
            (2, Some(Duration::from_millis(30)))
        );
        assert_eq!(book.statistics().latency().unwrap().p50, 20.0);
    }

    #[test]
    fn missing_and_altered_payloads_are_named_and_have_no_latency() {
        let (mut book, started) = opened(4);
        book.handle_delivery(NodeNumber(1), 7, started, Bytes::from_static(b"paylord"));
        book.handle_delivery(NodeNumber(3), 7, started, Bytes::from_static(PAYLOAD));
        let result = book.close();
        assert_eq!(
            (result.corrupt, result.lost),
            (vec![NodeNumber(1)], vec![NodeNumber(2)])
        );
        let statistics = book.statistics();
        assert_eq!(
            (statistics.count(), statistics.lost(), statistics.corrupt()),
            (1, 1, 1)
        );
    }

    #[test]
    fn a_delivery_after_its_round_closed_is_late_and_stays_lost() {
        let (mut book, started) = opened(2);
        assert_eq!(book.close().lost, [NodeNumber(1)]);
        book.open(8, started, digest(PAYLOAD));
        book.handle_delivery(NodeNumber(1), 7, started, Bytes::from_static(PAYLOAD));
        assert!(!book.is_complete());
        assert_eq!((book.late(), book.statistics().lost()), (1, 1));
    }

    #[test]
    fn second_deliveries_and_those_to_the_leader_are_unexpected() {
        let (mut book, started) = opened(3);
        for node in [1, 1, 0] {
            book.handle_delivery(NodeNumber(node), 7, started, Bytes::from_static(PAYLOAD));
        }
        assert!(!book.is_complete());
        assert_eq!(book.unexpected(), 2);
    }
}
