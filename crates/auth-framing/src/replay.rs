//! Which counters of a session were already opened.

use crate::{Counter, Discard};

/// How many of the newest counters are told apart; anything older is dropped unseen.
///
/// WireGuard's size. At 1 Gbit/s of full datagrams it spans about 95 ms of reordering.
pub const REPLAY_WINDOW: u64 = 8192;

const WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// A ring of one bit a counter, after the idea of RFC 6479 but exact to the bit: the counters
/// `next - 8192 .. next` are represented; `docs/spec/framing.md#replay-window`.
///
/// Checking and marking are separate because a counter may only be marked once the tag verified:
/// otherwise one forged datagram with a high counter would silence the session.
pub(crate) struct ReplayWindow {
    /// One past the greatest counter marked; 0 before the first.
    next: u64,
    /// Bit `c % 8192` stands for counter `c` while `c` is inside the window.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    pub(crate) const fn new() -> Self {
        Self {
            next: 0,
            seen: [0; WORDS],
        }
    }

    /// True if `counter` is greater than every counter marked so far.
    #[inline]
    pub(crate) const fn is_highest(&self, counter: Counter) -> bool {
        counter.value() >= self.next
    }

    /// Whether `counter` may still be opened. Changes nothing.
    #[inline]
    pub(crate) fn check(&self, counter: Counter) -> Result<(), Discard> {
        if self.is_highest(counter) {
            return Ok(());
        }
        if self.next - counter.value() > REPLAY_WINDOW {
            return Err(Discard::TooOld);
        }
        let (word, bit) = position(counter.value());
        if self.seen[word] & bit != 0 {
            Err(Discard::Replayed)
        } else {
            Ok(())
        }
    }

    /// Records that `counter` was opened. The caller has checked it.
    #[inline]
    pub(crate) fn mark(&mut self, counter: Counter) {
        let value = counter.value();
        if value >= self.next {
            self.forget(self.next, value);
            self.next = value.saturating_add(1);
        }
        let (word, bit) = position(value);
        self.seen[word] |= bit;
    }

    /// Clears the bits of the counters `from..to`, which a jump ahead has skipped: they still hold
    /// what was seen one turn of the ring ago.
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= REPLAY_WINDOW {
            self.seen = [0; WORDS];
            return;
        }
        let mut at = from;
        while at < to {
            let offset = at % 64;
            let count = (64 - offset).min(to - at);
            let mask = if count == 64 {
                u64::MAX
            } else {
                ((1 << count) - 1) << offset
            };
            let (word, _) = position(at);
            self.seen[word] &= !mask;
            at += count;
        }
    }
}

/// Word and bit of `counter` in the ring.
#[inline]
const fn position(counter: u64) -> (usize, u64) {
    (((counter / 64) % WORDS as u64) as usize, 1 << (counter % 64))
}

#[cfg(test)]
mod tests;
