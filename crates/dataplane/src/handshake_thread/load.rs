//! How much of a processor handshakes may take, and what gives way (docs/spec/threads.md#handshake-cpu).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The usual length of a window; each is up to half longer or shorter, at random, so that nobody can send
/// for the moment at which reading begins again.
const WINDOW: Duration = Duration::from_millis(10);
/// How much the last window counts in the smoothed share: it follows within a tenth of a second, so that a burst
/// as of a network that starts changes nothing.
const SMOOTHING: f64 = 0.1;
/// No window counts for more than this many times the cap, or a flood's end would be noticed late.
const MOST_COUNTED: f64 = 2.0;
/// Shares of the cap from which on sources have to prove their addresses, and below which they need not.
const BUSY: f64 = 0.8;
const CALM: f64 = 0.4;
/// Share of the cap from which on initiations are sampled. Below `BUSY` sampling recovers.
const FULL: f64 = 0.95;
/// Windows in a row that have to be calm before they need not: about a second.
const CALM_WINDOWS: f64 = 100.0;
/// Windows that one reading may stand for: more than recovery and calm take together.
const MOST_WINDOWS: f64 = 1_000.0;
/// How fast sampling sets in and recovers, a window.
const RESTRAINT: f64 = 0.9;
const RECOVERY: f64 = 1.1;
/// Share of initiations that are looked at, whatever the flood.
const LEAST_SAMPLED: f64 = 1.0 / 1024.0;

/// Measures the processor time of handshakes in windows, and decides by it.
pub(super) struct Load {
    /// Processor time a second of time, over all handshake threads.
    cap: f64,
    window: Window,
    /// The smoothed share of a second that is used, in the cap's unit.
    share: f64,
    /// Share of initiations that are looked at, 0 to 1.
    sampled: f64,
    is_under_load: bool,
    calm_windows: f64,
    rng: ChaCha8Rng,
}

struct Window {
    start: Instant,
    length: Duration,
    cpu: Duration,
}

impl Load {
    /// `cap`: cores, as a fraction. `now` and `cpu` are the first readings of the clocks.
    pub(super) fn new(cap: f64, now: Instant, cpu: Duration) -> Self {
        // No key follows from it; it only must not be known outside.
        let seed = std::array::from_fn(|_| RandomState::new().build_hasher().finish() as u8);
        Self {
            cap,
            window: Window {
                start: now,
                length: WINDOW,
                cpu,
            },
            share: 0.0,
            sampled: 1.0,
            is_under_load: false,
            calm_windows: 0.0,
            rng: ChaCha8Rng::from_seed(seed),
        }
    }

