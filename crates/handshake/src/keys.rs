//! Static keys with everything that follows from them alone.

use crate::noise::InitialStates;
use falconet_crypto::{LowOrderPoint, SecretBytes, TransportPublicKey, TransportSecret, blake2s};
use std::fmt;

const LABEL_MAC1: &[u8] = b"mac1----";
const LABEL_COOKIE: &[u8] = b"cookie--";

/// Our static key with everything derived from it once: public key, mac1 and cookie keys, and the
/// initial state of each suite for handshakes that others start.
pub struct LocalStatic {
    secret: TransportSecret,
    public: TransportPublicKey,
    mac_keys: MacKeys,
    initial: InitialStates,
}

impl LocalStatic {
    /// Takes the secret over and derives the rest.
    pub fn new(secret: TransportSecret) -> Self {
        let public = secret.public();
        Self {
            secret,
            public,
            mac_keys: MacKeys::of(&public),
            initial: InitialStates::towards(&public),
        }
    }

    /// The same secret under a public key that it does not belong to.
    #[cfg(test)]
    pub(crate) fn posing_as(self, public: TransportPublicKey) -> Self {
        Self { public, ..self }
    }

    /// Our public key.
    pub fn public(&self) -> &TransportPublicKey {
        &self.public
    }

    pub(crate) fn secret(&self) -> &TransportSecret {
        &self.secret
    }

    pub(crate) fn mac1_key(&self) -> &[u8; 32] {
        &self.mac_keys.mac1
    }

    pub(crate) fn cookie_key(&self) -> &[u8; 32] {
        &self.mac_keys.cookie
    }

    pub(crate) fn initial(&self) -> &InitialStates {
        &self.initial
    }
}

/// A peer's static key with everything derived from it once: the static-static secret, the preshared
/// key, mac1 and cookie keys, and the initial state of each suite for handshakes that we start.
pub struct PeerStatic {
    key: TransportPublicKey,
    static_static: SecretBytes,
    psk: SecretBytes,
    mac_keys: MacKeys,
    initial: InitialStates,
}

impl PeerStatic {
    /// Derives all of it, at the price of one Diffie-Hellman. Without a `psk`, 32 zero bytes stand in
    /// for it, as in WireGuard.
    ///
    /// # Errors
    ///
    /// [`LowOrderPoint`] if `key` yields the all-zero secret: no handshake with it can be secure.
    pub fn new(
        local: &LocalStatic,
        key: TransportPublicKey,
        psk: Option<SecretBytes>,
    ) -> Result<Self, LowOrderPoint> {
        Ok(Self {
            static_static: local.secret.diffie_hellman(&key)?,
            psk: psk.unwrap_or_else(|| SecretBytes::new([0; 32])),
            mac_keys: MacKeys::of(&key),
            initial: InitialStates::towards(&key),
            key,
        })
    }

    /// The peer's public key.
    pub fn key(&self) -> &TransportPublicKey {
        &self.key
    }

    pub(crate) fn static_static(&self) -> &SecretBytes {
        &self.static_static
    }

    pub(crate) fn psk(&self) -> &SecretBytes {
        &self.psk
    }

    pub(crate) fn mac1_key(&self) -> &[u8; 32] {
        &self.mac_keys.mac1
    }

    pub(crate) fn cookie_key(&self) -> &[u8; 32] {
        &self.mac_keys.cookie
    }

    pub(crate) fn initial(&self) -> &InitialStates {
        &self.initial
    }
}

/// Keys that anybody who knows a public key can derive; `docs/spec/handshake.md#mac1` and
/// `docs/spec/handshake.md#cookie-reply`.
struct MacKeys {
    mac1: [u8; 32],
    cookie: [u8; 32],
}

impl MacKeys {
    fn of(key: &TransportPublicKey) -> Self {
        Self {
            mac1: blake2s(&[LABEL_MAC1, key.as_bytes()]),
            cookie: blake2s(&[LABEL_COOKIE, key.as_bytes()]),
        }
    }
}

impl fmt::Debug for LocalStatic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStatic")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PeerStatic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerStatic")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
