//! An hour of trouble, in short form: `falconet sim chaos` runs more of it.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use std::time::Instant;

use falconet_sim::{Costs, chaos};

#[test]
#[expect(clippy::disallowed_methods, reason = "the one instant that a run needs")]
fn an_hour_of_faults_breaks_nothing_for_longer_than_it_may() {
    let outcome = chaos::run(1, 1, Costs::reference().unwrap(), Instant::now()).unwrap();
    assert_eq!(outcome.violations, []);
    assert!(
        outcome.broadcasts > 1_500 && outcome.demanded > 10_000,
        "{outcome:?}"
    );
    assert_eq!(outcome.faults, 23);
    assert!(outcome.counters > 100_000, "{outcome:?}");
}
