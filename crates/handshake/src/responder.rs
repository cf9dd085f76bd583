//! The side that answers with message 2.

use crate::mac::write_macs;
use crate::message::{TYPE_RESPONSE, array};
use crate::noise::Symmetric;
use crate::{
    Discard, Initiation, LocalStatic, Mac1Checked, PeerStatic, RESPONSE_LEN, Response, Role, SessionIndex,
    SessionKeys,
};
use falconet_crypto::{Tai64N, TransportPublicKey, TransportSecret};
use rand_core::CryptoRng;
use std::fmt;

impl Mac1Checked<Initiation> {
    /// Learns who the initiator claims to be, at the price of the first Diffie-Hellman;
    /// `docs/spec/handshake.md#identify`.
    ///
    /// # Errors
    ///
    /// [`Discard::LowOrderPoint`] or [`Discard::BadStatic`].
    pub fn identify(self, local: &LocalStatic) -> Result<Identified, Discard> {
        let message = self.bytes();
        let their_ephemeral: [u8; 32] = array(message, Initiation::EPHEMERAL);
        let their_key = TransportPublicKey::from_bytes(their_ephemeral);

        let mut symmetric = local.initial().start(self.suite());
        symmetric.mix_ephemeral(&their_ephemeral);
        let es = local
            .secret()
            .diffie_hellman(&their_key)
            .map_err(|_| Discard::LowOrderPoint)?;
        let key = symmetric.mix_key(&es);
        let peer_key = symmetric
            .open(&key, &message[Initiation::STATIC..Initiation::TIMESTAMP])
            .map_err(|_| Discard::BadStatic)?;
        Ok(Identified {
            symmetric,
            peer_key: TransportPublicKey::from_bytes(peer_key),
            their_ephemeral: their_key,
            sealed_timestamp: array(message, Initiation::TIMESTAMP),
            remote_index: self.sender(),
        })
    }
}

/// An initiation whose static key was decrypted: a claim, until [`Identified::verify`].
pub struct Identified {
    symmetric: Symmetric,
    peer_key: TransportPublicKey,
    their_ephemeral: TransportPublicKey,
    sealed_timestamp: [u8; Initiation::MAC1 - Initiation::TIMESTAMP],
    remote_index: SessionIndex,
}

impl Identified {
    /// The static key the initiator claims.
    pub fn peer_key(&self) -> &TransportPublicKey {
        &self.peer_key
    }

    /// Opens the timestamp through the precomputed static-static secret, which proves that the
    /// initiator holds the key it claims. No Diffie-Hellman; `docs/spec/handshake.md#verify`.
    ///
    /// # Errors
    ///
    /// [`Discard::WrongPeer`] if `peer` is not [`Identified::peer_key`]; [`Discard::BadTimestamp`].
    pub fn verify(mut self, peer: &PeerStatic) -> Result<Verified, Discard> {
        if *peer.key() != self.peer_key {
            return Err(Discard::WrongPeer);
        }
        let key = self.symmetric.mix_key(peer.static_static());
        let timestamp = self
            .symmetric
            .open(&key, &self.sealed_timestamp)
            .map_err(|_| Discard::BadTimestamp)?;
        Ok(Verified {
            symmetric: self.symmetric,
            peer_key: self.peer_key,
            their_ephemeral: self.their_ephemeral,
            timestamp: Tai64N::from_bytes(timestamp),
            remote_index: self.remote_index,
        })
    }
}

/// An initiation made by the holder of the static key. It may still be a replay: compare
/// [`Verified::timestamp`] before responding.
pub struct Verified {
    symmetric: Symmetric,
    peer_key: TransportPublicKey,
    their_ephemeral: TransportPublicKey,
    timestamp: Tai64N,
    remote_index: SessionIndex,
}

impl Verified {
    /// The initiator's timestamp; a peer's never goes back. `docs/spec/handshake.md#timestamp`.
    pub fn timestamp(&self) -> Tai64N {
        self.timestamp
    }

    /// The initiator's static key.
    pub fn peer_key(&self) -> &TransportPublicKey {
        &self.peer_key
    }

    /// Writes the response and yields the session keys; `docs/spec/handshake.md#message-2`.
    ///
    /// Costs one key generation and two Diffie-Hellman. mac2 is left zero: see
    /// [`crate::Cookie::stamp_response`] for an initiator that is under load itself.
    ///
    /// # Errors
    ///
    /// [`Discard::WrongPeer`] if `peer` is not [`Verified::peer_key`]; [`Discard::LowOrderPoint`].
    pub fn respond(
        self,
        peer: &PeerStatic,
        local_index: SessionIndex,
        rng: &mut impl CryptoRng,
    ) -> Result<(SessionKeys, [u8; RESPONSE_LEN]), Discard> {
        self.respond_with(peer, local_index, &TransportSecret::generate(rng))
    }

    /// As [`Verified::respond`], with an ephemeral key that was drawn elsewhere: by the engine whose
    /// generator it is, for a thread that has none. It must be fresh, and never be used again.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn respond_with(
        mut self,
        peer: &PeerStatic,
        local_index: SessionIndex,
        ephemeral: &TransportSecret,
    ) -> Result<(SessionKeys, [u8; RESPONSE_LEN]), Discard> {
        if *peer.key() != self.peer_key {
            return Err(Discard::WrongPeer);
        }
        let suite = self.symmetric.suite();
        let mut message = [0; RESPONSE_LEN];
        message[0] = TYPE_RESPONSE;
        message[1] = suite.id();
        message[Response::SENDER..Response::RECEIVER].copy_from_slice(&local_index.to_le_bytes());
        message[Response::RECEIVER..Response::EPHEMERAL].copy_from_slice(&self.remote_index.to_le_bytes());
        message[Response::EPHEMERAL..Response::EMPTY_TAG].copy_from_slice(ephemeral.public().as_bytes());

        self.symmetric
            .mix_ephemeral(&array(&message, Response::EPHEMERAL));
        self.mix_shared(ephemeral)?;
        let key = self.symmetric.mix_psk(peer.psk());
        self.symmetric
            .seal(&key, &mut message[Response::EMPTY_TAG..Response::MAC1]);
        write_macs(&mut message, peer.mac1_key(), None);

        let remote_index = self.remote_index;
        let (receive, send) = self.symmetric.split();
        let keys = SessionKeys {
            suite,
            role: Role::Responder,
            local_index,
            remote_index,
            send,
            receive,
        };
        Ok((keys, message))
    }

    /// The tokens ee and se.
    fn mix_shared(&mut self, ephemeral: &TransportSecret) -> Result<(), Discard> {
        for theirs in [&self.their_ephemeral, &self.peer_key] {
            let secret = ephemeral
                .diffie_hellman(theirs)
                .map_err(|_| Discard::LowOrderPoint)?;
            self.symmetric.mix_secret(secret.expose());
        }
        Ok(())
    }
}

impl fmt::Debug for Identified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identified")
            .field("remote_index", &self.remote_index)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("timestamp", &self.timestamp)
            .field("remote_index", &self.remote_index)
            .finish_non_exhaustive()
    }
}
