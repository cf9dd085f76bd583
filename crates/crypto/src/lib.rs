//! The cryptography of Falconet: AEAD suites, key agreement, hashing, signatures, keys and the files
//! they live in.
//!
//! Every other crate gets its cryptography here and nowhere else. What is here is small, does one
//! thing in one way, and hides which library does the work:
//!
//! ```text
//!   handshake   auth-framing   transport   raptorcast   falconet / cli
//!       |             |            |            |              |
//!       v             v            v            v              v
//!   +-----------------------------------------------------------------+
//!   | TransportSecret   AeadKey    IdentityKey / Signer    keyfile    |
//!   | kdf, mac, cookie  Suite      Purpose, NetworkId      text form  |
//!   +-----------------------------------------------------------------+
//!        |        |         |              |
//!        | X25519 | AEAD    | BLAKE2s      | Ed25519, one rule
//!        v        v         v              v
//!   [ backend: aws_lc | portable ]   [ one crate each, in every build ]
//! ```
//!
//! The feature `aws-lc-rs` (on by default) puts both AEADs and X25519 on AWS-LC, which picks the best
//! code for the CPU at run time and needs a C compiler to build; without it, pure Rust does the same,
//! byte for byte. BLAKE2s, XChaCha20-Poly1305, SHA-256 and Ed25519 are served by one crate each in
//! every build.
//!
//! # Example
//!
//! Two nodes agree on a key, one seals a datagram in place, the other opens it:
//!
//! ```
//! use falconet_crypto::{AeadKey, Suite, TransportPublicKey, TransportSecret, kdf2};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use falconet_crypto::OpenError;
//! let (alice, bob) = (TransportSecret::from_bytes([1; 32]), TransportSecret::from_bytes([2; 32]));
//! // Public keys are exchanged as text; a typo does not parse.
//! let bobs_key: TransportPublicKey = bob.public().to_string().parse()?;
//!
//! let shared = alice.diffie_hellman(&bobs_key)?;
//! let (key, _) = kdf2(&[0; 32], shared.expose());
//! let mut datagram = *b"a symbol";
//! let tag = AeadKey::new(Suite::Aes256Gcm, &key).seal(7, b"", &mut datagram);
//!
//! let shared = bob.diffie_hellman(&alice.public())?;
//! let (key, _) = kdf2(&[0; 32], shared.expose());
//! let key = AeadKey::new(Suite::Aes256Gcm, &key);
//! key.open(7, b"", &mut datagram, &tag)?;
//! assert_eq!(&datagram, b"a symbol");
//! // Under any other counter it does not open, and the buffer is left empty of both texts.
//! let tag = key.seal(8, b"", &mut datagram);
//! assert_eq!(key.open(9, b"", &mut datagram, &tag), Err(OpenError));
//! assert_eq!(datagram, [0; 8]);
//! # Ok(())
//! # }
//! ```
//!
//! # Provided
//!
//! - Both suites, sealed and opened in place with a detached tag and without allocating.
//! - One rule of signature verification in every build, for one purpose and one network at a time.
//! - Secrets that are cleared when dropped, are not `Clone`, compare in constant time, and print
//!   nothing of themselves.
//! - Keys whose text finds typos, and key files that are private, complete and never overwritten.
//! - No clock and no source of randomness: callers hand in [`Now`] and a generator.
//!
//! # Not provided
//!
//! - Nonces that cannot repeat: an [`AeadKey`] seals under whatever counter it is given. The crate
//!   `auth-framing` owns the counters.
//! - Protocols: the handshake is in `handshake`, the datagram frame in `auth-framing`.
//! - Protection against somebody who reads this process's memory, its swap or its core dumps.
//! - Constant time beyond what the crates underneath give: `aes-gcm` and `ghash` on a CPU without AES
//!   instructions are bit-sliced (constant time and slow), and parsing of public data is not constant
//!   time.
//!
//! The rules are in `docs/spec/keys.md`, the published vectors in `docs/spec/vectors/keys.json`.

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
pub use sha256::{SHA256_LEN, Sha256Method, sha256_many};
pub use signer::{SignError, Signer};
pub use tai64n::{TAI64N_LEN, Tai64N};
pub use x25519::{Disposable, LowOrderPoint, TransportPublicKey, TransportSecret};
pub use xaead::{XNONCE_LEN, xchacha_open, xchacha_seal};

pub mod backend;
pub mod key_log;
pub mod keyfile;

mod aead;
mod clock;
mod hash;
mod identity;
mod key_text;
mod network;
mod secret;
mod session_index;
mod sha256;
mod signer;
mod tai64n;
mod x25519;
mod xaead;
