//! API SKELETON (being replaced by the real thing; names stay).
#![allow(missing_docs, dead_code, unused_variables)]
use bytes::Bytes;
pub use falconet_crypto::{IdentityKey, NetworkId, Suite, TransportPublicKey};
pub use falconet_dataplane::{Class, LinkEmulation, Rate};
pub use falconet_transport::{Lane, Policy};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub struct NodeKeys { _p: () }
impl NodeKeys { pub fn generate() -> Self { todo!() } }
#[derive(Clone)]
pub struct Validator { pub identity: IdentityKey, pub stake: u128 }
/// Everything a node knows of another: identity, transport key, addresses of both lanes, policy.
#[derive(Clone)]
pub struct Peer { _p: () }
impl Peer {
    pub fn new(identity: IdentityKey) -> Self { todo!() }
    pub fn with_authenticated(self, key: TransportPublicKey, address: SocketAddr) -> Self { todo!() }
    pub fn with_plain(self, address: SocketAddr) -> Self { todo!() }
    pub fn with_policy(self, policy: Policy) -> Self { todo!() }
    /// Suites that the peer's record lists besides suite 0.
    pub fn with_suites(self, suites: &[Suite]) -> Self { todo!() }
}
pub struct NodeBuilder { _p: () }
impl NodeBuilder {
    pub fn network(self, network: NetworkId) -> Self { todo!() }
    pub fn listen(self, address: SocketAddr) -> Self { todo!() }
    pub fn listen_plain(self, address: SocketAddr) -> Self { todo!() }
    pub fn rate(self, rate: Rate) -> Self { todo!() }
    pub fn suites(self, suites: &[Suite]) -> Self { todo!() }
    pub fn policy(self, policy: Policy) -> Self { todo!() }
    pub fn link_emulation(self, link: LinkEmulation) -> Self { todo!() }
    pub fn validators(self, epoch: u32, set: Vec<Validator>) -> Self { todo!() }
    pub fn peers(self, peers: impl IntoIterator<Item = Peer>) -> Self { todo!() }
    pub fn name(self, thread_prefix: &str) -> Self { todo!() }
    pub async fn start(self) -> Result<Node, StartError> { todo!() }
}
pub struct Node { _p: () }
impl Node {
    pub fn builder(keys: NodeKeys) -> NodeBuilder { todo!() }
    pub fn identity(&self) -> IdentityKey { todo!() }
    pub fn transport_key(&self) -> TransportPublicKey { todo!() }
    pub fn local_addr(&self) -> Option<SocketAddr> { todo!() }
    pub fn local_plain_addr(&self) -> Option<SocketAddr> { todo!() }
    pub fn add_peer(&self, peer: Peer) -> Result<(), PeerError> { todo!() }
    pub fn set_validators(&self, epoch: u32, set: Vec<Validator>) -> Result<(), SetError> { todo!() }
    /// Waits until every peer of the authenticated lane has a session; Err names those that have none.
    pub async fn wait_connected(&self, within: Duration) -> Result<(), Vec<IdentityKey>> { todo!() }
    pub async fn broadcast(&self, round: u64, payload: Bytes) -> Result<BroadcastReport, BroadcastError> { todo!() }
    pub async fn send(&self, peer: &IdentityKey, payload: Bytes, class: Class) -> Result<(), SendError> { todo!() }
    pub fn deliveries(&self) -> Deliveries { todo!() }
    pub fn stats(&self) -> Stats { todo!() }
    pub async fn shutdown(self) { todo!() }
}
pub struct Deliveries { _p: () }
impl Deliveries { pub async fn recv(&mut self) -> Option<Delivery> { todo!() } }
#[derive(Debug, Clone)]
pub struct Delivery { pub payload: Bytes, pub author: IdentityKey, pub epoch: u32, pub round: u64, pub at: Instant, pub symbols: usize, /** Deliveries lost to a slow reader just before this one. */ pub missed: u64 }
#[derive(Debug, Clone)]
pub struct BroadcastReport { pub source_symbols: usize, pub symbols: usize, pub symbol_size: usize, pub redundancy: f64, pub datagrams: usize, pub bytes: usize, pub dropped: usize, pub started: Instant, /** When the last datagram left. */ pub last_sent: Instant }
#[derive(Debug, Clone, Default)]
pub struct Stats { pub authenticated: LaneStats, pub plain: LaneStats, pub discards: Vec<(&'static str, u64)>, pub established_sessions: usize }
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneStats { pub datagrams_sent: u64, pub bytes_sent: u64, pub datagrams_received: u64, pub bytes_received: u64 }
macro_rules! error { ($($n:ident),*) => { $( #[derive(Debug)] pub struct $n; impl std::fmt::Display for $n { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { todo!() } } impl std::error::Error for $n {} )* } }
error!(StartError, PeerError, SetError, BroadcastError, SendError);
