//! The peers of a node: what is configured, what is remembered, and what they are like now.

use std::net::{IpAddr, SocketAddr};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use falconet_crypto::{IdentityKey, Now, Suite};
use falconet_dataplane::Ban;
use falconet_transport::{PeerConfig, PeerId, PeerRecord, Sessions};
use tokio::sync::oneshot;

use super::Node;
use crate::error::PeerError;
use crate::peer::Peer;
use crate::state::{PeerMemory, StateHandle};
use crate::wiring::now;

/// What a node knows of a peer at the moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PeerStats {
    /// Where it is on the authenticated lane: configured, of its record, or roamed to.
    pub address: Option<SocketAddr>,
    /// The suite of its session and how old that is; `None` without a session.
    pub session: Option<(Suite, Duration)>,
    /// Datagrams that left on the plain lane although its policy prefers a session.
    pub fallbacks: u64,
    /// Sequence of its record in force.
    pub record_sequence: Option<u64>,
}

impl Node {
    /// Adds a peer; if it is persistent and speaks the authenticated lane, it is dialled at once. What a state file
    /// remembers of it counts from the start (docs/spec/state.md#use).
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
        let speaks_authenticated = peer.speaks_authenticated();
        let mut config = peer.to_config(self.has_authenticated_lane);
        let record = self.recall(&peer, &mut config);
        let sender = self.dataplane.sender();
        sender.add_peer(id, config).map_err(|_| PeerError::Stopped)?;
        if let Some(record) = record {
            // Refused only if it does not fit the peer as configured, and then it is not in force.
            let action = move |now: Now, sessions: &mut Sessions| {
                let _ = sessions.update_record(now, id, &record);
            };
            sender.with_sessions(action).map_err(|_| PeerError::Stopped)?;
        }
        if self.has_authenticated_lane && speaks_authenticated {
            let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
            expected.push(id);
        }
        Ok(())
    }

    /// Puts into `config` what is remembered of the peer; gives the record that is to be put in force.
    fn recall(&self, peer: &Peer, config: &mut PeerConfig) -> Option<PeerRecord> {
        let state = self.state.as_ref()?;
        let handle = state.handle()?;
        let memory = state.loaded().peers.get(&peer.identity());
        note_configured(&handle, peer, config);
        let memory = memory?;
        config.seen |= memory.had_session && !peer.forgets_sessions;
        if memory.sequence <= config.record_sequence {
            return None;
        }
        let record = self.remembered_record(memory, config);
        if record.is_none() {
            // Void or of another key: it is not in force, and yet nothing older may be.
            config.record_sequence = memory.sequence;
        }
        record
    }

    fn remembered_record(&self, memory: &PeerMemory, config: &PeerConfig) -> Option<PeerRecord> {
        let record = PeerRecord::decode(memory.record.as_deref()?).ok()?;
        let is_its = config.transport_key == Some(record.claims().transport_key);
        let record = record.verify(self.issuer.network(), now()).ok()?;
        is_its.then_some(record)
    }

    /// Resolves once every peer that was added before counts: what it sends from then on is certainly its.
    ///
    /// # Errors
    /// [`PeerError::Stopped`].
    pub async fn settle(&self) -> Result<(), PeerError> {
        let settled = self.dataplane.sender().settle().await;
        settled.map_err(|_| PeerError::Stopped)
    }

    /// Whether this peer has a session now.
    pub fn is_connected(&self, peer: &IdentityKey) -> bool {
        let peer = self.directory.load().peer(peer);
        peer.is_some_and(|peer| self.connections.contains(peer))
    }

    /// Discards everything from a peer for a time, on both lanes; zero lifts it. A trusted peer is exempt.
    ///
    /// # Errors
    /// [`PeerError::Unknown`], [`PeerError::Stopped`].
    pub fn ban(&self, peer: &IdentityKey, time: Duration) -> Result<(), PeerError> {
        let ban = Ban::Peer(self.peer_id(peer)?);
        let told = self.dataplane.sender().ban(ban, time);
        told.map_err(|_| PeerError::Stopped)
    }

    /// Discards everything from an address for a time, in the kernel where it can (docs/spec/threads.md#bans); zero
    /// lifts it. Datagrams of a trusted peer's session still pass.
    ///
    /// # Errors
    /// [`PeerError::Stopped`].
    pub fn ban_address(&self, address: IpAddr, time: Duration) -> Result<(), PeerError> {
        let told = self.dataplane.sender().ban(Ban::Address(address), time);
        told.map_err(|_| PeerError::Stopped)
    }

    /// Exempts a peer from bans, or no longer.
    ///
    /// # Errors
    /// As [`Node::ban`].
    pub fn trust(&self, peer: &IdentityKey, is_trusted: bool) -> Result<(), PeerError> {
        let told = self.dataplane.sender().trust(self.peer_id(peer)?, is_trusted);
        told.map_err(|_| PeerError::Stopped)
    }

    fn peer_id(&self, peer: &IdentityKey) -> Result<PeerId, PeerError> {
        let id = self.directory.load().peer(peer);
        id.ok_or(PeerError::Unknown(*peer))
    }

    /// What the dataplane thread knows of a peer. It is asked, and answers in its next turn.
    ///
    /// # Errors
    /// [`PeerError::Unknown`], [`PeerError::Stopped`].
    pub async fn peer_stats(&self, peer: &IdentityKey) -> Result<PeerStats, PeerError> {
        let id = self.peer_id(peer)?;
        let (reply, stats) = oneshot::channel();
        let ask = move |now: Now, sessions: &mut Sessions| {
            // Whoever asked may have gone.
            let _ = reply.send(describe(now.instant, sessions, id));
        };
        self.dataplane
            .sender()
            .with_sessions(ask)
            .map_err(|_| PeerError::Stopped)?;
        stats.await.map_err(|_| PeerError::Stopped)
    }
}

/// The state file follows what the operator says: a newer record, or that it is to be forgotten that there was a session.
fn note_configured(state: &StateHandle, peer: &Peer, config: &PeerConfig) {
    if peer.forgets_sessions {
        state.forget_session(peer.identity());
    }
    if let Some(sequence) = config.record_sequence {
        state.note_configured(peer.identity(), sequence, config.transport_key.is_none());
    }
}

fn describe(now: Instant, sessions: &Sessions, peer: PeerId) -> PeerStats {
    let session = sessions.current(peer);
    PeerStats {
        address: sessions.address(peer),
        session: session.map(|session| (session.suite, now.saturating_duration_since(session.created))),
        fallbacks: sessions.fallbacks(peer),
        record_sequence: sessions.record_sequence(peer),
    }
}
