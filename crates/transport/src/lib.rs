//! API SKELETON (owner replaces bodies; keeps names and signatures unless told to all).
#![allow(missing_docs, dead_code, unused_variables)]
use bytes::Bytes;
use falconet_crypto::{IdentityKey, NetworkId, Now, SecretBytes, Suite, TransportPublicKey, TransportSecret};
use std::net::SocketAddr;
use std::time::Instant;

/// Dense local handle of a configured peer (given by the embedder, 0..cap). On the wire a peer is its transport key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct PeerId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lane { Authenticated, Plain }
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy { Plain, #[default] Prefer, Require, PlainUntilSeen }

/// First plaintext byte of every datagram, both lanes (docs/spec/framing.md#kind).
pub mod kind {
    /// 0x00..=0x0f: the transport's own control messages (records).
    pub const CONTROL: core::ops::RangeInclusive<u8> = 0x00..=0x0f;
    /// 0x10..=0x1f: raptorcast chunks (version and mode).
    pub const CHUNK: core::ops::RangeInclusive<u8> = 0x10..=0x1f;
    /// 0x20: an application message.
    pub const MESSAGE: u8 = 0x20;
}

/// Signed by the identity (docs/spec/record.md): identity, transport key, sequence, addresses of both lanes,
/// capabilities, suites, expiry. `encode`/`decode` canonical; `sign`/`verify` with network id.
pub struct PeerRecord { _p: () }

/// What the embedder knows of a peer. `with_*` setters for the optional parts.
#[derive(Clone)]
pub struct PeerConfig {
    pub transport_key: Option<TransportPublicKey>,
    pub identity: Option<IdentityKey>,
    pub address: Option<SocketAddr>,
    pub plain_address: Option<SocketAddr>,
    pub policy: Policy,
    /// Dialled in advance and for ever.
    pub persistent: bool,
    /// Suites the peer's record lists besides suite 0 (empty = suite 0 only).
    pub suites: Vec<Suite>,
    pub psk: Option<std::sync::Arc<SecretBytes>>,
}

/// A small datagram ready to leave (handshake messages, keepalives, control).
pub struct Transmit { pub to: SocketAddr, pub lane: Lane, pub datagram: Bytes }

/// From the dataplane thread to the handshake thread (bounded queue). Opaque to the dataplane crate.
pub struct ToHandshakes { _p: () }
/// From the handshake thread to the dataplane thread (bounded queue). Opaque to the dataplane crate.
/// An accepted initiation travels here WITH its response datagram: Sessions installs the receiver
/// index and only then transmits the response.
pub struct ToSessions { _p: () }

/// Lives on the handshake thread: admission, pending initiations, timestamps, cookies, retries.
pub struct Handshakes { _p: () }
impl Handshakes {
    /// Types 1-3 only. `from` is the UDP source.
    pub fn handle_datagram(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) -> Result<(), Discard> { todo!() }
    pub fn handle_message(&mut self, now: Now, message: ToHandshakes) { todo!() }
    pub fn handle_timeout(&mut self, now: Now) { todo!() }
    pub fn poll_transmit(&mut self) -> Option<Transmit> { todo!() }
    pub fn poll_message(&mut self) -> Option<ToSessions> { todo!() }
    pub fn poll_timeout(&self) -> Option<Instant> { todo!() }
    pub fn add_peer(&mut self, now: Now, peer: PeerId, config: &PeerConfig) -> Result<(), AddPeerError> { todo!() }
    pub fn remove_peer(&mut self, peer: PeerId) { todo!() }
}

/// Lives on the dataplane thread: keys, replay, timers, roaming, buffered sends, rollout policy.
pub struct Sessions { _p: () }
impl Sessions {
    pub fn add_peer(&mut self, now: Now, peer: PeerId, config: &PeerConfig) -> Result<(), AddPeerError> { todo!() }
    pub fn remove_peer(&mut self, peer: PeerId) { todo!() }
    /// Hot path. Type 4 only; opens in place.
    pub fn open(&mut self, now: Now, from: SocketAddr, datagram: &mut [u8]) -> Result<Received, Discard> { todo!() }
    /// A datagram of the plain lane: policy of the peer whose record names `from`, if any; sender is a hint.
    pub fn admit_plain(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) -> Result<Option<PeerId>, Discard> { todo!() }
    /// Which lane a datagram to `peer` takes now: one documented function, exhaustive table test.
    pub fn lane(&mut self, now: Now, peer: PeerId) -> LaneDecision { todo!() }
    /// Hot path, after `lane` said Authenticated: seals in place (16 headroom + n + 16 tail); where it goes.
    pub fn seal(&mut self, now: Now, peer: PeerId, datagram: &mut [u8]) -> Result<SocketAddr, SendError> { todo!() }
    /// After `lane` said Buffer: keeps the plaintext (caps: 128 KiB and 128 entries a peer, 64 MiB in all) and dials.
    /// `tag` is the caller's (class); it comes back from `poll_released`.
    pub fn buffer(&mut self, now: Now, peer: PeerId, plaintext: Bytes, tag: u32) -> Result<(), SendError> { todo!() }
    /// What was buffered and may leave now, in order.
    pub fn poll_released(&mut self) -> Option<Released> { todo!() }
    /// Dials in advance.
    pub fn connect(&mut self, now: Now, peer: PeerId) { todo!() }
    pub fn handle_message(&mut self, now: Now, message: ToSessions) { todo!() }
    pub fn handle_timeout(&mut self, now: Now) { todo!() }
    pub fn poll_transmit(&mut self) -> Option<Transmit> { todo!() }
    pub fn poll_message(&mut self) -> Option<ToHandshakes> { todo!() }
    pub fn poll_event(&mut self) -> Option<Event> { todo!() }
    pub fn poll_timeout(&self) -> Option<Instant> { todo!() }
}
pub enum LaneDecision { Authenticated, Plain(SocketAddr), Buffer, Refuse(SendError) }
pub struct Released { pub peer: PeerId, pub plaintext: Bytes, pub tag: u32 }
/// An opened datagram: plaintext is `datagram[start..start + len]`.
#[derive(Debug, Clone, Copy)]
pub struct Received { pub peer: PeerId, pub start: usize, pub len: usize, pub content: Content }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content { /** Nothing for the consumer (keepalive, handled control). */ None, Chunk, Message }
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event { Connected { peer: PeerId, suite: Suite }, Disconnected { peer: PeerId }, /** Buffered sends given up. */ SendFailed { peer: PeerId, tag: u32, plaintext: Bytes } }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError { UnknownPeer, NoAddress, BufferFull, TooLarge, Empty, NoSession }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddPeerError { Duplicate, TooMany, LowOrderKey }
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Discard { Length }

/// Both engines joined, for the simulator and for embedders with their own loop.
pub struct Endpoint { _p: () }
