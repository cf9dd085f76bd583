//! The receiving direction of a session.

use crate::replay::ReplayWindow;
use crate::{Counter, Discard, HEADER_LEN, Header, Limits, TAG_LEN};
use falconet_crypto::{AeadKey, SecretBytes, Suite};
use std::fmt;

/// Receives on one session: AEAD key and a replay window of [`crate::REPLAY_WINDOW`] counters.
pub struct Opener {
    key: AeadKey,
    window: ReplayWindow,
    limits: Limits,
}

impl Opener {
    /// A direction that has received nothing.
    pub fn new(suite: Suite, key: &SecretBytes) -> Self {
        Self {
            key: AeadKey::new(suite, key),
            window: ReplayWindow::new(),
            limits: Limits::of(suite),
        }
    }

    /// Checks the replay window, opens in place, then marks; `docs/spec/framing.md#open`.
    ///
    /// `header` was parsed from this very `datagram`. On success the plaintext is
    /// `datagram[HEADER_LEN..HEADER_LEN + opened.len]`; an empty one is WireGuard's keepalive.
    ///
    /// # Errors
    ///
    /// [`Discard::CounterLimit`], [`Discard::TooOld`], [`Discard::Replayed`] or [`Discard::BadTag`] (and
    /// [`Discard::Truncated`] for a datagram the header cannot have come from). The window is unchanged
    /// after every error, and `datagram` then holds no plaintext.
    #[inline]
    pub fn open(&mut self, header: Header, datagram: &mut [u8]) -> Result<Opened, Discard> {
        let counter = header.counter;
        if counter.value() >= self.limits.reject_after {
            return Err(Discard::CounterLimit);
        }
        self.window.check(counter)?;
        let body = datagram
            .get_mut(HEADER_LEN..)
            .and_then(<[u8]>::split_last_chunk_mut::<TAG_LEN>);
        let (ciphertext, tag) = body.ok_or(Discard::Truncated)?;
        self.key
            .open(counter.value(), &[], ciphertext, tag)
            .map_err(|_| Discard::BadTag)?;
        let is_highest = self.window.is_highest(counter);
        self.window.mark(counter);
        Ok(Opened {
            counter,
            len: ciphertext.len(),
            is_highest,
        })
    }

    /// The suite of this session.
    pub fn suite(&self) -> Suite {
        self.key.suite()
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("suite", &self.suite())
            .finish_non_exhaustive()
    }
}

/// What [`Opener::open`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The datagram's counter, now marked.
    pub counter: Counter,
    /// Length of the plaintext, which starts at [`HEADER_LEN`].
    pub len: usize,
    /// True if no greater counter was opened before: only such a datagram may move the peer's address.
    pub is_highest: bool,
}
