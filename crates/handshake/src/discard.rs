//! Why a handshake message was dropped, and why none could be made.

use thiserror::Error;

/// Why no initiation could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The peer's static key is a low-order point: no secret can be shared with it.
    #[error("the peer's transport key is a low-order point")]
    LowOrderPoint,
}

/// Why a handshake message was dropped; [`Discard::label`] is the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Discard {
    /// Empty, or not the exact length of its type.
    #[error("length does not fit the message type")]
    Length,
    /// The first byte is not 1, 2 or 3.
    #[error("not a handshake message")]
    Type,
    /// A reserved byte is not zero.
    #[error("reserved bytes are not zero")]
    ReservedBytes,
    /// The suite byte names no suite.
    #[error("unknown suite")]
    UnknownSuite,
    /// mac1 is wrong: the sender does not know our public key, or the message was altered.
    #[error("mac1 does not verify")]
    Mac1,
    /// A public key in the message yields the all-zero shared secret.
    #[error("low-order point")]
    LowOrderPoint,
    /// The initiator's static key does not decrypt.
    #[error("the initiator's static key does not decrypt")]
    BadStatic,
    /// The message was paired with another peer's keys than those it names.
    #[error("the message belongs to another peer")]
    WrongPeer,
    /// The timestamp does not decrypt: the sender does not hold the static key it claims.
    #[error("the timestamp does not decrypt")]
    BadTimestamp,
    /// The response or cookie reply names another handshake of ours.
    #[error("receiver index names another handshake")]
    WrongIndex,
    /// The response answers in another suite than the initiation asked for.
    #[error("suite differs from the initiation's")]
    SuiteMismatch,
    /// The response does not decrypt: wrong responder, wrong preshared key, or a forgery.
    #[error("the response does not decrypt")]
    BadResponse,
    /// The cookie does not decrypt, or does not answer what we sent.
    #[error("the cookie does not decrypt")]
    BadCookie,
}

impl Discard {
    /// Every reason, for registering metrics up front.
    pub const ALL: [Self; 13] = [
        Self::Length,
        Self::Type,
        Self::ReservedBytes,
        Self::UnknownSuite,
        Self::Mac1,
        Self::LowOrderPoint,
        Self::BadStatic,
        Self::WrongPeer,
        Self::BadTimestamp,
        Self::WrongIndex,
        Self::SuiteMismatch,
        Self::BadResponse,
        Self::BadCookie,
    ];

    /// The metric label: stable, lower case, unique among the reasons of this crate.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Type => "type",
            Self::ReservedBytes => "reserved_bytes",
            Self::UnknownSuite => "unknown_suite",
            Self::Mac1 => "mac1",
            Self::LowOrderPoint => "low_order_point",
            Self::BadStatic => "bad_static",
            Self::WrongPeer => "wrong_peer",
            Self::BadTimestamp => "bad_timestamp",
            Self::WrongIndex => "wrong_index",
            Self::SuiteMismatch => "suite_mismatch",
            Self::BadResponse => "bad_response",
            Self::BadCookie => "bad_cookie",
        }
    }
}
