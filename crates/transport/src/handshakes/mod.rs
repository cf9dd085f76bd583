//! The engine of the handshake thread: admission, pending initiations, timestamps, cookies, retries.

mod accept;
mod contact;
mod dial;
mod gate;
mod inbound;
mod key_log;
mod outbox;
mod strangers;
mod timestamps;
mod work;

use crate::deadlines::Deadlines;
use crate::index::Indices;
use crate::message::Request;
use crate::{AddPeerError, DiscardCounts, IndexKey, PeerConfig, PeerId, Policy};
use crate::{ToHandshakes, ToSessions, Transmit, TransportConfig};
use contact::Contact;
use falconet_crypto::{Now, SecretBytes, SessionIndex, Suite, Tai64N, TransportPublicKey};
use falconet_handshake::{LocalStatic, PeerStatic};
use gate::Gate;
use key_log::KeyLog;
pub(crate) use key_log::KeyLogLeave;
pub use key_log::KeyLogRefused;
use outbox::Outbox;
use rand_chacha::ChaCha20Rng;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use timestamps::{Remembered, Timestamps};
use work::Places;
pub use work::{Finished, Work};

/// Datagrams that wait to leave; while full, retries are put off and cookie replies are dropped.
const MAX_TRANSMITS: usize = 4096;

/// Lives on the handshake thread; `docs/spec/session.md`. See the crate's root for the event loop.
pub struct Handshakes {
    config: TransportConfig,
    local: Arc<LocalStatic>,
    rng: ChaCha20Rng,
    gate: Gate,
    indices: Indices,
    contacts: Vec<Option<Box<Contact>>>,
    by_key: HashMap<TransportPublicKey, PeerId>,
    persistent: usize,
    /// Our messages that can be answered: two initiations and one response a peer at most.
    by_index: HashMap<SessionIndex, PeerId>,
    deadlines: Deadlines,
    timestamps: Timestamps,
    remembered: Remembered,
    transmits: VecDeque<Transmit>,
    outbox: Outbox,
    /// Initiations whose Diffie-Hellmans are under way: each is promised a place in `outbox`.
    places: Places,
    works: VecDeque<Work>,
    key_log: Option<KeyLog>,
    stats: HandshakeStats,
}

/// One cheap snapshot of [`Handshakes`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HandshakeStats {
    /// Initiations sent, retries included.
    pub initiations_sent: u64,
    /// Handshakes that we dialled and that were answered.
    pub dialled: u64,
    /// Handshakes that we answered.
    pub accepted: u64,
    /// Cookie replies sent.
    pub cookie_replies_sent: u64,
    /// Dials given up after 90 s.
    pub gave_up: u64,
    /// Dials that fell back to suite 0 after three unanswered tries in suite 1.
    pub suite_fallbacks: u64,
    /// Our messages that can still be answered: at most three a peer.
    pub answerable: usize,
    /// Greatest timestamps of keys that are no peers: at most 4,096.
    pub remembered: usize,
    /// Results that wait for [`Handshakes::poll_message`]: at most 64 of others' initiations and 64 of ours.
    pub queued_messages: usize,
    /// Initiations whose Diffie-Hellmans are under way: with those of others' that wait, at most 64.
    pub in_work: usize,
    /// Datagrams that wait for [`Handshakes::poll_transmit`]: at most 4,096.
    pub queued_transmits: usize,
    /// Handshakes whose lines a key log has no room for, since nobody takes those before.
    pub key_log_left_out: u64,
    /// Datagrams discarded, by reason.
    pub discards: DiscardCounts,
}

impl Handshakes {
    pub(crate) fn new(
        config: TransportConfig,
        local: LocalStatic,
        now: Now,
        index_key: IndexKey,
        mut rng: ChaCha20Rng,
    ) -> Self {
        let logs_keys = config.key_log.is_some_and(|leave| leave.is_for(local.public()));
        let gate = Gate::new(now, &config.admission, &mut rng);
        Self {
            config,
            local: Arc::new(local),
            rng,
            gate,
            indices: Indices::new(index_key),
            contacts: Vec::new(),
            by_key: HashMap::new(),
            persistent: 0,
            by_index: HashMap::new(),
            deadlines: Deadlines::default(),
            timestamps: Timestamps::default(),
            remembered: Remembered::default(),
            transmits: VecDeque::new(),
            outbox: Outbox::default(),
            places: Places::default(),
            works: VecDeque::new(),
            key_log: logs_keys.then(KeyLog::default),
            stats: HandshakeStats::default(),
        }
    }

