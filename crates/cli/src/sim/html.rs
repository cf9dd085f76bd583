//! The report as one self-contained page: no script, nothing to load, readable in light and dark.

mod cdf;
mod heat;
mod timeline;

use std::fmt::Write;

use falconet_sim::statistics::PERCENTS;

use super::published;
use super::report::Report;
use super::runs::LaneRun;
use crate::cluster::Lane;

const STYLE: &str = include_str!("html/style.css");

/// The page.
pub(crate) fn page(report: &Report, lanes: &[LaneRun]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Falconet: broadcast latency</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Broadcast latency</h1>\n<p>{}</p>\n",
        escaped(&report.description)
    );
    table(&mut page, report);
    section(
        &mut page,
        "How many receivers have the payload",
        &cdf::chart(report, lanes),
    );
    if let Some(first) = lanes.first() {
        let title = format!("By place, {} lane", first.lane);
        section(&mut page, &title, &heat::chart(&first.run));
        let title = format!("One payload at every receiver, {} lane", first.lane);
        section(&mut page, &title, &timeline::chart(&first.run));
    }
    page += "<h2>Runs</h2>\n<ul>\n";
    for (lane, lane_report) in &report.lanes {
        writeln!(
            page,
            "<li>{lane}: digest <code>{}</code></li>",
            lane_report.digest
        )
        .ok();
    }
    page += "</ul>\n</main>\n</body>\n</html>\n";
    page
}

fn section(page: &mut String, title: &str, content: &str) {
    write!(page, "<h2>{}</h2>\n{content}", escaped(title)).ok();
}

fn table(page: &mut String, report: &Report) {
    *page += "<div class=\"scroll\">\n<table>\n<tr><th>ms</th><th>count</th><th>lost</th><th>mean</th><th>std</th>";
    for percent in PERCENTS {
        write!(page, "<th>p{percent}</th>").ok();
    }
    *page += "</tr>\n";
    for (lane, lane_report) in &report.lanes {
        let Some(latency) = &lane_report.latency else {
            continue;
        };
        write!(
            page,
            "<tr class=\"{lane}\"><th>{lane}</th><td>{}</td><td>{}</td><td>{:.1} &plusmn; {:.1}</td><td>{:.1}</td>",
            latency.count,
            lane_report.lost + lane_report.corrupt,
            latency.mean.value,
            latency.mean.half_width,
            latency.std
        )
        .ok();
        let percentiles = latency.percentiles.map(|percentile| percentile.value);
        cells(page, &percentiles);
    }
    if report.is_published_geometry {
        for row in &published::ROWS {
            write!(
                page,
                "<tr class=\"published\"><th>published {}</th><td>{}</td><td></td><td>{:.1}</td><td>{:.1}</td>",
                row.lane, row.count, row.mean, row.std
            )
            .ok();
            cells(page, &row.percentiles);
        }
    }
    *page += "</table>\n</div>\n";
    if let Some(overhead) = &report.overhead {
        writeln!(
            page,
            "<p>Authentication adds {:.2} % at the mean and {:.2} % at p99.</p>",
            overhead.mean_percent.value, overhead.p99_percent.value
        )
        .ok();
    }
}

fn cells(page: &mut String, values: &[f64]) {
    for value in values {
        write!(page, "<td>{value:.1}</td>").ok();
    }
    *page += "</tr>\n";
}

/// The class that gives a lane its colour.
fn class(lane: Lane) -> String {
    lane.to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A round number that is at least `value`: an end for an axis.
fn axis_end(value: f64) -> f64 {
    let step = 10_f64.powf(value.max(1e-3).log10().floor()) / 2.0;
    (value / step).ceil() * step
}

#[cfg(test)]
mod tests;
