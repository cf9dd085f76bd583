//! The side that sends message 1.

use crate::mac::write_macs;
use crate::message::{TYPE_INITIATION, array};
use crate::noise::Symmetric;
use crate::{
    Cookie, CookieReply, Discard, HandshakeError, INITIATION_LEN, Initiation, LocalStatic, Mac1, Mac1Checked,
    PeerStatic, Response, Role, SessionIndex, SessionKeys,
};
use falconet_crypto::{Suite, Tai64N, TransportPublicKey, TransportSecret};
use rand_core::CryptoRng;
use std::fmt;

/// An initiation that was sent and not yet answered. Nothing that is received changes it.
pub struct PendingInitiation {
    symmetric: Symmetric,
    ephemeral: TransportSecret,
    local_index: SessionIndex,
    mac1: Mac1,
}

impl PendingInitiation {
    /// A fresh initiation (new ephemeral key), and the bytes to send; mac2 is filled if a cookie is
    /// given. `docs/spec/handshake.md#message-1`.
    ///
    /// `timestamp` must be greater than that of every earlier initiation to this peer, or the peer takes
    /// this one for a replay. Costs one key generation and one Diffie-Hellman.
    ///
    /// # Errors
    ///
    /// [`HandshakeError::LowOrderPoint`]; it cannot happen with a key that [`PeerStatic::new`] accepted.
    #[allow(clippy::too_many_arguments)] // Seven independent inputs of one message.
    pub fn new(
        local: &LocalStatic,
        peer: &PeerStatic,
        suite: Suite,
        sender: SessionIndex,
        timestamp: Tai64N,
        cookie: Option<&Cookie>,
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, [u8; INITIATION_LEN]), HandshakeError> {
        let ephemeral = TransportSecret::generate(rng);
        let mut message = [0; INITIATION_LEN];
        message[0] = TYPE_INITIATION;
        message[1] = suite.id();
        message[Initiation::SENDER..Initiation::EPHEMERAL].copy_from_slice(&sender.to_le_bytes());
        message[Initiation::EPHEMERAL..Initiation::STATIC].copy_from_slice(ephemeral.public().as_bytes());
        message[Initiation::STATIC..Initiation::STATIC_TAG].copy_from_slice(local.public().as_bytes());
        message[Initiation::TIMESTAMP..Initiation::TIMESTAMP_TAG].copy_from_slice(timestamp.as_bytes());

        let mut symmetric = peer.initial().start(suite);
        symmetric.mix_ephemeral(&array(&message, Initiation::EPHEMERAL));
        let secret = ephemeral
            .diffie_hellman(peer.key())
            .map_err(|_| HandshakeError::LowOrderPoint)?;
        let key = symmetric.mix_key(&secret);
        symmetric.seal(&key, &mut message[Initiation::STATIC..Initiation::TIMESTAMP]);
        let key = symmetric.mix_key(peer.static_static());
        symmetric.seal(&key, &mut message[Initiation::TIMESTAMP..Initiation::MAC1]);
        write_macs(&mut message, peer.mac1_key(), cookie);

        let mac1 = Mac1::of(&message);
        Ok((
            Self {
                symmetric,
                ephemeral,
                local_index: sender,
                mac1,
            },
            message,
        ))
    }

    /// The index we chose for the session.
    pub fn local_index(&self) -> SessionIndex {
        self.local_index
    }

    pub(crate) fn ephemeral(&self) -> &TransportSecret {
        &self.ephemeral
    }

    /// The suite we asked for.
    pub fn suite(&self) -> Suite {
        self.symmetric.suite()
    }

    /// Checks a response and derives the session keys without consuming: a forged response cannot poison
    /// a pending handshake. `docs/spec/handshake.md#message-2`. Costs two Diffie-Hellman.
    ///
    /// # Errors
    ///
    /// [`Discard::WrongIndex`], [`Discard::SuiteMismatch`], [`Discard::LowOrderPoint`] or
    /// [`Discard::BadResponse`].
    pub fn open_response(
        &self,
        local: &LocalStatic,
        peer: &PeerStatic,
        response: &Mac1Checked<Response>,
    ) -> Result<SessionKeys, Discard> {
        if response.receiver() != self.local_index {
            return Err(Discard::WrongIndex);
        }
        if response.suite() != self.suite() {
            return Err(Discard::SuiteMismatch);
        }
        let message = response.bytes();
        let their_ephemeral: [u8; 32] = array(message, Response::EPHEMERAL);
        let their_key = TransportPublicKey::from_bytes(their_ephemeral);

        let mut symmetric = self.symmetric.fork();
        symmetric.mix_ephemeral(&their_ephemeral);
        let ee = self
            .ephemeral
            .diffie_hellman(&their_key)
            .map_err(|_| Discard::LowOrderPoint)?;
        symmetric.mix_secret(ee.expose());
        let se = local
            .secret()
            .diffie_hellman(&their_key)
            .map_err(|_| Discard::LowOrderPoint)?;
        symmetric.mix_secret(se.expose());
        let key = symmetric.mix_psk(peer.psk());
        let [] = symmetric
            .open(&key, &message[Response::EMPTY_TAG..Response::MAC1])
            .map_err(|_| Discard::BadResponse)?;

        let suite = self.suite();
        let (send, receive) = symmetric.split();
        let remote_index = response.sender();
        Ok(SessionKeys {
            suite,
            role: Role::Initiator,
            local_index: self.local_index,
            remote_index,
            send,
            receive,
        })
    }

    /// Opens a cookie reply that answers this initiation: the mac1 it carried is bound into the reply.
    ///
    /// # Errors
    ///
    /// [`Discard::WrongIndex`] or [`Discard::BadCookie`].
    pub fn open_cookie_reply(&self, peer: &PeerStatic, reply: &CookieReply) -> Result<Cookie, Discard> {
        if reply.receiver() != self.local_index {
            return Err(Discard::WrongIndex);
        }
        reply.open(peer, &self.mac1)
    }
}

impl fmt::Debug for PendingInitiation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingInitiation")
            .field("suite", &self.suite())
            .field("local_index", &self.local_index)
            .finish_non_exhaustive()
    }
}
