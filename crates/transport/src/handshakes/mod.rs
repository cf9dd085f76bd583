//! The engine of the handshake thread: admission, pending initiations, timestamps, cookies, retries.

mod admission;
mod contact;
mod dial;
mod inbound;

use crate::deadlines::Deadlines;
use crate::index::Indices;
use crate::message::Request;
use crate::{AddPeerError, DiscardCounts, IndexKey, PeerConfig, PeerId, Policy};
use crate::{ToHandshakes, ToSessions, Transmit, TransportConfig};
use admission::Admission;
use contact::Contact;
use falconet_crypto::{Now, SecretBytes, SessionIndex, Suite, Tai64N, TransportPublicKey};
use falconet_handshake::{LocalStatic, PeerStatic};
use rand_chacha::ChaCha20Rng;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Results that wait for the dataplane thread; while full, initiations are not even opened.
const MAX_OUTBOX: usize = 1024;
/// Datagrams that wait to leave; while full, retries are put off and cookie replies are dropped.
const MAX_TRANSMITS: usize = 4096;
/// Removed peers whose greatest timestamp is remembered; the oldest goes first.
const MAX_REMEMBERED: usize = 4096;

/// Lives on the handshake thread; `docs/spec/session.md`. See the crate's root for the event loop.
pub struct Handshakes {
    config: TransportConfig,
    local: LocalStatic,
    rng: ChaCha20Rng,
    admission: Admission,
    indices: Indices,
    contacts: Vec<Option<Box<Contact>>>,
    by_key: HashMap<TransportPublicKey, PeerId>,
    /// Pending initiations: two a peer at most.
    by_index: HashMap<SessionIndex, PeerId>,
    deadlines: Deadlines,
    /// Our last timestamp: the next is greater, whatever the clock says.
    timestamp: Option<Tai64N>,
    remembered: VecDeque<(TransportPublicKey, Tai64N)>,
    transmits: VecDeque<Transmit>,
    outbox: VecDeque<ToSessions>,
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
        let admission = Admission::new(now, config.budgets, &mut rng);
        Self {
            config,
            local,
            rng,
            admission,
            indices: Indices::new(index_key),
            contacts: Vec::new(),
            by_key: HashMap::new(),
            by_index: HashMap::new(),
            deadlines: Deadlines::default(),
            timestamp: None,
            remembered: VecDeque::new(),
            transmits: VecDeque::new(),
            outbox: VecDeque::new(),
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
        let Some(key) = config.transport_key else {
            return Ok(());
        };
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
        if let Some(at) = self.remembered.iter().position(|(known, _)| *known == key) {
            contact.greatest = self.remembered.remove(at).map(|(_, timestamp)| timestamp);
        }
        if self.contacts.len() <= peer.slot() {
            self.contacts.resize_with(peer.slot() + 1, || None);
        }
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
        let pending = contact.expire_pending(None);
        self.forget_indices(pending);
        self.deadlines.remove(peer);
        self.by_key.remove(contact.statics.key());
        if let Some(greatest) = contact.greatest {
            if self.remembered.len() >= MAX_REMEMBERED {
                self.remembered.pop_front();
            }
            self.remembered.push_back((*contact.statics.key(), greatest));
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
            Request::Settled { peer } => {
                if let Some(contact) = self.contact_mut(peer) {
                    contact.dial = None;
                }
                peer
            }
        };
        self.serve(now, peer);
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
        self.outbox.pop_front()
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

    /// Timestamps will be greater than `floor`: what an earlier run has persisted.
    pub fn raise_timestamp(&mut self, floor: Tai64N) {
        self.timestamp = self.timestamp.max(Some(floor));
    }

    /// The greatest timestamp sent so far, for [`Handshakes::raise_timestamp`] of the next run.
    pub fn last_timestamp(&self) -> Option<Tai64N> {
        self.timestamp
    }

    /// One snapshot. Copies a short list; fine once a second.
    pub fn stats(&self) -> HandshakeStats {
        self.stats.clone()
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
