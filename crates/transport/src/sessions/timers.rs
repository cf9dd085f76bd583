//! Timers: what happens when nothing is received; `docs/spec/session.md#timers`.

use super::Sessions;
use super::peer::Due;
use crate::{Lane, PeerId, Transmit};
use bytes::Bytes;
use falconet_auth_framing::OVERHEAD;
use falconet_crypto::Now;
use std::time::Instant;

impl Sessions {
    /// Does what is due. Call it when [`Sessions::poll_timeout`] has passed, and after the datagrams
    /// that were received before: a timer must not overtake the datagram that would have stopped it.
    pub fn handle_timeout(&mut self, now: Now) {
        let now = now.instant;
        self.evict_idle(now);
        while let Some(peer) = self.deadlines.pop_due(now) {
            self.expire_sessions(now, peer);
            self.fail_buffered(peer, Some(now));
            let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
                continue;
            };
            let Due { dial, keepalive } = state.due(now, &self.table);
            if dial {
                self.request_dial(now, peer);
            }
            self.offer_record(now, peer);
            if keepalive {
                self.send_keepalive(now, peer);
            }
            self.rearm(now, peer);
        }
    }

    /// Makes sure that the peer's next deadline fires.
    pub(super) fn rearm(&mut self, now: Instant, peer: PeerId) {
        let deadline = self.peer(peer).and_then(|state| state.next_deadline(&self.table));
        let deadline = deadline.into_iter().chain(self.record_deadline(peer)).min();
        if let Some(at) = deadline {
            // A deadline that has just been served and cannot move (no address to dial, say) must not
            // spin the loop.
            self.deadlines.arm(peer, at.max(now + MIN_PAUSE));
        }
    }

    /// An empty plaintext on the current session, if there is one and the peer's address is known.
    pub(super) fn send_keepalive(&mut self, now: Instant, peer: PeerId) {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        state.timers.unreplied = None;
        state.timers.last_sent = Some(now);
        let session = state.keys.current.and_then(|slot| self.table.session_mut(slot));
        let (Some(session), Some(to)) = (session, state.address) else {
            return;
        };
        let mut datagram = [0; OVERHEAD];
        if !session.is_expired(now) && session.sealer.seal(&mut datagram).is_ok() {
            self.sealed += 1;
            self.transmit(Transmit {
                to,
                lane: Lane::Authenticated,
                datagram: Bytes::copy_from_slice(&datagram),
            });
        }
    }

    /// Drops, and so zeroizes, keys of 180 s; `docs/spec/session.md#expiry`.
    fn expire_sessions(&mut self, now: Instant, peer: PeerId) {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        let had_current = state.keys.current.is_some();
        let keys = &mut state.keys;
        for place in [
            &mut keys.older,
            &mut keys.previous,
            &mut keys.current,
            &mut keys.next,
        ] {
            let is_expired = |slot| {
                self.table
                    .session(slot)
                    .is_none_or(|session| session.is_expired(now))
            };
            if let Some(slot) = place.take_if(|slot| is_expired(*slot)) {
                self.table.remove(slot);
            }
        }
        self.count_holder(now, peer);
        let Some(state) = self.peer_mut(peer) else { return };
        if had_current && state.keys.current.is_none() {
            state.timers = super::peer::Timers::default();
            self.note_change(peer);
        }
    }
}

/// Least time between two firings of one peer's deadline.
const MIN_PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
