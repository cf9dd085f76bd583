//! A running node: its threads and the handles to them.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use falconet_crypto::{IdentityKey, TransportPublicKey};
use falconet_dataplane::Dataplane;
use falconet_raptorcast::RaptorcastThread;
use falconet_transport::PeerId;

use crate::builder::NodeBuilder;
use crate::connections::Connections;
use crate::directory::SharedDirectory;
use crate::error::{PeerError, StartError};
use crate::keys::NodeKeys;
use crate::settings::Settings;
use crate::state::State;
use crate::stats::{Stats, ThreadsStats};
use crate::streams::{Deliveries, Delivery, Events, Message, Messages, NodeEvent};
use crate::subscription::Publisher;
use crate::wiring::Departures;
pub use broadcast::BroadcastReport;
pub use peers::PeerStats;
use records::Issuer;
use start::Parts;

mod broadcast;
mod messages;
mod peers;
mod records;
mod start;

/// No epoch has been entered yet.
const NO_EPOCH: u32 = u32::MAX;

/// A node of a network: sends and receives broadcasts and small messages. Dropping it stops and joins its threads.
pub struct Node {
    identity: IdentityKey,
    transport_key: TransportPublicKey,
    has_authenticated_lane: bool,
    max_message: usize,
    epoch: AtomicU32,
    directory: SharedDirectory,
    connections: Arc<Connections>,
    expected: Mutex<Vec<PeerId>>,
    departures: Departures,
    deliveries: Publisher<Delivery>,
    messages: Publisher<Message>,
    events: Publisher<NodeEvent>,
    issuer: Arc<Issuer>,
    // Dropped in this order: the raptorcast thread sends through the dataplane, and both have last words for the state.
    raptorcast: RaptorcastThread,
    dataplane: Dataplane,
    state: Option<State>,
}

impl Node {
    /// Describes a node with these keys.
    pub fn builder(keys: NodeKeys) -> NodeBuilder {
        NodeBuilder::new(keys)
    }

    pub(crate) async fn start(keys: NodeKeys, settings: Settings) -> Result<Self, StartError> {
        let first_set = settings.validator_set()?;
        let node = Parts::new(&settings).start(keys, &settings)?;
        if let Some((epoch, set)) = first_set {
            node.insert_set(epoch, set).map_err(|_| PeerError::Stopped)?;
        }
        if let Some(record) = settings.record {
            node.publish_record(record).await?;
        }
        for peer in settings.peers {
            node.add_peer(peer)?;
        }
        Ok(node)
    }

    /// The key that names this node.
    pub fn identity(&self) -> IdentityKey {
        self.identity
    }

    /// The key that its sessions are made with.
    pub fn transport_key(&self) -> TransportPublicKey {
        self.transport_key
    }

    /// Address of the authenticated lane, with the port that the system chose.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.dataplane.local_addr()
    }

    /// Address of the plain lane, with the port that the system chose.
    pub fn local_plain_addr(&self) -> Option<SocketAddr> {
        self.dataplane.local_plain_addr()
    }

    /// The payloads that others broadcast. The first call gets what was delivered since the node started, as far as it
    /// was kept; each later call an own stream from now on. A reader that falls behind by more than
    /// [`NodeBuilder::kept_deliveries`] loses the oldest, and [`Delivery::missed`] says how many.
    pub fn deliveries(&self) -> Deliveries {
        Deliveries(self.deliveries.subscribe())
    }

    /// Small messages from peers, kept as deliveries are.
    pub fn messages(&self) -> Messages {
        Messages(self.messages.subscribe())
    }

    /// Sessions that come and go, records that were taken, messages that were given up, broadcasts that failed and who
    /// is to blame.
    pub fn events(&self) -> Events {
        Events(self.events.subscribe())
    }

    /// What the node has done so far; cheap for it and for the caller.
    pub fn stats(&self) -> Stats {
        let raptorcast = self.raptorcast.handle();
        let dataplane = self.dataplane.stats();
        Stats {
            connected_peers: self.connections.len(),
            state: self.state.as_ref().map(State::stats).unwrap_or_default(),
            ..Stats::new(dataplane, &raptorcast.thread_stats(), raptorcast.engine_stats())
        }
    }

    /// How busy its threads are and what waits for them; as cheap as [`Node::stats`].
    pub fn thread_stats(&self) -> ThreadsStats {
        ThreadsStats::from(self.dataplane.stats())
    }

    /// Stops the node and joins its threads, within a second. What is queued is lost.
    pub async fn shutdown(self) {
        // An error means that the runtime is shutting down, which drops the node just as well.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    /// Waits until every peer that speaks the authenticated lane has a session.
    ///
    /// # Errors
    /// Those that have none when the time is over.
    pub async fn wait_connected(&self, within: Duration) -> Result<(), Vec<IdentityKey>> {
        let expected = self
            .expected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let connected = self.connections.wait_for(&expected, within).await;
        connected.map_err(|missing| {
            let directory = self.directory.load();
            let named = missing.into_iter().filter_map(|peer| directory.identity(peer));
            named.collect()
        })
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
