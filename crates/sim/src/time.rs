//! Virtual time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::{Duration, Instant};

use falconet_crypto::Now;

/// Wall clock at the start of every run, since the Unix epoch.
const UNIX_START: Duration = Duration::from_secs(1_700_000_000);

/// A point of virtual time, in whole nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const START: Self = Self(0);

    /// The point this many nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` until this, zero if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        // 584 years fit: more than any run.
        Self(
            self.0
                .saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", Duration::from_nanos(self.0).as_secs_f64())
    }
}

/// Translates virtual time into the readings that engines are driven with.
///
/// Engines want an [`Instant`], which only the system can make; all that they do with it is to compare and to
/// subtract, so which one a run begins with does not matter.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
}

impl Clock {
    /// A clock whose start of run reads as this instant.
    #[must_use]
    pub const fn new(base: Instant) -> Self {
        Self { base }
    }

    /// What a node reads at `time` whose wall clock is off by `skew` nanoseconds.
    #[must_use]
    pub fn read(&self, time: Time, skew: i64) -> Now {
        let since = Duration::from_nanos(time.nanos());
        let unix = UNIX_START + since;
        let unix = if skew < 0 {
            unix.saturating_sub(Duration::from_nanos(skew.unsigned_abs()))
        } else {
            unix + Duration::from_nanos(skew.unsigned_abs())
        };
        Now {
            instant: self.base + since,
            unix,
        }
    }

    /// The virtual time of an instant that an engine has named.
    #[must_use]
    pub fn time_of(&self, instant: Instant) -> Time {
        Time::START + instant.saturating_duration_since(self.base)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the one instant that a run needs")]
mod tests {
    use super::*;

    #[test]
    fn a_reading_and_its_time_are_one() {
        let clock = Clock::new(Instant::now());
        let time = Time::from_nanos(1_234_567_890);
        assert_eq!(clock.time_of(clock.read(time, 0).instant), time);
    }

    #[test]
    fn skew_moves_the_wall_clock_and_nothing_else() {
        let clock = Clock::new(Instant::now());
        let time = Time::from_nanos(5);
        let (ahead, behind) = (clock.read(time, 1_000), clock.read(time, -1_000));
        assert_eq!(ahead.instant, behind.instant);
        assert_eq!(ahead.unix - behind.unix, Duration::from_nanos(2_000));
    }
}
