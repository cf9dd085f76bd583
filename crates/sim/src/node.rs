//! One simulated node: the engines that a real one has, and the threads that drive them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use falconet_crypto::{IdentityKey, IdentitySecret, NetworkId, Now, Signer, Tai64N, TransportSecret};
use falconet_raptorcast::{
    ConfigError, Engine, EngineConfig, Epoch, MessageId, Round, Sender, SharedWork, SymbolIndex, ValidatorSet,
};
use falconet_transport::{Endpoint, Lane, PeerConfig, PeerId, PeerRecord, Policy, TransportConfig};

use crate::config::{LaneUse, WorldConfig};
use crate::egress::Egress;
use crate::link::Path;
use crate::seed;
use crate::stages::Stamp;
use crate::thread::Thread;
use crate::time::Time;

/// Datagrams that a socket holds: 16 MiB of full ones.
const SOCKET: usize = 11_650;
/// Handshake messages that their small socket holds.
const HANDSHAKE_SOCKET: usize = 512;
/// Chunks between the dataplane thread and the raptorcast thread.
const CHUNKS: usize = 16_384;
/// Bytes of messages that a node holds.
pub(crate) const MESSAGE_BYTES: usize = 64 << 20;
/// First hops' symbols whose times are remembered.
const STAMPS: usize = 1 << 16;

/// The network that all runs are on.
pub(crate) fn network() -> NetworkId {
    NetworkId::from_name("falconet-sim")
}

/// A datagram that has reached a node.
#[derive(Debug)]
pub(crate) struct Flight {
    /// The node that sent it.
    pub(crate) from: u16,
    /// The address that it bears.
    pub(crate) source: SocketAddr,
    pub(crate) lane: Lane,
    /// Whether it is a chunk whose cipher is only charged, not computed.
    pub(crate) modelled: bool,
    pub(crate) datagram: Bytes,
    /// The chunk that the datagram is a stand-in for.
    pub(crate) chunk: Option<Bytes>,
    pub(crate) stamp: Stamp,
}

/// What waits for the raptorcast thread.
#[derive(Debug)]
pub(crate) enum CastInput {
    Chunk(Sender, Bytes, Stamp),
    Broadcast(Epoch, Round, Bytes),
}

/// What outlives a restart when the disk does: as the product stores it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) timestamp_mark: Option<Tai64N>,
    pub(crate) last_round: Option<(Epoch, Round)>,
    /// Sequence of the last own record.
    pub(crate) record_sequence: Option<u64>,
    /// Records of peers, by node number.
    pub(crate) records: BTreeMap<u32, PeerRecord>,
    /// Peers with whom there was a session.
    pub(crate) seen: BTreeSet<u32>,
}

/// A node, its threads and its way to the network.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    pub(crate) engine: Engine,
    pub(crate) lanes: LaneUse,
    pub(crate) data: Thread<Flight>,
    pub(crate) handshake: Thread<Flight>,
    pub(crate) cast: Thread<CastInput>,
    pub(crate) egress: Egress,
    pub(crate) path: Path,
    /// When the way in is free.
    pub(crate) ingress_free: Time,
    /// Wall clock minus the true time, in nanoseconds.
    pub(crate) skew: i64,
    pub(crate) frozen_until: Time,
    pub(crate) is_up: bool,
    pub(crate) restarts: u64,
    pub(crate) disk: Disk,
    /// Moves the node's addresses: a NAT that has forgotten, or another provider.
    pub(crate) address_shift: u16,
    /// Whether its record, if it publishes one, says that it serves the authenticated lane.
    pub(crate) publishes: Option<bool>,
    /// Times of the symbols that this node is the first hop of.
    pub(crate) stamps: HashMap<(MessageId, SymbolIndex), Stamp>,
    /// The way of the last symbol of each message that is not delivered yet.
    pub(crate) last_symbol: HashMap<MessageId, (Stamp, Time)>,
}

/// The transport key of a node.
pub(crate) fn transport_secret(seed: u64, node: usize) -> TransportSecret {
    TransportSecret::from_bytes(seed::derive(seed, "transport", &[node as u64]))
}

/// The identity of a node.
pub(crate) fn identity_secret(seed: u64, node: usize) -> Arc<IdentitySecret> {
    Arc::new(IdentitySecret::from_bytes(seed::derive(
        seed,
        "identity",
        &[node as u64],
    )))
}

/// The address of a node's lane. `shift` tells apart the addresses that a node has had.
pub(crate) fn address(node: usize, lane: Lane, shift: u16) -> SocketAddr {
    let ip = Ipv4Addr::new(10, (shift & 0xff) as u8, (node >> 8) as u8, node as u8);
    let port = match lane {
        Lane::Authenticated => 7000,
        Lane::Plain => 7001,
    };
    SocketAddr::new(IpAddr::V4(ip), port)
}

/// What all nodes of a run share.
pub(crate) struct Common {
    pub(crate) set: Arc<ValidatorSet>,
    pub(crate) epoch: Epoch,
    /// By node number.
    pub(crate) identities: Vec<IdentityKey>,
    pub(crate) transport_keys: Vec<falconet_crypto::TransportPublicKey>,
    /// Node number by place in the set.
    pub(crate) node_of: Vec<u16>,
    /// What the engines compute once for all, where a chunk stays one piece of memory.
    pub(crate) shared: Option<SharedWork>,
}

