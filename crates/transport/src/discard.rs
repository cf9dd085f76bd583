//! Why a datagram was dropped.

/// Why a datagram was dropped; [`Discard::label`] is the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Discard {
    /// The handshake refused the message.
    #[error("handshake message refused: {}", .0.label())]
    Handshake(falconet_handshake::Discard),
    /// The frame refused the datagram.
    #[error("data message refused: {0}")]
    Frame(#[from] falconet_auth_framing::Discard),
    /// No byte at all.
    #[error("empty datagram")]
    Empty,
    /// The first byte is no message type of this lane.
    #[error("not a message of this lane")]
    UnknownType,
    /// No session has this receiver index.
    #[error("no session has this receiver index")]
    UnknownIndex,
    /// The session is older than 180 s.
    #[error("the session has expired")]
    Expired,
    /// The plaintext's first byte is no kind we know.
    #[error("unknown kind of plaintext")]
    UnknownKind,
    /// An initiation by a transport key that is not configured.
    #[error("unknown transport key")]
    UnknownPeer,
    /// An initiation by an unknown transport key, while all places for such are taken.
    #[error("no place for another unknown peer")]
    StrangersFull,
    /// An initiation with a timestamp that is not greater than the last one's.
    #[error("initiation replayed")]
    ReplayedInitiation,
    /// An initiation less than 20 ms after the last one of the same peer.
    #[error("initiation too soon after the last")]
    InitiationTooSoon,
    /// An initiation whose answer was finished after that to a newer one of the same peer.
    #[error("a newer initiation was answered meanwhile")]
    Superseded,
    /// An initiation with a suite that this node, or the peer's record, does not list.
    #[error("suite not agreed on")]
    SuiteRefused,
    /// A response or cookie reply that answers no pending initiation.
    #[error("answer to no pending initiation")]
    Unsolicited,
    /// Half of all receiver indices are in use or at rest: none is given out.
    #[error("no receiver index is free")]
    Overloaded,
    /// The results that wait for the data plane fill their queue.
    #[error("the data plane has no room for another session")]
    NoRoom,
    /// As many known peers have sessions as may, and none of them is idle; a handshake came to nothing.
    #[error("as many sessions as may be")]
    SessionsFull,
    /// Admission asked for a cookie, and a cookie reply was sent.
    #[error("a cookie was asked for")]
    CookieDemanded,
    /// Admission refused the initiation.
    #[error("initiation not admitted: {0}")]
    Refused(#[from] falconet_handshake::Refusal),
    /// A record less than 10 s after the last one of the same session.
    #[error("record too soon after the last")]
    RecordTooSoon,
    /// A record that is malformed, expired, wrongly signed, or not the peer's own.
    #[error("record refused")]
    RecordRefused,
    /// A record whose sequence is not higher than that of the one in force.
    #[error("record not newer than the one in force")]
    RecordOld,
    /// A plain datagram of a peer that must use the authenticated lane.
    #[error("plain datagram refused by policy")]
    PlainRefused,
}

impl Discard {
    /// Every reason of this crate itself; those of the handshake, of its admission and of the frame are
    /// their own.
    pub const OWN: [Self; 20] = [
        Self::Empty,
        Self::UnknownType,
        Self::UnknownIndex,
        Self::Expired,
        Self::UnknownKind,
        Self::UnknownPeer,
        Self::StrangersFull,
        Self::ReplayedInitiation,
        Self::InitiationTooSoon,
        Self::Superseded,
        Self::SuiteRefused,
        Self::Unsolicited,
        Self::Overloaded,
        Self::NoRoom,
        Self::SessionsFull,
        Self::CookieDemanded,
        Self::RecordTooSoon,
        Self::RecordRefused,
        Self::RecordOld,
        Self::PlainRefused,
    ];

    /// The metric label: stable and lower case.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Handshake(reason) => reason.label(),
            Self::Frame(reason) => reason.label(),
            Self::Empty => "empty",
            Self::UnknownType => "unknown_type",
            Self::UnknownIndex => "unknown_index",
            Self::Expired => "expired",
            Self::UnknownKind => "unknown_kind",
            Self::UnknownPeer => "unknown_peer",
            Self::StrangersFull => "strangers_full",
            Self::ReplayedInitiation => "replayed_initiation",
            Self::InitiationTooSoon => "initiation_too_soon",
            Self::Superseded => "superseded",
            Self::SuiteRefused => "suite_refused",
            Self::Unsolicited => "unsolicited",
            Self::Overloaded => "overloaded",
            Self::NoRoom => "no_room",
            Self::SessionsFull => "sessions_full",
            Self::CookieDemanded => "cookie_demanded",
            Self::Refused(reason) => reason.label(),
            Self::RecordTooSoon => "record_too_soon",
            Self::RecordRefused => "record_refused",
            Self::RecordOld => "record_old",
            Self::PlainRefused => "plain_refused",
        }
    }
}

impl From<falconet_handshake::Discard> for Discard {
    fn from(reason: falconet_handshake::Discard) -> Self {
        Self::Handshake(reason)
    }
}

/// Discards by reason. At most one entry a reason, so it is bounded; the few reasons that a flood
/// meets come first after a while, which is all the hash that is needed.
#[derive(Clone, Debug, Default)]
pub struct DiscardCounts(Vec<(Discard, u64)>);

impl DiscardCounts {
    /// Every reason seen so far with its count, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Discard, u64)> + '_ {
        self.0.iter().copied()
    }

    /// How often `reason` was seen.
    #[must_use]
    pub fn of(&self, reason: Discard) -> u64 {
        self.iter().find(|(r, _)| *r == reason).map_or(0, |(_, n)| n)
    }

    /// Discards of all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, n)| n).sum()
    }

    pub(crate) fn add(&mut self, reason: Discard) {
        let Some(at) = self.0.iter().position(|(r, _)| *r == reason) else {
            self.0.push((reason, 1));
            return;
        };
        self.0[at].1 += 1;
        if at > 0 && self.0[at].1 > self.0[at - 1].1 {
            self.0.swap(at, at - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn labels_are_unique_and_counted() {
        let labels: HashSet<_> = Discard::OWN.iter().map(|d| d.label()).collect();
        assert_eq!(labels.len(), Discard::OWN.len());
        let mut counts = DiscardCounts::default();
        for (n, reason) in Discard::OWN.into_iter().enumerate() {
            (0..=n).for_each(|_| counts.add(reason));
        }
        for (n, reason) in Discard::OWN.into_iter().enumerate() {
            assert_eq!(counts.of(reason), n as u64 + 1);
        }
        assert_eq!(counts.total(), 20 * 21 / 2);
    }
}
