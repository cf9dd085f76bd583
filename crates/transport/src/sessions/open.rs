//! Inbound datagrams of both lanes.

use super::Sessions;
use crate::timing::{KEEPALIVE_TIMEOUT, REKEY_ON_RECEIVE_AFTER};
use crate::{Content, Discard, PeerId, Received, kind};
use falconet_auth_framing::{HEADER_LEN, Header};
use falconet_crypto::Now;
use falconet_handshake::Role;
use std::net::SocketAddr;

impl Sessions {
    /// Opens a data message (type 4) in place. Hot path.
    ///
    /// # Errors
    ///
    /// Why it was dropped; counted. Nothing of the session has changed then.
    #[inline]
    pub fn open(&mut self, now: Now, from: SocketAddr, datagram: &mut [u8]) -> Result<Received, Discard> {
        let result = self.try_open(now, from, datagram);
        if let Err(reason) = result {
            self.discards.add(reason);
        }
        result
    }

    fn try_open(&mut self, now: Now, from: SocketAddr, datagram: &mut [u8]) -> Result<Received, Discard> {
        let clock = now;
        let now = now.instant;
        let header = Header::parse(datagram)?;
        let slot = self.table.find(header.receiver).ok_or(Discard::UnknownIndex)?;
        let session = self.table.session_mut(slot).ok_or(Discard::UnknownIndex)?;
        if session.is_expired(now) {
            return Err(Discard::Expired);
        }
        let opened = session.opener.open(header, datagram)?;
        let peer = session.peer;
        // docs/spec/session.md#rekey
        let is_old = session.role == Role::Initiator
            && now.saturating_duration_since(session.created) >= REKEY_ON_RECEIVE_AFTER;
        if !session.confirmed {
            self.confirm(now, slot);
            self.rearm(now, peer);
        }
        self.opened += 1;
        let state = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut);
        let state = state.ok_or(Discard::UnknownPeer)?;
        let is_current = state.keys.current == Some(slot);
        // docs/spec/session.md#roaming
        if opened.is_highest
            && is_current
            && state.address != Some(from)
            && (state.roams || state.address.is_none())
        {
            state.address = Some(from);
        }
        state.timers.unanswered = None;
        state.timers.last_heard = Some(now);
        if opened.len > 0 && state.timers.unreplied.is_none() {
            state.timers.unreplied = Some(now);
            self.deadlines.arm(peer, now + KEEPALIVE_TIMEOUT);
        }
        let is_wireguard = state.wireguard;
        if is_old && is_current {
            self.request_dial(now, peer);
        }
        let plaintext = datagram.get(HEADER_LEN..HEADER_LEN + opened.len);
        let content = match plaintext {
            Some([kind::RECORD, record @ ..]) if !is_wireguard => {
                self.handle_record(clock, slot, peer, record)?;
                Content::None
            }
            plaintext => classify(plaintext, is_wireguard)?,
        };
        Ok(Received {
            peer,
            start: HEADER_LEN,
            len: opened.len,
            content,
        })
    }

    /// Admits a datagram of the plain lane: `docs/spec/rollout.md#inbound`. The peer is the one whose
    /// plain address is `from`, if any: a hint, since anybody can forge it.
    ///
    /// # Errors
    ///
    /// Why it was dropped; counted.
    pub fn admit_plain(
        &mut self,
        _now: Now,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<Option<PeerId>, Discard> {
        let result = self.try_admit_plain(from, datagram);
        if let Err(reason) = result {
            self.discards.add(reason);
        }
        result
    }

    fn try_admit_plain(&self, from: SocketAddr, datagram: &[u8]) -> Result<Option<PeerId>, Discard> {
        match classify_plain(datagram)? {
            Content::Chunk | Content::Message => {}
            _ => return Err(Discard::UnknownKind),
        }
        let peer = self.plain.holder(from);
        let refuses = match peer.and_then(|peer| self.peer(peer)) {
            Some(state) => state.lane_facts(false).requires_session(),
            None => !self.config.plain_strangers,
        };
        if refuses {
            Err(Discard::PlainRefused)
        } else {
            Ok(peer)
        }
    }
}

/// What a bare datagram is: like a plaintext, but there are no keepalives and no control.
pub(crate) fn classify_plain(datagram: &[u8]) -> Result<Content, Discard> {
    match classify(Some(datagram), false)? {
        Content::None => Err(Discard::Empty),
        content => Ok(content),
    }
}

/// What a plaintext is, by its first byte; `docs/spec/session.md#kinds`.
fn classify(plaintext: Option<&[u8]>, wireguard: bool) -> Result<Content, Discard> {
    match plaintext.and_then(<[u8]>::first) {
        None => Ok(Content::None),
        Some(byte) if kind::CHUNK.contains(byte) => Ok(Content::Chunk),
        Some(&kind::MESSAGE) => Ok(Content::Message),
        Some(_) if wireguard => Ok(Content::Other),
        Some(_) => Err(Discard::UnknownKind),
    }
}
