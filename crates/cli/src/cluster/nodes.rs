//! The nodes of a cluster: started, introduced to each other, connected, and stopped again.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use falconet::{
    IdentityKey, LinkEmulation, NetworkId, Node, NodeKeys, Peer, Policy, Stake, Stats, Suite, Validator,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::plan::{Lane, NodeNumber, Plan, Speaks};
use super::progress::list;
use super::settings::Settings;
use crate::args::SuiteChoice;
use crate::exit::Failure;

/// All sessions must be there within this time.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// The only epoch of a run; each node has the same stake in it.
const EPOCH: u32 = 1;
/// At most so many nodes are named in an error.
const NAMED: usize = 4;

/// A payload that reached a node.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) receiver: NodeNumber,
    pub(crate) delivery: falconet::Delivery,
}

/// A running cluster.
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
}

/// Where the nodes listen: known only once all have started, asked for by each one's link emulation.
type AddressBook = Arc<OnceLock<HashMap<SocketAddr, NodeNumber>>>;

impl Cluster {
    /// Starts the nodes on loopback and introduces each to each.
    ///
    /// # Errors
    /// Exit code 1 if a node does not start, for example for want of file descriptors.
    pub(crate) async fn start(settings: &Settings, lane: Lane) -> Result<Self, Failure> {
        let plan = settings.plan;
        let keys: Vec<_> = plan
            .nodes()
            .map(|_| NodeKeys::generate().map_err(|error| Failure::run(format!("no keys: {error}"))))
            .collect::<Result<_, _>>()?;
        let validators: Vec<_> = keys
            .iter()
            .map(|keys| Validator {
                identity: keys.identity(),
                stake: Stake::new(1),
            })
            .collect();
        let addresses = AddressBook::default();

        let mut nodes = Vec::with_capacity(plan.len());
        for (number, keys) in plan.nodes().zip(keys) {
            let node = Node::builder(keys)
                .name(&format!("n{number}"))
                .network(NetworkId::from_name("falconet cluster"))
                .rate(settings.rate.into())
                .suites(suites(settings.suite))
                .relayed_payloads_per_second(relayed_payloads(settings.interval))
                // A machine that cannot keep up is to be measured, not to refuse what comes late.
                .timestamp_window(settings.interval + settings.drain_limit())
                .validators(EPOCH, validators.clone());
            let node = listen(node, plan.speaks(lane, number));
            let node = emulate(node, settings, number, &addresses);
            let started = node.start().await;
            nodes.push(
                started.map_err(|error| Failure::run(format!("node {number} did not start: {error}")))?,
            );
        }
        // Set once, here, and nobody else holds the writing end.
        addresses.set(book(&nodes)).ok();
        introduce(&nodes, plan, lane, settings.suite)?;
        let arrivals = collect(&nodes);
        Ok(Self { nodes, arrivals })
    }

    /// Waits until each node knows its peers, and each pair that speaks the authenticated lane has a session; gives the
    /// number of sessions.
    ///
    /// # Errors
    /// Exit code 1 and the nodes concerned if that takes more than 30 seconds.
    pub(crate) async fn connect(&self) -> Result<usize, Failure> {
        for node in &self.nodes {
            let settled = node.settle().await;
            settled.map_err(|error| Failure::run(error.to_string()))?;
        }
        let limit = Instant::now() + CONNECT_LIMIT;
        let mut missing = Vec::new();
        // Sessions are made meanwhile, whichever node is asked first.
        for node in &self.nodes {
            let within = limit.saturating_duration_since(Instant::now());
            missing.push(node.wait_connected(within).await.err().unwrap_or_default());
        }
        self.require_none(&missing)?;
        let ends: usize = self.stats().iter().map(|stats| stats.connected_peers).sum();
        Ok(ends / 2)
    }

    /// `missing`: by node, the peers that it lacks.
    fn require_none(&self, missing: &[Vec<IdentityKey>]) -> Result<(), Failure> {
        let number = |identity: &IdentityKey| self.nodes.iter().position(|node| node.identity() == *identity);
        let lacking: Vec<_> = missing
            .iter()
            .enumerate()
            .filter(|(_, peers)| !peers.is_empty())
            .map(|(node, peers)| {
                let mut peers: Vec<_> = peers.iter().filter_map(number).map(NodeNumber).collect();
                peers.sort_unstable();
                (NodeNumber(node), peers)
            })
            .collect();
        if lacking.is_empty() {
            Ok(())
        } else {
            Err(not_connected(&lacking))
        }
    }

    /// The node that broadcasts.
    pub(crate) fn leader(&self) -> &Node {
        &self.nodes[NodeNumber::LEADER.0]
    }

    /// The next payload that reached a node; never resolves once all nodes have stopped.
    pub(crate) async fn arrival(&mut self) -> Arrival {
        match self.arrivals.recv().await {
            Some(arrival) => arrival,
            None => std::future::pending().await,
        }
    }

    /// What each node has counted so far.
    pub(crate) fn stats(&self) -> Vec<Stats> {
        self.nodes.iter().map(Node::stats).collect()
    }

