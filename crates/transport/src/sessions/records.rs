//! Records in sessions: ours is offered, the peer's is taken; `docs/spec/session.md#record-message`.

use super::Sessions;
use super::table::Slot;
use crate::timing::{RECORD_ACCEPT_INTERVAL, RECORD_SEND_INTERVAL};
use crate::{Capabilities, Discard, Lane, PeerId, PeerRecord, RecordError, Transmit, kind};
use bytes::{Bytes, BytesMut};
use falconet_auth_framing::{HEADER_LEN, OVERHEAD};
use falconet_crypto::Now;
use std::net::SocketAddr;
use std::time::Instant;

/// Our own record, as it travels.
pub(super) struct OwnRecord {
    sequence: u64,
    plaintext: Bytes,
}

/// What a record in force says of a peer, and what came of it.
#[derive(Default)]
pub(crate) struct RecordState {
    /// Sequence of the record in force; the next one has to be higher.
    pub(crate) sequence: Option<u64>,
    /// Suite 1 is listed.
    pub(crate) aes: bool,
    /// Where it says that the peer is.
    pub(crate) address: Option<SocketAddr>,
    /// The peer has said that it no longer serves the authenticated lane.
    pub(crate) is_plain_only: bool,
    /// For the embedder, who has not polled it yet.
    pub(crate) untold: Option<Box<PeerRecord>>,
}

impl Sessions {
    /// Offers `record` as this node's own in every session, those to come included, at most once in
    /// 11 s and session; a session that was told keeps quiet.
    ///
    /// # Errors
    ///
    /// [`RecordError::WrongKey`] if it names another transport key than this node's.
    pub fn set_record(&mut self, now: Now, record: &PeerRecord) -> Result<(), RecordError> {
        if record.content().transport_key != self.local {
            return Err(RecordError::WrongKey);
        }
        let mut plaintext = vec![kind::RECORD];
        plaintext.extend(record.encode());
        self.own_record = Some(OwnRecord {
            sequence: record.content().sequence,
            plaintext: plaintext.into(),
        });
        for slot in 0..self.peers.len() {
            let peer = PeerId(slot as u32);
            self.offer_record(now.instant, peer);
            self.rearm(now.instant, peer);
        }
        Ok(())
    }

    /// Puts a verified record of `peer` in force that came on another way than its session: from
    /// configuration, say. It is treated as one that came in the session.
    ///
    /// # Errors
    ///
    /// [`Discard::RecordRefused`] if it is not of this peer's transport key and identity, or of one that nobody
    /// has configured, or if it has expired since it was verified,
    /// [`Discard::RecordOld`] if its sequence is not higher than that of the one in force.
    pub fn update_record(&mut self, now: Now, peer: PeerId, record: &PeerRecord) -> Result<(), Discard> {
        let content = record.content();
        let is_stranger = self.config.is_stranger(peer);
        let state = self.peer_mut(peer).ok_or(Discard::UnknownPeer)?;
        let is_own = state.key == Some(content.transport_key)
            && state.identity.is_none_or(|identity| identity == content.identity);
        // docs/spec/session.md#strangers: who is known by its key alone gets nothing by what it signs itself.
        // docs/spec/record.md#signature: what was verified once may have been kept for long.
        if !is_own || is_stranger || content.expiry_ms <= now.unix_ms() {
            return Err(Discard::RecordRefused);
        }
        // docs/spec/record.md#sequence
        if state.record.sequence >= Some(content.sequence) {
            return Err(Discard::RecordOld);
        }
        state.record.sequence = Some(content.sequence);
        state.identity = Some(content.identity);
        state.record.aes = content.suites & (1 << 1) != 0;
        state.record.untold = Some(Box::new(record.clone()));
        // docs/spec/rollout.md#sticky
        let is_served = content.capabilities.contains(Capabilities::AUTHENTICATED_LANE);
        state.record.is_plain_only = !is_served;
        state.seen &= is_served;
        // docs/spec/session.md#roaming: once, and then the peer's datagrams may move it again.
        let is_v6 = state.address.is_some_and(|address| address.is_ipv6());
        state.record.address = content.authenticated.of_family(is_v6).filter(|_| is_served);
        state.address = state.record.address.or(state.address);
        self.move_plain(peer, content.plain.of_family(is_v6));
        self.tell_update(peer);
        if !is_served {
            // docs/spec/rollout.md#sticky: nor is it dialled any more, whatever asked for it before.
            self.tell_settled(peer);
        }
        self.note_change(peer);
        self.rearm(now.instant, peer);
        Ok(())
    }

