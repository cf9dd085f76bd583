//! Latency by site: a row a site, the darker the later.

use std::fmt::Write;

use falconet_sim::latency::Run;
use falconet_sim::statistics::{PERCENTS, nearest_rank};

use super::escaped;

/// The table.
pub(super) fn chart(run: &Run) -> String {
    let places: std::collections::BTreeSet<_> = run.samples.iter().map(|sample| sample.site).collect();
    let rows: Vec<_> = places
        .iter()
        .zip(&run.sites)
        .map(|(site, name)| (name, sorted(run, *site)))
        .collect();
    let latest = rows
        .iter()
        .filter_map(|(_, latencies)| latencies.last())
        .copied()
        .fold(1.0, f64::max);
    let mut table = String::from("<div class=\"scroll\">\n<table>\n<tr><th>ms</th><th>min</th>");
    for percent in PERCENTS {
        write!(table, "<th>p{percent}</th>").ok();
    }
    table += "<th>max</th></tr>\n";
    for (name, latencies) in rows {
        write!(table, "<tr><th>{}</th>", escaped(name)).ok();
        let (first, last) = (latencies.first().copied(), latencies.last().copied());
        let percentiles = PERCENTS.map(|percent| Some(nearest_rank(&latencies, percent)));
        for value in [first].into_iter().chain(percentiles).chain([last]).flatten() {
            let shade = 0.75 * (value / latest).powi(2);
            write!(
                table,
                "<td style=\"background:rgb(var(--heat) / {shade:.2})\">{value:.1}</td>"
            )
            .ok();
        }
        table += "</tr>\n";
    }
    table + "</table>\n</div>\n"
}

fn sorted(run: &Run, site: usize) -> Vec<f64> {
    let samples = run.samples.iter().filter(|sample| sample.site == site);
    let mut latencies: Vec<_> = samples.map(|sample| sample.latency.as_secs_f64() * 1e3).collect();
    latencies.sort_unstable_by(f64::total_cmp);
    latencies
}
