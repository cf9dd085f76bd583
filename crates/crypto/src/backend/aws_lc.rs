//! AWS-LC by `aws-lc-rs`: picks the best code for the CPU at run time, needs a C compiler to build.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey},
    agreement::{self, PrivateKey, UnparsedPublicKey, X25519},
};
use zeroize::ZeroizeOnDrop;

use super::{Aead, Agreement, Backend, NONCE_LEN};
use crate::{KEY_LEN, LowOrderPoint, OpenError, SecretBytes, Suite, TAG_LEN};

/// The backend on AWS-LC.
#[derive(Debug)]
pub enum AwsLc {}

impl Backend for AwsLc {
    type Aead = AeadKey;
    type Agreement = X25519Secret;
    const NAME: &'static str = "aws-lc";
}

/// A prepared AEAD key.
pub struct AeadKey(LessSafeKey);

// AWS-LC clears whatever memory it frees (`OPENSSL_free`), and a key lives in such memory only.
impl ZeroizeOnDrop for AeadKey {}

impl Aead for AeadKey {
    fn new(suite: Suite, key: &[u8; KEY_LEN]) -> Self {
        let algorithm = match suite {
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Suite::Aes256Gcm => &AES_256_GCM,
        };
        let key = UnboundKey::new(algorithm, key).expect("32 bytes are a key of both suites");
        Self(LessSafeKey::new(key))
    }

    #[inline]
    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] {
        let mut tag = [0; TAG_LEN];
        let nonce = Nonce::assume_unique_for_key(nonce);
        // Scattering writes the tag where it is needed; the "separate tag" call would copy it twice.
        let sealed = self
            .0
            .seal_in_place_scatter(nonce, Aad::from(aad), data, &[], &mut tag);
        if sealed.is_err() {
            data.fill(0);
            tag = [0; TAG_LEN];
        }
        tag
    }

    #[inline]
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), OpenError> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self
            .0
            .open_in_place_separate_tag(nonce, Aad::from(aad), tag, data);
        match opened {
            Ok(_) => Ok(()),
            Err(_) => {
                data.fill(0);
                Err(OpenError)
            }
        }
    }
}

/// An X25519 secret with its public key.
pub struct X25519Secret {
    secret: PrivateKey,
    public: [u8; KEY_LEN],
}

// See `AeadKey`.
impl ZeroizeOnDrop for X25519Secret {}

impl Agreement for X25519Secret {
    fn from_bytes(secret: &[u8; KEY_LEN]) -> Self {
        let secret = PrivateKey::from_private_key(&X25519, secret).expect("any 32 bytes are a secret");
        let computed = secret
            .compute_public_key()
            .expect("an X25519 secret has a public key");
        let mut public = [0; KEY_LEN];
        public.copy_from_slice(computed.as_ref());
        Self { secret, public }
    }

    fn public(&self) -> [u8; KEY_LEN] {
        self.public
    }

    fn agree(&self, their: &[u8; KEY_LEN]) -> Result<SecretBytes, LowOrderPoint> {
        let their = UnparsedPublicKey::new(&X25519, their);
        agreement::agree(&self.secret, their, LowOrderPoint, |shared| {
            let mut bytes = [0; KEY_LEN];
            bytes.copy_from_slice(shared);
            Ok(SecretBytes::new(bytes))
        })
    }
}
