//! What a node hands to its embedder: deliveries, messages, events.

use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentityKey, Suite};
use falconet_transport::{Lane, PeerRecord};

use crate::subscription::Subscription;

/// A payload that a validator broadcast, complete and checked against its author's signature.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delivery {
    /// The payload, exactly as it was broadcast.
    pub payload: Bytes,
    /// Who broadcast it.
    pub author: IdentityKey,
    /// The epoch whose validator set judged it.
    pub epoch: u32,
    /// The round it was broadcast in.
    pub round: u64,
    /// When it was decoded and checked.
    pub at: Instant,
    /// When its first valid symbol came.
    pub first_symbol_at: Instant,
    /// The author's clock when it was made, since the Unix epoch.
    pub author_time: Duration,
    /// Different symbols that had come by then.
    pub symbols: u32,
    /// Deliveries that this reader lost just before this one, being slow.
    pub missed: u64,
}

/// The payloads that others broadcast, in the order in which they were complete.
pub struct Deliveries(pub(crate) Subscription<Delivery>);

impl Deliveries {
    /// The next one; `None` once the node has shut down and everything kept was read.
    pub async fn recv(&mut self) -> Option<Delivery> {
        let next = self.0.recv().await?;
        Some(Delivery {
            missed: next.missed,
            ..next.item
        })
    }
}

/// A small message from a peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// What was sent.
    pub payload: Bytes,
    /// Who sent it. On the plain lane this is a guess by address, and `None` if no peer has that address.
    pub from: Option<IdentityKey>,
    /// The lane it came on: only the authenticated one proves who sent it.
    pub lane: Lane,
    /// Messages that this reader lost just before this one, being slow.
    pub missed: u64,
}

/// Small messages, in the order in which they came.
pub struct Messages(pub(crate) Subscription<Message>);

impl Messages {
    /// The next one; `None` once the node has shut down and everything kept was read.
    pub async fn recv(&mut self) -> Option<Message> {
        let next = self.0.recv().await?;
        Some(Message {
            missed: next.missed,
            ..next.item
        })
    }
}

/// Something an operator or a consensus may want to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NodeEvent {
    /// A session with a peer is up.
    Connected {
        /// Whom with.
        peer: IdentityKey,
        /// The suite it runs on.
        suite: Suite,
    },
    /// A peer has no session any more.
    Disconnected {
        /// Who.
        peer: IdentityKey,
    },
    /// A message that waited for a session was given up.
    SendFailed {
        /// Whom it was for.
        peer: IdentityKey,
        /// What was to be sent.
        payload: Bytes,
    },
    /// A newer record of a peer is in force, that came in its session.
    RecordAccepted {
        /// Whose.
        peer: IdentityKey,
        /// Its record.
        record: Box<PeerRecord>,
    },
    /// A broadcast decodes to something that its author's commitment does not cover: its author is at fault.
    Tainted(falconet_raptorcast::Taint),
    /// A broadcast was given up before enough symbols had come.
    Expired(falconet_raptorcast::Expiry),
    /// A validator set brings members that no other has: dial them before its epoch begins.
    Joiners(falconet_raptorcast::Joiners),
    /// An author's clock is far from ours. If many are, ours is wrong.
    ClockSkew(falconet_raptorcast::ClockSkew),
    /// An author signed two payloads for one round; both signed headers are the evidence.
    Equivocation(Box<falconet_raptorcast::Equivocation>),
}

/// Events, in the order in which they happened.
pub struct Events(pub(crate) Subscription<NodeEvent>);

impl Events {
    /// The next one, and how many this reader lost before it; `None` once the node has shut down.
    pub async fn recv(&mut self) -> Option<(NodeEvent, u64)> {
        let next = self.0.recv().await?;
        Some((next.item, next.missed))
    }
}
