//! The sending direction of a session.

use crate::{Counter, HEADER_LEN, Header, Limits, SessionIndex, TAG_LEN};
use falconet_crypto::{AeadKey, SecretBytes, Suite};
use std::fmt;
use thiserror::Error;

/// Sends on one session: owns the AEAD key and the counter, so a nonce cannot repeat.
pub struct Sealer {
    key: AeadKey,
    receiver: SessionIndex,
    next: u64,
    limits: Limits,
}

impl Sealer {
    /// A direction that has sent nothing. `receiver` is the index the *other* side chose.
    pub fn new(suite: Suite, key: &SecretBytes, receiver: SessionIndex) -> Self {
        Self {
            key: AeadKey::new(suite, key),
            receiver,
            next: 0,
            limits: Limits::of(suite),
        }
    }

    /// Writes header and tag around the plaintext and encrypts it in place.
    ///
    /// `datagram` is 16 bytes of headroom, the plaintext, and 16 bytes of tail; what the headroom and
    /// the tail held is overwritten. `docs/spec/framing.md#seal`.
    ///
    /// # Errors
    ///
    /// [`SealError::NoRoom`] below 32 bytes, [`SealError::Exhausted`] at the suite's message limit. In
    /// both cases `datagram` and the counter are unchanged.
    #[inline]
    pub fn seal(&mut self, datagram: &mut [u8]) -> Result<Counter, SealError> {
        let (header, rest) = datagram
            .split_first_chunk_mut::<HEADER_LEN>()
            .ok_or(SealError::NoRoom)?;
        let (plaintext, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(SealError::NoRoom)?;
        if self.exhausted() {
            return Err(SealError::Exhausted);
        }
        let counter = Counter::new(self.next);
        self.next += 1;
        *header = Header {
            receiver: self.receiver,
            counter,
        }
        .encode();
        *tag = self.key.seal(counter.value(), &[], plaintext);
        Ok(counter)
    }

    /// Messages sealed so far, which is also the next counter.
    pub const fn sealed(&self) -> u64 {
        self.next
    }

    /// The suite of this session.
    pub fn suite(&self) -> Suite {
        self.key.suite()
    }

    /// The index that every datagram of this direction carries.
    pub const fn receiver(&self) -> SessionIndex {
        self.receiver
    }

    /// True once the session should be renewed; `docs/spec/framing.md#limits`.
    #[inline]
    pub const fn needs_rekey(&self) -> bool {
        self.next >= self.limits.rekey_after
    }

    /// True once nothing more can be sealed; `docs/spec/framing.md#limits`.
    #[inline]
    pub const fn exhausted(&self) -> bool {
        self.next >= self.limits.reject_after
    }

    /// Gives up the counters below `counter`, so that a test gets to where none can by sealing. It never goes back: no
    /// nonce repeats.
    #[doc(hidden)]
    pub fn skip_to(&mut self, counter: u64) {
        self.next = self.next.max(counter);
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("suite", &self.suite())
            .field("receiver", &self.receiver)
            .field("sealed", &self.next)
            .finish_non_exhaustive()
    }
}

/// Why nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SealError {
    /// The key has carried as many messages as its suite allows: a new session is needed.
    #[error("the session has sent as many messages as its suite allows")]
    Exhausted,
    /// The buffer is too small for header and tag.
    #[error("the buffer has no room for header and tag")]
    NoRoom,
}
