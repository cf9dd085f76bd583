//! The share of receivers that have the payload, over time, with the published percentiles beside.

use std::fmt::Write;

use falconet_sim::statistics::PERCENTS;

use super::{axis_end, class};
use crate::sim::published;
use crate::sim::report::Report;
use crate::sim::runs::LaneRun;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 34.0;
/// Points of a curve: more than a screen shows.
const POINTS: usize = 400;

/// The chart and its legend.
pub(super) fn chart(report: &Report, lanes: &[LaneRun]) -> String {
    let ours = lanes
        .iter()
        .flat_map(|lane| &lane.run.samples)
        .map(|sample| sample.latency.as_secs_f64() * 1e3);
    let theirs = published::ROWS.iter().flat_map(|row| row.percentiles);
    let theirs = theirs.filter(|_| report.is_published_geometry);
    let scale = Scale {
        end: axis_end(ours.chain(theirs).fold(1.0, f64::max)),
    };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"distribution of latencies\">\n"
    );
    scale.grid(&mut svg);
    let mut legend = String::from("<ul class=\"legend\">\n");
    for lane in lanes {
        curve(&mut svg, &scale, lane);
        entry(&mut legend, &class(lane.lane), &lane.lane.to_string());
    }
    if report.is_published_geometry {
        for row in &published::ROWS {
            let points: Vec<_> = row
                .percentiles
                .iter()
                .zip(PERCENTS)
                .map(|(ms, p)| (*ms, p as f64 / 100.0))
                .collect();
            scale.path(&mut svg, "published", &points);
            for (ms, share) in points {
                writeln!(
                    svg,
                    "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                    scale.x(ms),
                    scale.y(share)
                )
                .ok();
            }
        }
        entry(&mut legend, "published", "published, p50 to p99");
    }
    format!("{legend}</ul>\n<div class=\"scroll\">\n{svg}</svg>\n</div>\n")
}

fn curve(svg: &mut String, scale: &Scale, lane: &LaneRun) {
    let mut sorted: Vec<_> = lane
        .run
        .samples
        .iter()
        .map(|sample| sample.latency.as_secs_f64() * 1e3)
        .collect();
    sorted.sort_unstable_by(f64::total_cmp);
    // What was lost never comes: the curve ends below 1.
    let all = sorted.len() as f64 + (lane.run.lost + lane.run.corrupt) as f64;
    let step = (sorted.len() / POINTS).max(1);
    let last = sorted.len().saturating_sub(1);
    let places = (0..sorted.len()).step_by(step).chain([last]);
    let points: Vec<_> = places
        .filter_map(|place| Some((*sorted.get(place)?, (place + 1) as f64 / all)))
        .collect();
    scale.path(svg, &class(lane.lane), &points);
}

fn entry(legend: &mut String, class: &str, text: &str) {
    writeln!(
        legend,
        "<li><svg viewBox=\"0 0 22 10\"><path class=\"curve {class}\" d=\"M0 5H22\"/></svg>{text}</li>"
    )
    .ok();
}

struct Scale {
    end: f64,
}

impl Scale {
    fn x(&self, ms: f64) -> f64 {
        LEFT + (WIDTH - LEFT - 10.0) * ms / self.end
    }

    fn y(&self, share: f64) -> f64 {
        10.0 + (HEIGHT - BOTTOM - 10.0) * (1.0 - share)
    }

    fn path(&self, svg: &mut String, class: &str, points: &[(f64, f64)]) {
        write!(svg, "<path class=\"curve {class}\" d=\"").ok();
        for (place, (ms, share)) in points.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            write!(svg, "{command}{:.1} {:.1}", self.x(*ms), self.y(*share)).ok();
        }
        *svg += "\"/>\n";
    }

    fn grid(&self, svg: &mut String) {
        for percent in [0, 25, 50, 75, 100] {
            let y = self.y(f64::from(percent) / 100.0);
            writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>",
                WIDTH - 10.0,
                LEFT - 6.0,
                y + 4.0
            )
            .ok();
        }
        for step in 0..=5 {
            let ms = self.end * f64::from(step) / 5.0;
            let unit = if step == 5 { " ms" } else { "" };
            let anchor = if step == 5 { "end" } else { "middle" };
            writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{ms:.0}{unit}</text>",
                self.x(ms),
                HEIGHT - 12.0
            )
            .ok();
        }
    }
}
