//! What is simulated.

use std::time::{Duration, Instant};

use falconet_crypto::Suite;
use falconet_raptorcast::{ChunkSize, Redundancy};
use falconet_transport::Policy;

use crate::costs::Costs;
use crate::link::Link;
use crate::topology::Topology;

/// How one node speaks to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneUse {
    /// On the authenticated lane alone.
    Auth,
    /// On the plain lane alone.
    Plain,
    /// On both, by this policy.
    Both(Policy),
}

impl LaneUse {
    pub(crate) fn has_auth(self) -> bool {
        self != Self::Plain
    }

    pub(crate) fn has_plain(self) -> bool {
        self != Self::Auth
    }
}

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Where the nodes are.
    pub topology: Topology,
    /// What the network does.
    pub link: Link,
    /// What work costs.
    pub costs: Costs,
    /// How each node speaks; as many as there are nodes.
    pub lanes: Vec<LaneUse>,
    /// Whether the others let a node's address move with what it sends, as for who sits behind a NAT; as many as there
    /// are nodes.
    pub roams: Vec<bool>,
    /// Stake of each node; as many as there are nodes.
    pub stakes: Vec<u128>,
    /// The suite of the authenticated lane.
    pub suite: Suite,
    /// Largest chunk, in bytes.
    pub chunk: ChunkSize,
    /// Symbols sent for each source symbol.
    pub redundancy: Redundancy,
    /// Payload that engines prepare for, in bytes.
    pub payload_len: usize,
    /// All nodes share this many cores; `None` gives every thread its own.
    pub shared_cores: Option<usize>,
    /// Skips the cipher of sessions, and charges its cost.
    pub model_crypto: bool,
    /// Seals a few bytes in place of each chunk, and charges the chunk. Handshakes, sessions, counters, replay windows
    /// and policies are real, and the run is the same.
    pub stand_ins: bool,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// Any reading of the system's clock: what the run's time counts from. It decides nothing.
    pub base: Instant,
}

impl WorldConfig {
    /// Nodes of equal stake with their own cores and the defaults of the product.
    #[must_use]
    pub fn new(topology: Topology, lanes: LaneUse, costs: Costs, seed: u64, base: Instant) -> Self {
        let nodes = topology.nodes();
        Self {
            topology,
            link: Link::default(),
            costs,
            lanes: vec![lanes; nodes],
            roams: vec![false; nodes],
            stakes: vec![1; nodes],
            suite: Suite::ChaCha20Poly1305,
            chunk: ChunkSize::IPV4,
            redundancy: Redundancy::DEFAULT,
            payload_len: 2_000_000,
            shared_cores: None,
            model_crypto: false,
            stand_ins: false,
            seed,
            base,
        }
    }

    /// How long nodes may take to have sessions with each other before anything is measured.
    pub(crate) fn settling(&self) -> Duration {
        Duration::from_secs(3) + 10 * self.topology.longest()
    }
}