    /// Whether the window is over: only then does a reading of the processor time say something, and it costs a system
    /// call.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.window.start) >= self.window.length
    }

    /// Takes a reading of the processor time used so far.
    pub(super) fn measure(&mut self, now: Instant, cpu: Duration) {
        if !self.is_due(now) {
            return;
        }
        let passed = now.saturating_duration_since(self.window.start);
        let share = cpu.saturating_sub(self.window.cpu).as_secs_f64() / passed.as_secs_f64();
        // A thread that slept took no readings: the time counts, or a few messages a second would take minutes to
        // end what a flood began.
        let windows = (passed.as_secs_f64() / WINDOW.as_secs_f64()).min(MOST_WINDOWS);
        self.adapt(share, windows);
        self.window = Window {
            start: now,
            length: WINDOW / 2 + WINDOW.mul_f64(self.fraction()),
            cpu,
        };
    }

    /// `share` is that of the time that has passed, in `windows` of the usual length.
    fn adapt(&mut self, share: f64, windows: f64) {
        let weight = 1.0 - (1.0 - SMOOTHING).powf(windows);
        self.share += weight * (share.min(MOST_COUNTED * self.cap) - self.share);
        if self.share > self.cap * FULL {
            self.sampled = (self.sampled * RESTRAINT.powf(windows)).max(LEAST_SAMPLED);
        } else if self.share < self.cap * BUSY {
            self.sampled = (self.sampled * RECOVERY.powf(windows)).min(1.0);
        }
        self.is_under_load |= self.share > self.cap * BUSY;
        let is_calm = self.share < self.cap * CALM && self.sampled >= 1.0;
        self.calm_windows = if is_calm { self.calm_windows + windows } else { 0.0 };
        if self.calm_windows >= CALM_WINDOWS {
            self.is_under_load = false;
            self.calm_windows = 0.0;
        }
    }

    /// Until when nothing may be read, if this window's processor time is used up.
    pub(super) fn paused_until(&self, cpu: Duration) -> Option<Instant> {
        let spent = cpu.saturating_sub(self.window.cpu).as_secs_f64();
        let allowed = self.window.length.as_secs_f64() * self.cap;
        (spent >= allowed).then(|| self.window.start + self.window.length)
    }

    /// Whether sources have to prove their addresses.
    pub(super) fn is_under_load(&self) -> bool {
        self.is_under_load
    }

    /// Whether a message is looked at. Answers always are: those that nobody asked for are told by their receiver
    /// index, before any key is used. So is an initiation that bears the recorded address of a validator: one whose
    /// address nobody spoofs is not left to chance, and what a spoofer spends there is in the cap, too. All others by
    /// chance alone, so that coming first or often earns nothing.
    pub(super) fn looks_at(&mut self, is_initiation: bool, is_recorded: impl FnOnce() -> bool) -> bool {
        !is_initiation || self.samples() || is_recorded()
    }

    fn samples(&mut self) -> bool {
        self.sampled >= 1.0 || self.fraction() < self.sampled
    }

    /// Evenly from 0.0 to 1.0.
    fn fraction(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: f64 = 0.5;

    /// Lets `windows` windows pass in which each looked-at initiation costs `cost`, of `rate` a second, on
    /// top of `fixed` cores; returns the share of a core that was used in the last quarter.
    fn run(load: &mut Load, clock: &mut (Instant, Duration), windows: u32, rate: f64, cost: f64) -> f64 {
        let step = Duration::from_millis(1);
        let (mut used, mut passed) = (0.0, 0.0);
        for turn in 0..windows * 10 {
            let came = (rate * step.as_secs_f64()) as u32;
            let looked_at = (0..came).filter(|_| load.samples()).count();
            let cpu = Duration::from_secs_f64(looked_at as f64 * cost);
            clock.0 += step;
            clock.1 += cpu;
            if turn >= windows * 15 / 2 {
                used += cpu.as_secs_f64();
                passed += step.as_secs_f64();
            }
            load.measure(clock.0, clock.1);
        }
        used / passed
    }

    fn start() -> (Load, (Instant, Duration)) {
        let clock = (Instant::now(), Duration::from_secs(3));
        (Load::new(CAP, clock.0, clock.1), clock)
    }

    #[test]
    fn below_the_cap_everything_is_looked_at() {
        let (mut load, mut clock) = start();
        run(&mut load, &mut clock, 200, 10_000.0, 10e-6);
        assert!((0..1_000).all(|_| load.samples()));
        assert!(!load.is_under_load());
    }

    #[test]
    fn a_burst_as_of_a_network_that_starts_changes_nothing() {
        let (mut load, mut clock) = start();
        let share = run(&mut load, &mut clock, 4, 100_000.0, 10e-6);
        assert!(share > 0.9, "a whole core: {share}");
        assert!((0..1_000).all(|_| load.samples()));
        assert!(!load.is_under_load());
    }

    #[test]
    fn a_flood_is_sampled_down_to_the_cap_and_no_further() {
        let (mut load, mut clock) = start();
        let share = run(&mut load, &mut clock, 400, 200_000.0, 20e-6);
        assert!((0.35..=0.55).contains(&share), "{share} of a core");
        assert!(load.is_under_load());
        let sampled = (0..100_000).filter(|_| load.samples()).count();
        assert!((8_000..18_000).contains(&sampled), "an eighth: {sampled}");
    }

    #[test]
    fn answers_and_validators_at_their_addresses_are_looked_at_in_any_flood() {
        let (mut load, mut clock) = start();
        run(&mut load, &mut clock, 2_000, 10_000_000.0, 20e-6);
        let mut looked_at = |is_initiation, is_recorded: bool| {
            (0..1_000)
                .filter(|_| load.looks_at(is_initiation, || is_recorded))
                .count()
        };
        assert!(looked_at(true, false) < 100);
        assert_eq!(looked_at(true, true), 1_000);
        assert_eq!(looked_at(false, false), 1_000);
    }

    #[test]
    fn load_ends_only_once_it_was_calm_for_a_while() {
        let (mut load, mut clock) = start();
        run(&mut load, &mut clock, 100, 200_000.0, 20e-6);
        // Between calm and busy nothing changes.
        run(&mut load, &mut clock, 300, 15_000.0, 20e-6);
        assert!(load.is_under_load());
        run(&mut load, &mut clock, CALM_WINDOWS as u32 / 2, 1_000.0, 20e-6);
        assert!(load.is_under_load());
        run(&mut load, &mut clock, 2 * CALM_WINDOWS as u32, 1_000.0, 20e-6);
        assert!(!load.is_under_load());
        assert!((0..1_000).all(|_| load.samples()));
    }

    #[test]
    fn time_slept_through_after_a_flood_counts_as_calm() {
        let (mut load, mut clock) = start();
        run(&mut load, &mut clock, 400, 200_000.0, 20e-6);
        assert!(load.is_under_load());
        clock.0 += 400 * WINDOW;
        load.measure(clock.0, clock.1);
        assert!(!load.is_under_load());
        assert!((0..1_000).all(|_| load.samples()));
    }

    #[test]
    fn a_window_whose_time_is_used_up_pauses_reading_until_its_end() {
        let (load, (now, cpu)) = start();
        assert_eq!(load.paused_until(cpu + Duration::from_millis(4)), None);
        let until = load.paused_until(cpu + Duration::from_millis(6));
        assert_eq!(until, Some(now + WINDOW));
    }
}
