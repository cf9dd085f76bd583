//! X25519: the transport key of a node and the ephemeral keys of a handshake.

use std::fmt;

use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::{
    KEY_LEN, SecretBytes,
    backend::{Active, Agreement, Backend},
};

/// X25519 public key: the transport key that names a peer, or an ephemeral key.
///
/// Ordered by bytes. Any 32 bytes are a public key; those of low order are refused when they are
/// used ([`TransportSecret::diffie_hellman`]). Its text form is `ftk1...`, see
/// [`KeyTextError`](crate::KeyTextError).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransportPublicKey([u8; KEY_LEN]);

impl TransportPublicKey {
    /// The key with these bytes (RFC 7748 u-coordinate).
    #[must_use]
    #[inline]
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes of the wire.
    #[must_use]
    #[inline]
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

/// X25519 secret, static or ephemeral.
///
/// Holds its public key, and what the backend prepares, so that both are computed once. Zeroized on
/// drop, redacted in `Debug`.
pub struct TransportSecret {
    // Kept because a key file needs the bytes and a backend need not give them back.
    bytes: SecretBytes,
    agreement: <Active as Backend>::Agreement,
    /// The key file that it was loaded from says so, and nothing else can.
    disposable: bool,
}

/// Leave to reveal what a handshake with a disposable transport key is made of: only
/// [`TransportSecret::disposable`] gives it. `docs/spec/keys.md#disposable`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disposable(());

impl TransportSecret {
    /// A fresh secret.
    #[must_use]
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        rng.fill_bytes(bytes.as_mut());
        Self::from_bytes(*bytes)
    }

    /// The secret with these bytes, clamped when it is used (RFC 7748, section 5).
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        let bytes = SecretBytes::new(bytes);
        let agreement = Agreement::from_bytes(bytes.expose());
        Self {
            bytes,
            agreement,
            disposable: false,
        }
    }

    /// Whether it was loaded from a file that [`crate::keyfile::create_disposable_transport`] has made; a key from
    /// anywhere else never is disposable.
    #[must_use]
    pub fn disposable(&self) -> Option<Disposable> {
        self.disposable.then_some(Disposable(()))
    }

    /// As a key file says that it is.
    pub(crate) fn with_disposable(self, disposable: bool) -> Self {
        Self { disposable, ..self }
    }

    /// Its public key.
    #[must_use]
    #[inline]
    pub fn public(&self) -> TransportPublicKey {
        TransportPublicKey(self.agreement.public())
    }

    /// The shared secret with `their` key. It is not uniformly random: feed it to a KDF.
    ///
    /// # Errors
    /// [`LowOrderPoint`] if the result is all zeros, whatever the secret (RFC 7748, section 6.1;
    /// `docs/spec/keys.md#low-order`).
    pub fn diffie_hellman(&self, their: &TransportPublicKey) -> Result<SecretBytes, LowOrderPoint> {
        self.agreement.agree(&their.0)
    }

    /// The secret bytes, for a key file.
    pub(crate) fn expose(&self) -> &[u8; KEY_LEN] {
        self.bytes.expose()
    }
}

// Both members clear themselves: `Agreement` asks it of every backend.
impl ZeroizeOnDrop for TransportSecret {}

impl fmt::Debug for TransportSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportSecret")
            .field("public", &self.public())
            .finish_non_exhaustive()
    }
}

/// The other side's public key is of low order: the shared secret would be all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("public key of low order")]
pub struct LowOrderPoint;

#[cfg(test)]
mod tests;
