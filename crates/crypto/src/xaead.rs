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

    /// draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn published_vector() {
        let key = std::array::from_fn(|i| 0x80 + i as u8);
        let nonce = std::array::from_fn(|i| 0x40 + i as u8);
        let aad = hex::decode("50515253c0c1c2c3c4c5c6c7").unwrap();
        let text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip \
                     for the future, sunscreen would be it.";
        let mut data = *text;
        let tag = xchacha_seal(&key, &nonce, &aad, &mut data);
        assert_eq!(
            hex::encode(data),
            concat!(
                "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb",
                "731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452",
                "2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9",
                "21f9664c97637da9768812f615c68b13b52e"
            )
        );
        assert_eq!(hex::encode(tag), "c0875924c1c7987947deafd8780acf49");
        assert_eq!(xchacha_open(&key, &nonce, &aad, &mut data, &tag), Ok(()));
        assert_eq!(&data, text);
    }

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
