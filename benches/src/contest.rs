//! Timing contenders of one job in turn.

use std::time::{Duration, Instant};

use crate::report::{Report, Unit};

/// Rounds of a full run and of a quick one; odd, so that the median is a measured value.
const ROUNDS: (usize, usize) = (41, 9);
/// How long one contender runs within a round.
const SLICE: Duration = Duration::from_millis(5);

/// Does the operation so often and says how long that took.
type Job<'a> = Box<dyn FnMut(u32) -> Duration + 'a>;

/// Contenders that do the same job: ours first, then its peers.
pub struct Contest<'a> {
    name: String,
    contenders: Vec<(String, Job<'a>)>,
}

impl<'a> Contest<'a> {
    /// A contest of this name (`operation/parameter/..`) with our contender; `job` is one operation.
    pub fn new(name: impl Into<String>, job: impl FnMut() + 'a) -> Self {
        Self::with_untimed(name, timed(job))
    }

    /// As [`Contest::new`], for an operation that needs preparation: `job` repeats it and returns the time that counts.
    pub fn with_untimed(name: impl Into<String>, job: impl FnMut(u32) -> Duration + 'a) -> Self {
        Self {
            name: name.into(),
            contenders: vec![("falconet".to_owned(), Box::new(job))],
        }
    }

    /// Adds a peer that does the same job.
    #[must_use]
    pub fn against(self, peer: &str, job: impl FnMut() + 'a) -> Self {
        self.against_with_untimed(peer, timed(job))
    }

    /// As [`Contest::against`], for an operation that needs preparation.
    #[must_use]
    pub fn against_with_untimed(mut self, peer: &str, job: impl FnMut(u32) -> Duration + 'a) -> Self {
        self.contenders.push((peer.to_owned(), Box::new(job)));
        self
    }

    /// Times all contenders and reports the medians in `unit` and the ratios.
    pub fn run(mut self, report: &mut Report, unit: Unit) {
        if !report.wants(&self.name) {
            return;
        }
        let rounds = if report.is_quick() { ROUNDS.1 } else { ROUNDS.0 };
        let repeats: Vec<u32> = self
            .contenders
            .iter_mut()
            .map(|(_, job)| calibrate(job))
            .collect();
        let mut samples = vec![Vec::with_capacity(rounds); self.contenders.len()];
        for round in 0..rounds {
            for step in 0..self.contenders.len() {
                // Every second round runs backwards, so that nobody always runs after the same other.
                let turn = if round % 2 == 0 {
                    step
                } else {
                    self.contenders.len() - 1 - step
                };
                samples[turn].push(time(&mut self.contenders[turn].1, repeats[turn]));
            }
        }
        self.report(report, unit, &samples);
    }

    fn report(&self, report: &mut Report, unit: Unit, samples: &[Vec<f64>]) {
        report.figure(&self.name, in_unit(median(&samples[0]), unit), unit);
        for ((peer, _), theirs) in self.contenders.iter().zip(samples).skip(1) {
            let ratios: Vec<f64> = samples[0]
                .iter()
                .zip(theirs)
                .map(|(ours, theirs)| match unit {
                    Unit::PerSecond => theirs / ours,
                    _ => ours / theirs,
                })
                .collect();
            let ratio = median(&ratios);
            println!(
                "    {peer:<42} {:>12.3} {unit}   ours is {ratio:.2} of it",
                in_unit(median(theirs), unit)
            );
            report.ratio(&self.name, peer, ratio);
        }
    }
}

fn timed<'a>(mut job: impl FnMut() + 'a) -> impl FnMut(u32) -> Duration + 'a {
    move |repeats| {
        let started = Instant::now();
        (0..repeats).for_each(|_| job());
        started.elapsed()
    }
}

/// How often a job must be repeated to fill a slice; at least once.
fn calibrate(job: &mut Job<'_>) -> u32 {
    let mut repeats = 1;
    loop {
        let elapsed = job(repeats);
        if elapsed >= SLICE / 2 || repeats >= 1 << 24 {
            let scale = SLICE.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
            return ((f64::from(repeats) * scale) as u32).max(1);
        }
        repeats *= 2;
    }
}

/// Seconds an operation.
fn time(job: &mut Job<'_>, repeats: u32) -> f64 {
    job(repeats).as_secs_f64() / f64::from(repeats)
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn in_unit(seconds: f64, unit: Unit) -> f64 {
    match unit {
        Unit::Nanoseconds => seconds * 1e9,
        Unit::Microseconds => seconds * 1e6,
        Unit::Milliseconds => seconds * 1e3,
        Unit::PerSecond => 1.0 / seconds,
        Unit::GigabitsPerSecond | Unit::Bytes | Unit::Count | Unit::Percent => seconds,
    }
}
