//! What goes into and comes out of the engine.

use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::IdentityKey;

use crate::clock::ClockSkew;
use crate::ids::{Epoch, MessageId, NodeIndex, Round};
use crate::merkle::Hash;
use crate::trace::MessageTrace;

/// Who handed us a chunk, as far as the layer below knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The identity at the other end of an authenticated session.
    Validator(IdentityKey),
    /// The identity whose record lists the address that a plain datagram claims to come from. Anybody can
    /// write that address, so nothing is charged to the identity.
    Hint(IdentityKey),
    /// Nobody we know.
    Unknown,
}

/// Which validators a run of chunks goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// One validator.
    One(NodeIndex),
    /// Every member of the set but the author and ourselves.
    AllBut {
        /// Who wrote the message.
        author: NodeIndex,
    },
}

/// Which queue of the dataplane a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Our own broadcast, to its first hops.
    Proposal,
    /// Symbols of others that we are the first hop of.
    Relay,
}

/// A run of chunks to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The message they belong to; [`Transmit::to`] counts in the set of its epoch.
    pub id: MessageId,
    /// Whom to send them to.
    pub to: Recipients,
    /// How urgent they are.
    pub class: Class,
    /// Chunks of equal length, so that they fit one segmented send.
    pub chunks: Vec<Bytes>,
}

/// What became of a broadcast of ours: everything is encoded and waits in `poll_transmit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BroadcastReport {
    /// The name of the message.
    pub id: MessageId,
    /// Bytes of the payload.
    pub payload_len: usize,
    /// K: source symbols.
    pub source_symbols: u16,
    /// N: committed symbols, each sent once by the leader.
    pub symbols: u16,
    /// T: bytes of a symbol.
    pub symbol_size: u16,
    /// Bytes of a chunk.
    pub chunk_len: usize,
    /// Bytes of all chunks, without datagram frames.
    pub chunk_bytes: usize,
    /// Bytes on the wire: all chunks and the overhead per datagram that the configuration states.
    pub wire_bytes: usize,
    /// N / K.
    pub redundancy: f64,
}

/// What the engine tells its embedder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A message is complete, and its re-encoding has the signed root. At most once a message.
    Delivered(Delivery),
    /// A message decodes to something whose re-encoding has another root: its author is at fault, and every
    /// honest node that decodes it finds the same.
    Tainted(Taint),
    /// A message was given up before it could be decoded.
    Expired(Expiry),
    /// One author signed two commitments for one round. Reported once a message.
    Equivocation(Box<Equivocation>),
    /// A set brings members that no other known set has: dial them before its epoch begins.
    Joiners(Joiners),
    /// An author's clock is a quarter of the timestamp window away from ours. If many are, ours is wrong.
    ClockSkew(ClockSkew),
    /// What came of a message when, if the configuration asks for that; after the event that ends the message.
    Trace(Box<MessageTrace>),
}

/// Members that come with an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joiners {
    /// The epoch.
    pub epoch: Epoch,
    /// Who they are.
    pub members: Vec<IdentityKey>,
}

/// A payload and how it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Who wrote it.
    pub author: IdentityKey,
    /// The author's place in the set.
    pub author_index: NodeIndex,
    /// The epoch whose set judged it.
    pub epoch: Epoch,
    /// The round it belongs to.
    pub round: Round,
    /// The payload, exactly as it was broadcast.
    pub payload: Bytes,
    /// When its first valid symbol was handled.
    pub first_symbol_at: Instant,
    /// The reading with which the engine was last driven before it decoded.
    pub decoded_at: Instant,
    /// The leader's clock when it made the message, since the Unix epoch.
    pub leader_timestamp: Duration,
    /// Different symbols that were there when decoding succeeded.
    pub symbols_received: u32,
    /// Who sent how many of them, by their numbers in the set of the epoch.
    pub sources: Vec<(NodeIndex, u32)>,
    /// K.
    pub source_symbols: u16,
    /// N.
    pub symbols: u16,
}

/// A message that no honest leader makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Who wrote it.
    pub author: IdentityKey,
    /// Which message.
    pub id: MessageId,
    /// What its author signed.
    pub evidence: SignedRoot,
    /// When its first valid symbol was handled.
    pub first_symbol_at: Instant,
    /// When it was found out.
    pub found_at: Instant,
    /// Who sent how many of the symbols that it was decoded from, by their numbers in the set of the epoch.
    pub sources: Vec<(NodeIndex, u32)>,
}

/// A message that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Who wrote it.
    pub author: IdentityKey,
    /// Which message.
    pub id: MessageId,
    /// Why.
    pub reason: ExpiryReason,
    /// When its first valid symbol was handled.
    pub first_symbol_at: Instant,
    /// When it was given up.
    pub given_up_at: Instant,
    /// Symbols that were there.
    pub symbols_received: u32,
    /// Who sent how many of them, by their numbers in the set of the epoch.
    pub sources: Vec<(NodeIndex, u32)>,
    /// K: how many it would have taken.
    pub source_symbols: u16,
}

/// Why a message was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExpiryReason {
    /// It was not complete in the time that the configuration allows.
    TimedOut,
    /// The local round has moved on.
    StaleRound,
    /// Its epoch's set was dropped.
    StaleEpoch,
    /// Another message needed its place in the cache.
    Evicted,
}

/// A signed commitment of an author: evidence that others can check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRoot {
    /// The header without its index, as signed.
    pub header: Vec<u8>,
    /// The root of the tree.
    pub root: Hash,
    /// The signature over both.
    pub signature: [u8; 64],
}

/// Two commitments of one author for one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivocation {
    /// Who signed both.
    pub author: IdentityKey,
    /// The message that both claim to be.
    pub id: MessageId,
    /// The commitment that is decoded and relayed.
    pub first: SignedRoot,
    /// The other.
    pub second: SignedRoot,
}
