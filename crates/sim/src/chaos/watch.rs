//! What must hold while a network is in trouble.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use falconet_raptorcast::{Event, Round};

use super::{NODES, Outcome};
use crate::counters::Reuse;
use crate::digest::Fingerprint;
use crate::time::Time;
use crate::world::{Report, Table, World};

/// Violations that are kept of one run.
const MOST: usize = 20;
/// How long a session may stay broken after its link has healed.
const HEALING: Duration = Duration::from_secs(20);
/// How long a payload may take; faults that begin meanwhile excuse it.
const DEADLINE: Duration = Duration::from_secs(12);
/// First hops that nothing has befallen, of ten, whose symbols are more than 1.1 K after loss.
const ENOUGH_HOPS: usize = 5;

/// Something that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was found.
    pub at: Time,
    /// What it is.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at, self.what)
    }
}

/// What has befallen a node.
#[derive(Clone, Copy, Debug)]
struct Condition {
    /// When the last fault began.
    began: Time,
    /// From when on all is demanded again.
    calm_from: Time,
}

struct InFlight {
    started: Time,
    leader: usize,
    payload: Bytes,
    delivered: BTreeSet<usize>,
    reported: bool,
}

pub(super) struct Watch {
    seed: u64,
    sessions: [Condition; NODES],
    payloads: [Condition; NODES],
    in_flight: BTreeMap<Round, InFlight>,
    outcome: Outcome,
    broken: BTreeSet<(usize, usize)>,
}

impl Watch {
    pub(super) fn new(seed: u64, now: Time) -> Self {
        let calm = Condition {
            began: Time::START,
            calm_from: now,
        };
        Self {
            seed,
            sessions: [calm; NODES],
            payloads: [calm; NODES],
            in_flight: BTreeMap::new(),
            broken: BTreeSet::new(),
            outcome: Outcome {
                violations: Vec::new(),
                broadcasts: 0,
                deliveries: 0,
                demanded: 0,
                faults: 0,
                counters: 0,
                fingerprint: Fingerprint::of_all(&[]),
            },
        }
    }

    pub(super) fn begin_trouble(&mut self, node: usize, ends: Time, sessions: bool, payloads: bool) {
        self.trouble(node, sessions, payloads, |condition| {
            condition.calm_from = condition.calm_from.max(ends + HEALING);
        });
    }

    pub(super) fn end_trouble(&mut self, node: usize, now: Time, sessions: bool, payloads: bool) {
        self.trouble(node, sessions, payloads, |condition| {
            condition.began = now;
            condition.calm_from = condition.calm_from.max(now + HEALING);
        });
    }

    fn trouble(&mut self, node: usize, sessions: bool, payloads: bool, change: impl Fn(&mut Condition)) {
        if sessions {
            change(&mut self.sessions[node]);
        }
        if payloads {
            change(&mut self.payloads[node]);
        }
    }

    pub(super) fn note_broadcast(&mut self, now: Time, leader: usize, round: Round, payload: Bytes) {
        self.outcome.broadcasts += 1;
        let delivered = BTreeSet::new();
        self.in_flight.insert(
            round,
            InFlight {
                started: now,
                leader,
                payload,
                delivered,
                reported: false,
            },
        );
    }

    /// Sessions between nodes that nothing has befallen stand.
    pub(super) fn check(&mut self, world: &World) {
        let now = world.now();
        for node in 0..NODES {
            for peer in (0..NODES).filter(|peer| *peer != node) {
                let is_calm = [node, peer]
                    .iter()
                    .all(|node| self.sessions[*node].calm_from <= now);
                if world.is_connected(node, peer) || !is_calm {
                    self.broken.remove(&(node, peer));
                } else if self.broken.insert((node, peer)) {
                    self.violate(
                        now,
                        format!("node {node} has no session with node {peer} {HEALING:?} after all healed"),
                    );
                }
            }
        }
        self.judge_payloads(now);
        for node in 0..NODES {
            self.judge_tables(now, node, &world.tables(node));
        }
    }

    fn judge_tables(&mut self, now: Time, node: usize, tables: &[Table]) {
        for Table { name, used, cap } in tables.iter().filter(|table| table.used > table.cap) {
            self.violate(now, format!("node {node} has {used} {name}, more than {cap}"));
        }
    }

    fn judge_counters(&mut self, reused: Vec<Reuse>) {
        for Reuse {
            at,
            from,
            to,
            counter,
        } in reused
        {
            self.violate(
                at,
                format!("node {from} used counter {counter} twice to node {to}"),
            );
        }
    }

