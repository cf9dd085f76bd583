//! Where the time of one payload went: a bar for every receiver, the first above.

use std::fmt::Write;

use falconet_sim::Stages;
use falconet_sim::latency::{Run, Sample};

use super::axis_end;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 60.0;
/// Receivers shown, evenly chosen if there are more.
const MOST: usize = 120;
const BAR: f64 = 5.0;

/// The chart and its legend.
pub(super) fn chart(run: &Run) -> String {
    let mut samples: Vec<&Sample> = run.samples.iter().filter(|sample| sample.message == 0).collect();
    samples.sort_unstable_by_key(|sample| (sample.latency, sample.node));
    let step = samples.len().div_ceil(MOST).max(1);
    let shown: Vec<_> = samples.iter().step_by(step).collect();
    let end = axis_end(
        shown
            .iter()
            .map(|sample| sample.latency.as_secs_f64() * 1e3)
            .fold(1.0, f64::max),
    );
    let height = BAR * shown.len() as f64 + 30.0;
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"stages by receiver\">\n");
    let scale = |ms: f64| (WIDTH - LEFT - 10.0) * ms / end;
    for (place, sample) in shown.iter().enumerate() {
        let y = BAR * place as f64;
        if place % 10 == 0 {
            let text = y + BAR + 3.0;
            writeln!(
                svg,
                "<text x=\"{}\" y=\"{text:.1}\" text-anchor=\"end\">node {}</text>",
                LEFT - 6.0,
                sample.node
            )
            .ok();
        }
        bar(&mut svg, sample, y, scale);
    }
    for step in 0..=5 {
        let ms = end * f64::from(step) / 5.0;
        let unit = if step == 5 { " ms" } else { "" };
        let anchor = if step == 5 { "end" } else { "middle" };
        let (x, y) = (LEFT + scale(ms), height - 8.0);
        writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{ms:.0}{unit}</text>"
        )
        .ok();
    }
    format!("{}<div class=\"scroll\">\n{svg}</svg>\n</div>\n", legend())
}

fn bar(svg: &mut String, sample: &Sample, y: f64, scale: impl Fn(f64) -> f64) {
    let mut x = LEFT;
    for (stage, (name, length)) in sample.stages.named().into_iter().enumerate() {
        let ms = length.as_secs_f64() * 1e3;
        let width = scale(ms);
        if width >= 0.05 {
            writeln!(
                svg,
                "<rect class=\"s{stage}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{:.1}\"><title>node {}: {name} {ms:.2} ms</title></rect>",
                BAR - 1.0,
                sample.node
            )
            .ok();
        }
        x += width;
    }
}

fn legend() -> String {
    let mut legend = String::from("<ul class=\"legend\">\n");
    for (stage, (name, _)) in Stages::default().named().into_iter().enumerate() {
        writeln!(legend, "<li><svg viewBox=\"0 0 22 10\"><rect class=\"s{stage}\" width=\"22\" height=\"10\"/></svg>{name}</li>").ok();
    }
    legend + "</ul>\n"
}
