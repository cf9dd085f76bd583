//! Statistics of one lane: what arrived, and how long it took.
//!
//! - `count` payloads arrived intact, `lost` did not arrive in time, `corrupt` arrived altered; together
//!   they are rounds x receivers.
//! - Latencies are those of the intact ones. `std` is the sample standard deviation (divides by n - 1; 0
//!   for a single value).
//! - Percentile p is by *nearest rank*: the smallest measured value that at least p % of the values do not
//!   exceed. It is always a value that was measured, never an interpolation.

use std::time::Duration;

use falconet_sim::statistics::{deviation, mean, nearest_rank};

/// Counts and latencies, as they come in.
#[derive(Debug, Default, Clone)]
pub(crate) struct Statistics {
    latencies_ms: Vec<f64>,
    lost: u64,
    corrupt: u64,
}

/// A summary of the latencies of a lane, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Latency {
    pub(crate) mean: f64,
    pub(crate) std: f64,
    pub(crate) p50: f64,
    pub(crate) p70: f64,
    pub(crate) p90: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Statistics {
    /// A payload arrived intact.
    pub(crate) fn add_intact(&mut self, latency: Duration) {
        self.latencies_ms.push(latency.as_secs_f64() * 1e3);
    }

    /// A payload did not arrive in time.
    pub(crate) fn add_lost(&mut self) {
        self.lost += 1;
    }

    /// A payload arrived altered.
    pub(crate) fn add_corrupt(&mut self) {
        self.corrupt += 1;
    }

    /// Payloads that arrived intact.
    pub(crate) fn count(&self) -> u64 {
        self.latencies_ms.len() as u64
    }

    /// Payloads that did not arrive in time.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Payloads that arrived altered.
    pub(crate) fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// The summary of the latencies, or `None` if nothing arrived intact.
    pub(crate) fn latency(&self) -> Option<Latency> {
        let mut sorted = self.latencies_ms.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let max = *sorted.last()?;
        let mean = mean(&sorted);
        Some(Latency {
            mean,
            std: deviation(&sorted),
            p50: nearest_rank(&sorted, 50),
            p70: nearest_rank(&sorted, 70),
            p90: nearest_rank(&sorted, 90),
            p95: nearest_rank(&sorted, 95),
            p99: nearest_rank(&sorted, 99),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut statistics = Statistics::default();
        for value in values {
            statistics.add_intact(Duration::from_millis(value));
        }
        statistics.latency().unwrap()
    }

    #[test]
    fn percentiles_of_one_to_hundred_are_their_own_names() {
        let latency = of((1..=100).rev());
        assert_eq!(
            (
                latency.p50,
                latency.p70,
                latency.p90,
                latency.p95,
                latency.p99,
                latency.max
            ),
            (50.0, 70.0, 90.0, 95.0, 99.0, 100.0)
        );
    }

    #[test]
    fn percentiles_take_the_next_measured_value_never_one_between() {
        let latency = of([10, 20, 30]);
        assert_eq!((latency.p50, latency.p70, latency.p99), (20.0, 30.0, 30.0));
        // 50 % of four values are two of them, so the second value already covers p50.
        assert_eq!(of([10, 20, 30, 40]).p50, 20.0);
    }

    #[test]
    fn one_value_is_every_percentile_and_spreads_by_zero() {
        let latency = of([7]);
        assert_eq!(
            (latency.p50, latency.p99, latency.max, latency.mean),
            (7.0, 7.0, 7.0, 7.0)
        );
        assert_eq!(latency.std, 0.0);
    }

    #[test]
    fn mean_and_sample_deviation() {
        let latency = of([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(latency.mean, 5.0);
        assert!((latency.std - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn nothing_intact_has_counts_but_no_latency() {
        let mut statistics = Statistics::default();
        statistics.add_lost();
        statistics.add_lost();
        statistics.add_corrupt();
        assert_eq!(
            (statistics.count(), statistics.lost(), statistics.corrupt()),
            (0, 2, 1)
        );
        assert_eq!(statistics.latency(), None);
    }
}
