//! The protocol's constants of time; `docs/spec/session.md#timers`.

use std::time::Duration;

/// The initiator of a session renews it at this age (WireGuard, section 6.1).
pub const REKEY_AFTER: Duration = Duration::from_secs(120);
/// Nothing is sealed or opened under keys of this age (WireGuard, section 6.1).
pub const REJECT_AFTER: Duration = Duration::from_secs(180);
/// Silence after data from the peer that a keepalive breaks (WireGuard, section 6.5).
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Greatest pause between two initiations to a silent peer (WireGuard, section 6.1).
pub const REKEY_TIMEOUT: Duration = Duration::from_secs(5);
/// A dial of a peer that is not persistent, and a buffered send, end after this (WireGuard, section 6.1).
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(90);
/// The initiator renews on *receiving* at this age: what is left is one keepalive and one retry.
pub const REKEY_ON_RECEIVE_AFTER: Duration = Duration::from_secs(165);
/// Data without any answer for this long means that the peer has lost the session.
pub const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(15);
/// First retry of a dial if the peer's round trip is not known.
pub const FIRST_RETRY: Duration = Duration::from_millis(250);
/// Least pause between two initiations to, and accepted from, one peer (WireGuard, section 5.4.2).
pub const INITIATION_INTERVAL: Duration = Duration::from_millis(20);
/// Least pause between two dials of a peer whose initiations have timestamps that are refused.
pub const DIAL_BACK_INTERVAL: Duration = Duration::from_secs(10);
/// An initiation can be answered for this long.
pub const PENDING_LIFETIME: Duration = Duration::from_secs(15);
/// Least pause between two records that are accepted in one session.
pub const RECORD_ACCEPT_INTERVAL: Duration = Duration::from_secs(10);
/// Least pause between two records that are sent in one session: the network may move the second one up.
pub const RECORD_SEND_INTERVAL: Duration = Duration::from_secs(11);
/// A receiver index is not given out again for this long after its last possible use.
pub const INDEX_QUARANTINE: Duration = Duration::from_secs(600);
