//! Starting a node: its threads, and what joins them.

use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use falconet_crypto::key_log::KeyLogFile;
use falconet_crypto::{IdentityKey, Signer, TransportSecret};
use falconet_dataplane::{Consumers, Dataplane};
use falconet_raptorcast::{Engine, EngineConfig, RaptorcastHandle, RaptorcastThread, ThreadConfig};
use falconet_transport::{Handshakes, split};

use super::records::Issuer;
use super::{NO_EPOCH, Node};
use crate::connections::Connections;
use crate::directory::SharedDirectory;
use crate::entropy;
use crate::error::StartError;
use crate::keys::NodeKeys;
use crate::settings::Settings;
use crate::state::{State, StateHandle};
use crate::streams::{Delivery, Message, NodeEvent};
use crate::subscription::Publisher;
use crate::wiring::{
    BroadcastEvents, ChunkConsumer, ChunkOutput, Departures, MessageConsumer, SessionEvents, now,
};

/// Events kept for a slow reader.
const KEPT_EVENTS: usize = 1_024;
/// Timestamps of keys that are no peers which the engine remembers.
const REMEMBERED_STRANGERS: usize = 4_096;

/// What the threads share, made before they start.
pub(super) struct Parts {
    directory: SharedDirectory,
    connections: Arc<Connections>,
    departures: Departures,
    deliveries: Publisher<Delivery>,
    messages: Publisher<Message>,
    events: Publisher<NodeEvent>,
    raptorcast: Arc<OnceLock<RaptorcastHandle>>,
}

impl Parts {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            directory: SharedDirectory::default(),
            connections: Arc::default(),
            departures: Departures::default(),
            deliveries: Publisher::new(settings.kept_deliveries),
            messages: Publisher::new(settings.kept_messages),
            events: Publisher::new(KEPT_EVENTS),
            raptorcast: Arc::default(),
        }
    }

    pub(super) fn start(self, keys: NodeKeys, settings: &Settings) -> Result<Node, StartError> {
        // What needs neither a file nor a socket is checked first.
        let config = settings.engine_config()?;
        let (identity, transport_key) = (keys.identity(), keys.transport_key());
        let (signer, secret) = keys.into_parts();
        let state = open_state(settings, identity)?;
        let issuer = Issuer::new(settings, Arc::clone(&signer), transport_key, state.as_ref());
        let dataplane = self.start_dataplane(settings, secret, state.as_ref())?;
        let engine = new_engine(config, signer, state.as_ref())?;
        let raptorcast = self.start_raptorcast(settings, engine, &dataplane)?;
        // Set once, here.
        let _ = self.raptorcast.set(raptorcast.handle());
        Ok(Node {
            identity,
            transport_key,
            has_authenticated_lane: settings.listen.is_some(),
            max_message: settings.chunk_size - 1,
            epoch: AtomicU32::new(NO_EPOCH),
            directory: self.directory,
            connections: self.connections,
            expected: Mutex::default(),
            departures: self.departures,
            deliveries: self.deliveries,
            messages: self.messages,
            events: self.events,
            issuer: Arc::new(issuer),
            raptorcast,
            dataplane,
            state,
        })
    }

    fn start_dataplane(
        &self,
        settings: &Settings,
        secret: TransportSecret,
        state: Option<&State>,
    ) -> Result<Dataplane, StartError> {
        let mut config = settings.dataplane_config();
        let mut transport = settings.transport_config()?;
        if let Some(path) = &settings.key_log {
            transport = transport.with_key_log(&secret)?;
            config = config.with_key_log(KeyLogFile::open(path)?);
        }
        let (mut handshakes, sessions) = split(transport, secret, now(), entropy::seed()?);
        if let Some(state) = state {
            recall(&mut handshakes, state);
        }
        let handle = state.and_then(State::handle);
        if let Some(handle) = handle.clone() {
            config = config.with_handshake_log(Arc::new(handle));
        }
        let consumers = self.consumers(handle);
        Ok(Dataplane::start(config, handshakes, sessions, consumers)?)
    }

    fn start_raptorcast(
        &self,
        settings: &Settings,
        engine: Engine,
        dataplane: &Dataplane,
    ) -> Result<RaptorcastThread, StartError> {
        let chunks = ChunkOutput {
            sender: dataplane.sender(),
            directory: self.directory.clone(),
            departures: self.departures.clone(),
        };
        let events = BroadcastEvents {
            deliveries: self.deliveries.sender(),
            events: self.events.sender(),
        };
        let mut thread = ThreadConfig::new(format!("{}-cast", settings.threads.prefix));
        if let Some(payload_len) = settings.warm_up {
            thread = thread.with_warm_up(payload_len);
        }
        RaptorcastThread::start(thread, engine, chunks, events).map_err(broadcast_error)
    }

    fn consumers(&self, state: Option<StateHandle>) -> Consumers {
        let session_events = SessionEvents {
            events: self.events.sender(),
            connections: Arc::clone(&self.connections),
            directory: self.directory.clone(),
            state,
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

fn open_state(settings: &Settings, identity: IdentityKey) -> Result<Option<State>, StartError> {
    let open = |path: &PathBuf| {
        let name = format!("{}-disk", settings.threads.prefix);
        State::open(path, identity, settings.network, name)
    };
    Ok(settings.state.as_ref().map(open).transpose()?)
}

/// Our timestamps go on above the mark; initiations of strangers that were accepted are replays. Those of peers are
/// recalled as these are added (docs/spec/state.md#use).
fn recall(handshakes: &mut Handshakes, state: &State) {
    let memory = state.loaded();
    if let Some(mark) = memory.mark {
        handshakes.raise_timestamp(mark);
    }
    for (key, timestamp) in memory.timestamps.iter().take(REMEMBERED_STRANGERS) {
        handshakes.raise_peer_timestamp(*key, *timestamp);
    }
}

/// An engine that broadcasts in no round twice, also across a restart (docs/spec/broadcast.md#durable-round).
fn new_engine(
    config: EngineConfig,
    signer: Arc<dyn Signer>,
    state: Option<&State>,
) -> Result<Engine, StartError> {
    let mut engine = Engine::new(config, signer, entropy::seed()?).map_err(broadcast_error)?;
    let last = state.and_then(|state| state.loaded().round);
    if let Some((epoch, round)) = last {
        engine.resume_after(epoch, round);
    }
    if let Some(handle) = state.and_then(State::handle) {
        engine.set_round_log(move |epoch, round| handle.store_round(epoch, round));
    }
    Ok(engine)
}

fn broadcast_error(error: impl std::error::Error + Send + Sync + 'static) -> StartError {
    StartError::Broadcast(Box::new(error))
}
