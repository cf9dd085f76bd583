//! XChaCha20-Poly1305, which seals the cookie of a cookie reply.
//!
//! One crate serves it in every build: cookie replies are rare, capped and 32 bytes long.

use chacha20poly1305::{KeyInit, XChaCha20Poly1305, aead::AeadInOut};

use crate::{KEY_LEN, OpenError, TAG_LEN};

/// Bytes of an XChaCha20-Poly1305 nonce; long enough to be drawn at random.
pub const XNONCE_LEN: usize = 24;

/// Encrypts `data` in place and returns the detached tag.
#[must_use]
pub fn xchacha_seal(
    key: &[u8; KEY_LEN],
    nonce: &[u8; XNONCE_LEN],
    aad: &[u8],
    data: &mut [u8],
) -> [u8; TAG_LEN] {
    let cipher = XChaCha20Poly1305::new(key.into());
    match cipher.encrypt_inout_detached(nonce.into(), aad, (&mut *data).into()) {
        Ok(tag) => tag.into(),
        // Only above 256 GiB: fail closed, as `AeadKey::seal` does.
        Err(_) => {
            data.fill(0);
            [0; TAG_LEN]
        }
    }
}

/// Decrypts `data` in place.
///
/// # Errors
/// [`OpenError`] if key, nonce, `aad`, `data` and `tag` do not belong together; `data` is then all
/// zeros.
pub fn xchacha_open(
    key: &[u8; KEY_LEN],
    nonce: &[u8; XNONCE_LEN],
    aad: &[u8],
    data: &mut [u8],
    tag: &[u8; TAG_LEN],
) -> Result<(), OpenError> {
    let cipher = XChaCha20Poly1305::new(key.into());
    cipher
        .decrypt_inout_detached(nonce.into(), aad, (&mut *data).into(), tag.into())
        .map_err(|_| {
            data.fill(0);
            OpenError
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_leaves_nothing() {
        let (key, nonce) = ([1; KEY_LEN], [2; XNONCE_LEN]);
        let mut data = *b"a cookie of 16 b";
        let mut tag = xchacha_seal(&key, &nonce, b"mac1", &mut data);
        tag[0] ^= 1;
        assert_eq!(
            xchacha_open(&key, &nonce, b"mac1", &mut data, &tag),
            Err(OpenError)
        );
        assert_eq!(data, [0; 16]);
    }
}
