//! New sessions: how they take their place beside those that a peer has.

use super::Sessions;
use super::peer::Peer;
use super::table::{Session, Slot};
use crate::message::{NewSession, Origin};
use crate::{Discard, PeerConfig, PeerId, ToSessions};
use falconet_crypto::{Now, TransportPublicKey};
use std::time::Instant;

impl Sessions {
    /// Installs the session that a handshake has agreed on.
    pub fn handle_message(&mut self, now: Now, message: ToSessions) {
        let NewSession {
            peer,
            key,
            keys,
            from,
        } = message.0;
        if self.config.is_stranger(peer) {
            self.take_in(peer, key);
        }
        if self.peer(peer).and_then(|state| state.key) != Some(key) {
            // The peer was removed while its handshake was under way.
            return;
        }
        if !self.make_room(now.instant, peer) {
            self.discard(Discard::SessionsFull);
            return;
        }
        match from {
            Origin::Dialled { initiated, at } => {
                // docs/spec/session.md#home: it was dialled there, and it answered.
                if let Some(state) = self.peer_mut(peer) {
                    state.address = Some(at);
                }
                self.install_dialled(
                    now.instant,
                    Session::new(peer, keys, now.instant, Some(initiated)),
                );
            }
            Origin::Accepted { response } => {
                self.install_accepted(Session::new(peer, keys, now.instant, None));
                // The index is known from here on: what follows the response finds its session;
                // docs/spec/session.md#install-first
                self.transmit(response);
            }
        }
        self.count_holder(now.instant, peer);
        self.rearm(now.instant, peer);
    }

    /// The handshake thread has given `peer`'s place to the holder of `key`;
    /// `docs/spec/session.md#strangers`.
    fn take_in(&mut self, peer: PeerId, key: TransportPublicKey) {
        if self.peer(peer).is_some_and(|state| state.key == Some(key)) {
            return;
        }
        self.remove_peer(peer);
        if self.peers.len() <= peer.slot() {
            self.peers.resize_with(peer.slot() + 1, || None);
        }
        self.peers[peer.slot()] = Some(Box::new(Peer::new(&PeerConfig::new(key))));
    }

    /// We are the initiator: the keys serve at once, and the peer waits to see them used.
    fn install_dialled(&mut self, now: Instant, session: Session) {
        let peer = session.peer;
        let (key, local) = (self.peer(peer).and_then(|state| state.key), self.local);
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        state.dial_requested = None;
        let current = state.keys.current.and_then(|slot| self.table.session(slot));
        let is_usable = current.is_some_and(|current| !current.is_expired(now));
        // docs/spec/session.md#crossing: the peer's session is confirmed and wins. Ours is not even
        // confirmed to the peer, so no peer will ever send on it, whether it knows the rule or not.
        if is_usable && current.is_some_and(|current| session.crossed(current)) && key < Some(local) {
            return;
        }
        self.installed += 1;
        let slot = self.table.insert(session);
        self.make_current(peer, slot);
        // docs/spec/session.md#confirm: the first datagram confirms; a keepalive if there is no data.
        if !self.release(peer) {
            self.send_keepalive(now, peer);
        }
        self.offer_record(now, peer);
    }

    /// We are the responder: the keys only receive until a datagram shows that the peer has them.
    fn install_accepted(&mut self, session: Session) {
        let peer = session.peer;
        self.installed += 1;
        let slot = self.table.insert(session);
        let Some(state) = self.peer_mut(peer) else { return };
        // An older one that was never confirmed may still be the one that the initiator uses, if
        // several of its initiations were answered: it keeps receiving.
        let dropped = match state.keys.next.replace(slot) {
            Some(unconfirmed) => state.keys.retire(unconfirmed),
            None => None,
        };
        let dropped = [dropped, state.keys.trim()];
        self.drop_sessions(dropped);
    }

    /// The first datagram of a session that we accepted has authenticated;
    /// `docs/spec/session.md#confirm`.
    pub(super) fn confirm(&mut self, now: Instant, slot: Slot) {
        let Some(session) = self.table.session_mut(slot) else {
            return;
        };
        session.confirmed = true;
        let peer = session.peer;
        let local = self.local;
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        state.dial_requested = None;
        state.keys.take(slot);
        let (current, session) = (
            state.keys.current.and_then(|c| self.table.session(c)),
            self.table.session(slot),
        );
        let (Some(session), key) = (session, state.key) else {
            return;
        };
        let loses = current
            .filter(|current| !current.is_expired(now))
            .is_some_and(|current| match current.crossed(session) {
                true => Some(local) < key,
                false => current.created > session.created,
            });
        if loses {
            let dropped = [state.keys.retire(slot), state.keys.trim()];
            self.drop_sessions(dropped);
        } else {
            self.make_current(peer, slot);
            self.release(peer);
            self.offer_record(now, peer);
        }
        self.tell_settled(peer);
    }

    /// Puts `slot` into use; the session it replaces receives on as the previous one.
    fn make_current(&mut self, peer: PeerId, slot: Slot) {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        state.seen |= !state.record.is_plain_only;
        state.timers.unanswered = None;
        let dropped = match state.keys.current.replace(slot) {
            Some(replaced) => state.keys.retire(replaced),
            None => None,
        };
        let dropped = [dropped, state.keys.trim()];
        self.drop_sessions(dropped);
        self.note_change(peer);
    }

    fn drop_sessions(&mut self, dropped: [Option<Slot>; 2]) {
        dropped
            .into_iter()
            .flatten()
            .for_each(|slot| self.table.remove(slot));
    }
}
