//! A running node: three threads and the handles to them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentityKey, Suite, TransportPublicKey};
use falconet_dataplane::{Class, Consumers, Dataplane, Outgoing, Recipients, TrySendError};
use falconet_raptorcast::{
    ChunkSize, CommandError, Engine, EngineConfig, Epoch, RaptorcastHandle, RaptorcastThread, Redundancy,
    Round, ThreadConfig, Validator, ValidatorSet,
};
use falconet_transport::TransportConfig;
use tokio::sync::oneshot;

use crate::builder::NodeBuilder;
use crate::connections::Connections;
use crate::departure::Departure;
use crate::directory::SharedDirectory;
use crate::entropy;
use crate::error::{BroadcastError, PeerError, SendError, StartError};
use crate::keys::NodeKeys;
use crate::peer::Peer;
use crate::stats::Stats;
use crate::streams::{Deliveries, Delivery, Events, Message, Messages, NodeEvent};
use crate::subscription::Publisher;
use crate::wiring::{
    BroadcastEvents, ChunkConsumer, ChunkOutput, Departures, MessageConsumer, SessionEvents,
};
use crate::wiring::{message_datagram, now};

/// Events kept for a slow reader.
const KEPT_EVENTS: usize = 1_024;
/// No epoch has been entered yet.
const NO_EPOCH: u32 = u32::MAX;

/// What became of a broadcast: every datagram has left the node, or was given up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BroadcastReport {
    /// K: symbols that the payload was split into; about so many rebuild it.
    pub source_symbols: usize,
    /// N: symbols in all, each sent to its first hop.
    pub symbols: usize,
    /// T: bytes of a symbol.
    pub symbol_size: usize,
    /// N / K.
    pub redundancy: f64,
    /// Datagrams that left.
    pub datagrams: usize,
    /// Their bytes of UDP payload, frames included.
    pub bytes: usize,
    /// Datagrams that were given up: no way to their first hop is known, or its queue was full.
    pub dropped: usize,
    /// Before encoding.
    pub started: Instant,
    /// When the last datagram left.
    pub last_sent: Instant,
}

/// A node of a network: sends and receives broadcasts and small messages. Dropping it stops and joins its threads.
pub struct Node {
    identity: IdentityKey,
    transport_key: TransportPublicKey,
    has_authenticated_lane: bool,
    max_message: usize,
    epoch: AtomicU32,
    directory: SharedDirectory,
    connections: Arc<Connections>,
    expected: std::sync::Mutex<Vec<falconet_transport::PeerId>>,
    departures: Departures,
    deliveries: Publisher<Delivery>,
    messages: Publisher<Message>,
    events: Publisher<NodeEvent>,
    // Dropped in this order: the raptorcast thread sends through the dataplane.
    raptorcast: RaptorcastThread,
    dataplane: Dataplane,
}

impl Node {
    /// Describes a node with these keys.
    pub fn builder(keys: NodeKeys) -> NodeBuilder {
        NodeBuilder::new(keys)
    }

