//! The two AEAD suites and the rule that makes a nonce of a counter.

use std::fmt;

use zeroize::ZeroizeOnDrop;

use crate::{
    SecretBytes,
    backend::{Active, Aead, Backend, NONCE_LEN},
};

/// Bytes of the authentication tag of every AEAD here.
pub const TAG_LEN: usize = 16;
/// Bytes of a key: AEAD keys, X25519 keys, Ed25519 seeds and public keys.
pub const KEY_LEN: usize = 32;

/// A cipher suite: the AEAD of the handshake and of the data that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Suite {
    /// ChaCha20-Poly1305 (RFC 8439): WireGuard's own, the default everywhere.
    ChaCha20Poly1305 = 0,
    /// AES-256-GCM (NIST SP 800-38D): for hosts with AES instructions.
    Aes256Gcm = 1,
}

impl Suite {
    /// Every suite, in order of its id.
    pub const ALL: [Suite; 2] = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm];

    /// The id on the wire.
    #[must_use]
    #[inline]
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The suite with this id, if there is one.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.id() == id)
    }

    /// The nonce of message `counter` (the Noise specification, section 12): four zero bytes, then
    /// the counter, little-endian for ChaCha20-Poly1305 and big-endian for AES-GCM
    /// (`docs/spec/keys.md#nonce`).
    #[inline]
    fn nonce(self, counter: u64) -> [u8; NONCE_LEN] {
        let counter = match self {
            Suite::ChaCha20Poly1305 => counter.to_le_bytes(),
            Suite::Aes256Gcm => counter.to_be_bytes(),
        };
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - counter.len()..].copy_from_slice(&counter);
        nonce
    }
}

/// A ready-to-use AEAD key: prepared once, used for many messages, sealing or opening.
///
/// Sealing two messages under one counter breaks the key: whoever holds it owns the counter.
/// Neither direction allocates.
pub struct AeadKey {
    suite: Suite,
    key: <Active as Backend>::Aead,
}

impl AeadKey {
    /// Prepares `key` for `suite`.
    #[must_use]
    pub fn new(suite: Suite, key: &SecretBytes) -> Self {
        Self {
            suite,
            key: Aead::new(suite, key.expose()),
        }
    }

    /// The suite this key belongs to.
    #[must_use]
    #[inline]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Encrypts `data` in place, nonce from `counter` by the suite's rule, and returns the detached
    /// tag.
    ///
    /// Fails closed where a backend refuses (above 64 GiB a message): `data` and the tag are then
    /// all zeros, which no receiver opens.
    #[must_use]
    #[inline]
    pub fn seal(&self, counter: u64, aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] {
        self.key.seal(self.suite.nonce(counter), aad, data)
    }

    /// Decrypts `data` in place.
    ///
    /// # Errors
    /// [`OpenError`] if key, `counter`, `aad`, `data` and `tag` do not belong together. `data` is
    /// then all zeros: neither plaintext nor the ciphertext is left, so whoever needs the
    /// ciphertext afterwards copies it first (`docs/spec/keys.md#failed-open`).
    #[inline]
    pub fn open(
        &self,
        counter: u64,
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), OpenError> {
        self.key.open(self.suite.nonce(counter), aad, data, tag)
    }
}

// `Aead` asks it of every backend.
impl ZeroizeOnDrop for AeadKey {}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AeadKey")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

/// Key, counter, additional data, ciphertext and tag do not belong together.
///
/// Deliberately says no more: what failed is of use to an attacker only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("authentication failed")]
pub struct OpenError;

#[cfg(test)]
mod tests;