    /// Adds a peer. One without transport key, or whose policy is [`Policy::Plain`], is only noted: its
    /// initiations are those of a stranger.
    ///
    /// # Errors
    ///
    /// [`AddPeerError`].
    pub fn add_peer(&mut self, _now: Now, peer: PeerId, config: &PeerConfig) -> Result<(), AddPeerError> {
        if peer.slot() >= self.config.max_peers {
            return Err(AddPeerError::TooMany);
        }
        if config.needs_place() && self.persistent >= self.config.sessions.known {
            return Err(AddPeerError::TooManyPersistent);
        }
        let Some(key) = config.transport_key else {
            return Ok(());
        };
        // Whoever was taken in without being known is known now.
        let stranger = self.by_key.get(&key).copied();
        if let Some(stranger) = stranger.filter(|stranger| self.config.is_stranger(*stranger)) {
            self.remove_peer(stranger);
        }
        if self.contact(peer).is_some() || self.by_key.contains_key(&key) {
            return Err(AddPeerError::Duplicate);
        }
        if config.policy == Policy::Plain {
            return Ok(());
        }
        let psk = config.psk.as_ref().map(|psk| SecretBytes::new(*psk.expose()));
        let statics = PeerStatic::new(&self.local, key, psk).map_err(|_| AddPeerError::LowOrderKey)?;
        let aes = self.config.aes && config.suites.contains(&Suite::Aes256Gcm);
        let mut contact = Contact::new(statics, config.persistent, aes);
        contact.greatest = self.remembered.take(&key);
        // docs/spec/session.md#recorded: a validator is a peer with an identity or a persistent one.
        contact.home = config.address;
        contact.is_validator |= config.identity.is_some();
        if let Some(address) = contact.recorded() {
            self.gate.add_recorded(address);
        }
        if self.contacts.len() <= peer.slot() {
            self.contacts.resize_with(peer.slot() + 1, || None);
        }
        self.persistent += usize::from(contact.persistent);
        self.contacts[peer.slot()] = Some(Box::new(contact));
        self.by_key.insert(key, peer);
        Ok(())
    }

    /// Removes a peer. Its greatest timestamp is remembered, so that adding it again opens no door to
    /// replays.
    pub fn remove_peer(&mut self, peer: PeerId) {
        let Some(mut contact) = self.contacts.get_mut(peer.slot()).and_then(Option::take) else {
            return;
        };
        self.persistent -= usize::from(contact.persistent);
        let pending = contact.expire_pending(None);
        let answered = contact.answered.take();
        self.forget_indices(pending);
        self.forget_indices([answered.map(|answered| answered.index)]);
        self.deadlines.remove(peer);
        self.by_key.remove(contact.statics.key());
        if let Some(address) = contact.recorded() {
            self.gate.remove_recorded(address);
        }
        if let Some(greatest) = contact.greatest {
            self.remembered.insert(*contact.statics.key(), greatest);
        }
    }

    /// A request by the dataplane thread.
    pub fn handle_message(&mut self, now: Now, message: ToHandshakes) {
        let peer = match message.0 {
            Request::Dial { peer, to } => {
                if let Some(contact) = self.contact_mut(peer) {
                    contact.start_dial(now.instant, to);
                }
                peer
            }
            Request::Update { peer, aes, recorded } => {
                self.update(peer, aes, recorded);
                peer
            }
            Request::Freed { peer, index } => {
                self.free(peer, index);
                peer
            }
            Request::Settled { peer } => {
                if let Some(contact) = self.contact_mut(peer) {
                    contact.dial = None;
                }
                peer
            }
        };
        self.serve(now, peer);
    }

    /// A record has come; `docs/spec/session.md#record-message`.
    fn update(&mut self, peer: PeerId, aes: bool, recorded: Option<SocketAddr>) {
        let aes = aes && self.config.aes;
        let Some(contact) = self.contact_mut(peer) else {
            return;
        };
        contact.aes = aes;
        let former = contact.recorded();
        (contact.home, contact.is_validator) = (recorded, true);
        former
            .into_iter()
            .for_each(|address| self.gate.remove_recorded(address));
        recorded
            .into_iter()
            .for_each(|address| self.gate.add_recorded(address));
    }

