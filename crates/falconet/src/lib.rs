//! Authenticated datagrams and broadcast of large payloads over UDP, for networks of validators.
//!
//! A [`Node`] owns three threads: one for its sockets, one for handshakes, one for broadcasts; and with a state file
//! ([`NodeBuilder::state`]) a fourth, which alone waits for the disk. Everything an embedder calls hands work to them over
//! bounded queues; nothing here runs on the caller's time but checks.
//!
//! ```text
//!     your tasks (tokio)
//!         | broadcast, send          ^ deliveries, messages, events
//!         v                          |
//!     Node: raptorcast thread <-> dataplane thread <-> handshake thread
//! ```
//!
//! # Example
//!
//! Two nodes, on loopback, of which one broadcasts to the other:
//!
//! ```
//! use falconet::{Node, NodeKeys, Peer, Stake, Validator};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = [NodeKeys::generate()?, NodeKeys::generate()?];
//! let validators: Vec<_> =
//!     keys.iter().map(|keys| Validator { identity: keys.identity(), stake: Stake::new(1) }).collect();
//! let mut nodes = Vec::new();
//! for keys in keys {
//!     let node = Node::builder(keys).listen("127.0.0.1:0".parse()?).validators(1, validators.clone());
//!     nodes.push(node.start().await?);
//! }
//! for (node, other) in [(&nodes[0], &nodes[1]), (&nodes[1], &nodes[0])] {
//!     let address = other.local_addr().ok_or("it listens")?;
//!     node.add_peer(Peer::new(other.identity()).with_authenticated(other.transport_key(), address))?;
//! }
//! for node in &nodes {
//!     node.wait_connected(Duration::from_secs(10)).await.expect("a session");
//! }
//!
//! let mut deliveries = nodes[1].deliveries();
//! let report = nodes[0].broadcast(1, vec![7; 100_000].into()).await?;
//! assert_eq!(report.dropped, 0);
//! let delivery = deliveries.recv().await.ok_or("the node runs")?;
//! assert_eq!((delivery.round, delivery.payload.len()), (1, 100_000));
//! # for node in nodes { node.shutdown().await; }
//! # Ok(())
//! # }
//! ```
//!
//! # Provided
//!
//! - **Delivery at most once** for an author and round, of exactly the payload whose commitment the author signed.
//! - **Typed errors before work**: an empty or oversized payload, a round used before, an unknown peer.
//! - **Bounds**: every queue, cache and stream has one; what is dropped is counted and has a name in [`Stats::discards`].
//! - **Isolation**: no global state. Two nodes in one process never notice each other, and no reader, however slow, holds a
//!   thread up.
//!
//! - **Memory across restarts**, with a state file: no round is signed twice, no session is downgraded, no old record or
//!   initiation is believed (docs/spec/state.md).
//!
//! # Not provided
//!
//! - **Delivery to all**: a leader can send too little; agreement on what was delivered belongs to the consensus above.
//! - **Order**: rounds may be delivered in another order than they were broadcast in.
//! - **Own payloads**: a leader does not receive its own.
//! - **Reliable messages**: [`Node::send`] sends a datagram. It may be lost.
//! - **A slow reader's past**: it loses the oldest items, and each item says how many were lost before it.

pub use builder::NodeBuilder;
pub use entropy::EntropyError;
pub use error::{BroadcastError, PeerError, PublishError, SendError, StartError};
pub use keys::NodeKeys;
pub use node::{BroadcastReport, Node, PeerStats};
pub use own_record::OwnRecord;
pub use peer::Peer;
pub use state::{StateError, StateFormatError, StateProblem, StateStats};
pub use stats::{Stats, ThreadsStats};
pub use streams::{Deliveries, Delivery, Events, Message, Messages, NodeEvent};
pub use system::{SocketOptions, ThreadOptions};

pub use falconet_crypto::{
    IdentityKey, IdentitySecret, NetworkId, Now, SignError, Signer, Suite, TransportPublicKey,
    TransportSecret,
};
pub use falconet_dataplane::{
    Class, Histogram, LaneStats, LinkEmulation, Placement, QueueStats, Rate, ThreadStats,
};
pub use falconet_raptorcast::{
    ClockSkew, Equivocation, Expiry, Joiners, LeaderSchedule, Round, Stake, Taint, Validator,
};
pub use falconet_transport::{
    AdmissionOptions, Capabilities, Lane, LaneAddresses, PeerRecord, Policy, RecordContent, RecordError,
    UnverifiedRecord,
};

mod builder;
mod connections;
mod departure;
mod directory;
mod entropy;
mod error;
mod keys;
mod node;
mod own_record;
mod peer;
mod settings;
mod state;
mod stats;
mod streams;
mod subscription;
mod system;
mod wiring;

/// The front page's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
