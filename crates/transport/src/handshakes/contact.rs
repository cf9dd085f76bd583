//! What the handshake thread keeps of a peer.

use crate::timing::{DIAL_BACK_INTERVAL, FIRST_RETRY, GIVE_UP_AFTER, PENDING_LIFETIME, REKEY_TIMEOUT};
use falconet_crypto::{SessionIndex, Suite, Tai64N};
use falconet_handshake::{COOKIE_LIFETIME, Cookie, Mac1, PeerStatic, PendingInitiation};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tries in suite 1 before suite 0; `docs/spec/session.md#suites`.
const TRIES_PER_SUITE: u32 = 3;
/// Tries where the peer was last before some go home.
const TRIES_AWAY: u32 = 3;
/// Initiations of one dial that a cookie reply may hasten.
pub(crate) const MAX_COOKIE_RETRIES: u32 = 4;

pub(crate) struct Contact {
    pub(crate) statics: Arc<PeerStatic>,
    pub(crate) persistent: bool,
    /// Suite 1 is in the peer's record and allowed here.
    pub(crate) aes: bool,
    /// Timestamp of the last initiation that was accepted; outlives every session.
    pub(crate) greatest: Option<Tai64N>,
    /// When that was received.
    pub(crate) last_accepted: Option<Instant>,
    /// How many were accepted, and the last of them whose answer was finished.
    pub(crate) turn: u64,
    pub(crate) answered_turn: u64,
    /// When the last handshake was finished, or a peer's initiation accepted.
    pub(crate) last_session: Option<Instant>,
    /// The index of ours in the last finished handshake.
    pub(crate) last_index: Option<SessionIndex>,
    pub(crate) last_sent: Option<Instant>,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) dial: Option<Dial>,
    /// When it was last dialled back, and how often in a row without an answer.
    dialled_back: Option<Instant>,
    dials_back: u32,
    /// Where configuration or its record says that it is, whatever it has roamed to since.
    pub(crate) home: Option<SocketAddr>,
    /// It has an identity or is persistent, so `home` is a recorded address.
    pub(crate) is_validator: bool,
    /// Our last response: the initiator may answer it with a cookie.
    pub(crate) answered: Option<Answered>,
    cookie: Option<StoredCookie>,
    /// The two newest initiations, newest last.
    pending: [Option<Pending>; 2],
}

/// A dial under way.
pub(crate) struct Dial {
    pub(crate) to: SocketAddr,
    pub(crate) next_at: Instant,
    /// `None`: for ever.
    pub(crate) give_up: Option<Instant>,
    pub(crate) interval: Duration,
    pub(crate) tries: u32,
    pub(crate) cookie_retries: u32,
    /// It ends with its first initiation: nobody asked for it but a message that may be replayed.
    pub(crate) is_back: bool,
}

pub(crate) struct Pending {
    pub(crate) initiation: PendingInitiation,
    pub(crate) to: SocketAddr,
    pub(crate) sent: Instant,
}

/// A response of ours that left.
pub(crate) struct Answered {
    pub(crate) index: SessionIndex,
    pub(crate) mac1: Mac1,
    pub(crate) to: SocketAddr,
}

/// Kept by address and apart from any session, so that it outlives both.
struct StoredCookie {
    cookie: Cookie,
    address: SocketAddr,
    since: Instant,
}

impl Contact {
    pub(crate) fn new(statics: PeerStatic, persistent: bool, aes: bool) -> Self {
        Self {
            statics: Arc::new(statics),
            persistent,
            aes,
            greatest: None,
            last_accepted: None,
            turn: 0,
            answered_turn: 0,
            last_session: None,
            last_index: None,
            last_sent: None,
            round_trip: None,
            dial: None,
            dialled_back: None,
            dials_back: 0,
            home: None,
            is_validator: persistent,
            answered: None,
            cookie: None,
            pending: [None, None],
        }
    }

    /// Starts a dial, or keeps the one under way going.
    pub(crate) fn start_dial(&mut self, now: Instant, to: SocketAddr) {
        let give_up = (!self.persistent).then_some(now + GIVE_UP_AFTER);
        if let Some(dial) = self.dial.as_mut().filter(|dial| !dial.is_back) {
            dial.to = to;
            dial.give_up = give_up;
            return;
        }
        // docs/spec/session.md#retransmission
        let interval = self
            .round_trip
            .map_or(FIRST_RETRY, |rtt| FIRST_RETRY.max(rtt * 3 / 2));
        self.dial = Some(Dial {
            to,
            next_at: now,
            give_up,
            interval: interval.min(REKEY_TIMEOUT),
            tries: 0,
            cookie_retries: 0,
            is_back: false,
        });
    }

