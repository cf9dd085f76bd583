//! Sans-IO endpoint: peers, sessions, timers, rekey, roaming, and the policy of a mixed rollout.
//!
//! It turns the messages of `falconet-handshake` and the frames of `falconet-auth-framing` into
//! sessions that renew themselves, survive loss, resets and moving peers, and never send a byte that
//! the rollout policy forbids. It holds no socket, thread, lock, clock or source of entropy: every call
//! takes `now`, and all randomness comes from one seed. The rules are in `docs/spec/session.md`,
//! `docs/spec/rollout.md` and `docs/spec/record.md`.
//!
//! ```text
//!        handshake thread                                  dataplane thread
//!   types 1-3 |      ^ poll_transmit          type 4, plain |      ^ poll_transmit, seal
//!             v      |                                      v      |
//!  +---------------------------+   ToSessions   +---------------------------+
//!  | Handshakes                | -------------> | Sessions                  |
//!  |   admission, cookies,     |  keys + reply  |   keys, replay, timers,   |
//!  |   timestamps, retries     | <------------- |   roaming, buffered sends |
//!  +---------------------------+  ToHandshakes  +---------------------------+
//!                      \________ Endpoint: both, one thread ________/
//! ```
//!
//! The halves share nothing: what one has to tell the other is a message, and whoever drives them
//! carries it over a bounded queue. An accepted initiation's response travels *inside* the message to
//! `Sessions`, and leaves only once the index that it tells the initiator is installed. So the data
//! that follows a response always finds its session (`docs/spec/session.md#install-first`).
//!
//! # Event loop
//!
//! For either half, and for [`Endpoint`], which is both:
//!
//! 1. Feed what was received ([`Handshakes::handle_datagram`], [`Sessions::open`],
//!    [`Sessions::admit_plain`]) and the other half's messages (`handle_message`).
//! 2. If `poll_timeout` has passed, call `handle_timeout`: *after* step 1, or a timer fires that the
//!    datagram in the queue would have stopped.
//! 3. Drain, every time: `poll_transmit`, `poll_message` (only while the queue to the other thread has
//!    room: a message must not be dropped), and for `Sessions` also `poll_released` (seal these before
//!    anything newer) and `poll_event`.
//!    With [`TransportConfig::with_offload`] also [`Handshakes::poll_work`]: run each on any thread, and feed
//!    what comes of it to [`Handshakes::handle_finished`] like what was received.
//! 4. Sleep until there is a datagram or a message, or until `poll_timeout`.
//!
//! All calls of one half take a `now` that never goes back. What is not drained holds back new work: a
//! full `poll_message` of `Handshakes` refuses initiations, a full `poll_transmit` puts off retries.
//!
//! # Provided
//!
//! - WireGuard's sessions: rekey after 120 s, rejection after 180 s, passive keepalives, make before
//!   break, so that a rekey loses nothing;
//! - sends that wait for a session, under caps, and are reported if they fail;
//! - no replay of data or of initiations, no downgrade to the plain lane that the policy does not
//!   allow, no address that moves without an authenticated datagram;
//! - bounded memory: every table and queue has a cap that a test fills.
//!
//! # Not provided
//!
//! - no order, no retransmission of data, no congestion control, no fragmentation;
//! - no secrecy of lengths, times and addresses;
//! - no persistence: the embedder stores what it is handed ([`Handshakes::poll_timestamp_mark`],
//!   [`Handshakes::peer_timestamps`], who was seen) and hands it to the next run.
//!
//! # Example
//!
//! ```
//! use bytes::Bytes;
//! use falconet_crypto::{Now, TransportSecret};
//! use falconet_transport::{Content, Endpoint, Lane, PeerConfig, PeerId, TransportConfig, kind};
//! use std::time::{Duration, Instant};
//!
//! let now = Now { instant: Instant::now(), unix: Duration::from_secs(1_700_000_000) };
//! let (a, b) = (TransportSecret::from_bytes([1; 32]), TransportSecret::from_bytes([2; 32]));
//! let (addr_a, addr_b) = ("192.0.2.1:7000".parse()?, "192.0.2.2:7000".parse()?);
//! let to_b = PeerConfig::new(b.public()).with_address(addr_b);
//! let to_a = PeerConfig::new(a.public());
//!
//! let mut alice = Endpoint::new(TransportConfig::default(), a, now, [1; 32]);
//! let mut bob = Endpoint::new(TransportConfig::default(), b, now, [2; 32]);
//! let (alices_bob, bobs_alice) = (PeerId(0), PeerId(0));
//! alice.add_peer(now, alices_bob, &to_b)?;
//! bob.add_peer(now, bobs_alice, &to_a)?;
//!
//! // There is no session yet: the message waits, and an initiation leaves.
//! let message = Bytes::from([&[kind::MESSAGE], &b"hello"[..]].concat());
//! alice.send(now, alices_bob, &message)?;
//!
//! let mut heard = None;
//! for _ in 0..2 {
//!     while let Some(transmit) = alice.poll_transmit() {
//!         let mut datagram = transmit.datagram.to_vec();
//!         let inbound = bob.handle_datagram(now, addr_a, Lane::Authenticated, &mut datagram)?;
//!         if inbound.content == Content::Message {
//!             assert_eq!(inbound.peer, Some(bobs_alice));
//!             heard = Some(datagram[inbound.start..][..inbound.len].to_vec());
//!         }
//!     }
//!     while let Some(transmit) = bob.poll_transmit() {
//!         let mut datagram = transmit.datagram.to_vec();
//!         alice.handle_datagram(now, addr_b, Lane::Authenticated, &mut datagram)?;
//!     }
//! }
//! assert_eq!(heard.as_deref(), Some(&message[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
#[doc(hidden)] // For the bench `sessions` alone.
pub mod deadlines;
mod discard;
mod endpoint;
mod handshakes;
mod index;
mod message;
mod peer;
mod record;
mod rollout;
mod sessions;
pub mod timing;

