//! The two interchangeable implementations of AEAD and X25519.
//!
//! Applications use [`AeadKey`](crate::AeadKey) and [`TransportSecret`](crate::TransportSecret),
//! which stand on the `Active` backend: `aws_lc` if the feature `aws-lc-rs` is on, else
//! [`portable`]. Both are public so that tests can hold one against the other and benches can
//! measure them side by side; [`portable`] is compiled in every build.

use zeroize::ZeroizeOnDrop;

use crate::{LowOrderPoint, OpenError, Suite};

#[cfg(feature = "aws-lc-rs")]
pub mod aws_lc;
pub mod portable;

#[cfg(feature = "aws-lc-rs")]
pub(crate) use aws_lc::AwsLc as Active;
#[cfg(not(feature = "aws-lc-rs"))]
pub(crate) use portable::Portable as Active;

/// What a backend has to provide. Byte for byte, all backends do the same.
pub trait Backend {
    /// Its AEAD keys, both suites.
    type Aead: Aead;
    /// Its X25519 secrets.
    type Agreement: Agreement;
    /// Name for reports and benchmark labels.
    const NAME: &'static str;
}

/// A prepared AEAD key.
pub trait Aead: Sized + Send + Sync + ZeroizeOnDrop {
    /// Prepares a key: everything that depends on the key alone happens here.
    fn new(suite: Suite, key: &[u8; crate::KEY_LEN]) -> Self;

    /// Encrypts `data` in place and returns the tag. If the backend refuses (only above the suite's
    /// limit of many gigabytes a message), `data` and the tag are zeros: it fails closed.
    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> [u8; crate::TAG_LEN];

    /// Decrypts `data` in place; on failure `data` is all zeros.
    ///
    /// # Errors
    /// [`OpenError`] if anything was altered.
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; crate::TAG_LEN],
    ) -> Result<(), OpenError>;
}

/// An X25519 secret with its public key at hand.
pub trait Agreement: Sized + Send + Sync + ZeroizeOnDrop {
    /// Prepares the secret: clamps it and computes the public key.
    fn from_bytes(secret: &[u8; crate::KEY_LEN]) -> Self;

    /// The public key (RFC 7748 u-coordinate).
    fn public(&self) -> [u8; crate::KEY_LEN];

    /// The shared secret with `their` public key. Zeroizing it is the caller's.
    ///
    /// # Errors
    /// [`LowOrderPoint`] if the result is all zeros (RFC 7748, section 6.1).
    fn agree(&self, their: &[u8; crate::KEY_LEN]) -> Result<crate::SecretBytes, LowOrderPoint>;
}

/// Bytes of the nonce of both suites.
pub const NONCE_LEN: usize = 12;

#[cfg(test)]
pub(crate) mod tests;
