//! A bar on a terminal, with an estimate of the time left; nothing elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Steps of one run.
const STEPS: f64 = 1_000.0;
const TEMPLATE: &str = "simulating {bar:40.cyan/dim} {percent:>3} %  {elapsed} of about {duration}";

/// Progress of several runs at once.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    shares: Mutex<Vec<f64>>,
}

impl Progress {
    pub(crate) fn new(runs: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(runs as u64 * STEPS as u64);
            // A template that is wrong would be found by the test below; the default one is still a bar.
            if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            bar,
            shares: Mutex::new(vec![0.0; runs]),
        }
    }

    /// A run has come this far, from 0 to 1.
    pub(crate) fn set(&self, run: usize, share: f64) {
        let Some(bar) = &self.bar else { return };
        let mut shares = self
            .shares
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        shares[run] = share;
        bar.set_position((shares.iter().sum::<f64>() * STEPS) as u64);
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_valid_template() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
