//! Ed25519: the identity that names a validator and signs.
//!
//! One rule of verification in every build, so that nodes never disagree on an edge case:
//! cofactorless, canonical key, R and S, no key and no R of small order
//! (`docs/spec/keys.md#strict-verification`).

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::{KEY_LEN, NetworkId, SignError, Signer};

pub use message::{Purpose, SignedMessage};

mod message;

/// Bytes of an Ed25519 signature.
pub const SIGNATURE_LEN: usize = 64;

/// Ed25519 public key: names a validator.
///
/// Ordered by bytes. Any 32 bytes are taken; those that are not a key fail at
/// [`verify`](IdentityKey::verify). Its text form is `fid1...`, see
/// [`KeyTextError`](crate::KeyTextError).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdentityKey([u8; KEY_LEN]);

impl IdentityKey {
    /// The key with these bytes (RFC 8032, section 5.1.2).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes of the wire.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// Verifies `signature` over the label of `purpose`, `network`, this key, then `fields`.
    ///
    /// The fields are joined without lengths: a caller signs fields of fixed size, or encodes their
    /// sizes itself.
    ///
    /// # Errors
    /// [`BadSignature`] if anything differs, or if key or signature break the rule above.
    pub fn verify(
        &self,
        purpose: Purpose,
        network: &NetworkId,
        fields: &[&[u8]],
        signature: &Signature,
    ) -> Result<(), BadSignature> {
        let message = SignedMessage::encode(purpose, network, self, fields);
        self.verify_bytes(message.as_bytes(), signature)
    }

    fn verify_bytes(&self, message: &[u8], signature: &Signature) -> Result<(), BadSignature> {
        if !is_canonical(&self.0) {
            return Err(BadSignature);
        }
        let key = VerifyingKey::from_bytes(&self.0).map_err(|_| BadSignature)?;
        key.verify_strict(message, &ed25519_dalek::Signature::from_bytes(&signature.0))
            .map_err(|_| BadSignature)
    }
}

/// Whether the y-coordinate is below p = 2^255 - 19: else the point has a second, shorter encoding,
/// and one validator would have two names.
fn is_canonical(key: &[u8; KEY_LEN]) -> bool {
    let [first, middle @ .., last] = key;
    *first < 0xed || last & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

/// An Ed25519 signature. Any 64 bytes are taken; verification tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; SIGNATURE_LEN]);

impl Signature {
    /// The signature with these bytes: R, then S.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; SIGNATURE_LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes of the wire.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; SIGNATURE_LEN] {
        &self.0
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// The signature is not one of this key over these fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bad signature")]
pub struct BadSignature;

/// Ed25519 secret in this process. Zeroized on drop, redacted in `Debug`.
pub struct IdentitySecret {
    key: SigningKey,
}

impl IdentitySecret {
    /// A fresh secret.
    #[must_use]
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut seed = Zeroizing::new([0; KEY_LEN]);
        rng.fill_bytes(seed.as_mut());
        Self::from_bytes(*seed)
    }

    /// The secret with this seed (RFC 8032, section 5.1.5).
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        let seed = Zeroizing::new(bytes);
        Self {
            key: SigningKey::from_bytes(&seed),
        }
    }

    /// The seed, for a key file.
    pub(crate) fn expose(&self) -> &[u8; KEY_LEN] {
        self.key.as_bytes()
    }
}

// `SigningKey` clears itself.
impl ZeroizeOnDrop for IdentitySecret {}

impl fmt::Debug for IdentitySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentitySecret")
            .field("identity", &self.identity())
            .finish_non_exhaustive()
    }
}

impl Signer for IdentitySecret {
    fn identity(&self) -> IdentityKey {
        IdentityKey(self.key.verifying_key().to_bytes())
    }

    fn sign(&self, purpose: Purpose, network: &NetworkId, fields: &[&[u8]]) -> Result<Signature, SignError> {
        let message = SignedMessage::encode(purpose, network, &self.identity(), fields);
        Ok(Signature(self.key.sign(message.as_bytes()).to_bytes()))
    }
}

#[cfg(test)]
mod tests;
