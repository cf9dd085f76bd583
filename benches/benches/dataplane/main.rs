//! What the threads carry, beside peers that do the same job, and what a flood does to them.
//!
//! `cargo bench -p falconet-benches --bench dataplane [-- --quick] [raw|goodput|relay|latency|flood]`
//!
//! Everything is on the loopback interface, whose interrupt work falls to the sender. Processor 0 sends, processor 1
//! receives; all threads of a side are pinned to its one. Floods are bounded in time and number.

mod flood;
mod goodput;
mod latency;
mod relay;

use falconet_benches::{Report, rig};

fn main() {
    let mut report = Report::from_args();
    goodput::raw(&mut report);
    goodput::authenticated(&mut report);
    relay::burst(&mut report);
    latency::lone(&mut report);
    flood::junk(&mut report);
    report.finish();
}
