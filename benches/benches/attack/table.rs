//! The rows for people, for scripts, and as JSON, each beside its targets.

use falconet_benches::paired::{Paired, absolute, relative};
use falconet_benches::{Report, Unit};

use crate::measure::{Found, Run, THREADS};

/// Targets of issue 6, by name: the most that may be found.
const TARGETS: [(&str, f64); 6] = [
    ("lost", 0.0),
    ("p50 %", 2.0),
    ("p99 %", 5.0),
    ("RSS %", 10.0),
    ("raptorcast % of a core", 25.0),
    ("queue age ms", 5.0),
];

pub(crate) struct Table {
    rows: Vec<String>,
}

/// What counts of a row.
struct Verdict {
    p50: Paired,
    p99: Paired,
    cluster: Paired,
    /// In the order of the targets.
    found: [f64; TARGETS.len()],
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<_> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn pair(found: &Found, of: impl Fn(&Run) -> f64) -> (Vec<f64>, Vec<f64>) {
    (
        found.base.iter().map(&of).collect(),
        found.attacked.iter().map(&of).collect(),
    )
}

fn judge(found: &Found) -> Verdict {
    let (base, attacked) = pair(found, |run| run.traffic.p50);
    let p50 = relative(&base, &attacked);
    let (base, attacked) = pair(found, |run| run.traffic.p99);
    let p99 = relative(&base, &attacked);
    let (base, attacked) = pair(found, |run| run.cluster);
    let lost: usize = found
        .attacked
        .iter()
        .map(|run| run.traffic.sent - run.traffic.delivered.min(run.traffic.sent))
        .sum();
    let highest = found.attacked.iter().map(|run| run.resident).fold(0.0, f64::max);
    Verdict {
        cluster: absolute(&base, &attacked),
        found: [
            lost as f64,
            p50.median,
            p99.median,
            100.0 * (highest / found.resident_before - 1.0),
            median(&found.attacked, |run| run.threads[2]),
            median(&found.attacked, |run| run.traffic.queue_age),
        ],
        p50,
        p99,
    }
}

impl Table {
    pub(crate) fn begin() -> Self {
        println!(
            "Honest broadcasts: 64 KiB, ten a second, five nodes in turn. p50 is the mean over all ways from node to node \
             of each one's median, p99 that of all deliveries. In brackets: the interval by the sign test, which covers \
             97.9 % with ten pairs and 75 % with three. Processor time in % of a core, of the victim's threads and of \
             all nodes' together; `answer` is within what the victim's dataplane thread answers 99 % of the time.\n"
        );
        println!(
            "| attack | sent/s | data | hs | cast | all nodes (base) | RSS MB | delivered | p50 ms | p99 ms | p50 change % | p99 change % | queue age ms | answer ms (base) | missed |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
        Self { rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, report: &mut Report, name: &str, found: &Found) {
        let verdict = judge(found);
        let missed: Vec<_> = TARGETS
            .iter()
            .zip(verdict.found)
            .filter(|((_, most), found)| found > most)
            .map(|((target, most), found)| format!("{target}: {found:.1} > {most}"))
            .collect();
        let of = |of: &dyn Fn(&Run) -> f64| median(&found.attacked, of);
        let base = |of: &dyn Fn(&Run) -> f64| median(&found.base, of);
        let sent: usize = found.attacked.iter().map(|run| run.traffic.sent).sum();
        let [data, hs, cast] = [0, 1, 2].map(|thread| of(&|run| run.threads[thread]));
        println!(
            "| {} | {:.0} | {data:.1} | {hs:.1} | {cast:.1} | {:.1} ({:.1}) | {:.0} | {}/{sent} | {:.2} | {:.2} | {} | {} | {:.2} | {:.2} ({:.2}) | {} |",
            name.trim_start_matches("attack/"),
            of(&|run| run.rate),
            of(&|run| run.cluster),
            base(&|run| run.cluster),
            of(&|run| run.resident) * 1e-6,
            sent - verdict.found[0] as usize,
            of(&|run| run.traffic.p50),
            of(&|run| run.traffic.p99),
            interval(&verdict.p50),
            interval(&verdict.p99),
            verdict.found[5],
            of(&|run| run.traffic.answer_p99),
            base(&|run| run.traffic.answer_p99),
            if missed.is_empty() {
                "none".to_owned()
            } else {
                missed.join("; ")
            },
        );
        if !found.discards.is_empty() {
            eprintln!("    {name}: {:?}", found.discards);
        }
        record(report, name, found, &verdict);
        self.rows.push(json(name, found, &verdict, missed.is_empty()));
    }

    /// Prints the JSON.
    pub(crate) fn finish(self) {
        println!("\njson [{}]", self.rows.join(","));
    }
}

fn interval(found: &Paired) -> String {
    format!("{:+.2} [{:+.2}, {:+.2}]", found.median, found.low, found.high)
}

fn record(report: &mut Report, name: &str, found: &Found, verdict: &Verdict) {
    for (thread, of) in THREADS.iter().zip(0..) {
        let share = median(&found.attacked, |run| run.threads[of]);
        report.record(&format!("{name}/cpu-{thread}"), share, Unit::Percent);
    }
    let [lost, _, _, resident, _, age] = verdict.found;
    for (what, value, unit) in [
        ("sent", median(&found.attacked, |run| run.rate), Unit::PerSecond),
        ("lost", lost, Unit::Count),
        (
            "p50",
            median(&found.attacked, |run| run.traffic.p50),
            Unit::Milliseconds,
        ),
        (
            "p99",
            median(&found.attacked, |run| run.traffic.p99),
            Unit::Milliseconds,
        ),
        ("cpu-all-nodes", verdict.cluster.median, Unit::Percent),
        ("resident", resident, Unit::Percent),
        ("queue-age", age, Unit::Milliseconds),
    ] {
        report.record(&format!("{name}/{what}"), value, unit);
    }
    report.ratio(&format!("{name}/p50"), "idle", 1.0 + verdict.p50.median / 100.0);
    report.ratio(&format!("{name}/p99"), "idle", 1.0 + verdict.p99.median / 100.0);
}

fn json(name: &str, found: &Found, verdict: &Verdict, is_met: bool) -> String {
    let pairs = |of: &dyn Fn(&Run) -> f64| {
        let both = found.base.iter().zip(&found.attacked);
        let values: Vec<_> = both
            .map(|(base, attacked)| format!("[{:.3},{:.3}]", of(base), of(attacked)))
            .collect();
        format!("[{}]", values.join(","))
    };
    let discards: Vec<_> = found
        .discards
        .iter()
        .map(|(label, count)| format!("\"{label}\":{count}"))
        .collect();
    format!(
        "{{\"name\":\"{name}\",\"met\":{is_met},\"lost\":{},\"p50\":{},\"p99\":{},\"cluster_cpu\":{},\"data_cpu\":{},\
         \"handshake_cpu\":{},\"raptorcast_cpu\":{},\"resident\":{},\"queue_age\":{},\"discards\":{{{}}}}}",
        verdict.found[0],
        pairs(&|run| run.traffic.p50),
        pairs(&|run| run.traffic.p99),
        pairs(&|run| run.cluster),
        pairs(&|run| run.threads[0]),
        pairs(&|run| run.threads[1]),
        pairs(&|run| run.threads[2]),
        pairs(&|run| run.resident),
        pairs(&|run| run.traffic.queue_age),
        discards.join(",")
    )
}
