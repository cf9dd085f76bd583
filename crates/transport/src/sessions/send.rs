//! Outbound datagrams: which lane, sealing, and the dials that they ask for.

use super::Sessions;
use crate::message::LaneDecision;
use crate::timing::{REKEY_AFTER, REKEY_TIMEOUT, UNANSWERED_TIMEOUT};
use crate::{PeerId, Policy};
use falconet_auth_framing::{OVERHEAD, SealError};
use falconet_crypto::Now;
use falconet_handshake::Role;
use std::net::SocketAddr;
use std::time::Instant;

/// Why something was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No peer has this handle.
    #[error("unknown peer")]
    UnknownPeer,
    /// The peer has no address on the lane that its policy demands.
    #[error("the peer has no address on the lane that its policy demands")]
    NoAddress,
    /// What may wait for a session is full.
    #[error("too much is waiting for a session")]
    BufferFull,
    /// Longer than [`crate::TransportConfig::with_max_datagram`] allows.
    #[error("longer than a datagram may be")]
    TooLarge,
    /// An empty plaintext is WireGuard's keepalive and cannot be sent.
    #[error("an empty datagram cannot be sent")]
    Empty,
    /// No session can seal now: ask [`Sessions::lane`] first.
    #[error("no session can seal now")]
    NoSession,
}

impl Sessions {
    /// Which lane so many datagrams to `peer` take now; the table is `docs/spec/rollout.md#lane`.
    ///
    /// Where the answer is not the session although the policy wants one, the peer is dialled, and each of them counts
    /// as a fallback.
    pub fn lane(&mut self, now: Now, peer: PeerId, datagrams: u64) -> LaneDecision {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return LaneDecision::Refuse(SendError::UnknownPeer);
        };
        let current = state.keys.current.and_then(|slot| self.table.session(slot));
        let has_session = current.is_some_and(|session| session.can_seal(now.instant));
        let decision = state.lane_facts(has_session).decide();
        if state.policy != Policy::Plain && matches!(decision, LaneDecision::Plain(_)) {
            state.fallbacks += datagrams;
            self.connect(now, peer);
        }
        decision
    }

    /// Seals in place and says where it goes. Hot path, after [`Sessions::lane`] said
    /// [`LaneDecision::Authenticated`].
    ///
    /// `datagram` is 16 bytes of headroom, the plaintext with its kind byte, and 16 bytes of tail.
    ///
    /// # Errors
    ///
    /// [`SendError`]; `datagram` is then unchanged.
    #[inline]
    pub fn seal(&mut self, now: Now, peer: PeerId, datagram: &mut [u8]) -> Result<SocketAddr, SendError> {
        if datagram.len() <= OVERHEAD {
            return Err(SendError::Empty);
        }
        if datagram.len() > self.config.max_datagram {
            return Err(SendError::TooLarge);
        }
        let now = now.instant;
        let state = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut);
        let state = state.ok_or(SendError::UnknownPeer)?;
        let slot = state.keys.current.ok_or(SendError::NoSession)?;
        let session = self.table.session_mut(slot).ok_or(SendError::NoSession)?;
        if session.is_expired(now) {
            return Err(SendError::NoSession);
        }
        let address = state.address.ok_or(SendError::NoAddress)?;
        session.sealer.seal(datagram).map_err(|error| match error {
            SealError::NoRoom => SendError::Empty,
            _ => SendError::NoSession,
        })?;
        self.sealed += 1;
        let timers = &mut state.timers;
        timers.last_sent = Some(now);
        timers.unreplied = None;
        if timers.unanswered.is_none() {
            timers.unanswered = Some(now);
            self.deadlines.arm(peer, now + UNANSWERED_TIMEOUT);
        }
        // docs/spec/session.md#rekey
        let is_old =
            session.role == Role::Initiator && now.saturating_duration_since(session.created) >= REKEY_AFTER;
        if is_old || session.sealer.needs_rekey() {
            self.request_dial(now, peer);
        }
        Ok(address)
    }

    /// Dials in advance. Does nothing for a peer without address or key, or while a session serves.
    pub fn connect(&mut self, now: Now, peer: PeerId) {
        let Some(state) = self.peer(peer) else { return };
        let current = state.keys.current.and_then(|slot| self.table.session(slot));
        if !current.is_some_and(|session| session.can_seal(now.instant)) {
            self.request_dial(now.instant, peer);
        }
        self.rearm(now.instant, peer);
    }

    /// Asks for a new session although the present one still serves: an operator's command, or a suspicion.
    /// Sending goes on over the present one meanwhile (`docs/spec/session.md#rekey`).
    pub fn rekey(&mut self, now: Now, peer: PeerId) {
        self.request_dial(now.instant, peer);
        self.rearm(now.instant, peer);
    }

    /// Asks the handshake thread for a session, at most every 5 s: it does the retries.
    pub(super) fn request_dial(&mut self, now: Instant, peer: PeerId) {
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        let Some(to) = state.address.filter(|_| state.can_dial()) else {
            return;
        };
        let is_recent = |at: Instant| now.saturating_duration_since(at) < REKEY_TIMEOUT;
        if state.dial_requested.is_some_and(is_recent) {
            return;
        }
        state.dial_requested = Some(now);
        self.ask_to_dial(peer, to);
    }
}
