//! Sends that wait for a session; `docs/spec/session.md#buffered`.

use super::peer::Buffered;
use super::{SendError, Sessions, Told};
use crate::config::BufferLimits;
use crate::timing::GIVE_UP_AFTER;
use crate::{Event, PeerId, Released};
use bytes::Bytes;
use falconet_auth_framing::OVERHEAD;
use falconet_crypto::Now;
use std::time::Instant;

/// Everything that waits, in `buffer`, in `poll_released` and in the events of what has failed.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) bytes: usize,
    pub(super) entries: usize,
}

impl Waiting {
    fn has_room(&self, bytes: usize, limits: &BufferLimits) -> bool {
        self.bytes + bytes <= limits.total_bytes && self.entries < limits.total_entries
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.entries += 1;
    }

    pub(super) fn remove(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.entries -= 1;
    }
}

impl Sessions {
    /// Keeps a plaintext until there is a session, and dials. For [`crate::LaneDecision::Buffer`].
    ///
    /// It comes back from [`Sessions::poll_released`] in order, or after 90 s as
    /// [`Event::SendFailed`]; `tag` is the caller's and comes back with it.
    ///
    /// # Errors
    ///
    /// [`SendError::BufferFull`] past 128 KiB or 128 entries of this peer or 64 MiB in all (defaults),
    /// and the errors that [`Sessions::seal`] has for any plaintext.
    pub fn buffer(&mut self, now: Now, peer: PeerId, plaintext: Bytes, tag: u32) -> Result<(), SendError> {
        let limits = self.config.buffered;
        if plaintext.is_empty() {
            return Err(SendError::Empty);
        }
        if plaintext.len() + OVERHEAD > self.config.max_datagram {
            return Err(SendError::TooLarge);
        }
        let is_full = !self.waiting.has_room(plaintext.len(), &limits);
        let state = self.peer_mut(peer).ok_or(SendError::UnknownPeer)?;
        if state.buffered.len() >= limits.peer_entries
            || state.buffered_bytes + plaintext.len() > limits.peer_bytes
            || is_full
        {
            return Err(SendError::BufferFull);
        }
        let bytes = plaintext.len();
        state.buffered_bytes += bytes;
        state.buffered.push_back(Buffered {
            plaintext,
            tag,
            since: now.instant,
        });
        self.waiting.add(bytes);
        if self.is_connected(now, peer) {
            self.release(peer);
        } else {
            self.request_dial(now.instant, peer);
        }
        self.rearm(now.instant, peer);
        Ok(())
    }

    /// What was buffered and may leave now, in order: seal it before anything newer.
    pub fn poll_released(&mut self) -> Option<Released> {
        let released = self.released.pop_front()?;
        self.waiting.remove(released.plaintext.len());
        Some(released)
    }

    /// What was released can neither leave nor wait: its sender is told.
    pub(crate) fn fail_released(&mut self, released: Released) {
        self.waiting.add(released.plaintext.len());
        self.events.push_back(Told::Event(Event::SendFailed {
            peer: released.peer,
            tag: released.tag,
            plaintext: released.plaintext,
        }));
    }

    /// Moves what `peer` has waiting to `poll_released`; says whether there was anything.
    pub(super) fn release(&mut self, peer: PeerId) -> bool {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return false;
        };
        let any = !state.buffered.is_empty();
        state.buffered_bytes = 0;
        let waiting = state.buffered.drain(..);
        self.released.extend(waiting.map(|entry| Released {
            peer,
            plaintext: entry.plaintext,
            tag: entry.tag,
        }));
        any
    }

    /// Reports what has waited for 90 s at `now`, or everything.
    pub(super) fn fail_buffered(&mut self, peer: PeerId, now: Option<Instant>) {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        let has_failed = |entry: &Buffered| {
            now.is_none_or(|now| now.saturating_duration_since(entry.since) >= GIVE_UP_AFTER)
        };
        while let Some(entry) = state.buffered.pop_front_if(|entry| has_failed(entry)) {
            state.buffered_bytes -= entry.plaintext.len();
            self.events.push_back(Told::Event(Event::SendFailed {
                peer,
                tag: entry.tag,
                plaintext: entry.plaintext,
            }));
        }
    }
}
