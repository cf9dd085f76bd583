//! The published attacks, and worse, on one node of five that broadcast to each other.
//!
//! `cargo bench -p falconet-benches --bench attack [-- --quick] [PART OF A ROW'S NAME]`
//!
//! The five nodes and who reads from them have processor 1, the generator processor 0. Each row is ten pairs of a run
//! without the attack (the generator's thread spins) and one with it, in turns; `--quick` takes three short pairs. All
//! rows take 25 minutes. Everything is bounded in time and number, and goes to loopback addresses only.

mod attacks;
mod cluster;
mod measure;
mod member;
mod spoof;
mod table;

use falconet_benches::Report;

use attacks::{Generator, ROWS};
use cluster::Cluster;
use measure::measure;
use member::Member;
use table::Table;

/// Each row has the hostile member's rounds to itself.
const ROUNDS_A_ROW: u64 = 100_000;

fn main() {
    let mut report = Report::from_args();
    let name = |name: &str| format!("attack/{name}");
    if !ROWS.iter().any(|(row, ..)| report.wants(&name(row))) {
        return report.finish();
    }
    let mut cluster = Cluster::start();
    let member = Member::join(&cluster);
    let mut table = Table::begin();
    for (row, (part, kind, rate)) in (1..).zip(ROWS) {
        let name = name(part);
        if !report.wants(&name) {
            continue;
        }
        match Generator::new(kind, &cluster, &member, row * ROUNDS_A_ROW) {
            Some(generator) => {
                let found = measure(&mut cluster, generator, (kind, rate), report.is_quick());
                table.add(&mut report, &name, &found);
            }
            None => println!("{name} skipped: no raw sockets here, which need root"),
        }
    }
    table.finish();
    report.finish();
}