    /// Sequence of the record of `peer` in force, for [`crate::PeerConfig::record_sequence`] of the next
    /// run.
    pub fn record_sequence(&self, peer: PeerId) -> Option<u64> {
        self.peer(peer)?.record.sequence
    }

    /// A record that came in a session. The budget is spent before the signature is verified.
    pub(super) fn handle_record(
        &mut self,
        now: Now,
        slot: Slot,
        peer: PeerId,
        encoding: &[u8],
    ) -> Result<(), Discard> {
        let session = self.table.session_mut(slot).ok_or(Discard::UnknownIndex)?;
        let is_recent = |at| now.instant.saturating_duration_since(at) < RECORD_ACCEPT_INTERVAL;
        if session.record_received.is_some_and(is_recent) {
            return Err(Discard::RecordTooSoon);
        }
        session.record_received = Some(now.instant);
        if self.config.is_stranger(peer) {
            return Err(Discard::RecordRefused);
        }
        let unverified = PeerRecord::decode(encoding).map_err(|_| Discard::RecordRefused)?;
        let in_force = self.peer(peer).and_then(|state| state.record.sequence);
        if in_force >= Some(unverified.claims().sequence) {
            return Err(Discard::RecordOld);
        }
        let network = self.config.network.ok_or(Discard::RecordRefused)?;
        let record = unverified
            .verify(&network, now)
            .map_err(|_| Discard::RecordRefused)?;
        self.update_record(now, peer, &record)
    }

    /// Sends our record in the current session if that has not carried it and the time has come.
    pub(super) fn offer_record(&mut self, now: Instant, peer: PeerId) {
        if self.record_deadline(peer).is_none_or(|at| at > now) || self.transmits_are_short() {
            return;
        }
        let Some(own) = &self.own_record else { return };
        let plaintext = own.plaintext.clone();
        let sequence = own.sequence;
        let mut datagram = BytesMut::zeroed(plaintext.len() + OVERHEAD);
        datagram[HEADER_LEN..HEADER_LEN + plaintext.len()].copy_from_slice(&plaintext);
        let Some(state) = self.peers.get_mut(peer.slot()).and_then(Option::as_deref_mut) else {
            return;
        };
        let session = state.keys.current.and_then(|slot| self.table.session_mut(slot));
        let (Some(session), Some(to)) = (session, state.address) else {
            return;
        };
        if !session.can_seal(now) || session.sealer.seal(&mut datagram).is_err() {
            return;
        }
        session.record_sent = Some((now, sequence));
        state.timers.last_sent = Some(now);
        self.sealed += 1;
        self.transmit(Transmit {
            to,
            lane: Lane::Authenticated,
            datagram: datagram.freeze(),
        });
    }

    /// When our record may be sent in the peer's current session, if it has not been.
    pub(super) fn record_deadline(&self, peer: PeerId) -> Option<Instant> {
        let own = self.own_record.as_ref()?;
        let state = self.peer(peer)?;
        if state.wireguard || state.address.is_none() {
            return None;
        }
        let session = self.table.session(state.keys.current?)?;
        match session.record_sent {
            None => Some(session.created),
            Some((_, sequence)) if sequence == own.sequence => None,
            Some((at, _)) => Some(at + RECORD_SEND_INTERVAL),
        }
    }
}
