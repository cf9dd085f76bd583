//! How long operations take: a log-linear histogram, written by one thread and read by any
//! (docs/spec/threads.md#timings).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of each power of two: a value is known to within an eighth.
const STEPS: u64 = 8;
/// The last power of two with buckets of its own, about 2 s; what takes longer counts as that.
const LAST_POWER: u64 = 31;
const BUCKETS: usize = ((LAST_POWER - 2) * STEPS + STEPS) as usize;

/// Counts as the owner's thread writes them.
#[derive(Debug)]
pub(crate) struct Recorder([AtomicU64; BUCKETS]);

impl Default for Recorder {
    fn default() -> Self {
        Recorder(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Recorder {
    /// Counts one operation; plain load and store, since there is one writer.
    pub(crate) fn note(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = &self.0[bucket_of(nanoseconds)];
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// What has been counted.
    pub(crate) fn snapshot(&self) -> Histogram {
        let counts = self.0.iter().enumerate();
        let buckets = counts.map(|(bucket, count)| (end_of(bucket), count.load(Ordering::Relaxed)));
        Histogram {
            buckets: buckets.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

fn bucket_of(nanoseconds: u64) -> usize {
    if nanoseconds < STEPS {
        return nanoseconds as usize;
    }
    let power = u64::from(nanoseconds.ilog2()).min(LAST_POWER);
    let step = (nanoseconds >> (power - 3)).clamp(STEPS, 2 * STEPS - 1) - STEPS;
    ((power - 2) * STEPS + step) as usize
}

/// The first value past `bucket`.
fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket + 1;
    }
    let (power, step) = (bucket / STEPS + 2, bucket % STEPS);
    (STEPS + step + 1) << (power - 3)
}

/// Durations of sampled operations, each known to within an eighth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Nanoseconds that a bucket ends before, and how many operations fell into it; ascending, without empty ones.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// Sampled operations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The end of the bucket that has the operation of rank `share` (0.0 to 1.0); `None` without any.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * share.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            below += count;
            below >= rank
        });
        found.map(|(end, _)| Duration::from_nanos(*end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_to_within_an_eighth() {
        for value in (0..5_000)
            .chain((0..31).map(|power| 3_u64 << power))
            .filter(|v| *v < 1 << 32)
        {
            let (bucket, previous) = (bucket_of(value), bucket_of(value).checked_sub(1));
            let start = previous.map_or(0, end_of);
            assert!(
                start <= value && value < end_of(bucket),
                "{value} in {start}..{}",
                end_of(bucket)
            );
            assert!(end_of(bucket) - start <= 1.max(value / 8 + 1), "{value}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_of_what_was_counted() {
        let recorder = Recorder::default();
        for nanoseconds in 1..=1_000 {
            recorder.note(Duration::from_nanos(nanoseconds));
        }
        let histogram = recorder.snapshot();
        assert_eq!(histogram.count(), 1_000);
        for (share, exact) in [(0.5, 500_u64), (0.99, 990), (1.0, 1_000)] {
            let found = histogram.quantile(share).unwrap().as_nanos() as u64;
            assert!(
                found > exact && found <= exact + exact / 8 + 1,
                "{share}: {found}"
            );
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
