//! The symmetric state of the Noise handshake: a chaining key and a transcript hash.

use falconet_crypto::{
    AeadKey, OpenError, SecretBytes, Suite, TAG_LEN, TransportPublicKey, blake2s, kdf1, kdf2, kdf3,
};
use zeroize::Zeroize;

/// The Noise prologue, the same in every suite; `docs/spec/handshake.md#initial-state`.
const IDENTIFIER: &[u8] = b"WireGuard v1 zx2c4 Jason@zx2c4.com";

/// The name whose hash is the first chaining key; `docs/spec/handshake.md#initial-state`.
const fn construction(suite: Suite) -> &'static [u8] {
    match suite {
        Suite::ChaCha20Poly1305 => b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s",
        Suite::Aes256Gcm => b"Noise_IKpsk2_25519_AESGCM_BLAKE2s",
    }
}

/// Where every handshake towards one responder starts, for each suite: computed once.
pub(crate) struct InitialStates([InitialState; Suite::ALL.len()]);

struct InitialState {
    chaining_key: [u8; 32],
    hash: [u8; 32],
}

impl InitialStates {
    pub(crate) fn towards(responder: &TransportPublicKey) -> Self {
        Self(Suite::ALL.map(|suite| {
            let chaining_key = blake2s(&[construction(suite)]);
            let hash = blake2s(&[&chaining_key, IDENTIFIER]);
            InitialState {
                chaining_key,
                hash: blake2s(&[&hash, responder.as_bytes()]),
            }
        }))
    }

    pub(crate) fn start(&self, suite: Suite) -> Symmetric {
        let initial = &self.0[suite as usize];
        Symmetric {
            suite,
            chaining_key: SecretBytes::new(initial.chaining_key),
            hash: initial.hash,
        }
    }
}

/// Chaining key and transcript hash between two tokens of the pattern.
pub(crate) struct Symmetric {
    suite: Suite,
    chaining_key: SecretBytes,
    hash: [u8; 32],
}

impl Symmetric {
    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    /// A copy to go on with, so that a failure leaves this one as it was.
    pub(crate) fn fork(&self) -> Self {
        let chaining_key = SecretBytes::new(*self.chaining_key.expose());
        Self {
            suite: self.suite,
            chaining_key,
            hash: self.hash,
        }
    }

    pub(crate) fn mix_hash(&mut self, data: &[u8]) {
        self.hash = blake2s(&[&self.hash, data]);
    }

    /// An ephemeral public key enters hash and chaining key, as in every Noise pattern with a psk.
    pub(crate) fn mix_ephemeral(&mut self, key: &[u8; 32]) {
        self.mix_hash(key);
        self.mix_secret(key);
    }

    /// Mixes in what yields no AEAD key before the next secret replaces it.
    pub(crate) fn mix_secret(&mut self, input: &[u8]) {
        self.chaining_key = kdf1(self.chaining_key.expose(), input);
    }

    /// Mixes in a shared secret and yields the AEAD key for the next field.
    pub(crate) fn mix_key(&mut self, input: &SecretBytes) -> AeadKey {
        let (chaining_key, key) = kdf2(self.chaining_key.expose(), input.expose());
        self.chaining_key = chaining_key;
        AeadKey::new(self.suite, &key)
    }

    /// Mixes in the preshared key (all zeros if there is none) and yields the key for the last field.
    pub(crate) fn mix_psk(&mut self, psk: &SecretBytes) -> AeadKey {
        let (chaining_key, temporary, key) = kdf3(self.chaining_key.expose(), psk.expose());
        self.chaining_key = chaining_key;
        self.mix_hash(temporary.expose());
        AeadKey::new(self.suite, &key)
    }

    /// Encrypts `field` = plaintext and room for a tag, bound to the transcript, and mixes it in.
    pub(crate) fn seal(&mut self, key: &AeadKey, field: &mut [u8]) {
        let (plaintext, tag) = field.split_at_mut(field.len() - TAG_LEN);
        tag.copy_from_slice(&key.seal(0, &self.hash, plaintext));
        self.mix_hash(field);
    }

    /// Opens a field of `N` bytes and its tag, and mixes the ciphertext in.
    pub(crate) fn open<const N: usize>(&mut self, key: &AeadKey, field: &[u8]) -> Result<[u8; N], OpenError> {
        let (ciphertext, tag) = field.split_last_chunk::<TAG_LEN>().ok_or(OpenError)?;
        let mut plaintext: [u8; N] = ciphertext.try_into().map_err(|_| OpenError)?;
        key.open(0, &self.hash, &mut plaintext, tag)?;
        self.mix_hash(field);
        Ok(plaintext)
    }

    /// The two transport keys: initiator to responder, responder to initiator.
    pub(crate) fn split(self) -> (SecretBytes, SecretBytes) {
        kdf2(self.chaining_key.expose(), &[])
    }
}

impl Drop for Symmetric {
    fn drop(&mut self) {
        // The chaining key zeroizes itself; the hash holds a secret from the psk token on.
        self.hash.zeroize();
    }
}
