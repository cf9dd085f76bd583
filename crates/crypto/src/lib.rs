//! Cryptography of Falconet.

pub use aead::{AeadKey, KEY_LEN, OpenError, Suite, TAG_LEN};
pub use clock::Now;
pub use hash::{HASH_LEN, MAC_LEN, blake2s, blake2s_mac, hmac_blake2s, kdf1, kdf2, kdf3};
pub use identity::{
    BadSignature, IdentityKey, IdentitySecret, Purpose, SIGNATURE_LEN, Signature, SignedMessage,
};
pub use key_text::KeyTextError;
pub use network::NetworkId;
pub use secret::{SecretBytes, ct_eq};
pub use session_index::SessionIndex;
pub use signer::{SignError, Signer};
pub use tai64n::{TAI64N_LEN, Tai64N};
pub use x25519::{LowOrderPoint, TransportPublicKey, TransportSecret};
pub use xaead::{XNONCE_LEN, xchacha_open, xchacha_seal};

pub mod backend;
pub mod keyfile;

mod aead;
mod clock;
mod hash;
mod identity;
mod key_text;
mod network;
mod secret;
mod session_index;
mod signer;
mod tai64n;
mod x25519;
mod xaead;
