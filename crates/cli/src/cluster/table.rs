//! The report as a table for people: a row a lane, at most 100 columns wide.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::plan::Lane;
use super::progress::describe_sessions;
use super::report::LaneReport;

/// Heading of a column, in two lines.
type Heading = (&'static str, &'static str);

const HEADINGS: [Heading; 16] = [
    ("", "lane"),
    ("", "count"),
    ("", "lost"),
    ("cor-", "rupt"),
    ("", "mean"),
    ("", "std"),
    ("", "p50"),
    ("", "p70"),
    ("", "p90"),
    ("", "p95"),
    ("", "p99"),
    ("", "max"),
    ("data-", "grams"),
    ("MB", "sent"),
    ("redun-", "dancy"),
    ("over-", "head"),
];

/// Columns of the latencies, over which their unit is written.
const LATENCIES: std::ops::Range<usize> = 4..12;

/// The table, and below it what does not fit into a row.
pub(crate) fn render(lanes: &BTreeMap<Lane, LaneReport>) -> String {
    let rows: Vec<_> = lanes.iter().map(|(lane, report)| row(*lane, report)).collect();
    let widths: Vec<_> = HEADINGS
        .iter()
        .enumerate()
        .map(|(column, (top, bottom))| {
            let cells = rows.iter().map(|row| row[column].len());
            cells.chain([top.len(), bottom.len()]).max().unwrap_or_default()
        })
        .collect();

    let mut text = String::new();
    line(&mut text, &widths, |column| HEADINGS[column].0);
    unit(&mut text, &widths);
    line(&mut text, &widths, |column| HEADINGS[column].1);
    let width = widths.iter().sum::<usize>() + widths.len() - 1;
    text += &format!("{}\n", "─".repeat(width));
    for row in &rows {
        line(&mut text, &widths, |column| &row[column]);
    }
    text.push('\n');
    for (lane, report) in lanes {
        notes(&mut text, *lane, report);
    }
    text.truncate(text.trim_end().len());
    text
}

/// `2000000` as `2,000,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn row(lane: Lane, report: &LaneReport) -> [String; HEADINGS.len()] {
    [
        lane.to_string(),
        report.count.to_string(),
        report.lost.to_string(),
        report.corrupt.to_string(),
        latency(report.mean_ms),
        latency(report.std_ms),
        latency(report.p50_ms),
        latency(report.p70_ms),
        latency(report.p90_ms),
        latency(report.p95_ms),
        latency(report.p99_ms),
        latency(report.max_ms),
        format!("{:.0}", report.datagrams_per_payload),
        significant(report.bytes_per_payload / 1e6),
        format!("{:.2}x", report.redundancy),
        format!("{:.0} B", report.overhead_bytes_per_datagram),
    ]
}

fn latency(milliseconds: Option<f64>) -> String {
    milliseconds.map_or_else(|| "-".to_owned(), significant)
}

