//! `governor`'s direct limiter on a clock that the caller moves.

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A rate with a burst, on a [`HandedClock`].
pub(crate) type Limiter = RateLimiter<NotKeyed, InMemoryState, HandedClock, NoOpMiddleware<Nanos>>;

/// Nanoseconds since the start of an [`crate::Admission`]. It stands still between calls and never goes
/// back; clones show the same time. (Shared by `Arc` because a limiter owns its clock; never contended.)
#[derive(Clone, Debug, Default)]
pub(crate) struct HandedClock(Arc<AtomicU64>);

impl HandedClock {
    pub(crate) fn set(&self, since_start: Duration) {
        let nanos = u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock for HandedClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.nanos().into()
    }
}

/// At most `per_second` in the long run, and at most `burst` at once.
pub(crate) fn limiter(per_second: NonZeroU32, burst: NonZeroU32, clock: &HandedClock) -> Limiter {
    let quota = Quota::per_second(per_second).allow_burst(burst);
    RateLimiter::new(quota, InMemoryState::default(), clock.clone())
}