    fn judge_payloads(&mut self, now: Time) {
        while let Some(entry) = self.in_flight.first_entry() {
            if entry.get().started + DEADLINE > now {
                return;
            }
            let (round, message) = entry.remove_entry();
            // A node whose last trouble was over before, and into none since.
            let is_calm = |node: usize| self.payloads[node].calm_from <= message.started;
            if !is_calm(message.leader) || (0..NODES).filter(|node| is_calm(*node)).count() < ENOUGH_HOPS {
                continue;
            }
            let receivers: Vec<_> = (0..NODES)
                .filter(|node| *node != message.leader && is_calm(*node))
                .collect();
            for node in receivers {
                self.outcome.demanded += 1;
                if !message.delivered.contains(&node) {
                    let what = format!(
                        "round {} of node {} never reached node {node}",
                        round.number(),
                        message.leader
                    );
                    self.violate(now, what);
                }
            }
        }
    }

    pub(super) fn take_reports(&mut self, world: &mut World) {
        self.judge_counters(world.take_reused_counters());
        while let Some(report) = world.poll_report() {
            match report {
                Report::Delivered {
                    node, at, delivery, ..
                } => self.note_delivery(node, at, delivery.round, &delivery.payload),
                Report::Cast { node, at, event }
                    if matches!(*event, Event::Tainted(_) | Event::Equivocation(_)) =>
                {
                    self.violate(at, format!("node {node} accuses an honest leader: {event:?}"));
                }
                Report::Refused { node, round, error } => {
                    let now = world.now();
                    self.violate(
                        now,
                        format!("node {node} did not broadcast round {}: {error}", round.number()),
                    );
                }
                _ => {}
            }
        }
    }

    fn note_delivery(&mut self, node: usize, at: Time, round: Round, payload: &Bytes) {
        self.outcome.deliveries += 1;
        let Some(message) = self.in_flight.get_mut(&round) else {
            return;
        };
        let wrong = if message.payload != *payload {
            Some("altered")
        } else if !message.delivered.insert(node) && !message.reported {
            message.reported = true;
            Some("twice")
        } else {
            None
        };
        if let Some(how) = wrong {
            self.violate(at, format!("node {node} got round {} {how}", round.number()));
        }
    }

    fn violate(&mut self, at: Time, what: String) {
        if self.outcome.violations.len() < MOST {
            self.outcome.violations.push(Violation {
                at,
                what: format!("{what} (seed {})", self.seed),
            });
        }
    }

    pub(super) fn finish(mut self, faults: u64, world: &World) -> Outcome {
        self.outcome.faults = faults;
        self.outcome.counters = world.watched_counters();
        self.outcome.fingerprint = world.fingerprint();
        self.outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_nanos(1_000_000_000);

    fn watch() -> Watch {
        let mut watch = Watch::new(1, START);
        let round = Round::from(1);
        watch.note_broadcast(START, 0, round, Bytes::from_static(b"payload"));
        (1..NODES - 1)
            .for_each(|node| watch.note_delivery(node, START, round, &Bytes::from_static(b"payload")));
        watch
    }

    fn found(watch: Watch) -> Vec<String> {
        watch
            .outcome
            .violations
            .into_iter()
            .map(|violation| violation.what)
            .collect()
    }

    #[test]
    fn a_payload_that_did_not_come_is_found_unless_its_receiver_had_trouble() {
        let mut lost = watch();
        lost.judge_payloads(START + DEADLINE);
        assert_eq!(found(lost), ["round 1 of node 0 never reached node 9 (seed 1)"]);
        let mut excused = watch();
        excused.begin_trouble(9, START + DEADLINE, true, true);
        excused.judge_payloads(START + DEADLINE);
        assert_eq!(found(excused), [""; 0]);
    }

    #[test]
    fn a_table_past_its_cap_and_a_counter_used_twice_are_found() {
        let table = |used| Table {
            name: "sessions",
            used,
            cap: 27,
        };
        let mut watch = watch();
        watch.judge_tables(START, 4, &[table(27), table(28)]);
        let reuse = Reuse {
            at: START,
            from: 1,
            to: 2,
            counter: 7,
        };
        watch.judge_counters(vec![reuse]);
        assert_eq!(
            found(watch),
            [
                "node 4 has 28 sessions, more than 27 (seed 1)",
                "node 1 used counter 7 twice to node 2 (seed 1)"
            ]
        );
    }

    #[test]
    fn what_came_altered_or_twice_is_found() {
        let mut watch = watch();
        watch.note_delivery(3, START, Round::from(1), &Bytes::from_static(b"payload"));
        watch.note_delivery(9, START, Round::from(1), &Bytes::from_static(b"another"));
        assert_eq!(
            found(watch),
            [
                "node 3 got round 1 twice (seed 1)",
                "node 9 got round 1 altered (seed 1)"
            ]
        );
    }
}