    /// Does what is due. Call it when [`Handshakes::poll_timeout`] has passed, after the datagrams that
    /// were received before.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(peer) = self.deadlines.pop_due(now.instant) {
            self.serve(now, peer);
        }
    }

    /// A handshake message that has to leave.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// For the dataplane thread. Poll only while its queue has room: a message must not be dropped, and
    /// what is not polled holds back new handshakes.
    pub fn poll_message(&mut self) -> Option<ToSessions> {
        self.outbox.pop()
    }

    /// When [`Handshakes::handle_timeout`] wants to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// The key of the check bits in this node's receiver indices, for a socket filter.
    pub fn index_key(&self) -> IndexKey {
        self.indices.key()
    }

    /// Our transport key.
    pub fn local_key(&self) -> &TransportPublicKey {
        self.local.public()
    }

    /// Whether the result of another initiation has a place in the queue to the data plane. While it has
    /// not, an initiation that is handed in is discarded (`docs/spec/session.md#room`): an embedder
    /// may as well leave it in its socket.
    pub fn has_room(&self) -> bool {
        self.outbox.has_room_for_accepted(self.places.taken())
    }

    /// Whether a datagram bears the recorded address of a validator: a hint that costs one lookup, for who drops
    /// initiations by chance before any of them is looked at. Anybody can write it.
    #[must_use]
    pub fn is_recorded(&self, source: SocketAddr) -> bool {
        self.gate.is_recorded(source)
    }

    /// While true, every source has to prove its address by a cookie first, whatever the budgets say.
    /// For an embedder that measures that this thread is past its share of a core; default false.
    pub fn set_under_load(&mut self, under_load: bool) {
        self.gate.set_under_load(under_load);
    }

    /// Timestamps will be greater than `floor`: the mark that an earlier run has stored.
    pub fn raise_timestamp(&mut self, floor: Tai64N) {
        self.timestamps.raise(floor);
    }

    /// A mark to store durably, for [`Handshakes::raise_timestamp`] of the next run: no timestamp up to
    /// 30 s from now goes beyond it. Comes about twice a minute while there are handshakes;
    /// `docs/spec/session.md#high-water`.
    pub fn poll_timestamp_mark(&mut self) -> Option<Tai64N> {
        self.timestamps.poll_mark()
    }

    /// The greatest timestamp sent so far.
    pub fn last_timestamp(&self) -> Option<Tai64N> {
        self.timestamps.last()
    }

    /// The greatest timestamp accepted of each peer, removed ones included, for
    /// [`Handshakes::raise_peer_timestamp`] of the next run.
    pub fn peer_timestamps(&self) -> impl Iterator<Item = (TransportPublicKey, Tai64N)> + '_ {
        let contacts = self.contacts.iter().flatten();
        let known = contacts.filter_map(|contact| Some((*contact.statics.key(), contact.greatest?)));
        known.chain(self.remembered.iter())
    }

    /// Initiations by `key` are replays up to `timestamp`: what an earlier run has stored. For keys that
    /// are no peers (yet) the last 4,096 calls count.
    pub fn raise_peer_timestamp(&mut self, key: TransportPublicKey, timestamp: Tai64N) {
        let peer = self.by_key.get(&key).copied();
        match peer.and_then(|peer| self.contact_mut(peer)) {
            Some(contact) => contact.greatest = contact.greatest.max(Some(timestamp)),
            None => self.remembered.insert(key, timestamp),
        }
    }

    /// One snapshot. Copies a short list; fine once a second.
    pub fn stats(&self) -> HandshakeStats {
        HandshakeStats {
            answerable: self.by_index.len(),
            remembered: self.remembered.iter().count(),
            queued_messages: self.outbox.len(),
            in_work: self.places.taken(),
            key_log_left_out: self.key_log.as_ref().map_or(0, KeyLog::left_out),
            queued_transmits: self.transmits.len(),
            ..self.stats.clone()
        }
    }

    fn contact(&self, peer: PeerId) -> Option<&Contact> {
        self.contacts.get(peer.slot())?.as_deref()
    }

    fn contact_mut(&mut self, peer: PeerId) -> Option<&mut Contact> {
        self.contacts.get_mut(peer.slot())?.as_deref_mut()
    }

    fn forget_indices(&mut self, indices: impl IntoIterator<Item = Option<SessionIndex>>) {
        for index in indices.into_iter().flatten() {
            self.by_index.remove(&index);
        }
    }
}
