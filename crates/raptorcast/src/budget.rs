//! A rate with a burst, without a timer: what was spent is the moment until which it is spent.

use std::time::{Duration, Instant};

/// Allows `rate` units a second, and one second's worth at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    per_unit: Duration,
    spent_until: Option<Instant>,
}

/// Unused allowance is kept for this long.
const BURST: Duration = Duration::from_secs(1);

impl Budget {
    /// `rate` units a second, at least 1.
    pub(crate) fn new(rate: u32) -> Self {
        Self {
            per_unit: BURST / rate.max(1),
            spent_until: None,
        }
    }

    /// Takes one unit if there is one.
    pub(crate) fn spend(&mut self, now: Instant) -> bool {
        self.spend_many(now, 1)
    }

    /// Whether [`Budget::spend`] would refuse.
    pub(crate) fn is_spent(&self, now: Instant) -> bool {
        let from = self.spent_until.map_or(now, |until| until.max(now));
        from + self.per_unit > now + BURST
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
        let is_allowed = until <= now + BURST;
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
