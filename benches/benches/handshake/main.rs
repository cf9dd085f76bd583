//! What handshakes cost, beside boringtun in the same run.
//!
//! `cargo bench -p falconet-benches --bench handshake [-- --quick]`

mod messages;

use falconet_benches::Report;

fn main() {
    let mut report = Report::from_args();
    messages::contests(&mut report);
    report.finish();
}
