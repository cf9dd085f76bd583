//! What the data plane keeps of a peer.

use super::notices::{Announced, Wanted};
use super::records::RecordState;
use super::table::{Session, SessionTable, Slot};
use crate::rollout::LaneFacts;
use crate::timing::{GIVE_UP_AFTER, KEEPALIVE_TIMEOUT, REJECT_AFTER, REKEY_AFTER, REKEY_ON_RECEIVE_AFTER};
use crate::timing::{REKEY_TIMEOUT, UNANSWERED_TIMEOUT};
use crate::{PeerConfig, Policy};
use bytes::Bytes;
use falconet_crypto::{IdentityKey, Suite, TransportPublicKey};
use falconet_handshake::Role;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Shortest interval of persistent keepalives.
const MIN_KEEPALIVE: Duration = Duration::from_secs(1);

pub(crate) struct Peer {
    pub(crate) key: Option<TransportPublicKey>,
    pub(crate) policy: Policy,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) plain_address: Option<SocketAddr>,
    pub(crate) persistent: bool,
    pub(crate) roams: bool,
    pub(crate) wireguard: bool,
    pub(crate) seen: bool,
    pub(crate) keys: Keypairs,
    /// It has a place among the sessions that there are for persistent peers.
    pub(crate) has_place: bool,
    /// It is counted among those that have a session.
    pub(crate) is_holder: bool,
    pub(crate) buffered: VecDeque<Buffered>,
    pub(crate) buffered_bytes: usize,
    /// When the handshake thread was last asked to dial.
    pub(crate) dial_requested: Option<Instant>,
    /// Datagrams sent plain although the policy would rather seal them.
    pub(crate) fallbacks: u64,
    keepalive: Option<Duration>,
    pub(crate) timers: Timers,
    pub(crate) identity: Option<IdentityKey>,
    pub(crate) record: RecordState,
    pub(crate) wanted: Wanted,
    pub(crate) announced: Announced,
}

/// Sessions of one peer, newest keys last; `docs/spec/session.md#keypairs`.
#[derive(Default)]
pub(crate) struct Keypairs {
    /// Receives only, and only while there is no next: two retried initiations may both be answered,
    /// and then data is under way in three sessions.
    pub(crate) older: Option<Slot>,
    /// Receives only.
    pub(crate) previous: Option<Slot>,
    /// Sends and receives.
    pub(crate) current: Option<Slot>,
    /// Accepted, not yet confirmed by a datagram.
    pub(crate) next: Option<Slot>,
}

impl Keypairs {
    pub(crate) fn all(&self) -> impl Iterator<Item = Slot> + use<> {
        let all = [self.older, self.previous, self.current, self.next];
        all.into_iter().flatten()
    }

    /// `slot` only receives from now on; gives back the oldest, if it had two before it.
    pub(crate) fn retire(&mut self, slot: Slot) -> Option<Slot> {
        let oldest = self.older.take();
        self.older = self.previous.replace(slot);
        oldest
    }

    /// Gives back what has to go so that there are three at most.
    pub(crate) fn trim(&mut self) -> Option<Slot> {
        let is_full = self.previous.is_some() && self.current.is_some() && self.next.is_some();
        self.older.take_if(|_| is_full)
    }

    /// Takes `slot` out of its place; it is not the current one.
    pub(crate) fn take(&mut self, slot: Slot) {
        for place in [&mut self.older, &mut self.previous, &mut self.next] {
            place.take_if(|at| *at == slot);
        }
    }
}

/// Times from which deadlines follow. A packet writes these fields and nothing else.
#[derive(Default)]
pub(crate) struct Timers {
    /// First data sent since something was last received.
    pub(crate) unanswered: Option<Instant>,
    /// First data received since something was last sent.
    pub(crate) unreplied: Option<Instant>,
    pub(crate) last_sent: Option<Instant>,
    /// When something of the peer was last opened.
    pub(crate) last_heard: Option<Instant>,
}

/// A send that waits for a session.
pub(crate) struct Buffered {
    pub(crate) plaintext: Bytes,
    pub(crate) tag: u32,
    pub(crate) since: Instant,
}

/// What is due for a peer.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    pub(crate) dial: bool,
    pub(crate) keepalive: bool,
}

