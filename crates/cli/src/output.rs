//! Lines for people. A reader that has gone away (`falconet ... | head`) is not an error of ours, so unlike
//! `println!` nothing here panics.

use std::fmt::Display;
use std::io::Write;

/// A line on standard output: what was asked for.
pub(crate) fn say(line: impl Display) {
    writeln!(std::io::stdout(), "{line}").ok();
}

/// A line on standard error: progress, warnings, failures.
pub(crate) fn remark(line: impl Display) {
    writeln!(std::io::stderr(), "{line}").ok();
}
