//! The event loop of a run: nodes, the network between them, and virtual time.

mod cast;
mod data;
mod faults;
mod handshake;
mod network;
mod records;
mod tables;

pub use tables::Table;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use falconet_crypto::{Now, Signer};
use falconet_raptorcast::{
    BroadcastError, ConfigError, Delivery, Epoch, Event, Geometry, GeometryError, HEADER_LEN, MessageId,
    NodeIndex, Round, SetError, SharedWork, Stake, Stats, Validator, ValidatorSet,
};
use falconet_transport::{Event as SessionEvent, PeerId};
use thiserror::Error;

use crate::config::WorldConfig;
use crate::counters::Counters;
use crate::digest::{Fingerprint, RunDigest};
use crate::node::{CastInput, Common, Flight, Node, identity_secret, transport_secret};
use crate::stages::Stages;
use crate::thread::{Cores, Role};
use crate::time::{Clock, Time};

/// Threads of a node: dataplane, handshake, raptorcast.
const THREADS: usize = 3;
/// Nodes that addresses and handles are made for.
const MAX_NODES: usize = 4_096;

/// A run that cannot be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// Fewer than two nodes, or more than 4,096.
    #[error("{0} nodes: from 2 to {MAX_NODES} can be simulated")]
    Nodes(usize),
    /// A list that has not one entry for each node.
    #[error("{name} has {found} entries for {nodes} nodes")]
    Entries {
        /// Which list.
        name: &'static str,
        /// Entries in it.
        found: usize,
        /// Nodes of the topology.
        nodes: usize,
    },
    /// The engines refuse these options.
    #[error(transparent)]
    Engine(#[from] ConfigError),
    /// The stakes are no validator set.
    #[error(transparent)]
    Set(#[from] SetError),
    /// Payloads of this length cannot be broadcast to these nodes.
    #[error("no payload can be broadcast: {0}")]
    Payload(#[from] GeometryError),
}

/// What a run tells whoever drives it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Report {
    /// A payload is encoded and begins to leave.
    Broadcast {
        /// Who leads.
        node: usize,
        /// Which message.
        id: MessageId,
    },
    /// A payload was not broadcast.
    Refused {
        /// Who was to lead.
        node: usize,
        /// Which round.
        round: Round,
        /// Why.
        error: BroadcastError,
    },
    /// A payload has arrived.
    Delivered {
        /// Where.
        node: usize,
        /// When.
        at: Time,
        /// What.
        delivery: Box<Delivery>,
        /// Where the time went.
        stages: Stages,
    },
    /// Something else that an engine says.
    Cast {
        /// Where.
        node: usize,
        /// When.
        at: Time,
        /// What.
        event: Box<Event>,
    },
    /// What became of a session.
    Session {
        /// Where.
        node: usize,
        /// When.
        at: Time,
        /// What.
        event: SessionEvent,
    },
}

/// What happens at a point of time.
#[derive(Debug)]
enum What {
    Arrive(u16, Flight),
    Turn(u16, Role),
}

#[derive(Debug)]
struct Entry {
    at: Time,
    order: u64,
    what: What,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// A network of nodes in virtual time.
///
/// Drive it with [`World::run_until`] and take what happened from [`World::poll_report`]; between two calls nodes
/// may be given work ([`World::broadcast`]) and trouble ([`World::crash`], [`World::freeze`], [`World::set_loss`]).
pub struct World {
    config: WorldConfig,
    common: Common,
    clock: Clock,
    now: Time,
    queue: BinaryHeap<Reverse<Entry>>,
    order: u64,
    nodes: Vec<Node>,
    cores: Cores,
    /// When the leader of a message began and when it had encoded.
    led: HashMap<MessageId, (Time, Time)>,
    /// Share of the datagrams that is lost, by sender and receiver, where it is not the link's.
    extra_loss: HashMap<(u16, u16), f64>,
    reports: VecDeque<Report>,
    /// Who watches the counters that leave, if anybody does.
    counters: Option<Counters>,
    digest: RunDigest,
    /// Where a plain datagram is opened, so that what others hold stays untouched.
    scratch: Vec<u8>,
}

impl World {
    /// Nodes that have just started: sessions are dialled from now on.
    ///
    /// # Errors
    ///
    /// [`WorldError`] if the description is no network.
    pub fn new(config: WorldConfig) -> Result<Self, WorldError> {
        let count = config.topology.nodes();
        check(&config, count)?;
        let common = common(&config, count)?;
        check_payload(&config, &common)?;
        let clock = Clock::new(config.base);
        let cores = config.shared_cores.unwrap_or(count * THREADS).max(1);
        let mut nodes = Vec::with_capacity(count);
        for number in 0..count {
            let threads = [0, 1, 2].map(|thread| (number * THREADS + thread) % cores);
            nodes.push(Node::new(
                &config,
                &common,
                number,
                clock.read(Time::START, 0),
                threads,
            )?);
        }
        let mut world = Self {
            common,
            clock,
            now: Time::START,
            queue: BinaryHeap::new(),
            order: 0,
            nodes,
            cores: Cores::new(cores),
            led: HashMap::new(),
            extra_loss: HashMap::new(),
            reports: VecDeque::new(),
            counters: None,
            digest: RunDigest::default(),
            scratch: Vec::new(),
            config,
        };
        if let Some(node) = world.nodes.first_mut() {
            node.engine.warm_up(world.config.payload_len);
        }
        for number in 0..count as u16 {
            world.plan(number, Role::Data, Time::START);
        }
        Ok(world)
    }

    /// The description it was made from.
    #[must_use]
    pub fn config(&self) -> &WorldConfig {
        &self.config
    }

    /// The time until which everything has happened.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets everything happen that happens until `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.queue.peek().is_some_and(|Reverse(entry)| entry.at <= end) {
            let Some(Reverse(entry)) = self.queue.pop() else {
                break;
            };
            self.now = entry.at;
            match entry.what {
                What::Arrive(to, flight) => self.handle_arrival(to, flight),
                What::Turn(node, role) => self.handle_turn(node, role),
            }
        }
        self.now = self.now.max(end);
    }

    /// The next thing that happened and that somebody may want to know.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Has a node broadcast a payload, from now on.
    pub fn broadcast(&mut self, node: usize, epoch: Epoch, round: Round, payload: Bytes) {
        let (number, now) = (node as u16, self.now);
        self.nodes[node]
            .cast
            .push(now, CastInput::Broadcast(epoch, round, payload));
        self.plan(number, Role::Cast, now);
    }

    /// The epoch of the run.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.common.epoch
    }

    /// The node whose place in the set this is.
    #[must_use]
    pub fn node_of(&self, id: MessageId) -> Option<usize> {
        self.common
            .node_of
            .get(id.author.as_usize())
            .map(|node| usize::from(*node))
    }

    /// Whether a node has a session with another.
    #[must_use]
    pub fn is_connected(&self, node: usize, peer: usize) -> bool {
        let node = &self.nodes[node];
        let now = self.clock.read(self.now, node.skew);
        node.is_up && node.endpoint.sessions().is_connected(now, PeerId(peer as u32))
    }

    /// What the engine of a node has counted since it was started.
    #[must_use]
    pub fn stats(&self, node: usize) -> &Stats {
        self.nodes[node].engine.stats()
    }

    /// Bytes that a node has put on the wire, frames counted whole.
    #[must_use]
    pub fn wire_bytes(&self, node: usize) -> u64 {
        self.nodes[node].egress.wire_bytes
    }

    /// Datagrams and chunks that found a queue of the node full.
    #[must_use]
    pub fn dropped(&self, node: usize) -> u64 {
        let node = &self.nodes[node];
        node.data.dropped + node.handshake.dropped + node.cast.dropped + node.egress.dropped
    }

    /// CPU time that all nodes together were charged.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.cores.busy()
    }

    /// The digest of everything that has happened.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.digest.fingerprint()
    }

    fn read(&self, node: u16, time: Time) -> Now {
        self.clock.read(time, self.nodes[usize::from(node)].skew)
    }

    fn schedule(&mut self, at: Time, what: What) {
        self.order += 1;
        self.queue.push(Reverse(Entry {
            at,
            order: self.order,
            what,
        }));
    }

    /// Plans a turn of a thread, unless one is planned no later.
    fn plan(&mut self, number: u16, role: Role, at: Time) {
        let at = at.max(self.now);
        let node = &mut self.nodes[usize::from(number)];
        let turn = node.turn_mut(role);
        if turn.is_some_and(|planned| planned <= at) {
            return;
        }
        *turn = Some(at);
        self.schedule(at, What::Turn(number, role));
    }

    fn handle_turn(&mut self, number: u16, role: Role) {
        let now = self.now;
        let node = &mut self.nodes[usize::from(number)];
        if *node.turn_mut(role) != Some(now) {
            return;
        }
        *node.turn_mut(role) = None;
        if !node.is_up {
            return;
        }
        let free_at = self.cores.free_at(node.core(role)).max(node.frozen_until);
        if free_at > now {
            return self.plan(number, role, free_at);
        }
        match role {
            Role::Data => self.data_turn(number),
            Role::Handshake => self.handshake_turn(number),
            Role::Cast => self.cast_turn(number),
        }
    }

    /// Occupies the core of a thread from now on; returns when it is done.
    fn charge(&mut self, number: u16, role: Role, cost: Duration) -> Time {
        let core = self.nodes[usize::from(number)].core(role);
        self.cores.charge(core, self.now, cost)
    }
}

