//! One reading of both clocks.

use std::time::{Duration, Instant};

/// One reading of the monotonic and of the wall clock.
///
/// Engines never read a clock themselves: whoever drives them reads it once a batch and hands the
/// reading in, so that the simulator can drive the same engines in virtual time.
///
/// The two clocks serve different ends. Timers, rates and expiries use [`Now::instant`], which never
/// goes back; labels that another host must be able to order (TAI64N, record expiry) use
/// [`Now::unix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock.
    pub instant: Instant,
    /// Time since the Unix epoch.
    pub unix: Duration,
}

impl Now {
    /// The same reading, `by` later on both clocks.
    #[must_use]
    pub fn after(self, by: Duration) -> Now {
        Now {
            instant: self.instant + by,
            unix: self.unix + by,
        }
    }

    /// Whole milliseconds since the Unix epoch; saturates at `u64::MAX`.
    #[must_use]
    pub fn unix_ms(self) -> u64 {
        u64::try_from(self.unix.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_move_together() {
        let start = Now {
            instant: Instant::now(),
            unix: Duration::from_micros(1_700_000_000_000_999),
        };
        let later = start.after(Duration::from_millis(7));
        assert_eq!(later.instant - start.instant, Duration::from_millis(7));
        assert_eq!(start.unix_ms(), 1_700_000_000_000);
        assert_eq!(later.unix_ms(), 1_700_000_000_007);
    }

    #[test]
    fn milliseconds_saturate() {
        let end_of_time = Now {
            instant: Instant::now(),
            unix: Duration::MAX,
        };
        assert_eq!(end_of_time.unix_ms(), u64::MAX);
    }
}
