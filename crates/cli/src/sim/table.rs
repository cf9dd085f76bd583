//! The report as a table for people, at most 100 columns wide.

use std::fmt::Write;

use falconet_sim::statistics::{Estimate, PERCENTS, Summary};

use super::published;
use super::report::{LaneReport, Report};
use crate::cluster::{Lane, grouped};

/// The table, and below it where the time went.
pub(crate) fn render(report: &Report) -> String {
    let mut text = format!(
        "{:<16} {:>7} {:>5} {:>14} {:>6}{} {:>7}\n{}\n",
        "latency in ms",
        "count",
        "lost",
        "mean",
        "std",
        PERCENTS
            .map(|percent| format!(" {:>7}", format!("p{percent}")))
            .concat(),
        "max",
        "─".repeat(99),
    );
    for (lane, lane_report) in &report.lanes {
        row(&mut text, *lane, lane_report);
    }
    if report.is_published_geometry {
        published_rows(&mut text);
    }
    text.push('\n');
    if let Some(overhead) = &report.overhead {
        let (mean, p99) = (percent(overhead.mean_percent), percent(overhead.p99_percent));
        writeln!(text, "authentication adds {mean} at the mean, {p99} at p99\n").ok();
    }
    stages(&mut text, report);
    for (lane, lane_report) in &report.lanes {
        notes(&mut text, *lane, lane_report);
    }
    text.truncate(text.trim_end().len());
    text
}

fn row(text: &mut String, lane: Lane, report: &LaneReport) {
    let lost = report.lost + report.corrupt;
    let Some(latency) = &report.latency else {
        writeln!(text, "{lane:<16} {:>7} {lost:>5}", 0).ok();
        return;
    };
    let Summary {
        count,
        mean,
        std,
        percentiles,
        max,
        ..
    } = latency;
    write!(
        text,
        "{lane:<16} {count:>7} {lost:>5} {:>14} {std:>6.1}",
        with_interval(*mean)
    )
    .ok();
    for percentile in percentiles {
        write!(text, " {:>7.1}", percentile.value).ok();
    }
    writeln!(text, " {max:>7.1}").ok();
}

fn published_rows(text: &mut String) {
    for row in &published::ROWS {
        let name = format!("published {}", row.lane);
        write!(
            text,
            "{name:<16} {:>7} {:>5} {:>14.1} {:>6.1}",
            row.count, "", row.mean, row.std
        )
        .ok();
        for percentile in row.percentiles {
            write!(text, " {percentile:>7.1}").ok();
        }
        text.push('\n');
    }
}

fn stages(text: &mut String, report: &Report) {
    let summaries: Vec<_> = report
        .lanes
        .iter()
        .filter_map(|(lane, report)| Some((lane, report.latency.as_ref()?)))
        .collect();
    let Some((_, first)) = summaries.first() else {
        return;
    };
    write!(text, "{:<16}", "where it went").ok();
    for (name, _) in &first.stages {
        write!(
            text,
            " {:>9}",
            name.replace("leader egress", "egress")
                .replace("relay egress", "relay")
                .replace("first hop", "hop")
                .replace("propagation", "distance")
        )
        .ok();
    }
    text.push('\n');
    for (lane, summary) in summaries {
        write!(text, "{lane:<16}").ok();
        for (_, mean) in &summary.stages {
            write!(text, " {mean:>9.2}").ok();
        }
        text.push('\n');
    }
    text.push('\n');
}

fn notes(text: &mut String, lane: Lane, report: &LaneReport) {
    writeln!(
        text,
        "{lane}: a payload takes {} bytes of the leader's wire, {} of a receiver's, {:.0} ms of CPU in all; \
         digest {}",
        grouped(report.leader_bytes),
        grouped(report.relay_bytes),
        report.cpu_ms,
        report.digest,
    )
    .ok();
    if report.dropped > 0 {
        writeln!(
            text,
            "{lane}: {} datagrams found a queue full",
            grouped(report.dropped)
        )
        .ok();
    }
}

fn with_interval(estimate: Estimate) -> String {
    format!("{:.1} +-{:.1}", estimate.value, estimate.half_width)
}

fn percent(estimate: Estimate) -> String {
    format!("{:.2} % +-{:.2}", estimate.value, estimate.half_width)
}
