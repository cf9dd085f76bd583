//! What the embedder hands over for sending.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use falconet_transport::PeerId;

/// Priority class of outgoing datagrams.
///
/// Classes share the rate by weight; each keeps a guaranteed minimum
/// (docs/spec/threads.md#classes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Own broadcasts and the rebroadcast of a first hop.
    Proposal,
    /// Chunks relayed for others.
    Relay,
    /// Application messages.
    Regular,
    /// Small messages that keep the network together.
    Control,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 4;
    /// Every class, in the order of [`Class::index`].
    pub const ALL: [Class; Class::COUNT] = [Class::Proposal, Class::Relay, Class::Regular, Class::Control];

    /// Position in [`Class::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Class::Proposal => 0,
            Class::Relay => 1,
            Class::Regular => 2,
            Class::Control => 3,
        }
    }

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Class::Proposal => "proposal",
            Class::Relay => "relay",
            Class::Regular => "regular",
            Class::Control => "control",
        }
    }
}

/// Who gets the datagrams of an [`Outgoing`].
#[derive(Clone, Debug)]
pub enum Recipients {
    /// One peer.
    One(PeerId),
    /// Each of these peers gets every datagram.
    Many(Arc<[PeerId]>),
}

impl Recipients {
    /// The peers, one after the other.
    #[must_use]
    pub fn as_slice(&self) -> &[PeerId] {
        match self {
            Recipients::One(peer) => std::slice::from_ref(peer),
            Recipients::Many(peers) => peers,
        }
    }
}

/// Datagrams for one or many peers; each starts with its kind byte.
///
/// Equal lengths in a row leave as one GSO group.
pub struct Outgoing {
    /// Who gets them.
    pub to: Recipients,
    /// Their priority class.
    pub class: Class,
    /// The plaintexts, each of 1 to 65,475 bytes; what the path carries is the embedder's business.
    pub datagrams: Vec<Bytes>,
    /// Told when they have left or were given up.
    pub completion: Option<Arc<dyn Completion>>,
}

impl Outgoing {
    /// What this costs in the queues, as (entries, bytes): one entry a datagram and recipient, with the
    /// entry's own memory counted (docs/spec/threads.md#queue-bounds).
    pub(crate) fn cost(&self) -> Cost {
        let recipients = self.to.as_slice().len();
        let bytes: usize = self.datagrams.iter().map(|d| d.len() + ENTRY_OVERHEAD).sum();
        Cost {
            entries: self.datagrams.len().saturating_mul(recipients),
            bytes: bytes.saturating_mul(recipients),
        }
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("to", &self.to)
            .field("class", &self.class)
            .field("datagrams", &self.datagrams.len())
            .finish_non_exhaustive()
    }
}

/// Bytes a queued datagram costs besides its payload: the entry, and its share of the collections.
pub(crate) const ENTRY_OVERHEAD: usize = 128;

/// Entries and bytes of something queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

impl Cost {
    pub(crate) fn subtract(&mut self, less: Cost) {
        self.entries -= less.entries;
        self.bytes -= less.bytes;
    }
}

/// Told by the dataplane thread when datagrams of an [`Outgoing`] have left or were given up.
///
/// Called on the dataplane thread: must be cheap and never block. One `Outgoing` is reported in any
/// number of parts; the parts add up to datagrams times recipients.
pub trait Completion: Send + Sync {
    /// `sent` datagrams with `sent_bytes` bytes of UDP payload were handed to the kernel (or to the
    /// link emulation) at `at`; `dropped` were given up.
    fn finished(&self, sent: usize, dropped: usize, sent_bytes: usize, at: Instant);
}
