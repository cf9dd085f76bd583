//! Sessions by slot, and slots by receiver index.

use crate::PeerId;
use crate::timing::REJECT_AFTER;
use falconet_auth_framing::{Opener, Sealer};
use falconet_crypto::{SessionIndex, Suite};
use falconet_handshake::{Role, SessionKeys};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

/// Both directions of one session. Dropping it zeroizes its keys.
pub(crate) struct Session {
    pub(crate) peer: PeerId,
    pub(crate) role: Role,
    pub(crate) opener: Opener,
    pub(crate) sealer: Sealer,
    /// When its keys were installed here.
    pub(crate) created: Instant,
    /// When its initiation left, if we dialled; else as `created`.
    pub(crate) initiated: Instant,
    /// The peer has shown that it has the keys: always so for the initiator.
    pub(crate) confirmed: bool,
    /// When our record was last sent in it, and with which sequence.
    pub(crate) record_sent: Option<(Instant, u64)>,
    /// When the peer's record was last taken from it.
    pub(crate) record_received: Option<Instant>,
    index: SessionIndex,
}

impl Session {
    pub(crate) fn new(peer: PeerId, keys: SessionKeys, created: Instant, initiated: Option<Instant>) -> Self {
        Self {
            peer,
            role: keys.role,
            opener: Opener::new(keys.suite, &keys.receive),
            sealer: Sealer::new(keys.suite, &keys.send, keys.remote_index),
            created,
            initiated: initiated.unwrap_or(created),
            confirmed: keys.role == Role::Initiator,
            record_sent: None,
            record_received: None,
            index: keys.local_index,
        }
    }

    #[inline]
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.created) >= REJECT_AFTER
    }

    #[inline]
    pub(crate) fn can_seal(&self, now: Instant) -> bool {
        self.confirmed && !self.is_expired(now) && !self.sealer.exhausted()
    }

    pub(crate) const fn index(&self) -> SessionIndex {
        self.index
    }

    pub(crate) fn suite(&self) -> Suite {
        self.sealer.suite()
    }

    /// Whether this session, which we dialled, and `accepted` came of initiations that crossed;
    /// `docs/spec/session.md#crossing`.
    pub(crate) fn crossed(&self, accepted: &Self) -> bool {
        self.role == Role::Initiator
            && accepted.role == Role::Responder
            && self.initiated <= accepted.created
            && accepted.created <= self.created
    }
}

/// Position of a session in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u32);

/// All sessions: three a peer at most, so it is bounded by the number of peers.
#[derive(Default)]
pub(crate) struct SessionTable {
    slots: Vec<Option<Box<Session>>>,
    free: Vec<Slot>,
    by_index: HashMap<u32, Slot, BuildHasherDefault<IndexHasher>>,
}

impl SessionTable {
    pub(crate) fn insert(&mut self, session: Session) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot(self.slots.len() as u32 - 1)
        });
        self.by_index.insert(session.index.value(), slot);
        self.slots[slot.0 as usize] = Some(Box::new(session));
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        if let Some(session) = self.slots[slot.0 as usize].take() {
            self.by_index.remove(&session.index.value());
            self.free.push(slot);
        }
    }

    #[inline]
    pub(crate) fn find(&self, index: SessionIndex) -> Option<Slot> {
        self.by_index.get(&index.value()).copied()
    }

    #[inline]
    pub(crate) fn session(&self, slot: Slot) -> Option<&Session> {
        self.slots.get(slot.0 as usize)?.as_deref()
    }

    #[inline]
    pub(crate) fn session_mut(&mut self, slot: Slot) -> Option<&mut Session> {
        self.slots.get_mut(slot.0 as usize)?.as_deref_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_index.len()
    }
}

/// Spreads the 20 random bits of an index over a hash. Nobody but us chooses the indices in the map,
/// so it needs no secret.
#[derive(Default)]
struct IndexHasher(u64);

impl Hasher for IndexHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte) ^ (self.0 as u32));
        }
    }

    #[inline]
    fn write_u32(&mut self, index: u32) {
        self.0 = u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
