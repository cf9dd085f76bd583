//! API SKELETON (the crypto owner replaces bodies, keeps names and signatures).
#![allow(missing_docs, dead_code, unused_variables)]
use std::time::{Duration, Instant};

// ---- clock.rs: one reading of both clocks; engines never read a clock themselves ----
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now { pub instant: Instant, /** Time since the Unix epoch. */ pub unix: Duration }
impl Now {
    /// The same reading, `by` later (both clocks).
    pub fn after(self, by: Duration) -> Now { todo!() }
    pub fn unix_ms(self) -> u64 { todo!() }
}

// ---- aead.rs + backend/{mod,aws_lc,portable}.rs ----
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Suite { /** WireGuard's own. */ ChaCha20Poly1305 = 0, Aes256Gcm = 1 }
impl Suite {
    pub const ALL: [Suite; 2] = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm];
    pub fn id(self) -> u8 { self as u8 }
    pub fn from_id(id: u8) -> Option<Suite> { todo!() }
}
pub const TAG_LEN: usize = 16;
pub const KEY_LEN: usize = 32;
/// 32 secret bytes: zeroized on drop, no Clone, redacted Debug, constant-time eq.
pub struct SecretBytes([u8; 32]);
impl SecretBytes { pub fn new(bytes: [u8; 32]) -> Self { todo!() } pub fn expose(&self) -> &[u8; 32] { todo!() } }
/// A ready-to-use AEAD key (prepared once; both directions of use allowed).
pub struct AeadKey { _private: () }
impl AeadKey {
    pub fn new(suite: Suite, key: &SecretBytes) -> Self { todo!() }
    pub fn suite(&self) -> Suite { todo!() }
    /// Encrypts `data` in place, nonce from `counter` by the suite's rule, returns the detached tag.
    pub fn seal(&self, counter: u64, aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] { todo!() }
    /// Decrypts in place; on error `data` holds nothing of the plaintext.
    pub fn open(&self, counter: u64, aad: &[u8], data: &mut [u8], tag: &[u8; TAG_LEN]) -> Result<(), OpenError> { todo!() }
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenError;

// ---- xaead.rs: XChaCha20-Poly1305 (cookies) ----
pub fn xchacha_seal(key: &[u8; 32], nonce: &[u8; 24], aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] { todo!() }
pub fn xchacha_open(key: &[u8; 32], nonce: &[u8; 24], aad: &[u8], data: &mut [u8], tag: &[u8; TAG_LEN]) -> Result<(), OpenError> { todo!() }

// ---- hash.rs: BLAKE2s ----
pub fn blake2s(parts: &[&[u8]]) -> [u8; 32] { todo!() }
pub fn blake2s_mac(key: &[u8], parts: &[&[u8]]) -> [u8; 16] { todo!() }
pub fn hmac_blake2s(key: &[u8], parts: &[&[u8]]) -> [u8; 32] { todo!() }
/// WireGuard's KDF_n: HKDF with HMAC-BLAKE2s.
pub fn kdf1(key: &[u8; 32], input: &[u8]) -> SecretBytes { todo!() }
pub fn kdf2(key: &[u8; 32], input: &[u8]) -> (SecretBytes, SecretBytes) { todo!() }
pub fn kdf3(key: &[u8; 32], input: &[u8]) -> (SecretBytes, SecretBytes, SecretBytes) { todo!() }
/// Constant-time equality.
pub fn ct_eq(a: &[u8], b: &[u8]) -> bool { todo!() }

// ---- x25519.rs ----
/// X25519 public key = transport key of a peer. Ord by bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransportPublicKey([u8; 32]);
impl TransportPublicKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Self { todo!() }
    pub fn as_bytes(&self) -> &[u8; 32] { todo!() }
}
/// Secret (static or ephemeral); zeroized on drop, redacted Debug.
pub struct TransportSecret { _private: () }
impl TransportSecret {
    pub fn generate(rng: &mut impl rand_core::CryptoRng) -> Self { todo!() }
    pub fn from_bytes(bytes: [u8; 32]) -> Self { todo!() }
    pub fn public(&self) -> TransportPublicKey { todo!() }
    /// All-zero result (low-order point) is an error.
    pub fn diffie_hellman(&self, their: &TransportPublicKey) -> Result<SecretBytes, LowOrderPoint> { todo!() }
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowOrderPoint;

// ---- tai64n.rs ----
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tai64N([u8; 12]);
impl Tai64N {
    pub fn from_unix(since_epoch: Duration) -> Self { todo!() }
    pub fn from_bytes(bytes: [u8; 12]) -> Self { todo!() }
    pub fn as_bytes(&self) -> &[u8; 12] { todo!() }
    /// The next representable label after this one.
    pub fn next(self) -> Self { todo!() }
}

// ---- identity.rs: Ed25519, one verification rule (verify_strict) in every build ----
/// Names a validator. Text form `Display`/`FromStr` with checksum (as has TransportPublicKey).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdentityKey([u8; 32]);
impl IdentityKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Self { todo!() }
    pub fn as_bytes(&self) -> &[u8; 32] { todo!() }
    /// Strict verification of `signature` over label, network id, this key, then `fields`.
    pub fn verify(&self, purpose: Purpose, network: &NetworkId, fields: &[&[u8]], signature: &Signature) -> Result<(), BadSignature> { todo!() }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose { Chunk, Record, Certificate }
impl Purpose { /// `falconet/chunk/1`, ...
    pub fn label(self) -> &'static [u8] { todo!() } }
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetworkId([u8; 32]);
impl NetworkId {
    pub fn from_bytes(bytes: [u8; 32]) -> Self { todo!() }
    /// SHA-256 of a human-readable network name under a domain label.
    pub fn from_name(name: &str) -> Self { todo!() }
    pub fn as_bytes(&self) -> &[u8; 32] { todo!() }
}
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature([u8; 64]);
impl Signature { pub fn from_bytes(bytes: [u8; 64]) -> Self { todo!() } pub fn as_bytes(&self) -> &[u8; 64] { todo!() } }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadSignature;
/// In-process Ed25519 secret; zeroized, redacted.
pub struct IdentitySecret { _private: () }
impl IdentitySecret {
    pub fn generate(rng: &mut impl rand_core::CryptoRng) -> Self { todo!() }
    pub fn from_bytes(bytes: [u8; 32]) -> Self { todo!() }
}
/// Something that signs for an identity: a secret in this process, or a remote signer.
pub trait Signer: Send + Sync {
    fn identity(&self) -> IdentityKey;
    /// Signs label, network id, own key, then `fields` (a signer sees the purpose, so it can apply policy).
    fn sign(&self, purpose: Purpose, network: &NetworkId, fields: &[&[u8]]) -> Result<Signature, SignError>;
}
impl Signer for IdentitySecret {
    fn identity(&self) -> IdentityKey { todo!() }
    fn sign(&self, purpose: Purpose, network: &NetworkId, fields: &[&[u8]]) -> Result<Signature, SignError> { todo!() }
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignError { Refused(String), Unavailable(String) }

// ---- keyfile.rs: see issue 2, part 2 ----
pub mod keyfile {
    use super::*;
    use std::path::Path;
    #[derive(Debug)]
    pub enum KeyFileError { }
    pub fn create_identity(path: &Path, secret: &IdentitySecret) -> Result<(), KeyFileError> { todo!() }
    pub fn load_identity(path: &Path) -> Result<IdentitySecret, KeyFileError> { todo!() }
    pub fn create_transport(path: &Path, secret: &TransportSecret) -> Result<(), KeyFileError> { todo!() }
    pub fn load_transport(path: &Path) -> Result<TransportSecret, KeyFileError> { todo!() }
}
