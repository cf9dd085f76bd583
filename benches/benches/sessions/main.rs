//! What sessions cost while nothing is sent: timers, memory, and setting them up.
//!
//! `cargo bench -p falconet-benches --bench sessions [-- --quick]`

use falconet_benches::Report;

mod hub;
mod timers;

fn main() {
    let mut report = Report::from_args();
    hub::run(&mut report);
    timers::run(&mut report);
    report.finish();
}
