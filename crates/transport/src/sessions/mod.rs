//! The engine of the dataplane thread: keys, replay, timers, roaming, buffered sends, rollout policy.

mod buffered;
mod caps;
mod install;
mod notices;
mod open;
mod peer;
mod plain;
mod records;
mod send;
mod table;
#[cfg(test)]
mod tests;
mod timers;

use crate::deadlines::Deadlines;
use crate::{AddPeerError, Discard, DiscardCounts, Event, IndexKey, PeerConfig, PeerId, Released};
use crate::{Transmit, TransportConfig};
use buffered::Waiting;
use caps::Holders;
use falconet_crypto::{Now, SessionIndex, Suite, TransportPublicKey};
use falconet_handshake::Role;
pub(crate) use open::classify_plain;
use peer::Peer;
use plain::PlainAddresses;
use records::OwnRecord;
pub use send::SendError;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;
use table::SessionTable;

/// Responses and keepalives that wait to leave.
const MAX_TRANSMITS: usize = 16_384;

/// What waits for `poll_event`.
enum Told {
    /// Something of this peer: what it is, is looked up when it is polled.
    Peer(PeerId),
    Event(Event),
}

/// Lives on the dataplane thread; `docs/spec/session.md`. See the crate's root for the event loop.
pub struct Sessions {
    config: TransportConfig,
    local: TransportPublicKey,
    index_key: IndexKey,
    peers: Vec<Option<Box<Peer>>>,
    table: SessionTable,
    plain: PlainAddresses,
    deadlines: Deadlines,
    transmits: VecDeque<Transmit>,
    /// One entry a peer, and what was removed or has failed.
    events: VecDeque<Told>,
    /// One entry a peer.
    requests: VecDeque<PeerId>,
    released: VecDeque<Released>,
    holders: Holders,
    waiting: Waiting,
    own_record: Option<OwnRecord>,
    transmits_dropped: u64,
    discards: DiscardCounts,
    opened: u64,
    sealed: u64,
    installed: u64,
}

/// One session as seen from this side; the peer's two indices are the same ones, swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its suite.
    pub suite: Suite,
    /// Whether we dialled.
    pub role: Role,
    /// The index in datagrams to us.
    pub local_index: SessionIndex,
    /// The index in datagrams to the peer.
    pub remote_index: SessionIndex,
    /// When its keys were installed here.
    pub created: Instant,
}

/// One cheap snapshot of [`Sessions`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SessionStats {
    /// Sessions in the table, previous and unconfirmed ones included.
    pub sessions: usize,
    /// Configured peers that have a session, and unknown ones.
    pub holders: (usize, usize),
    /// Peers whose idle sessions were given up to make room.
    pub evicted: u64,
    /// Sessions installed since the start.
    pub installed: u64,
    /// Datagrams opened.
    pub opened: u64,
    /// Datagrams sealed, keepalives included.
    pub sealed: u64,
    /// Bytes that wait for a session.
    pub buffered_bytes: usize,
    /// Sends that wait for a session.
    pub buffered_entries: usize,
    /// Entries that wait for [`Sessions::poll_event`]: at most one a peer, and what has failed.
    pub queued_events: usize,
    /// Peers of which [`Sessions::poll_message`] has something to say, and places of unknown ones.
    pub queued_messages: usize,
    /// Datagrams that wait for [`Sessions::poll_transmit`]: at most 16,384.
    pub queued_transmits: usize,
    /// Responses and keepalives dropped because nobody took those before them.
    pub transmits_dropped: u64,
    /// Datagrams discarded, by reason.
    pub discards: DiscardCounts,
}

impl Sessions {
    pub(crate) fn new(config: TransportConfig, local: TransportPublicKey, index_key: IndexKey) -> Self {
        Self {
            config,
            local,
            index_key,
            peers: Vec::new(),
            table: SessionTable::default(),
            plain: PlainAddresses::default(),
            deadlines: Deadlines::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            requests: VecDeque::new(),
            released: VecDeque::new(),
            holders: Holders::default(),
            waiting: Waiting::default(),
            own_record: None,
            transmits_dropped: 0,
            discards: DiscardCounts::default(),
            opened: 0,
            sealed: 0,
            installed: 0,
        }
    }

