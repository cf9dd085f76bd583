//! Differences of two kinds of runs that took turns, and how far they can be trusted.

/// The median of paired differences, with an interval around it that assumes nothing of how they are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The median difference.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The probability that the interval holds the true median: at least 0.95 from 6 pairs on; with fewer, that of the
    /// whole range.
    pub coverage: f64,
}

/// Of `with` less `without`, in percent of `without`. The interval is that of the sign test: between the k-th least and
/// the k-th greatest difference, with the greatest k that covers 95 %.
///
/// # Panics
/// Without a pair, or if a run has no partner.
pub fn relative(without: &[f64], with: &[f64]) -> Paired {
    let percent = |(without, with): (&f64, &f64)| 100.0 * (with / without - 1.0);
    differences(without, with, percent)
}

/// As [`relative`], in the unit of the values.
///
/// # Panics
/// As [`relative`].
pub fn absolute(without: &[f64], with: &[f64]) -> Paired {
    differences(without, with, |(without, with)| with - without)
}

fn differences(without: &[f64], with: &[f64], difference: impl FnMut((&f64, &f64)) -> f64) -> Paired {
    assert!(
        !with.is_empty() && with.len() == without.len(),
        "runs come in pairs"
    );
    let mut sorted: Vec<_> = without.iter().zip(with).map(difference).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let (mut tail, mut step) = (0, 0.5_f64.powi(count as i32));
    let mut outside = step;
    // Leaving out one more on either side costs the probability of so many signs.
    loop {
        step *= (count - tail) as f64 / (tail + 1) as f64;
        if 2.0 * (outside + step) > 0.05 || 2 * (tail + 2) > count {
            break;
        }
        outside += step;
        tail += 1;
    }
    Paired {
        median: f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
        low: sorted[tail],
        high: sorted[count - 1 - tail],
        coverage: 1.0 - 2.0 * outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_pairs_leave_out_the_least_and_the_greatest() {
        let with: Vec<f64> = [3, 9, 1, 7, 5, 2, 8, 4, 6, 100].map(f64::from).to_vec();
        let found = absolute(&[0.0; 10], &with);
        assert_eq!((found.low, found.median, found.high), (2.0, 5.5, 9.0));
        // 1 - 2 x (1 + 10) / 1,024
        assert!(
            (found.coverage - 0.978_515_625).abs() < 1e-9,
            "{}",
            found.coverage
        );
    }

    #[test]
    fn few_pairs_give_their_range_and_say_what_it_is_worth() {
        let found = relative(&[100.0, 200.0, 50.0], &[101.0, 204.0, 50.0]);
        assert!((found.low - 0.0).abs() < 1e-9 && (found.median - 1.0).abs() < 1e-9);
        assert!((found.high - 2.0).abs() < 1e-9 && (found.coverage - 0.75).abs() < 1e-9);
        assert!((relative(&[2.0], &[1.0]).coverage - 0.0).abs() < 1e-9);
    }
}
