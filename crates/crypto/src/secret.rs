//! Secret bytes and constant-time comparison.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::KEY_LEN;

/// 32 secret bytes: an AEAD key, a chaining key, a preshared key, a shared secret.
///
/// Zeroized on drop, not `Clone`, redacted in `Debug`, compared in constant time.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SecretBytes([u8; KEY_LEN]);

impl SecretBytes {
    /// Takes the bytes over. The caller's own copy, if it keeps one, is the caller's to zeroize.
    #[must_use]
    #[inline]
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes themselves. Named so that every use can be found.
    #[must_use]
    #[inline]
    pub fn expose(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(..)")
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(&self.0, &other.0)
    }
}

impl Eq for SecretBytes {}

/// Whether `a` equals `b`, in time that depends on their lengths only.
///
/// Slices of different lengths are unequal; lengths are not treated as secret.
#[must_use]
#[inline]
pub fn ct_eq(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_sees_every_byte() {
        for i in 0..KEY_LEN {
            let mut other = [7; KEY_LEN];
            other[i] ^= 0x80;
            assert_ne!(SecretBytes::new([7; KEY_LEN]), SecretBytes::new(other));
        }
        assert_eq!(SecretBytes::new([7; KEY_LEN]), SecretBytes::new([7; KEY_LEN]));
    }

    #[test]
    fn lengths_differ() {
        assert!(!ct_eq(b"ab", b"abc"));
        assert!(ct_eq(b"", b""));
    }

    #[test]
    fn zeroize_clears_the_bytes() {
        let mut secret = SecretBytes::new([0xa5; KEY_LEN]);
        secret.zeroize();
        assert_eq!(secret.expose(), &[0; KEY_LEN]);
    }
}
