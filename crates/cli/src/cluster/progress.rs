//! What a user sees while a run lasts: a bar on a terminal, a line a round otherwise. On standard error,
//! so that standard output holds the report alone.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::plan::{Lane, NodeNumber};
use super::rounds::RoundResult;
use crate::output::remark;

/// At most so many node numbers are listed.
const LISTED: usize = 12;

/// Progress of one lane.
#[derive(Debug)]
pub(crate) struct Progress {
    lane: Lane,
    rounds: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress of `rounds` rounds on `lane`.
    pub(crate) fn new(lane: Lane, rounds: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(lane, rounds));
        Self { lane, rounds, bar }
    }

    /// The cluster is ready for the first round.
    pub(crate) fn ready(&self, sessions: usize, after: Duration) {
        let text = describe_sessions(sessions, after);
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => remark(format_args!("{:<5}  ready: {text}", self.lane)),
        }
    }

    /// A round has closed.
    pub(crate) fn round(&self, round: u64, result: &RoundResult) {
        let text = describe(result);
        match &self.bar {
            Some(bar) => {
                bar.set_position(round);
                // What went wrong stays visible above the bar.
                if result.lost.is_empty() && result.corrupt.is_empty() {
                    bar.set_message(text);
                } else {
                    bar.println(format!("{:<5}  round {round}: {text}", self.lane));
                }
            }
            None => {
                let width = self.rounds.to_string().len();
                remark(format_args!(
                    "{:<5}  round {round:>width$}/{}: {text}",
                    self.lane, self.rounds
                ));
            }
        }
    }

    /// Leaves a clean line for what follows.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(lane: Lane, rounds: u64) -> ProgressBar {
    let bar = ProgressBar::new(rounds)
        .with_prefix(format!("{lane:<5}"))
        .with_message("handshakes");
    // A template that is wrong would be found by the test below; the default one is still a bar.
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

const TEMPLATE: &str = "{prefix} {spinner} {bar:32.cyan/dim} {pos:>3}/{len} {elapsed:>4}  {msg}";

/// `3 sessions in 33.2 ms`.
pub(crate) fn describe_sessions(sessions: usize, after: Duration) -> String {
    match sessions {
        0 => "no sessions needed".to_owned(),
        1 => format!("1 session in {}", milliseconds(after)),
        more => format!("{more} sessions in {}", milliseconds(after)),
    }
}

/// `9 of 9 intact, slowest 14.2 ms`, and who is missing.
fn describe(result: &RoundResult) -> String {
    let receivers = result.intact + result.lost.len() + result.corrupt.len();
    let mut text = format!("{} of {receivers} intact", result.intact);
    if let Some(slowest) = result.slowest {
        text += &format!(", slowest {}", milliseconds(slowest));
    }
    for (what, nodes) in [("lost at", &result.lost), ("corrupt at", &result.corrupt)] {
        if !nodes.is_empty() {
            text += &format!(", {what} {}", list(nodes));
        }
    }
    text
}

/// `node 3` or `nodes 3, 4, 5 and 20 more`.
pub(crate) fn list(nodes: &[NodeNumber]) -> String {
    let shown: Vec<_> = nodes.iter().take(LISTED).map(ToString::to_string).collect();
    let noun = if nodes.len() == 1 { "node" } else { "nodes" };
    match nodes.len().saturating_sub(LISTED) {
        0 => format!("{noun} {}", shown.join(", ")),
        more => format!("{noun} {} and {more} more", shown.join(", ")),
    }
}

/// `14.2 ms`.
fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_valid_template() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }

    #[test]
    fn a_round_says_how_many_are_intact_and_names_the_others() {
        let mut result = RoundResult {
            intact: 8,
            lost: vec![NodeNumber(4)],
            corrupt: vec![],
            slowest: Some(Duration::from_micros(14_240)),
        };
        assert_eq!(
            describe(&result),
            "8 of 9 intact, slowest 14.2 ms, lost at node 4"
        );
        result.lost = (1..=20).map(NodeNumber).collect();
        assert!(
            describe(&result).ends_with("lost at nodes 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 8 more")
        );
    }
}