    /// Adds a peer; a persistent one is dialled at once.
    ///
    /// # Errors
    ///
    /// [`AddPeerError::TooMany`] past the cap, [`AddPeerError::Duplicate`] if the handle is in use.
    pub fn add_peer(&mut self, now: Now, peer: PeerId, config: &PeerConfig) -> Result<(), AddPeerError> {
        if peer.slot() >= self.config.max_peers {
            return Err(AddPeerError::TooMany);
        }
        if self.peers.len() <= peer.slot() {
            self.peers.resize_with(peer.slot() + 1, || None);
        }
        if self.peers[peer.slot()].is_some() {
            return Err(AddPeerError::Duplicate);
        }
        if config.needs_place() && self.holders.promised >= self.config.sessions.known {
            return Err(AddPeerError::TooManyPersistent);
        }
        self.holders.promised += usize::from(config.needs_place());
        if let Some(address) = config.plain_address {
            self.plain.assign(address, peer);
        }
        let state = Peer::new(config);
        let wants_session = state.wants_session();
        self.peers[peer.slot()] = Some(Box::new(state));
        if wants_session {
            self.connect(now, peer);
        }
        Ok(())
    }

    /// Removes a peer, its sessions and its keys. What was buffered is reported as failed.
    pub fn remove_peer(&mut self, peer: PeerId) {
        self.fail_buffered(peer, None);
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::take) else {
            return;
        };
        state.keys.all().for_each(|slot| self.table.remove(slot));
        self.forget_holder(peer, &state);
        if let Some(address) = state.plain_address {
            self.leave_plain(peer, address);
        }
        self.deadlines.remove(peer);
        self.note_removal(peer, &state.announced);
    }

    /// A handshake message, keepalive or response that has to leave.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// When [`Sessions::handle_timeout`] wants to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timeouts = [self.deadlines.next(), self.next_eviction()];
        timeouts.into_iter().flatten().min()
    }

    /// The key of the check bits in this node's receiver indices, for a socket filter.
    pub fn index_key(&self) -> IndexKey {
        self.index_key
    }

    /// Whether a session with `peer` can seal at `now`.
    pub fn is_connected(&self, now: Now, peer: PeerId) -> bool {
        let slot = self.peer(peer).and_then(|state| state.keys.current);
        let session = slot.and_then(|slot| self.table.session(slot));
        session.is_some_and(|session| session.can_seal(now.instant))
    }

    /// The session that data to `peer` is sealed in, if there is one.
    pub fn current(&self, peer: PeerId) -> Option<SessionInfo> {
        let session = self.table.session(self.peer(peer)?.keys.current?)?;
        Some(SessionInfo {
            suite: session.suite(),
            role: session.role,
            local_index: session.index(),
            remote_index: session.sealer.receiver(),
            created: session.created,
        })
    }

    /// Where `peer` is on the authenticated lane, as far as is known.
    pub fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peer(peer)?.address
    }

    /// Datagrams that [`Sessions::lane`] sent plain although the peer's policy prefers a session.
    pub fn fallbacks(&self, peer: PeerId) -> u64 {
        self.peer(peer).map_or(0, |state| state.fallbacks)
    }

    /// One snapshot. Copies a short list; fine once a second.
    pub fn stats(&self) -> SessionStats {
        SessionStats {
            sessions: self.table.len(),
            holders: (self.holders.known, self.holders.unknown),
            evicted: self.holders.evicted,
            installed: self.installed,
            opened: self.opened,
            sealed: self.sealed,
            buffered_bytes: self.waiting.bytes,
            buffered_entries: self.waiting.entries,
            queued_events: self.events.len(),
            queued_messages: self.requests.len() + self.holders.freed.len(),
            queued_transmits: self.transmits.len(),
            transmits_dropped: self.transmits_dropped,
            discards: self.discards.clone(),
        }
    }

    /// Counts a discard that the caller has decided on.
    pub(crate) fn discard(&mut self, reason: Discard) -> Discard {
        self.discards.add(reason);
        reason
    }

    /// Queues a response or keepalive. While nobody drains the queue they are dropped: the peer's retry
    /// or the next keepalive makes up for it.
    fn transmit(&mut self, transmit: Transmit) {
        if self.transmits.len() < MAX_TRANSMITS {
            self.transmits.push_back(transmit);
        } else {
            self.transmits_dropped += 1;
        }
    }

    /// Whether what can wait (our record) should, for what cannot.
    fn transmits_are_short(&self) -> bool {
        self.transmits.len() >= MAX_TRANSMITS / 2
    }

    fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(peer.slot())?.as_deref()
    }

    fn peer_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(peer.slot())?.as_deref_mut()
    }
}
