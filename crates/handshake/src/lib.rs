//! API SKELETON (owner replaces bodies; keeps names and signatures unless told to all).
#![allow(missing_docs, dead_code, unused_variables)]
use falconet_crypto::{IdentityKey, LowOrderPoint, Now, SecretBytes, Suite, Tai64N, TransportPublicKey, TransportSecret};
use rand_core::CryptoRng;
use std::net::SocketAddr;

// SessionIndex comes from falconet_crypto once it is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct SessionIndex(u32);

pub const INITIATION_LEN: usize = 148;
pub const RESPONSE_LEN: usize = 92;
pub const COOKIE_REPLY_LEN: usize = 64;

/// Our static key with everything derived from it once (public key, mac1 and cookie keys, hashed prologue per suite).
pub struct LocalStatic { _p: () }
impl LocalStatic {
    pub fn new(secret: TransportSecret) -> Self { todo!() }
    pub fn public(&self) -> &TransportPublicKey { todo!() }
}
/// A peer's static key with everything derived from it once: static-static secret, psk, mac1 and cookie keys.
pub struct PeerStatic { _p: () }
impl PeerStatic {
    pub fn new(local: &LocalStatic, key: TransportPublicKey, psk: Option<SecretBytes>) -> Result<Self, LowOrderPoint> { todo!() }
    pub fn key(&self) -> &TransportPublicKey { todo!() }
}
/// The result of a handshake.
pub struct SessionKeys {
    pub suite: Suite, pub role: Role,
    pub local_index: SessionIndex, pub remote_index: SessionIndex,
    pub send: SecretBytes, pub receive: SecretBytes,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum Role { Initiator, Responder }

// ---- initiator ----
pub struct PendingInitiation { _p: () }
impl PendingInitiation {
    /// A fresh initiation (new ephemeral); mac2 is filled if a cookie is given.
    pub fn new(local: &LocalStatic, peer: &PeerStatic, suite: Suite, sender: SessionIndex, timestamp: Tai64N,
               cookie: Option<&Cookie>, rng: &mut impl CryptoRng) -> Result<(Self, [u8; INITIATION_LEN]), HandshakeError> { todo!() }
    pub fn local_index(&self) -> SessionIndex { todo!() }
    /// Checks and derives without consuming: a forged response cannot poison a pending handshake.
    pub fn open_response(&self, local: &LocalStatic, peer: &PeerStatic, response: &Mac1Checked<Response>) -> Result<SessionKeys, Discard> { todo!() }
    /// Opens a cookie reply that answers this initiation (the mac1 it carried is the AAD).
    pub fn open_cookie_reply(&self, peer: &PeerStatic, reply: &CookieReply) -> Result<Cookie, Discard> { todo!() }
}
#[derive(Clone)] pub struct Cookie { _p: () }

// ---- parsing: datagram -> message -> mac1-checked ----
pub enum Message { Initiation(Initiation), Response(Response), CookieReply(CookieReply) }
impl Message { /** Length, type, suite and reserved bytes. */ pub fn parse(datagram: &[u8]) -> Result<Message, Discard> { todo!() } }
pub struct Initiation { _p: () }
pub struct Response { _p: () }
pub struct CookieReply { _p: () }
impl Initiation { pub fn suite(&self) -> Suite { todo!() } pub fn sender(&self) -> SessionIndex { todo!() }
    pub fn check_mac1(self, local: &LocalStatic) -> Result<Mac1Checked<Initiation>, Discard> { todo!() } }
impl Response { pub fn suite(&self) -> Suite { todo!() } pub fn receiver(&self) -> SessionIndex { todo!() } pub fn sender(&self) -> SessionIndex { todo!() }
    pub fn check_mac1(self, local: &LocalStatic) -> Result<Mac1Checked<Response>, Discard> { todo!() } }
impl CookieReply { pub fn receiver(&self) -> SessionIndex { todo!() } }
/// Proof that mac1 was checked (only the checker builds it). Derefs to M.
pub struct Mac1Checked<M>(M);

// ---- responder ----
impl Mac1Checked<Initiation> {
    /// es DH and the initiator's static key: the first DH.
    pub fn identify(self, local: &LocalStatic) -> Result<Identified, Discard> { todo!() }
}
pub struct Identified { _p: () }
impl Identified {
    pub fn peer_key(&self) -> &TransportPublicKey { todo!() }
    /// Opens the timestamp through the precomputed static-static secret.
    pub fn verify(self, peer: &PeerStatic) -> Result<Verified, Discard> { todo!() }
}
pub struct Verified { _p: () }
impl Verified {
    pub fn timestamp(&self) -> Tai64N { todo!() }
    /// ee, se, psk: writes the response and yields the session keys.
    pub fn respond(self, local: &LocalStatic, peer: &PeerStatic, local_index: SessionIndex, rng: &mut impl CryptoRng)
        -> Result<(SessionKeys, [u8; RESPONSE_LEN]), Discard> { todo!() }
}
// ---- cookies, responder's side ----
/// The rotating secret (120 s, previous accepted); bound to address and port.
pub struct CookieJar { _p: () }
impl CookieJar {
    pub fn new(now: Now, rng: &mut impl CryptoRng) -> Self { todo!() }
    pub fn rotate(&mut self, now: Now, rng: &mut impl CryptoRng) { todo!() }
    pub fn mac2_valid<M>(&self, message: &Mac1Checked<M>, from: SocketAddr) -> bool { todo!() }
    pub fn reply<M>(&self, local: &LocalStatic, message: &Mac1Checked<M>, from: SocketAddr, rng: &mut impl CryptoRng) -> [u8; COOKIE_REPLY_LEN] { todo!() }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeError { LowOrderPoint }
/// Why a handshake message was dropped; the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard { /* Length, Type, Reserved, Suite, Mac1, Mac2, LowOrderPoint, BadStatic, BadTimestamp, BadResponse, BadCookie, ... */ Length }
