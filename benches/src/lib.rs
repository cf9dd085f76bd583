//! The harness of the benches: contenders of one job are timed in turn, round after round, in the same run.
//!
//! A shared machine drifts by tens of percent within seconds, so a figure alone says little. Each round times every
//! contender once, in alternating order, and the ratio is the median of the rounds' ratios: drift hits both sides.
//!
//! A target prints a table for people while it runs, and ends with lines for scripts:
//! `figure NAME VALUE UNIT` and `ratio NAME PEER VALUE`, ours divided by theirs.

pub use contest::Contest;
pub use report::{Report, Unit};

pub mod flood;
pub mod initiations;
pub mod machine;
pub mod paired;
pub mod peers;
pub mod rig;

mod contest;
mod report;
