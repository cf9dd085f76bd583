//! A rate with a burst, without a timer: what was spent is the moment until which it is spent.

use std::time::{Duration, Instant};

/// Allows `rate` units a second, and one second's worth at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    per_unit: Duration,
    burst: Duration,
    spent_until: Option<Instant>,
}

/// Unused allowance is kept for this long.
const BURST: Duration = Duration::from_secs(1);
const SHORT_BURST: Duration = Duration::from_millis(50);

impl Budget {
    /// `rate` units a second, at least 1.
    pub(crate) fn new(rate: u32) -> Self {
        Self {
            per_unit: BURST / rate.max(1),
            burst: BURST,
            spent_until: None,
        }
    }

    /// As [`Budget::new`], with so much less at once that what it pays for cannot hold the thread up: what comes in
    /// 50 ms, or 8 units if that is more.
    pub(crate) fn smooth(rate: u32) -> Self {
        let budget = Self::new(rate);
        let few = (8 * budget.per_unit).min(BURST);
        Self {
            burst: SHORT_BURST.max(few),
            ..budget
        }
    }

    /// Takes one unit if there is one.
    pub(crate) fn spend(&mut self, now: Instant) -> bool {
        self.spend_many(now, 1)
    }

    /// Whether [`Budget::spend`] would refuse.
    pub(crate) fn is_spent(&self, now: Instant) -> bool {
        let from = self.spent_until.map_or(now, |until| until.max(now));
        from + self.per_unit > now + self.burst
    }

    /// Gives a unit back that was spent.
    pub(crate) fn refund(&mut self) {
        self.spent_until = self
            .spent_until
            .and_then(|until| until.checked_sub(self.per_unit));
    }

    /// Takes so many units, or none if there are fewer.
    pub(crate) fn spend_many(&mut self, now: Instant, units: u32) -> bool {
        let from = self.spent_until.map_or(now, |until| until.max(now));
        let until = from + self.per_unit * units;
        let is_allowed = until <= now + self.burst;
        if is_allowed {
            self.spent_until = Some(until);
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Budget;

    #[test]
    fn a_smooth_one_allows_as_much_in_smaller_parts() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        for (rate, at_once) in [(3, 3), (20, 8), (1_000, 50)] {
            let mut budget = Budget::smooth(rate);
            let allowed = |budget: &mut Budget, now| (0..5_000).filter(|_| budget.spend(now)).count();
            assert_eq!(allowed(&mut budget, start), at_once, "{rate}");
            assert!(budget.is_spent(start));
            let ticks = (1..=1_000).map(|ms| allowed(&mut budget, start + Duration::from_millis(ms)));
            assert_eq!(ticks.sum::<usize>(), rate as usize);
        }
    }

    #[test]
    fn a_burst_is_one_second_worth_and_refills_at_the_rate() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let mut budget = Budget::new(10);
        let allowed = |budget: &mut Budget, now| (0..100).filter(|_| budget.spend(now)).count();
        assert_eq!(allowed(&mut budget, start), 10);
        assert_eq!(allowed(&mut budget, start + Duration::from_millis(300)), 3);
        assert!(budget.is_spent(start + Duration::from_millis(300)));
        budget.refund();
        assert!(!budget.is_spent(start + Duration::from_millis(300)));
        assert_eq!(allowed(&mut budget, start + Duration::from_millis(300)), 1);
        let later = start + Duration::from_secs(3600);
        assert_eq!(allowed(&mut budget, later), 10);
        let later = later + Duration::from_millis(500);
        assert!(!budget.spend_many(later, 6), "half a second refills five");
        assert!(budget.spend_many(later, 5));
    }
}
