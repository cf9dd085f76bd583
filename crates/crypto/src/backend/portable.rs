//! Pure Rust: `chacha20poly1305`, `aes-gcm` and `x25519-dalek`.

use aes_gcm::{Aes256Gcm, KeyInit, aead::AeadInOut};
use chacha20poly1305::ChaCha20Poly1305;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::ZeroizeOnDrop;

use super::{Aead, Agreement, Backend, NONCE_LEN};
use crate::{KEY_LEN, LowOrderPoint, OpenError, SecretBytes, Suite, TAG_LEN};

/// The pure Rust backend.
#[derive(Debug)]
pub enum Portable {}

impl Backend for Portable {
    type Aead = AeadKey;
    type Agreement = X25519Secret;
    const NAME: &'static str = "portable";
}

/// A prepared AEAD key.
pub struct AeadKey(Cipher);

enum Cipher {
    ChaCha(ChaCha20Poly1305),
    // The expanded key schedule is 30 times the size of the other variant.
    Aes(Box<Aes256Gcm>),
}

// Both ciphers clear their keys themselves (the tests hold them to it).
impl ZeroizeOnDrop for AeadKey {}

impl Aead for AeadKey {
    fn new(suite: Suite, key: &[u8; KEY_LEN]) -> Self {
        Self(match suite {
            Suite::ChaCha20Poly1305 => Cipher::ChaCha(ChaCha20Poly1305::new(key.into())),
            Suite::Aes256Gcm => Cipher::Aes(Box::new(Aes256Gcm::new(key.into()))),
        })
    }

    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] {
        let buffer = (&mut *data).into();
        let sealed = match &self.0 {
            Cipher::ChaCha(cipher) => cipher.encrypt_inout_detached(&nonce.into(), aad, buffer),
            Cipher::Aes(cipher) => cipher.encrypt_inout_detached(&nonce.into(), aad, buffer),
        };
        match sealed {
            Ok(tag) => tag.into(),
            Err(_) => {
                data.fill(0);
                [0; TAG_LEN]
            }
        }
    }

    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), OpenError> {
        let buffer = (&mut *data).into();
        let opened = match &self.0 {
            Cipher::ChaCha(cipher) => cipher.decrypt_inout_detached(&nonce.into(), aad, buffer, tag.into()),
            Cipher::Aes(cipher) => cipher.decrypt_inout_detached(&nonce.into(), aad, buffer, tag.into()),
        };
        opened.map_err(|_| {
            // These crates leave the ciphertext; the other backend clears it. Be the same.
            data.fill(0);
            OpenError
        })
    }
}

/// An X25519 secret with its public key.
pub struct X25519Secret {
    secret: StaticSecret,
    public: PublicKey,
}

// `StaticSecret` clears itself.
impl ZeroizeOnDrop for X25519Secret {}

impl Agreement for X25519Secret {
    fn from_bytes(secret: &[u8; KEY_LEN]) -> Self {
        let secret = StaticSecret::from(*secret);
        let public = PublicKey::from(&secret);
        Self { secret, public }
    }

    fn public(&self) -> [u8; KEY_LEN] {
        self.public.to_bytes()
    }

    fn agree(&self, their: &[u8; KEY_LEN]) -> Result<SecretBytes, LowOrderPoint> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(*their));
        if shared.was_contributory() {
            Ok(SecretBytes::new(shared.to_bytes()))
        } else {
            Err(LowOrderPoint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles only if the crates behind this backend clear their keys: each has a feature for it
    /// that must stay on.
    #[test]
    fn members_are_zeroized_on_drop() {
        fn is_zeroized_on_drop<T: ZeroizeOnDrop>() {}
        is_zeroized_on_drop::<ChaCha20Poly1305>();
        is_zeroized_on_drop::<Aes256Gcm>();
        is_zeroized_on_drop::<StaticSecret>();
    }
}
