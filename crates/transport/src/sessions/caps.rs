//! How many peers may have a session, and whose ends first; `docs/spec/session.md#caps`.

use super::Sessions;
use super::peer::Peer;
use super::table::{Session, SessionTable};
use crate::PeerId;
use crate::timing::PENDING_LIFETIME;
use falconet_crypto::SessionIndex;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A session that was heard of more recently is nobody's to give up, except for a persistent peer: for
/// this long the initiator's confirmation may have been lost on its way.
const LEAST_IDLE: Duration = PENDING_LIFETIME;
/// Pause between two looks for idle sessions.
const EVICTION_INTERVAL: Duration = Duration::from_secs(1);

/// Who has a session.
#[derive(Default)]
pub(super) struct Holders {
    pub(super) known: usize,
    pub(super) unknown: usize,
    /// Persistent peers, whether they have a session or not.
    pub(super) promised: usize,
    pub(super) evicted: u64,
    /// Places of strangers that may be given again, for the handshake thread. One that is not told is given
    /// again when its time is over.
    pub(super) freed: VecDeque<(PeerId, SessionIndex)>,
    /// When to look for idle ones next, while there are many.
    next_look: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pool {
    Known,
    Unknown,
}

/// Who may lose its session, in the order in which they do.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    has_identity: bool,
    idle_since: Instant,
    peer: PeerId,
}

impl Candidate {
    fn is_idle(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.idle_since) >= LEAST_IDLE
    }
}

/// Of `cap` sessions: at the first number some are given up, until there are as few as the second.
fn watermarks(cap: usize) -> (usize, usize) {
    let high = cap - cap / 8;
    (high, (cap - cap / 4).min(high - 1))
}

impl Sessions {
    /// Whether `peer` may have a session; where all places are taken, somebody else's is given up for it.
    pub(super) fn make_room(&mut self, now: Instant, peer: PeerId) -> bool {
        let pool = self.pool(peer);
        let Some(state) = self.peer(peer) else {
            return false;
        };
        if state.is_holder || self.held(pool) < self.cap(pool) {
            return true;
        }
        let is_urgent = state.has_place;
        let candidates = self.candidates(pool);
        let mut gone = candidates.iter().filter(|other| is_urgent || other.is_idle(now));
        match gone.next() {
            Some(other) => self.evict(other.peer),
            None => return false,
        }
        true
    }

    /// `peer` may have got its first session, or lost its last.
    pub(super) fn count_holder(&mut self, now: Instant, peer: PeerId) {
        let pool = self.pool(peer);
        let Some(state) = self.peer_mut(peer) else { return };
        let is_holder = state.keys.all().next().is_some();
        match (std::mem::replace(&mut state.is_holder, is_holder), is_holder) {
            (false, true) => *self.held_mut(pool) += 1,
            (true, false) => *self.held_mut(pool) -= 1,
            _ => {}
        }
        if is_holder && self.held(pool) >= watermarks(self.cap(pool)).0 {
            self.holders.next_look.get_or_insert(now + EVICTION_INTERVAL);
        }
    }

    /// The state of `peer` is gone.
    pub(super) fn forget_holder(&mut self, peer: PeerId, state: &Peer) {
        let pool = self.pool(peer);
        *self.held_mut(pool) -= usize::from(state.is_holder);
        self.holders.promised -= usize::from(state.has_place);
    }

    pub(super) fn next_eviction(&self) -> Option<Instant> {
        self.holders.next_look
    }

    /// Past the high watermark, gives up the sessions that are idle for longest, down to the low one.
    pub(super) fn evict_idle(&mut self, now: Instant) {
        if self.holders.next_look.is_none_or(|at| now < at) {
            return;
        }
        self.holders.next_look = None;
        for pool in [Pool::Unknown, Pool::Known] {
            let (high, low) = watermarks(self.cap(pool));
            if self.held(pool) < high {
                continue;
            }
            let candidates = self.candidates(pool);
            let some_are_busy = candidates.iter().any(|candidate| !candidate.is_idle(now));
            let idle = candidates.into_iter().filter(|candidate| candidate.is_idle(now));
            let too_many = self.held(pool) - low;
            idle.take(too_many)
                .for_each(|candidate| self.evict(candidate.peer));
            if some_are_busy && self.held(pool) >= high {
                self.holders.next_look = Some(now + EVICTION_INTERVAL);
            }
        }
    }

    /// Who may lose its session, first who is first to: those of no identity before others, and then who is
    /// idle for longest. Persistent peers never.
    fn candidates(&self, pool: Pool) -> Vec<Candidate> {
        let first_unknown = self.peers.len().min(self.config.max_peers);
        let slots = match pool {
            Pool::Known => 0..first_unknown,
            Pool::Unknown => first_unknown..self.peers.len(),
        };
        let states = slots.clone().zip(self.peers.get(slots).into_iter().flatten());
        let candidates = states.filter_map(|(slot, state)| {
            let state = state.as_deref().filter(|state| !state.has_place)?;
            Some(Candidate {
                has_identity: state.identity.is_some(),
                idle_since: state.idle_since(&self.table)?,
                peer: PeerId(u32::try_from(slot).ok()?),
            })
        });
        let mut candidates: Vec<_> = candidates.collect();
        candidates.sort_unstable();
        candidates
    }

    fn evict(&mut self, peer: PeerId) {
        self.holders.evicted += 1;
        if self.pool(peer) == Pool::Unknown {
            let newest = self.peer(peer).and_then(|state| state.newest(&self.table));
            let newest = newest.map(Session::index);
            self.remove_peer(peer);
            // Nobody may be asking: then the oldest can wait for its time.
            if self.holders.freed.len() >= self.config.sessions.unknown {
                self.holders.freed.pop_front();
            }
            self.holders.freed.extend(newest.map(|index| (peer, index)));
            return;
        }
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        let keys = std::mem::take(&mut state.keys);
        state.timers = super::peer::Timers::default();
        let was_holder = std::mem::take(&mut state.is_holder);
        keys.all().for_each(|slot| self.table.remove(slot));
        self.holders.known -= usize::from(was_holder);
        self.note_change(peer);
    }

    fn pool(&self, peer: PeerId) -> Pool {
        match self.config.is_stranger(peer) {
            true => Pool::Unknown,
            false => Pool::Known,
        }
    }

    fn cap(&self, pool: Pool) -> usize {
        match pool {
            Pool::Known => self.config.sessions.known,
            Pool::Unknown => self.config.sessions.unknown,
        }
    }

    fn held(&self, pool: Pool) -> usize {
        match pool {
            Pool::Known => self.holders.known,
            Pool::Unknown => self.holders.unknown,
        }
    }

    fn held_mut(&mut self, pool: Pool) -> &mut usize {
        match pool {
            Pool::Known => &mut self.holders.known,
            Pool::Unknown => &mut self.holders.unknown,
        }
    }
}

impl Peer {
    /// When the peer was last heard of in a session, or the newest was made.
    fn idle_since(&self, table: &SessionTable) -> Option<Instant> {
        let newest = self.newest(table)?;
        Some(
            self.timers
                .last_heard
                .unwrap_or(newest.created)
                .max(newest.created),
        )
    }

    fn newest<'t>(&self, table: &'t SessionTable) -> Option<&'t Session> {
        let sessions = self.keys.all().filter_map(|slot| table.session(slot));
        sessions.max_by_key(|session| session.created)
    }
}