    /// Starts a dial of one initiation to where the peer is said to be, if its own dials may be in vain;
    /// `docs/spec/session.md#dial-back`.
    pub(crate) fn start_dial_back(&mut self, now: Instant) {
        let is_too_soon = |at| now.saturating_duration_since(at) < DIAL_BACK_INTERVAL;
        let Some(home) = self.home.filter(|_| self.persistent && self.dial.is_none()) else {
            return;
        };
        if self.dialled_back.is_some_and(is_too_soon) {
            return;
        }
        self.dialled_back = Some(now);
        self.dial = Some(Dial {
            to: home,
            next_at: now,
            give_up: Some(now + DIAL_BACK_INTERVAL),
            interval: DIAL_BACK_INTERVAL,
            // As for other dials, some are lost before another suite is tried.
            tries: self.dials_back,
            cookie_retries: MAX_COOKIE_RETRIES - 1,
            is_back: true,
        });
        self.dials_back = self.dials_back.saturating_add(1);
    }

    /// One of our initiations was answered.
    pub(crate) fn end_dial(&mut self) {
        self.dial = None;
        self.dials_back = 0;
    }

    /// Where the next initiation goes: where the peer was last, and after three tries every other one
    /// home; `docs/spec/session.md#home`.
    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        let dial = self.dial.as_ref()?;
        let is_homeward = dial.tries >= TRIES_AWAY && dial.tries % 2 == TRIES_AWAY % 2;
        Some(self.home.filter(|_| is_homeward).unwrap_or(dial.to))
    }

    /// The address of a known validator, for admission.
    pub(crate) fn recorded(&self) -> Option<SocketAddr> {
        self.home.filter(|_| self.is_validator)
    }

    /// The suite of the next initiation, and whether it is a fall-back.
    pub(crate) fn suite(&self) -> (Suite, bool) {
        let tries = self.dial.as_ref().map_or(0, |dial| dial.tries);
        match (self.aes, tries < TRIES_PER_SUITE) {
            (true, true) => (Suite::Aes256Gcm, false),
            (true, false) => (Suite::ChaCha20Poly1305, tries == TRIES_PER_SUITE),
            (false, _) => (Suite::ChaCha20Poly1305, false),
        }
    }

    pub(crate) fn cookie(&self, now: Instant, to: SocketAddr) -> Option<&Cookie> {
        let stored = self.cookie.as_ref()?;
        let is_fresh = now.saturating_duration_since(stored.since) < COOKIE_LIFETIME;
        (stored.address == to && is_fresh).then_some(&stored.cookie)
    }

    pub(crate) fn store_cookie(&mut self, now: Instant, address: SocketAddr, cookie: Cookie) {
        self.cookie = Some(StoredCookie {
            cookie,
            address,
            since: now,
        });
    }

    /// Keeps the newest two; gives back the index of the one that makes room.
    pub(crate) fn push_pending(&mut self, pending: Pending) -> Option<SessionIndex> {
        let [oldest, newest] = &mut self.pending;
        let dropped = std::mem::replace(oldest, newest.replace(pending));
        dropped.map(|pending| pending.initiation.local_index())
    }

    pub(crate) fn pending(&self, index: SessionIndex) -> Option<&Pending> {
        let mut pendings = self.pending.iter().flatten();
        pendings.find(|pending| pending.initiation.local_index() == index)
    }

    /// The initiation was answered: it and any older one are done, a newer one stays.
    pub(crate) fn finish_pending(&mut self, index: SessionIndex) -> [Option<SessionIndex>; 2] {
        let is_it = |pending: &Option<Pending>| {
            pending
                .as_ref()
                .is_some_and(|pending| pending.initiation.local_index() == index)
        };
        let finished = if is_it(&self.pending[1]) {
            [self.pending[0].take(), self.pending[1].take()]
        } else if is_it(&self.pending[0]) {
            [self.pending[0].take(), None]
        } else {
            [None, None]
        };
        finished.map(|pending| pending.map(|pending| pending.initiation.local_index()))
    }

    /// Forgets initiations that can no longer be answered (all of them, if `now` is `None`).
    pub(crate) fn expire_pending(&mut self, now: Option<Instant>) -> [Option<SessionIndex>; 2] {
        let mut expired = [None, None];
        for (pending, expired) in self.pending.iter_mut().zip(&mut expired) {
            let taken = pending.take_if(|pending| {
                now.is_none_or(|now| now.saturating_duration_since(pending.sent) >= PENDING_LIFETIME)
            });
            *expired = taken.map(|pending| pending.initiation.local_index());
        }
        expired
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let expiries = self
            .pending
            .iter()
            .flatten()
            .map(|pending| pending.sent + PENDING_LIFETIME);
        expiries.chain(self.dial.as_ref().map(|dial| dial.next_at)).min()
    }
}
