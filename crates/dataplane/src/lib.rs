//! API SKELETON (owner replaces bodies; keeps names and signatures unless told to all).
#![allow(missing_docs, dead_code, unused_variables)]
use bytes::Bytes;
use falconet_transport::{Event, Handshakes, Lane, PeerConfig, PeerId, Sessions};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Addresses, rate, queue caps, thread names... private fields, `with_*` setters that state unit, default, reason; `build()`/start checks.
pub struct DataplaneConfig { _p: () }
/// Bits per second on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate { BitsPerSecond(u64), Unlimited }
/// A user-space link in front of each socket: one-way delay by destination and random loss by datagram.
#[derive(Clone)]
pub struct LinkEmulation { pub delay: Arc<dyn Fn(SocketAddr) -> Duration + Send + Sync>, /** 0.0..=1.0 */ pub loss: f64, pub seed: u64 }

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class { Proposal, Relay, Regular, Control }
#[derive(Clone)]
pub enum Recipients { One(PeerId), Many(Arc<[PeerId]>) }
/// Datagrams for one or many peers; each starts with its kind byte. Equal lengths in a row are sent as one GSO group.
pub struct Outgoing { pub to: Recipients, pub class: Class, pub datagrams: Vec<Bytes>, pub completion: Option<Arc<dyn Completion>> }
/// Told by the dataplane thread when datagrams of an `Outgoing` have left (sent) or were given up.
/// Called on the dataplane thread: must be cheap and never block.
pub trait Completion: Send + Sync { fn finished(&self, sent: usize, dropped: usize, sent_bytes: usize, at: Instant); }
/// A received datagram, opened; starts with its kind byte.
#[derive(Clone, Debug)]
pub struct Inbound { /** From the session on the authenticated lane; a hint by address on the plain one. */ pub peer: Option<PeerId>, pub lane: Lane, pub from: SocketAddr, pub datagram: Bytes }
/// Where batches go; never blocks. On Err the batch is dropped and counted.
pub trait Consumer: Send { fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full>; }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;
pub struct Consumers { /** kind 0x10..=0x1f */ pub chunks: Box<dyn Consumer>, /** kind 0x20 */ pub messages: Box<dyn Consumer>, pub events: Box<dyn FnMut(Event) + Send> }

/// The running threads (dataplane, handshake). Dropping or `shutdown` stops and joins them.
pub struct Dataplane { _p: () }
impl Dataplane {
    /// Binds the sockets and starts the threads.
    pub fn start(config: DataplaneConfig, handshakes: Handshakes, sessions: Sessions, consumers: Consumers) -> Result<Dataplane, StartError> { todo!() }
    pub fn local_addr(&self) -> Option<SocketAddr> { todo!() }
    pub fn local_plain_addr(&self) -> Option<SocketAddr> { todo!() }
    pub fn sender(&self) -> Sender { todo!() }
    pub fn stats(&self) -> Stats { todo!() }
    pub fn shutdown(self) { todo!() }
}
/// Hands work to the dataplane thread; cheap to clone; never blocks.
#[derive(Clone)]
pub struct Sender { _p: () }
impl Sender {
    pub fn try_send(&self, outgoing: Outgoing) -> Result<(), TrySendError> { todo!() }
    /// Waits for room (backpressure).
    pub async fn send(&self, outgoing: Outgoing) -> Result<(), Closed> { todo!() }
    pub fn add_peer(&self, peer: PeerId, config: PeerConfig) -> Result<(), Closed> { todo!() }
    pub fn remove_peer(&self, peer: PeerId) -> Result<(), Closed> { todo!() }
    pub fn connect(&self, peer: PeerId) -> Result<(), Closed> { todo!() }
}
pub enum TrySendError { Full(Outgoing), Closed }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;
#[derive(Debug)]
pub enum StartError { Bind { address: SocketAddr, source: std::io::Error }, Thread(std::io::Error) }
/// One cheap snapshot.
#[derive(Clone, Debug, Default)]
pub struct Stats { pub datagrams_sent: u64, pub bytes_sent: u64, pub datagrams_received: u64, pub bytes_received: u64, pub discards: Vec<(&'static str, u64)> }