pub use config::TransportConfig;
pub use discard::{Discard, DiscardCounts};
pub use endpoint::{Endpoint, Inbound};
pub use handshakes::{Finished, HandshakeStats, Handshakes, KeyLogRefused, Work};
pub use index::IndexKey;
pub use message::{Content, Event, LaneDecision, Received, Released, ToHandshakes, ToSessions, Transmit};
pub use peer::{AddPeerError, Lane, PeerConfig, PeerId, Policy};
pub use record::{
    Capabilities, LaneAddresses, MAX_RECORD_LEN, PeerRecord, RecordContent, RecordError, UnverifiedRecord,
};
pub use sessions::{SendError, SessionInfo, SessionStats, Sessions};

pub use falconet_crypto::key_log::KeyLogLine;
pub use falconet_handshake::{AdmissionOptions, OptionsError, Refusal};

use falconet_crypto::{Now, TransportSecret};
use falconet_handshake::LocalStatic;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// First plaintext byte of every datagram, on both lanes; `docs/spec/session.md#kinds`.
pub mod kind {
    /// The transport's own control messages.
    pub const CONTROL: core::ops::RangeInclusive<u8> = 0x00..=0x0f;
    /// The control message that carries the sender's record.
    pub const RECORD: u8 = 0x01;
    /// Raptorcast chunks: version and mode.
    pub const CHUNK: core::ops::RangeInclusive<u8> = 0x10..=0x1f;
    /// An application message.
    pub const MESSAGE: u8 = 0x20;
}

/// The two halves of one node, for two threads.
///
/// `seed` is 32 bytes from the system's generator (or the simulator's seed): every ephemeral key,
/// index and cookie follows from it, so it must never be used twice.
#[must_use]
pub fn split(
    config: TransportConfig,
    secret: TransportSecret,
    now: Now,
    seed: [u8; 32],
) -> (Handshakes, Sessions) {
    let local = LocalStatic::new(secret);
    let mut rng = ChaCha20Rng::from_seed(seed);
    let index_key = IndexKey::generate(&mut rng);
    let sessions = Sessions::new(config.clone(), *local.public(), index_key);
    (Handshakes::new(config, local, now, index_key, rng), sessions)
}
