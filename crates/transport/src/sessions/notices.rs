//! What waits to be told to the embedder and to the handshake thread: at most one entry a peer, however
//! long nobody polls. `docs/spec/session.md#notices`.

use super::{Sessions, Told};
use crate::message::Request;
use crate::{Event, PeerId, ToHandshakes};
use std::net::SocketAddr;

/// What the handshake thread has not been told yet of a peer.
#[derive(Default)]
pub(crate) struct Wanted {
    settled: bool,
    update: bool,
    dial: Option<SocketAddr>,
    is_queued: bool,
}

/// What the embedder knows of a peer's link.
#[derive(Default)]
pub(crate) struct Announced {
    /// `Connected` was polled, and no `Disconnected` since.
    is_connected: bool,
    is_queued: bool,
}

impl Wanted {
    /// The next thing to say, in an order that loses nothing: what has ended comes before what starts.
    fn pop(&mut self, peer: PeerId, aes: bool, recorded: Option<SocketAddr>) -> Option<Request> {
        if std::mem::take(&mut self.settled) {
            return Some(Request::Settled { peer });
        }
        if std::mem::take(&mut self.update) {
            return Some(Request::Update { peer, aes, recorded });
        }
        self.dial.take().map(|to| Request::Dial { peer, to })
    }
}

impl Sessions {
    /// For the handshake thread. Poll only while its queue has room: a message must not be dropped. What
    /// is not polled waits, at most one entry a peer.
    pub fn poll_message(&mut self) -> Option<ToHandshakes> {
        if let Some((peer, index)) = self.holders.freed.pop_front() {
            return Some(ToHandshakes(Request::Freed { peer, index }));
        }
        while let Some(&peer) = self.requests.front() {
            if let Some(state) = self.peer_mut(peer) {
                let (aes, recorded) = (state.record.aes, state.record.address);
                if let Some(request) = state.wanted.pop(peer, aes, recorded) {
                    return Some(ToHandshakes(request));
                }
                state.wanted.is_queued = false;
            }
            self.requests.pop_front();
        }
        None
    }

    /// What the embedder should know. A session that came and went between two polls is not told.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(told) = self.events.front() {
            let event = match *told {
                Told::Peer(peer) => self.next_event_of(peer),
                Told::Event(_) => None,
            };
            if event.is_some() {
                return event;
            }
            if let Some(Told::Event(event)) = self.events.pop_front() {
                if let Event::SendFailed { plaintext, .. } = &event {
                    self.waiting.remove(plaintext.len());
                }
                return Some(event);
            }
        }
        None
    }

    fn next_event_of(&mut self, peer: PeerId) -> Option<Event> {
        let state = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut)?;
        let current = state.keys.current.and_then(|slot| self.table.session(slot));
        let was_connected = std::mem::replace(&mut state.announced.is_connected, current.is_some());
        match (was_connected, current) {
            (false, Some(session)) => {
                let suite = session.suite();
                return Some(Event::Connected { peer, suite });
            }
            (true, None) => return Some(Event::Disconnected { peer }),
            _ => {}
        }
        if let Some(record) = state.record.untold.take() {
            return Some(Event::RecordAccepted { peer, record });
        }
        state.announced.is_queued = false;
        None
    }

    /// Something of `peer` that the embedder should know has changed.
    pub(super) fn note_change(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        if !std::mem::replace(&mut state.announced.is_queued, true) {
            self.events.push_back(Told::Peer(peer));
        }
    }

    /// A peer is gone: what was said of it has to be taken back.
    pub(super) fn note_removal(&mut self, peer: PeerId, announced: &Announced) {
        if announced.is_connected {
            self.events.push_back(Told::Event(Event::Disconnected { peer }));
        }
    }

    pub(super) fn ask_to_dial(&mut self, peer: PeerId, to: SocketAddr) {
        self.ask(peer, |wanted| wanted.dial = Some(to));
    }

    /// Our own dial may end; one that was not asked for yet is not.
    pub(super) fn tell_settled(&mut self, peer: PeerId) {
        self.ask(peer, |wanted| (wanted.settled, wanted.dial) = (true, None));
    }

    pub(super) fn tell_update(&mut self, peer: PeerId) {
        self.ask(peer, |wanted| wanted.update = true);
    }

    fn ask(&mut self, peer: PeerId, what: impl FnOnce(&mut Wanted)) {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        what(&mut state.wanted);
        if !std::mem::replace(&mut state.wanted.is_queued, true) {
            self.requests.push_back(peer);
        }
    }
}
