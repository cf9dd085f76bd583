use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The definition, with no cleverness: everything seen, and the greatest of it.
#[derive(Default)]
struct Model(BTreeSet<u64>);

impl Model {
    fn check(&self, counter: u64) -> Result<(), Discard> {
        let Some(&greatest) = self.0.last() else {
            return Ok(());
        };
        if counter < greatest && greatest - counter >= REPLAY_WINDOW {
            return Err(Discard::TooOld);
        }
        if self.0.contains(&counter) {
            Err(Discard::Replayed)
        } else {
            Ok(())
        }
    }
}

/// Counters as a network delivers them: near the front, at both edges of the window, and far ahead.
fn steps() -> impl Strategy<Value = Vec<(i64, bool)>> {
    let window = REPLAY_WINDOW as i64;
    let delta = prop_oneof![
        6 => -3i64..4,
        3 => -window - 70..window + 70,
        2 => -window - 2..-window + 3,
        2 => window - 2..window + 3,
        2 => (-20i64..20).prop_map(|words| words * 64),
        1 => -3 * window..5 * window,
    ];
    prop::collection::vec((delta, prop::bool::weighted(0.8)), 1..400)
}

proptest! {
    #[test]
    fn agrees_with_a_set_of_everything_seen(start in prop_oneof![Just(0u64), 0..20_000u64, Just(1 << 40)], steps in steps()) {
        let mut window = ReplayWindow::new();
        let mut model = Model::default();
        let mut front = start;
        for (delta, authentic) in steps {
            let counter = front.saturating_add_signed(delta);
            let expected = model.check(counter);
            prop_assert_eq!(window.check(Counter::new(counter)), expected, "counter {}", counter);
            prop_assert_eq!(window.is_highest(Counter::new(counter)), model.0.last().is_none_or(|&g| counter > g));
            if authentic && expected.is_ok() {
                window.mark(Counter::new(counter));
                model.0.insert(counter);
                front = front.max(counter);
            }
        }
    }
}

#[test]
fn the_window_is_exactly_8192_counters_wide() {
    let mut window = ReplayWindow::new();
    window.mark(Counter::new(8191));
    assert_eq!(window.check(Counter::ZERO), Ok(()));
    window.mark(Counter::new(8192));
    assert_eq!(window.check(Counter::ZERO), Err(Discard::TooOld));
    assert_eq!(window.check(Counter::new(1)), Ok(()));
}

#[test]
fn a_full_turn_of_the_ring_forgets_what_it_held() {
    for jump in [
        REPLAY_WINDOW - 1,
        REPLAY_WINDOW,
        REPLAY_WINDOW + 1,
        3 * REPLAY_WINDOW + 5,
    ] {
        let mut window = ReplayWindow::new();
        (0..REPLAY_WINDOW).for_each(|c| window.mark(Counter::new(c)));
        let front = REPLAY_WINDOW - 1 + jump;
        window.mark(Counter::new(front));
        let oldest = front + 1 - REPLAY_WINDOW;
        for counter in oldest..front {
            let expected = if counter < REPLAY_WINDOW {
                Err(Discard::Replayed)
            } else {
                Ok(())
            };
            assert_eq!(
                window.check(Counter::new(counter)),
                expected,
                "jump {jump}, counter {counter}"
            );
        }
    }
}

#[test]
fn the_last_counter_of_all_does_not_wrap_around() {
    let mut window = ReplayWindow::new();
    window.mark(Counter::new(u64::MAX - 1));
    assert_eq!(window.check(Counter::new(u64::MAX - 1)), Err(Discard::Replayed));
    assert_eq!(window.check(Counter::ZERO), Err(Discard::TooOld));
    assert_eq!(window.check(Counter::new(u64::MAX)), Ok(()));
}
