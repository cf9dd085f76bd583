//! Broadcast of large payloads to a validator set: RaptorQ symbols, one signature, two hops.
//!
//! A leader splits a payload of up to 3 MiB into symbols, commits to all of them with one tree and one
//! signature, and sends every symbol to exactly one validator, its *first hop*, in proportion to stake. First
//! hops rebroadcast their symbols to everybody else. Whoever has slightly more than K symbols, from whichever
//! hops, has the payload.
//!
//! ```text
//!             broadcast                                 handle_chunks
//!   payload ------------> encode - tree - sign            |  limits, windows, sender, proof, signature
//!                             |                           v
//!                        Transmit One(hop)          incomplete message --- ours? --> Transmit AllBut{author}
//!                             |                           |  K, K+1, K+2, K+16, ... symbols
//!                             v                           v
//!                        poll_transmit             decode - encode again - same root? --> poll_event
//! ```
//!
//! The wire format and its rules are in `docs/spec/chunk.md`, what a node does beside it in `docs/spec/broadcast.md`.
//!
//! # Event loop
//!
//! [`Engine`] is sans-IO: it holds no socket, thread, clock or entropy source. After every call that takes
//! `now`, drain in this order:
//!
//! 1. [`Engine::poll_transmit`] until `None`, and send what it returns;
//! 2. [`Engine::poll_event`] until `None`: this is where payloads are decoded, so relayed symbols have left
//!    before the decoder starts;
//! 3. [`Engine::poll_timeout`]: call [`Engine::handle_timeout`] then at the latest.
//!
//! [`RaptorcastThread`] does that on a thread of its own.
//!
//! # Provided
//!
//! - All honest nodes that decode a message agree on whether it is *valid*: a leader that commits to
//!   inconsistent symbols is found out by everybody ([`Event::Tainted`]).
//! - A message is delivered at most once, and a symbol is relayed at most once, as long as its round is
//!   remembered (twice the timestamp window).
//! - Only the author can start a message, and nothing is remembered before its signature is checked. Every
//!   chunk can be checked alone.
//! - Memory and entries are bounded whatever arrives; see the limits in [`EngineConfig`].
//!
//! # Not provided
//!
//! - Agreement on whether a message was *delivered*: that is for the consensus above.
//! - Delivery of what nobody can complete: RaptorQ is not MDS, so a leader that withholds chosen symbols from all keeps
//!   the message from all. What some have completed, others get by asking them.
//! - Order across rounds, and delivery to the leader itself.
//! - Encryption and authentication of the hop: that is `falconet-transport`'s. Whoever drives the engine says
//!   who sent a chunk ([`Sender`]).
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//!
//! use bytes::Bytes;
//! use falconet_crypto::{IdentitySecret, NetworkId, Now, Signer};
//! use falconet_raptorcast::{
//!     Engine, EngineConfig, Epoch, Event, Round, Sender, Stake, Validator, ValidatorSet,
//! };
//!
//! let secrets = [1, 2].map(|id| Arc::new(IdentitySecret::from_bytes([id; 32])));
//! let members = secrets.iter().map(|s| Validator { identity: s.identity(), stake: Stake::new(10) });
//! let set = Arc::new(ValidatorSet::new(members.collect())?);
//! let [mut leader, mut receiver] = secrets.clone().map(|secret| {
//!     let config = EngineConfig::new(NetworkId::from_name("example"));
//!     let mut engine = Engine::new(config, secret, [0; 32]).expect("defaults fit together");
//!     engine.set_epoch(Epoch::new(1), set.clone());
//!     engine
//! });
//!
//! let now = Now { instant: Instant::now(), unix: Duration::from_secs(1_700_000_000) };
//! let payload = Bytes::from_static(b"a block");
//! leader.broadcast(now, Epoch::new(1), Round::from(1), payload.clone())?;
//! while let Some(transmit) = leader.poll_transmit() {
//!     for chunk in transmit.chunks {
//!         // After the first symbol the message is decoded, and the rest is dropped.
//!         let _ = receiver.handle_chunk(now, Sender::Validator(secrets[0].identity()), chunk);
//!     }
//! }
//! let Some(Event::Delivered(delivery)) = receiver.poll_event() else { panic!("nothing came") };
//! assert_eq!(delivery.payload, payload);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assignment;
mod bits;
mod boundary;
mod budget;
mod cache;
mod clock;
mod code;
mod config;
mod discard;
mod engine;
mod epochs;
mod events;
mod geometry;
mod header;
mod ids;
mod incoming;
mod limits;
mod merkle;
mod message;
mod outgoing;
mod participation;
mod publish;
mod relay;
mod repair;
mod schedule;
mod set;
mod shared;
mod stats;
#[cfg(test)]
mod test_support;
mod thread;
mod trace;
mod versions;
mod wide;
mod workshop;

pub use assignment::Assignment;
pub use clock::ClockSkew;
pub use code::{Decoder, Encoder, Plans, SymbolError};
pub use config::{ConfigError, EngineConfig};
pub use discard::Discard;
pub use engine::{Engine, Occupancy};
pub use events::{
    BroadcastReport, Class, Delivery, Equivocation, Event, Expiry, ExpiryReason, Joiners, Recipients, Sender,
    SignedRoot, Taint, Transmit,
};
pub use geometry::{Geometry, GeometryError};
pub use header::{AuthorRef, ChunkView, CommitmentBytes, Header, Mode};
pub use ids::{Epoch, MessageId, NodeIndex, Round, SymbolIndex};
pub use limits::{
    ChunkSize, HASH_LEN, HEADER_LEN, KEY_HEADER_LEN, MAX_PAYLOAD_LEN, MAX_SYMBOLS, Redundancy, SIGNATURE_LEN,
    SYMBOL_UNIT, merkle_depth,
};
pub use merkle::{BadProof, Hash, Tree, VerifiedTree, leaf_hash, root_of};
pub use participation::Participation;
pub use publish::BroadcastError;
pub use repair::{
    MAX_REPAIR_REQUESTS, MAX_REPAIR_SYMBOLS, REPAIR_REQUEST, REPAIR_REQUEST_LEN, RepairRequest, Wanted,
};
pub use schedule::LeaderSchedule;
pub use set::{SetError, Stake, Validator, ValidatorSet};
pub use shared::SharedWork;
pub use stats::Stats;
pub use thread::{
    ChunkSink, CommandError, EventSink, QueueFull, RaptorcastHandle, RaptorcastThread, ThreadConfig,
    ThreadStats,
};
pub use trace::{Arrival, MessageTrace, Outcome, Via};
pub use versions::{Rollout, Version};