    pub(crate) fn start(builder: NodeBuilder) -> Result<Self, StartError> {
        let first_set = builder.validator_set()?;
        let peers = builder.peers.clone();
        let node = Parts::new(&builder).start(builder)?;
        if let Some((epoch, set)) = first_set {
            node.insert_set(epoch, set).map_err(|_| PeerError::Stopped)?;
        }
        for peer in peers {
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

    /// Adds a peer; if it is persistent and speaks the authenticated lane, it is dialled at once.
    ///
    /// # Errors
    /// [`PeerError`] if it is this node itself or was added before.
    pub fn add_peer(&self, peer: Peer) -> Result<(), PeerError> {
        let identity = peer.identity();
        if identity == self.identity {
            return Err(PeerError::Ourselves(identity));
        }
        let id = self
            .directory
            .insert_peer(identity)
            .ok_or(PeerError::Duplicate(identity))?;
        let config = peer.to_config(self.has_authenticated_lane);
        self.dataplane
            .sender()
            .add_peer(id, config)
            .map_err(|_| PeerError::Stopped)?;
        if self.has_authenticated_lane && peer.speaks_authenticated() {
            self.expected
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .push(id);
        }
        Ok(())
    }

    /// Hands over the validators of an epoch; the first call enters it, later ones prepare the next epoch.
    /// Messages of the two latest epochs are judged, each by its own set.
    ///
    /// # Errors
    /// If the list is no set, or the node has stopped.
    pub fn set_validators(&self, epoch: u32, members: Vec<Validator>) -> Result<(), StartError> {
        let set = ValidatorSet::new(members)?;
        Ok(self
            .insert_set(Epoch::new(epoch), set)
            .map_err(|_| PeerError::Stopped)?)
    }

    fn insert_set(&self, epoch: Epoch, set: ValidatorSet) -> Result<(), CommandError> {
        let set = Arc::new(set);
        self.directory.insert_set(epoch, &set);
        self.raptorcast.handle().set_epoch(epoch, set)?;
        let _ = self
            .epoch
            .compare_exchange(NO_EPOCH, epoch.number(), Ordering::AcqRel, Ordering::Acquire);
        Ok(())
    }

    /// Broadcasts in this epoch from now on; its validators were handed over before.
    pub fn enter_epoch(&self, epoch: u32) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Tells the local round: broadcasts further from it than the window of 2 are refused from now on.
    ///
    /// # Errors
    /// [`BroadcastError::RoundTooLarge`] above 2^48 - 1, [`BroadcastError::Stopped`] if the node is too busy or stopped.
    pub fn set_round(&self, round: u64) -> Result<(), BroadcastError> {
        let round = Round::new(round).ok_or(BroadcastError::RoundTooLarge(round))?;
        self.raptorcast
            .handle()
            .set_round(round)
            .map_err(|_| BroadcastError::Stopped)
    }

    /// Waits until every peer that speaks the authenticated lane has a session.
    ///
    /// # Errors
    /// Those that have none when the time is over.
    pub async fn wait_connected(&self, within: Duration) -> Result<(), Vec<IdentityKey>> {
        let expected = self
            .expected
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        self.connections
            .wait_for(&expected, within)
            .await
            .map_err(|missing| {
                let directory = self.directory.load();
                missing
                    .into_iter()
                    .filter_map(|peer| directory.identity(peer))
                    .collect()
            })
    }

    /// Whether this peer has a session now.
    pub fn is_connected(&self, peer: &IdentityKey) -> bool {
        self.directory
            .load()
            .peer(peer)
            .is_some_and(|peer| self.connections.contains(peer))
    }

    /// Broadcasts a payload of 1 byte to 3 MiB to every other validator of the epoch, and waits until its last datagram
    /// has left.
    ///
    /// What is promised: every validator that gets enough symbols delivers exactly this payload, once. The node does not
    /// deliver its own. Other validators may deliver rounds in another order.
    ///
    /// Dropping the future does not take the broadcast back.
    ///
    /// # Errors
    /// [`BroadcastError`]; all but `Stopped` before any work on the payload.
    pub async fn broadcast(&self, round: u64, payload: Bytes) -> Result<BroadcastReport, BroadcastError> {
        let started = Instant::now();
        let round = Round::new(round).ok_or(BroadcastError::RoundTooLarge(round))?;
        let epoch = self.epoch.load(Ordering::Acquire);
        if epoch == NO_EPOCH {
            return Err(BroadcastError::NoValidators);
        }
        let departure = Departure::new();
        let (reply, encoded) = oneshot::channel();
        let begin = (self.departures.clone(), Arc::clone(&departure));
        let on_encoded = move |result: Result<falconet_raptorcast::BroadcastReport, _>| {
            if let Ok(report) = &result {
                let (departures, departure) = begin;
                departure.expect(usize::from(report.symbols));
                departures.begin(report.id, &departure);
            }
            // The caller may have gone; the broadcast goes on.
            let _ = reply.send(result);
        };
        let raptorcast = self.raptorcast.handle();
        raptorcast
            .broadcast(Epoch::new(epoch), round, payload, on_encoded)
            .map_err(|_| BroadcastError::Stopped)?;
        let encoded = encoded.await.map_err(|_| BroadcastError::Stopped)??;
        let departed = departure.wait().await;
        Ok(BroadcastReport {
            source_symbols: usize::from(encoded.source_symbols),
            symbols: usize::from(encoded.symbols),
            symbol_size: usize::from(encoded.symbol_size),
            redundancy: encoded.redundancy,
            datagrams: departed.sent,
            bytes: departed.sent_bytes,
            dropped: departed.dropped,
            started,
            last_sent: departed.last_sent.unwrap_or(started),
        })
    }

    /// Sends a small message, such as a vote, to one peer: up to [`Node::max_message`] bytes, on the lane that the
    /// peer's policy says. Waits while the class's queue is full.
    ///
    /// It is a datagram: it may be lost, and messages may overtake each other. One that waited for a session in vain is
    /// reported as [`NodeEvent::SendFailed`].
    ///
    /// # Errors
    /// [`SendError`], never `Full`.
    pub async fn send(&self, peer: &IdentityKey, payload: Bytes, class: Class) -> Result<(), SendError> {
        let outgoing = self.message_to(peer, &payload, class)?;
        self.dataplane
            .sender()
            .send(outgoing)
            .await
            .map_err(|_| SendError::Stopped)
    }

    /// As [`Node::send`], without waiting.
    ///
    /// # Errors
    /// [`SendError`]; `Full` if the class's queue has no room.
    pub fn try_send(&self, peer: &IdentityKey, payload: Bytes, class: Class) -> Result<(), SendError> {
        let outgoing = self.message_to(peer, &payload, class)?;
        self.dataplane
            .sender()
            .try_send(outgoing)
            .map_err(|error| match error {
                TrySendError::Full(_) => SendError::Full,
                _ => SendError::Stopped,
            })
    }

    /// Sends a small message to every peer. Waits while the class's queue is full.
    ///
    /// # Errors
    /// As [`Node::send`].
    pub async fn send_all(&self, payload: Bytes, class: Class) -> Result<(), SendError> {
        let peers = self.directory.load().peers().collect();
        let outgoing = self.message(Recipients::Many(peers), &payload, class)?;
        self.dataplane
            .sender()
            .send(outgoing)
            .await
            .map_err(|_| SendError::Stopped)
    }

    /// The longest message in bytes: a chunk less the byte that says what it is.
    pub fn max_message(&self) -> usize {
        self.max_message
    }

    fn message_to(&self, peer: &IdentityKey, payload: &Bytes, class: Class) -> Result<Outgoing, SendError> {
        let id = self
            .directory
            .load()
            .peer(peer)
            .ok_or(SendError::UnknownPeer(*peer))?;
        self.message(Recipients::One(id), payload, class)
    }

    fn message(&self, to: Recipients, payload: &Bytes, class: Class) -> Result<Outgoing, SendError> {
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        if payload.len() > self.max_message {
            return Err(SendError::TooLarge {
                len: payload.len(),
                max: self.max_message,
            });
        }
        Ok(Outgoing {
            to,
            class,
            datagrams: vec![message_datagram(payload)],
            completion: None,
        })
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

    /// Sessions that come and go, messages that were given up, broadcasts that failed and who is to blame.
    pub fn events(&self) -> Events {
        Events(self.events.subscribe())
    }

    /// What the node has done so far; cheap for it and for the caller.
    pub fn stats(&self) -> Stats {
        let raptorcast = self.raptorcast.handle();
        let connected = self.connections.len();
        Stats::new(
            self.dataplane.stats(),
            &raptorcast.thread_stats(),
            raptorcast.engine_stats(),
            connected,
        )
    }

    /// Stops the node and joins its threads, within a second. What is queued is lost.
    pub async fn shutdown(self) {
        // An error means that the runtime is shutting down, which drops the node just as well.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// What the threads share, made before they start.
struct Parts {
    directory: SharedDirectory,
    connections: Arc<Connections>,
    departures: Departures,
    deliveries: Publisher<Delivery>,
    messages: Publisher<Message>,
    events: Publisher<NodeEvent>,
    raptorcast: Arc<OnceLock<RaptorcastHandle>>,
}

impl Parts {
    fn new(builder: &NodeBuilder) -> Self {
        Self {
            directory: SharedDirectory::default(),
            connections: Arc::default(),
            departures: Departures::default(),
            deliveries: Publisher::new(builder.kept_deliveries),
            messages: Publisher::new(builder.kept_messages),
            events: Publisher::new(KEPT_EVENTS),
            raptorcast: Arc::default(),
        }
    }

    fn start(self, builder: NodeBuilder) -> Result<Node, StartError> {
        let (identity, transport_key) = (builder.keys.identity(), builder.keys.transport_key());
        let engine_config = engine_config(&builder)?;
        let dataplane_config = builder.dataplane_config();
        let transport_config = transport_config(&builder);
        let (signer, transport_secret) = builder.keys.into_parts();
        let engine = Engine::new(engine_config, signer, entropy::seed()?).map_err(broadcast_error)?;
        let (handshakes, sessions) =
            falconet_transport::split(transport_config, transport_secret, now(), entropy::seed()?);
        let dataplane = Dataplane::start(dataplane_config, handshakes, sessions, self.consumers())?;
        let chunks = ChunkOutput {
            sender: dataplane.sender(),
            directory: self.directory.clone(),
            departures: self.departures.clone(),
        };
        let events = BroadcastEvents {
            deliveries: self.deliveries.sender(),
            events: self.events.sender(),
        };
        let mut thread = ThreadConfig::new(format!("{}-cast", builder.thread_prefix));
        if let Some(payload_len) = builder.warm_up {
            thread = thread.with_warm_up(payload_len);
        }
        let raptorcast = RaptorcastThread::start(thread, engine, chunks, events).map_err(broadcast_error)?;
        // Set once, here.
        let _ = self.raptorcast.set(raptorcast.handle());
        Ok(Node {
            identity,
            transport_key,
            has_authenticated_lane: builder.listen.is_some(),
            max_message: builder.chunk_size - 1,
            epoch: AtomicU32::new(NO_EPOCH),
            directory: self.directory,
            connections: self.connections,
            expected: std::sync::Mutex::default(),
            departures: self.departures,
            deliveries: self.deliveries,
            messages: self.messages,
            events: self.events,
            raptorcast,
            dataplane,
        })
    }

    fn consumers(&self) -> Consumers {
        let session_events = SessionEvents {
            events: self.events.sender(),
            connections: Arc::clone(&self.connections),
            directory: self.directory.clone(),
        };
        Consumers {
            chunks: Box::new(ChunkConsumer {
                raptorcast: Arc::clone(&self.raptorcast),
                directory: self.directory.clone(),
            }),
            messages: Box::new(MessageConsumer {
                messages: self.messages.sender(),
                directory: self.directory.clone(),
            }),
            events: Box::new(move |event| session_events.handle(event)),
        }
    }
}

fn engine_config(builder: &NodeBuilder) -> Result<EngineConfig, StartError> {
    let chunk = u16::try_from(builder.chunk_size).ok().and_then(ChunkSize::new);
    let hundredths = (builder.redundancy * 100.0).round();
    let redundancy = Redundancy::from_hundredths(hundredths as u16).filter(|_| hundredths.is_finite());
    Ok(EngineConfig::new(builder.network)
        .with_chunk(chunk.ok_or(StartError::ChunkSize(builder.chunk_size))?)
        .with_redundancy(redundancy.ok_or(StartError::Redundancy(builder.redundancy))?)
        .with_relay_messages_per_second(builder.relay_messages)
        .with_timestamp_window(builder.timestamp_window))
}

fn transport_config(builder: &NodeBuilder) -> TransportConfig {
    TransportConfig::default()
        .with_aes(builder.suites.contains(&Suite::Aes256Gcm))
        .with_network(builder.network)
}

fn broadcast_error(error: impl std::error::Error + Send + Sync + 'static) -> StartError {
    StartError::Broadcast(Box::new(error))
}
