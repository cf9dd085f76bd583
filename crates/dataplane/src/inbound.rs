//! Where received datagrams and events go.

use std::net::SocketAddr;

use bytes::Bytes;
use falconet_transport::{Event, Lane, PeerId};

/// A received datagram, opened; starts with its kind byte.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// From the session on the authenticated lane; a hint by address on the plain one.
    pub peer: Option<PeerId>,
    /// The lane it came by.
    pub lane: Lane,
    /// Its UDP source (an IPv4 source on a dual-stack socket is given as IPv4).
    pub from: SocketAddr,
    /// The plaintext, a slice of the receive buffer: holding it pins at most four times the memory of
    /// all datagrams of its aggregate (docs/spec/threads.md#receive-buffers).
    pub datagram: Bytes,
}

/// Where batches go.
pub trait Consumer: Send {
    /// Takes one batch; must never block.
    ///
    /// # Errors
    /// [`Full`] if there is no room: the batch is dropped and each of its datagrams counted.
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full>;

    /// An emptied batch for a later turn: a consumer that gives its batches back saves the dataplane thread the
    /// one allocation that a batch costs it.
    fn spare(&mut self) -> Option<Vec<Inbound>> {
        None
    }
}

/// The consumer has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the consumer has no room")]
pub struct Full;

/// The consumers of one dataplane; all are called on the dataplane thread and must never block.
pub struct Consumers {
    /// Gets kinds 0x10..=0x1f.
    pub chunks: Box<dyn Consumer>,
    /// Gets kind 0x20.
    pub messages: Box<dyn Consumer>,
    /// Gets session events. The tag of `Event::SendFailed` is the index of the class.
    pub events: Box<dyn FnMut(Event) + Send>,
}

impl std::fmt::Debug for Consumers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumers").finish_non_exhaustive()
    }
}
