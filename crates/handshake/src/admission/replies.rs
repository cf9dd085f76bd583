//! The cap on cookie replies, drawn by lot above it.

use crate::admission::limiter::{HandedClock, Limiter, limiter};
use crate::admission::refusal::Refusal;
use rand_core::CryptoRng;
use std::num::NonZeroU32;

/// How long demand is counted before the odds follow it.
const WINDOW_NANOS: u64 = 100_000_000;
const WINDOWS_PER_SECOND: u32 = 10;

/// At most so many replies a second. Once more are due than that, each source has the same chance,
/// whatever its place in the queue: a flood cannot be first in line.
/// `docs/spec/handshake.md#cookie-reply-budget`.
pub(crate) struct ReplyBudget {
    limiter: Limiter,
    per_window: NonZeroU32,
    window_start: u64,
    due: u32,
    due_before: u32,
}

impl ReplyBudget {
    pub(crate) fn new(per_second: NonZeroU32, clock: &HandedClock) -> Self {
        let per_window = NonZeroU32::new(per_second.get() / WINDOWS_PER_SECOND).unwrap_or(NonZeroU32::MIN);
        Self {
            limiter: limiter(per_second, per_window, clock),
            per_window,
            window_start: clock.nanos(),
            due: 0,
            due_before: 0,
        }
    }

    /// One more reply is due: whether it may be sent.
    pub(crate) fn spend(&mut self, clock: &HandedClock, rng: &mut impl CryptoRng) -> Result<(), Refusal> {
        self.count(clock.nanos());
        let due = u64::from(self.due.max(self.due_before));
        // Uniform in 0..due, without division; the bias is below due / 2^32.
        if due > u64::from(self.per_window.get())
            && (u64::from(rng.next_u32()) * due) >> 32 >= u64::from(self.per_window.get())
        {
            return Err(Refusal::ReplySampled);
        }
        self.limiter.check().map_err(|_| Refusal::ReplyBudget)
    }

    fn count(&mut self, nanos: u64) {
        let age = nanos.saturating_sub(self.window_start);
        if age >= WINDOW_NANOS {
            self.due_before = if age < 2 * WINDOW_NANOS { self.due } else { 0 };
            self.due = 0;
            self.window_start = nanos;
        }
        self.due = self.due.saturating_add(1);
    }
}