    /// Stops all nodes and waits for their threads.
    pub(crate) async fn shutdown(self) {
        let mut stopping: JoinSet<()> = self.nodes.into_iter().map(Node::shutdown).collect();
        while stopping.join_next().await.is_some() {}
    }
}

/// The relaying that the leader needs of the others: all of its payloads, at any interval, and some slack.
fn relayed_payloads(interval: Duration) -> u32 {
    // At most 1,002: an interval is at least a millisecond.
    (1.0 / interval.as_secs_f64()).ceil() as u32 + 2
}

/// Opens sockets only for the lanes that a node speaks, on ports that the system chooses.
fn listen(mut node: falconet::NodeBuilder, speaks: Speaks) -> falconet::NodeBuilder {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if speaks.auth {
        node = node.listen(any_port);
    }
    if speaks.plain {
        node = node.listen_plain(any_port);
    }
    node
}

/// Puts delay and loss in front of a node's sockets, if there are any.
fn emulate(
    node: falconet::NodeBuilder,
    settings: &Settings,
    from: NodeNumber,
    addresses: &AddressBook,
) -> falconet::NodeBuilder {
    let plan = settings.plan;
    if plan.longest_delay().is_zero() && settings.loss == 0.0 {
        return node;
    }
    let addresses = Arc::clone(addresses);
    let delay = move |to: SocketAddr| {
        let to = addresses.get().and_then(|addresses| addresses.get(&to));
        to.map_or(Duration::ZERO, |to| plan.delay(from, *to))
    };
    node.link_emulation(LinkEmulation {
        delay: Arc::new(delay),
        loss: settings.loss,
        // Each node loses others, or a symbol and its relayed copies would share their fate.
        seed: settings.seed.wrapping_mul(1_000).wrapping_add(from.0 as u64),
    })
}

fn book(nodes: &[Node]) -> HashMap<SocketAddr, NodeNumber> {
    let listening = |(number, node): (usize, &Node)| {
        [node.local_addr(), node.local_plain_addr()]
            .into_iter()
            .flatten()
            .map(move |at| (at, NodeNumber(number)))
    };
    nodes.iter().enumerate().flat_map(listening).collect()
}

fn introduce(nodes: &[Node], plan: Plan, lane: Lane, suite: SuiteChoice) -> Result<(), Failure> {
    let peers: Vec<_> = plan
        .nodes()
        .zip(nodes)
        .map(|(number, node)| peer(node, plan.speaks(lane, number), suite))
        .collect();
    for (number, node) in nodes.iter().enumerate() {
        for (other, peer) in peers.iter().enumerate().filter(|(other, _)| *other != number) {
            node.add_peer(peer.clone()).map_err(|error| {
                Failure::run(format!("node {number} does not take node {other}: {error}"))
            })?;
        }
    }
    Ok(())
}

/// What the others are told of a node.
fn peer(node: &Node, speaks: Speaks, suite: SuiteChoice) -> Peer {
    let mut peer = Peer::new(node.identity())
        .with_suites(suites(suite))
        .with_policy(match speaks {
            Speaks {
                auth: true,
                plain: false,
            } => Policy::Require,
            Speaks {
                auth: true,
                plain: true,
            } => Policy::Prefer,
            Speaks { auth: false, .. } => Policy::Plain,
        });
    if let Some(address) = node.local_addr() {
        peer = peer.with_authenticated(node.transport_key(), address);
    }
    if let Some(address) = node.local_plain_addr() {
        peer = peer.with_plain(address);
    }
    peer
}

/// One stream of what reaches any node, each in its own task, so that no node waits for another's reader.
fn collect(nodes: &[Node]) -> mpsc::UnboundedReceiver<Arrival> {
    // Bounded by what one leader broadcasts: a round of it at a time.
    let (sender, arrivals) = mpsc::unbounded_channel();
    for (number, node) in nodes.iter().enumerate() {
        let mut deliveries = node.deliveries();
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Some(delivery) = deliveries.recv().await {
                if sender
                    .send(Arrival {
                        receiver: NodeNumber(number),
                        delivery,
                    })
                    .is_err()
                {
                    return;
                }
            }
        });
    }
    arrivals
}

fn not_connected(missing: &[(NodeNumber, Vec<NodeNumber>)]) -> Failure {
    let mut parts: Vec<_> = missing
        .iter()
        .take(NAMED)
        .map(|(node, peers)| format!("node {node} with {}", list(peers)))
        .collect();
    if missing.len() > NAMED {
        parts.push(format!("and {} more nodes", missing.len() - NAMED));
    }
    let limit = CONNECT_LIMIT.as_secs();
    Failure::run(format!("no session after {limit} s: {}", parts.join("; ")))
}

/// The preferred one first; suite 0 is every node's fallback, so it is always among them.
fn suites(choice: SuiteChoice) -> &'static [Suite] {
    match choice {
        SuiteChoice::ChaCha => &[Suite::ChaCha20Poly1305],
        SuiteChoice::Aes => &[Suite::Aes256Gcm, Suite::ChaCha20Poly1305],
    }
}