/// Four digits where they mean something: `0.123`, `12.34`, `123.4`, `1234`.
fn significant(value: f64) -> String {
    match value {
        // The borders are where rounding would add a digit.
        _ if value < 9.9995 => format!("{value:.3}"),
        _ if value < 99.995 => format!("{value:.2}"),
        _ if value < 999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn line<'a>(text: &mut String, widths: &[usize], cell: impl Fn(usize) -> &'a str) {
    let start = text.len();
    for (column, width) in widths.iter().enumerate() {
        match column {
            0 => write!(text, "{:<width$}", cell(column)),
            _ => write!(text, " {:>width$}", cell(column)),
        }
        .ok();
    }
    text.truncate(start + text[start..].trim_end().len());
    text.push('\n');
}

/// Writes the unit of the latencies into the empty cells of the first heading line.
fn unit(text: &mut String, widths: &[usize]) {
    let before: usize = widths[..LATENCIES.start].iter().map(|width| width + 1).sum();
    let span = widths[LATENCIES].iter().sum::<usize>() + LATENCIES.len() - 1;
    let label = format!("{:─^span$}", " latency in ms ");
    text.replace_range(before..before + span, &label);
}

/// What happened that a reader of the row should know.
fn notes(text: &mut String, lane: Lane, report: &LaneReport) {
    let all = report.cluster_bytes_per_payload / 1e6;
    let mut note = |what: String| writeln!(text, "{lane:<5}  {what}").ok();
    let connected_after = Duration::from_secs_f64(report.connect_ms / 1e3);
    note(format!(
        "{}; all nodes together sent {} datagrams, {} MB a payload",
        describe_sessions(report.sessions, connected_after),
        grouped(report.cluster_datagrams_per_payload.round() as u64),
        significant(all),
    ));
    if report.stretched_rounds > 0 {
        note(format!(
            "{} of {} rounds took longer than the interval, so the next ones began later",
            report.stretched_rounds, report.rounds
        ));
    }
    if report.late > 0 {
        note(format!(
            "{} payloads arrived after their round was given up; they count as lost",
            report.late
        ));
    }
    if report.dropped > 0 {
        note(format!(
            "{} datagrams of the leader never left: a queue was full",
            grouped(report.dropped)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(ms: f64, count: u64) -> LaneReport {
        let ms = Some(ms);
        LaneReport {
            count,
            mean_ms: ms,
            std_ms: ms,
            p50_ms: ms,
            p70_ms: ms,
            p90_ms: ms,
            p95_ms: ms,
            p99_ms: ms,
            max_ms: ms,
            datagrams_per_payload: 4_609.0,
            bytes_per_payload: 6_300_000.0,
            redundancy: 2.5,
            overhead_bytes_per_datagram: 352.0,
            ..LaneReport::default()
        }
    }

    #[test]
    fn headings_stand_over_their_columns_and_a_row_a_lane_below() {
        let table = render(&BTreeMap::from([
            (Lane::Auth, lane(12.345, 90)),
            (Lane::Plain, lane(9.9, 90)),
        ]));
        let lines: Vec<_> = table
            .lines()
            .map(|line| line.chars().collect::<Vec<_>>())
            .collect();
        let ends = |line: &[char]| {
            let is_end = |at: &usize| line[*at] != ' ' && line.get(at + 1).is_none_or(|next| *next == ' ');
            (0..line.len()).filter(is_end).collect::<Vec<_>>()
        };
        // "352 B" is the one cell with a blank inside.
        assert_eq!(ends(&lines[1])[1..15], ends(&lines[3])[1..15], "{table}");
        assert!(
            table.lines().nth(3).unwrap().starts_with("auth     90"),
            "{table}"
        );
        assert!(
            table.lines().nth(4).unwrap().starts_with("plain    90"),
            "{table}"
        );
    }

    #[test]
    fn the_longest_possible_run_stays_within_100_columns() {
        let mut extreme = lane(99_999.0, 99_000_000);
        (extreme.lost, extreme.stretched_rounds, extreme.late) = (9_999, 1_000_000, 99_000_000);
        extreme.datagrams_per_payload = 32_768.0;
        let table = render(&BTreeMap::from([(Lane::Mixed, extreme)]));
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    }

    #[test]
    fn a_lane_without_arrivals_has_dashes() {
        let table = render(&BTreeMap::from([(Lane::Plain, LaneReport::default())]));
        assert_eq!(table.lines().nth(3).unwrap().matches(" - ").count(), 8, "{table}");
    }

    #[test]
    fn numbers_keep_four_digits_and_groups_of_three() {
        for (value, text) in [
            (0.1234, "0.123"),
            (9.9996, "10.00"),
            (12.345, "12.35"),
            (99.996, "100.0"),
            (999.96, "1000"),
        ] {
            assert_eq!(significant(value), text);
        }
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (2_000_000, "2,000,000")] {
            assert_eq!(grouped(number), text);
        }
    }
}