impl Node {
    pub(crate) fn new(
        config: &WorldConfig,
        common: &Common,
        number: usize,
        now: Now,
        cores: [usize; 3],
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoint: endpoint(config, common, number, now, 0, &Disk::default()),
            engine: engine(config, common, number, 0, &Disk::default())?,
            lanes: config.lanes[number],
            data: Thread::new(cores[0], SOCKET),
            handshake: Thread::new(cores[1], HANDSHAKE_SOCKET),
            cast: Thread::new(cores[2], CHUNKS),
            egress: Egress::default(),
            path: Path::new(seed::generator(config.seed, "path", &[number as u64])),
            ingress_free: Time::START,
            skew: 0,
            frozen_until: Time::START,
            is_up: true,
            restarts: 0,
            disk: Disk::default(),
            address_shift: 0,
            publishes: None,
            stamps: HashMap::new(),
            last_symbol: HashMap::new(),
        })
    }

    /// Ends the process: what it held is gone, but for the disk.
    pub(crate) fn crash(&mut self) {
        self.is_up = false;
        self.data.clear();
        self.handshake.clear();
        self.cast.clear();
        self.egress.clear();
        self.stamps.clear();
        self.last_symbol.clear();
    }

    /// Starts a new process, with the disk of the last one or with an empty one.
    pub(crate) fn restart(
        &mut self,
        config: &WorldConfig,
        common: &Common,
        (number, now): (usize, Now),
        keeps_disk: bool,
    ) -> Result<(), ConfigError> {
        if !keeps_disk {
            self.disk = Disk::default();
        }
        self.restarts += 1;
        self.endpoint = endpoint(config, common, number, now, self.restarts, &self.disk);
        self.engine = engine(config, common, number, self.restarts, &self.disk)?;
        self.is_up = true;
        Ok(())
    }

    /// Remembers the way of a symbol that this node will relay.
    pub(crate) fn remember(&mut self, id: MessageId, index: SymbolIndex, stamp: Stamp) {
        if self.stamps.len() >= STAMPS {
            self.stamps.clear();
        }
        self.stamps.insert((id, index), stamp);
    }
}

fn endpoint(
    config: &WorldConfig,
    common: &Common,
    number: usize,
    now: Now,
    restarts: u64,
    disk: &Disk,
) -> Endpoint {
    let nodes = config.topology.nodes();
    let seed = seed::derive(config.seed, "endpoint", &[number as u64, restarts]);
    let transport = TransportConfig::default()
        .with_max_peers(nodes.max(16))
        .with_network(network());
    let mut endpoint = Endpoint::new(transport, transport_secret(config.seed, number), now, seed);
    if let Some(mark) = disk.timestamp_mark {
        endpoint.raise_timestamp(mark);
    }
    if config.model_crypto {
        return endpoint;
    }
    for peer in (0..nodes).filter(|peer| *peer != number) {
        let id = PeerId(peer as u32);
        let peer_config = peer_config(config, common, number, peer).with_seen(disk.seen.contains(&id.0));
        // Handles are the node numbers, so none is there twice and all are below the limit.
        let added = endpoint.add_peer(now, id, &peer_config);
        debug_assert!(added.is_ok(), "{added:?}");
        if let Some(record) = disk.records.get(&id.0) {
            // One that has expired since is not put in force.
            let _ = endpoint.update_record(now, id, record);
        }
    }
    endpoint
}

/// What `number` knows of `peer`.
fn peer_config(config: &WorldConfig, common: &Common, number: usize, peer: usize) -> PeerConfig {
    let (own, theirs) = (config.lanes[number], config.lanes[peer]);
    let mut known = PeerConfig::default().with_identity(common.identities[peer]);
    if own.has_plain() && theirs.has_plain() {
        known = known.with_plain_address(address(peer, Lane::Plain, 0));
    }
    if own.has_auth() && theirs.has_auth() {
        known = known
            .with_address(address(peer, Lane::Authenticated, 0))
            .with_persistent(true);
        known.transport_key = Some(common.transport_keys[peer]);
        known.suites = vec![config.suite];
    }
    if config.roams[peer] {
        known = known.with_roaming(true);
    }
    known.with_policy(match own {
        LaneUse::Auth => Policy::Require,
        LaneUse::Both(policy) if theirs.has_auth() => policy,
        LaneUse::Plain | LaneUse::Both(_) => Policy::Plain,
    })
}

fn engine(
    config: &WorldConfig,
    common: &Common,
    number: usize,
    restarts: u64,
    disk: &Disk,
) -> Result<Engine, ConfigError> {
    let overhead = if config.lanes[number].has_auth() { 32 } else { 0 };
    let options = EngineConfig::new(network())
        .with_chunk(config.chunk)
        .with_redundancy(config.redundancy)
        .with_datagram_overhead(overhead)
        // A thousand nodes share one memory: room for a dozen messages each.
        .with_message_bytes(MESSAGE_BYTES)
        // Everything is paced here.
        .with_run_length(1);
    let signer: Arc<dyn Signer> = identity_secret(config.seed, number);
    let seed = seed::derive(config.seed, "engine", &[number as u64, restarts]);
    let mut engine = Engine::new(options, signer, seed)?;
    engine.set_epoch(common.epoch, common.set.clone());
    if let Some(shared) = &common.shared {
        engine.share_work(shared.clone());
    }
    if let Some((epoch, round)) = disk.last_round {
        engine.resume_after(epoch, round);
    }
    Ok(engine)
}
