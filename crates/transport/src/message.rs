//! What the two engines say to each other, and what they hand to the embedder.

use crate::{Lane, PeerId, PeerRecord, SendError};
use bytes::Bytes;
use falconet_crypto::{SessionIndex, Suite, TransportPublicKey};
use falconet_handshake::SessionKeys;
use std::net::SocketAddr;
use std::time::Instant;

/// A small datagram ready to leave: handshake messages, keepalives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// On which lane.
    pub lane: Lane,
    /// The UDP payload.
    pub datagram: Bytes,
}

/// From [`crate::Sessions`] to [`crate::Handshakes`]; opaque to who carries it, and never to be dropped.
pub struct ToHandshakes(pub(crate) Request);

pub(crate) enum Request {
    /// A session with `peer` is wanted; it is at `to`.
    Dial { peer: PeerId, to: SocketAddr },
    /// A session that the peer initiated is confirmed: our own dial may end.
    Settled { peer: PeerId },
    /// A stranger's session was given up; this index of ours was its newest one's.
    Freed { peer: PeerId, index: SessionIndex },
    /// A record has changed what the handshakes know of the peer.
    Update {
        peer: PeerId,
        aes: bool,
        recorded: Option<SocketAddr>,
    },
}

/// From [`crate::Handshakes`] to [`crate::Sessions`]; opaque to who carries it, and never to be dropped.
///
/// An accepted initiation travels here *with* its response datagram: the response leaves only once
/// the receiver index that it tells is installed; `docs/spec/session.md#install-first`.
pub struct ToSessions(pub(crate) NewSession);

/// The result of a handshake.
pub(crate) struct NewSession {
    pub(crate) peer: PeerId,
    /// Guards against a handle that was given to another peer while this was under way.
    pub(crate) key: TransportPublicKey,
    pub(crate) keys: SessionKeys,
    pub(crate) from: Origin,
}

pub(crate) enum Origin {
    /// Our initiation, sent at this time to this address, was answered.
    Dialled { initiated: Instant, at: SocketAddr },
    /// We answered: the response still has to leave.
    Accepted { response: Transmit },
}

impl std::fmt::Debug for ToHandshakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToHandshakes(..)")
    }
}

impl std::fmt::Debug for ToSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToSessions(..)")
    }
}

/// Which lane a datagram takes; [`crate::Sessions::lane`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneDecision {
    /// Seal it.
    Authenticated,
    /// Send it bare to this address.
    Plain(SocketAddr),
    /// Hand it to [`crate::Sessions::buffer`].
    Buffer,
    /// It cannot be sent.
    Refuse(SendError),
}

/// A send that was buffered and may leave now; comes in the order of the calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// To whom.
    pub peer: PeerId,
    /// As it was handed to [`crate::Sessions::buffer`].
    pub plaintext: Bytes,
    /// The caller's tag.
    pub tag: u32,
}

/// An opened datagram: the plaintext is `datagram[start..start + len]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Who sealed it.
    pub peer: PeerId,
    /// Offset of the plaintext.
    pub start: usize,
    /// Bytes of the plaintext, kind byte included.
    pub len: usize,
    /// What the kind byte says.
    pub content: Content,
}

/// What a plaintext is, by its first byte; `docs/spec/session.md#kinds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// Nothing for the consumer: a keepalive, or control that was handled.
    None,
    /// A raptorcast chunk.
    Chunk,
    /// An application message.
    Message,
    /// Anything else from a peer that is configured as plain WireGuard: an IP packet.
    Other,
}

/// What the embedder is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// There is a session where there was none.
    Connected {
        /// With whom.
        peer: PeerId,
        /// Under which suite.
        suite: Suite,
    },
    /// The last session has ended.
    Disconnected {
        /// With whom.
        peer: PeerId,
    },
    /// A buffered send was given up after 90 s, or because the peer was removed.
    SendFailed {
        /// To whom it was.
        peer: PeerId,
        /// The caller's tag.
        tag: u32,
        /// As it was handed to [`crate::Sessions::buffer`].
        plaintext: Bytes,
    },
    /// A record of higher sequence than any before is in force. To persist: its sequence, for
    /// [`crate::PeerConfig::record_sequence`], and whether the peer still serves the authenticated lane.
    RecordAccepted {
        /// Whose.
        peer: PeerId,
        /// The newest, if there were several between two polls.
        record: Box<PeerRecord>,
    },
}
