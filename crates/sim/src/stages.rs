//! Where the time of a delivery went: the way of the symbol that completed it.

use std::time::Duration;

use serde::Serialize;

use crate::time::Time;

/// When a symbol passed what it passed. The two hops of its way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) left_leader: Time,
    pub(crate) at_hop: Time,
    pub(crate) queued: Time,
    pub(crate) left_hop: Option<Time>,
    pub(crate) arrived: Time,
}

/// The parts that a latency is the sum of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stages {
    /// The leader encodes, commits and signs.
    pub encode: Duration,
    /// The symbol waits for its turn on the leader's way out.
    pub leader_egress: Duration,
    /// First hop: taken in, opened, verified, grouped.
    pub first_hop: Duration,
    /// The symbol waits for its turn on the first hop's way out.
    pub relay_egress: Duration,
    /// On the way, both hops.
    pub propagation: Duration,
    /// Receiver: taken in, opened, verified.
    pub receive: Duration,
    /// The payload is decoded.
    pub decode: Duration,
    /// The payload is encoded again, and its root compared.
    pub check: Duration,
}

impl Stages {
    /// The stages with their names, in order.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Duration); 8] {
        [
            ("encode", self.encode),
            ("leader egress", self.leader_egress),
            ("first hop", self.first_hop),
            ("relay egress", self.relay_egress),
            ("propagation", self.propagation),
            ("receive", self.receive),
            ("decode", self.decode),
            ("check", self.check),
        ]
    }

    /// The latency that they are the parts of.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.named().iter().map(|(_, part)| *part).sum()
    }

    /// From the stamps of the completing symbol and the leader's times; what comes after `verified` is to be added.
    pub(crate) fn until_verified(stamp: &Stamp, started: Time, encoded: Time, verified: Time) -> Self {
        let second_hop = stamp.left_hop.map(|left| (left, stamp.arrived));
        let arrived = second_hop.map_or(stamp.at_hop, |(_, arrived)| arrived);
        Self {
            encode: encoded.since(started),
            leader_egress: stamp.left_leader.since(encoded),
            first_hop: second_hop.map_or(Duration::ZERO, |_| stamp.queued.since(stamp.at_hop)),
            relay_egress: second_hop.map_or(Duration::ZERO, |(left, _)| left.since(stamp.queued)),
            propagation: stamp.at_hop.since(stamp.left_leader)
                + second_hop.map_or(Duration::ZERO, |(left, arrived)| arrived.since(left)),
            receive: verified.since(arrived),
            ..Self::default()
        }
    }
}
