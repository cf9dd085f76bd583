//! What handshakes cost, beside boringtun in the same run.
//!
//! `cargo bench -p falconet-benches --bench handshake [-- --quick] [flood]`
//!
//! The flood is on the loopback interface only, bounded in time and number, and takes five minutes (`--quick`: one
//! minute).

mod flood;
mod messages;
mod probe;
mod stage;

use falconet_benches::Report;

fn main() {
    let mut report = Report::from_args();
    messages::contests(&mut report);
    flood::flood(&mut report);
    report.finish();
}
