//! Summaries of samples.
//!
//! Percentiles are nearest-rank: the smallest value that at least that share of the values does not exceed. The
//! receivers of one payload share its fate, so confidence intervals are taken over payloads, not over samples.

use serde::Serialize;

use crate::latency::Sample;
use crate::stages::Stages;

/// The shares that tables show.
pub const PERCENTS: [usize; 5] = [50, 70, 90, 95, 99];

/// A value and the half width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Half width of the interval; 0 where one sample leaves it unknown.
    pub half_width: f64,
}

/// Latencies of a run, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Samples.
    pub count: usize,
    /// Their mean.
    pub mean: Estimate,
    /// Their standard deviation.
    pub std: f64,
    /// Percentiles, by [`PERCENTS`].
    pub percentiles: [Estimate; PERCENTS.len()],
    /// The largest.
    pub max: f64,
    /// Mean of every stage, by [`Stages::named`].
    pub stages: Vec<(&'static str, f64)>,
}

/// Summarises samples; `None` if there are none.
#[must_use]
pub fn summarise(samples: &[Sample]) -> Option<Summary> {
    let all = sorted(samples.iter().map(milliseconds));
    let max = *all.last()?;
    let by_message = by_message(samples);
    let interval = |value: f64, of: &dyn Fn(&[f64]) -> f64| {
        let values: Vec<_> = by_message.iter().map(|message| of(message)).collect();
        Estimate {
            value,
            half_width: half_width(&values),
        }
    };
    let mut percentiles = [Estimate::default(); PERCENTS.len()];
    for (estimate, percent) in percentiles.iter_mut().zip(PERCENTS) {
        *estimate = interval(nearest_rank(&all, percent), &|message| {
            nearest_rank(message, percent)
        });
    }
    Some(Summary {
        count: all.len(),
        mean: interval(mean(&all), &mean),
        std: deviation(&all),
        percentiles,
        max,
        stages: mean_stages(samples),
    })
}

/// By how much the mean and the last percentile of `other` exceed those of `base`, in percent, from the differences
/// between the payloads that both have.
#[must_use]
pub fn overhead(base: &[Sample], other: &[Sample]) -> Option<(Estimate, Estimate)> {
    let (base_by, other_by) = (by_message(base), by_message(other));
    let pairs: Vec<_> = base_by.iter().zip(&other_by).collect();
    let percent = |of: &dyn Fn(&[f64]) -> f64| {
        let values: Vec<_> = pairs
            .iter()
            .map(|(base, other)| 100.0 * (of(other) / of(base) - 1.0))
            .collect();
        Estimate {
            value: mean(&values),
            half_width: half_width(&values),
        }
    };
    (!pairs.is_empty()).then(|| (percent(&mean), percent(&|message| nearest_rank(message, 99))))
}

/// The p-th percentile of ascending, non-empty values.
#[must_use]
pub fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn milliseconds(sample: &Sample) -> f64 {
    sample.latency.as_secs_f64() * 1e3
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Ascending latencies of each payload, in the order of the payloads.
fn by_message(samples: &[Sample]) -> Vec<Vec<f64>> {
    let mut messages = std::collections::BTreeMap::<u32, Vec<f64>>::new();
    for sample in samples {
        messages
            .entry(sample.message)
            .or_default()
            .push(milliseconds(sample));
    }
    messages
        .into_values()
        .map(|values| sorted(values.into_iter()))
        .collect()
}

/// The mean of values, 0 if there are none.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Sample standard deviation (divides by n - 1); 0 for fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Half width of the 95 % interval of the mean of independent values.
fn half_width(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    student(values.len() - 1) * deviation(values) / (values.len() as f64).sqrt()
}

/// The 97.5 % quantile of Student's t distribution: exact to three digits where it matters, 1.96 + 2.4 / n beyond.
fn student(degrees: usize) -> f64 {
    const FIRST: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    FIRST
        .get(degrees - 1)
        .copied()
        .unwrap_or(1.96 + 2.4 / degrees as f64)
}

fn mean_stages(samples: &[Sample]) -> Vec<(&'static str, f64)> {
    let names = Stages::default().named();
    let count = samples.len().max(1) as f64;
    let mean = |place: usize| {
        let sum: f64 = samples
            .iter()
            .map(|sample| sample.stages.named()[place].1.as_secs_f64())
            .sum();
        sum * 1e3 / count
    };
    names
        .iter()
        .enumerate()
        .map(|(place, (name, _))| (*name, mean(place)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn samples(latencies: &[(u32, u64)]) -> Vec<Sample> {
        let sample = |&(message, ms)| Sample {
            message,
            node: 1,
            site: 0,
            latency: Duration::from_millis(ms),
            stages: Stages {
                decode: Duration::from_millis(ms),
                ..Stages::default()
            },
            symbols: 1,
        };
        latencies.iter().map(sample).collect()
    }

    #[test]
    fn a_summary_of_known_values() {
        let summary = summarise(&samples(&[(0, 10), (0, 30), (1, 20), (1, 40)])).unwrap();
        assert_eq!((summary.count, summary.mean.value, summary.max), (4, 25.0, 40.0));
        assert_eq!(
            summary.percentiles.map(|p| p.value),
            [20.0, 30.0, 40.0, 40.0, 40.0]
        );
        // Means of the payloads are 20 and 30: deviation 7.07, t(1) = 12.706.
        assert!((summary.mean.half_width - 12.706 * 50_f64.sqrt() / 2_f64.sqrt()).abs() < 1e-9);
        assert_eq!(summary.stages[6], ("decode", 25.0));
        assert_eq!(summarise(&[]), None);
    }

    #[test]
    fn overhead_is_paired_by_payload() {
        let base = samples(&[(0, 100), (1, 200)]);
        let other = samples(&[(0, 101), (1, 202)]);
        let (mean, p99) = overhead(&base, &other).unwrap();
        assert!((mean.value - 1.0).abs() < 1e-9 && mean.half_width < 1e-9);
        assert!((p99.value - 1.0).abs() < 1e-9);
        assert_eq!(overhead(&[], &other), None);
    }
}
