//! API SKELETON (owner replaces bodies; keeps names and signatures unless told to all).
#![allow(missing_docs, dead_code, unused_variables)]
use falconet_crypto::{SecretBytes, Suite};
pub const HEADER_LEN: usize = 16;
pub const TAG_LEN: usize = 16;
pub const OVERHEAD: usize = 32;
pub const MESSAGE_TYPE_DATA: u8 = 4;
/// Receiver index of a session, little-endian on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct SessionIndex(u32);
impl SessionIndex { pub fn new(v: u32) -> Self { Self(v) } pub fn value(self) -> u32 { self.0 } }
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Counter(u64);
/// Sends on one session: owns the AEAD key and the counter.
pub struct Sealer { _p: () }
impl Sealer {
    pub fn new(suite: Suite, key: &SecretBytes, receiver: SessionIndex) -> Self { todo!() }
    /// `datagram` = 16 headroom + plaintext + 16 tail; writes header and tag, encrypts in place.
    pub fn seal(&mut self, datagram: &mut [u8]) -> Result<Counter, SealError> { todo!() }
    /// Messages sealed so far.
    pub fn sealed(&self) -> u64 { todo!() }
    pub fn suite(&self) -> Suite { todo!() }
    /// The suite's rekey limit is reached / the reject limit is reached.
    pub fn needs_rekey(&self) -> bool { todo!() }
    pub fn exhausted(&self) -> bool { todo!() }
}
/// Receives on one session: AEAD key and replay window of 8,192.
pub struct Opener { _p: () }
impl Opener {
    pub fn new(suite: Suite, key: &SecretBytes) -> Self { todo!() }
    /// Checks the replay window, opens in place, then marks. On success the plaintext is
    /// `datagram[16..16 + n]`; `Opened` says n, the counter and whether it is the highest so far.
    pub fn open(&mut self, header: Header, datagram: &mut [u8]) -> Result<Opened, Discard> { todo!() }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened { pub counter: Counter, pub len: usize, pub is_highest: bool }
/// A parsed data header (type 4, three zero bytes, receiver, counter); the datagram is >= 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header { pub receiver: SessionIndex, pub counter: Counter }
impl Header { pub fn parse(datagram: &[u8]) -> Result<Header, Discard> { todo!() } }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError { Exhausted, NoRoom }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard { Truncated, NotData, ReservedBytes, CounterLimit, Replayed, TooOld, BadTag }
