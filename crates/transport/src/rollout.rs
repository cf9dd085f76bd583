//! Which lane a datagram takes while a network moves to the authenticated lane.

use crate::Policy;
use crate::SendError;
use crate::message::LaneDecision;
use std::net::SocketAddr;

/// What the decision depends on, and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneFacts {
    pub(crate) policy: Policy,
    /// A session that can seal now.
    pub(crate) has_session: bool,
    /// There was a session, ever.
    pub(crate) was_seen: bool,
    /// Transport key and address are known.
    pub(crate) can_dial: bool,
    pub(crate) plain: Option<SocketAddr>,
}

impl LaneFacts {
    /// Whether nothing may travel bare, in either direction; `docs/spec/rollout.md#sticky`.
    pub(crate) const fn requires_session(&self) -> bool {
        match self.policy {
            Policy::Require => true,
            Policy::PlainUntilSeen => self.was_seen,
            Policy::Plain | Policy::Prefer => false,
        }
    }

    /// The decision; the table is `docs/spec/rollout.md#lane`.
    pub(crate) fn decide(&self) -> LaneDecision {
        if self.policy != Policy::Plain && self.has_session {
            return LaneDecision::Authenticated;
        }
        if !self.requires_session()
            && let Some(address) = self.plain
        {
            return LaneDecision::Plain(address);
        }
        if self.policy != Policy::Plain && self.can_dial {
            return LaneDecision::Buffer;
        }
        LaneDecision::Refuse(SendError::NoAddress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table of docs/spec/rollout.md#lane, written out: 4 policies x 16 facts.
    #[test]
    fn every_row_of_the_table() {
        use Policy::*;
        // Columns: session, seen, dial, plain. `None` stands for no address.
        let plain: SocketAddr = "192.0.2.1:9000".parse().unwrap();
        let rows = [
            (Plain, "PPPPPPPP", "--------"),
            (Prefer, "PPPPAAAA", "-B-BAAAA"),
            (Require, "-B-BAAAA", "-B-BAAAA"),
            (PlainUntilSeen, "PP-BAAAA", "-B-BAAAA"),
        ];
        for (policy, with_plain, without_plain) in rows {
            for (address, expected) in [(Some(plain), with_plain), (None, without_plain)] {
                for (bits, expected) in expected.chars().enumerate() {
                    let facts = LaneFacts {
                        policy,
                        has_session: bits & 4 != 0,
                        was_seen: bits & 2 != 0,
                        can_dial: bits & 1 != 0,
                        plain: address,
                    };
                    let expected = match expected {
                        'P' => LaneDecision::Plain(plain),
                        'A' => LaneDecision::Authenticated,
                        'B' => LaneDecision::Buffer,
                        _ => LaneDecision::Refuse(SendError::NoAddress),
                    };
                    assert_eq!(facts.decide(), expected, "{facts:?}");
                }
            }
        }
    }
}