impl Node {
    fn turn_mut(&mut self, role: Role) -> &mut Option<Time> {
        match role {
            Role::Data => &mut self.data.turn,
            Role::Handshake => &mut self.handshake.turn,
            Role::Cast => &mut self.cast.turn,
        }
    }

    fn core(&self, role: Role) -> usize {
        match role {
            Role::Data => self.data.core,
            Role::Handshake => self.handshake.core,
            Role::Cast => self.cast.core,
        }
    }
}

fn check(config: &WorldConfig, nodes: usize) -> Result<(), WorldError> {
    if !(2..=MAX_NODES).contains(&nodes) {
        return Err(WorldError::Nodes(nodes));
    }
    let lists = [
        ("lanes", config.lanes.len()),
        ("roams", config.roams.len()),
        ("stakes", config.stakes.len()),
    ];
    for (name, found) in lists {
        if found != nodes {
            return Err(WorldError::Entries { name, found, nodes });
        }
    }
    Ok(())
}

/// Before any node is made: thousands take a while.
fn check_payload(config: &WorldConfig, common: &Common) -> Result<(), WorldError> {
    let leader = common
        .identities
        .first()
        .and_then(|identity| common.set.index_of(identity));
    let leader = leader.unwrap_or(NodeIndex::new(0));
    let of = (&*common.set, leader);
    Geometry::for_set(
        config.payload_len,
        config.chunk,
        HEADER_LEN,
        config.redundancy,
        of,
    )?;
    Ok(())
}

fn common(config: &WorldConfig, count: usize) -> Result<Common, WorldError> {
    let identities: Vec<_> = (0..count)
        .map(|node| identity_secret(config.seed, node).identity())
        .collect();
    let members = identities
        .iter()
        .zip(&config.stakes)
        .map(|(identity, stake)| Validator {
            identity: *identity,
            stake: Stake::new(*stake),
        });
    let set = Arc::new(ValidatorSet::new(members.collect())?);
    let numbers: HashMap<_, _> = identities.iter().zip(0_u16..).collect();
    let node_of = set.iter().map(|(_, member)| numbers[&member.identity]).collect();
    let transport_keys = if config.model_crypto {
        // Nobody has sessions.
        Vec::new()
    } else {
        (0..count)
            .map(|node| transport_secret(config.seed, node).public())
            .collect()
    };
    Ok(Common {
        epoch: Epoch::new(1),
        transport_keys,
        node_of,
        set,
        identities,
        shared: (config.stand_ins || config.model_crypto).then(SharedWork::default),
    })
}