impl Peer {
    pub(crate) fn new(config: &PeerConfig) -> Self {
        Self {
            key: config.transport_key,
            policy: config.policy,
            address: config.address,
            plain_address: config.plain_address,
            persistent: config.persistent,
            roams: config.roaming.unwrap_or(!config.persistent),
            wireguard: config.wireguard,
            seen: config.seen,
            keys: Keypairs::default(),
            has_place: config.needs_place(),
            is_holder: false,
            buffered: VecDeque::new(),
            buffered_bytes: 0,
            dial_requested: None,
            fallbacks: 0,
            keepalive: config.keepalive.map(|interval| interval.max(MIN_KEEPALIVE)),
            timers: Timers::default(),
            identity: config.identity,
            record: RecordState {
                sequence: config.record_sequence,
                aes: config.suites.contains(&Suite::Aes256Gcm),
                address: config.address,
                ..RecordState::default()
            },
            wanted: Wanted::default(),
            announced: Announced::default(),
        }
    }

    pub(crate) fn lane_facts(&self, has_session: bool) -> LaneFacts {
        LaneFacts {
            policy: self.policy,
            has_session: has_session && !self.record.is_plain_only,
            was_seen: self.seen,
            can_dial: self.can_dial(),
            plain: self.plain_address,
        }
    }

    /// Transport key and address are known, and the peer has not said that it serves no sessions.
    pub(crate) fn can_dial(&self) -> bool {
        self.key.is_some() && self.address.is_some() && !self.record.is_plain_only
    }

    /// Whether a session should be kept although nobody sends.
    pub(crate) fn wants_session(&self) -> bool {
        self.persistent && self.policy != Policy::Plain && !self.record.is_plain_only
    }

    /// What the timers ask for at `now`; `docs/spec/session.md#timers`.
    pub(crate) fn due(&mut self, now: Instant, table: &SessionTable) -> Due {
        let current = self.keys.current.and_then(|slot| table.session(slot));
        let mut due = Due::default();
        if has_passed(self.timers.unanswered, UNANSWERED_TIMEOUT, now) {
            self.timers.unanswered = None;
            due.dial = true;
        }
        due.dial |= match current {
            Some(session) => self.renewal(session).is_some_and(|at| at <= now),
            None => self.wants_session(),
        };
        due.keepalive = current.is_some()
            && (has_passed(self.timers.unreplied, KEEPALIVE_TIMEOUT, now)
                || self
                    .keepalive
                    .is_some_and(|interval| has_passed(self.timers.last_sent, interval, now)));
        due
    }

    /// The earliest time at which `due` can find something, or a session or a buffered send ends.
    pub(crate) fn next_deadline(&self, table: &SessionTable) -> Option<Instant> {
        let sessions = self.keys.all();
        let expiries = sessions.filter_map(|slot| Some(table.session(slot)?.created + REJECT_AFTER));
        let current = self.keys.current.and_then(|slot| table.session(slot));
        let idle = (current.is_none() && self.wants_session())
            .then(|| self.dial_requested.map(|at| at + REKEY_TIMEOUT))
            .flatten();
        let keepalive = self.keepalive.filter(|_| current.is_some());
        let rest = [
            current.and_then(|session| self.renewal(session)),
            idle,
            self.timers.unanswered.map(|at| at + UNANSWERED_TIMEOUT),
            self.timers
                .unreplied
                .filter(|_| current.is_some())
                .map(|at| at + KEEPALIVE_TIMEOUT),
            keepalive.and_then(|interval| Some(self.timers.last_sent? + interval)),
            self.buffered.front().map(|first| first.since + GIVE_UP_AFTER),
        ];
        expiries.chain(rest.into_iter().flatten()).min()
    }

    /// When an idle persistent peer's session is renewed: by its initiator as WireGuard does, and by
    /// the responder too if the initiator has not managed to; `docs/spec/session.md#persistent`.
    fn renewal(&self, session: &Session) -> Option<Instant> {
        if !self.wants_session() || self.address.is_none() {
            return None;
        }
        let age = match session.role {
            Role::Initiator => REKEY_AFTER,
            Role::Responder => REKEY_ON_RECEIVE_AFTER,
        };
        let due = session.created + age;
        Some(self.dial_requested.map_or(due, |at| due.max(at + REKEY_TIMEOUT)))
    }
}

fn has_passed(since: Option<Instant>, interval: Duration, now: Instant) -> bool {
    since.is_some_and(|since| now.saturating_duration_since(since) >= interval)
}
