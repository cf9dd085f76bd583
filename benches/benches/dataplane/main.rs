//! What the threads carry, beside peers that do the same job, and what a flood does to them.
//!
//! `cargo bench -p falconet-benches --bench dataplane [-- --quick] [raw|goodput|veth|relay|latency|flood]`
//!
//! Everything is on the loopback interface, whose interrupt work falls to the sender. Processor 0 sends, processor 1
//! receives; all threads of a side are pinned to its one. Floods are bounded in time and number. Rows with `veth` in their
//! name make two network namespaces with a virtual cable between them, which needs root.

mod attack;
mod cable;
mod direct;
mod flood;
mod goodput;
mod latency;
mod quic;
mod relay;
mod sys;

use falconet_benches::{Report, rig};

fn main() {
    let mut report = Report::from_args();
    goodput::raw(&mut report);
    goodput::authenticated(&mut report);
    goodput::over_a_cable(&mut report);
    relay::burst(&mut report);
    latency::lone(&mut report);
    flood::floods(&mut report);
    report.finish();
}
