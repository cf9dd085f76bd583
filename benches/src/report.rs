//! What a bench target found, and the lines that say so.

use std::fmt;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Gigabits (10^9) of payload a second.
    GigabitsPerSecond,
    /// Operations a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// A plain number.
    Count,
    /// Percent.
    Percent,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::GigabitsPerSecond => "Gbit/s",
            Unit::PerSecond => "1/s",
            Unit::Bytes => "B",
            Unit::Count => "count",
            Unit::Percent => "%",
        })
    }
}

/// Collects the figures of one target; prints them when it is dropped or [`Report::finish`]ed.
#[derive(Debug)]
pub struct Report {
    is_quick: bool,
    filter: Option<String>,
    lines: Vec<String>,
}

impl Report {
    /// Reads `--quick` (fewer rounds) and an optional filter on names from the command line.
    pub fn from_args() -> Self {
        let mut report = Report {
            is_quick: false,
            filter: None,
            lines: Vec::new(),
        };
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--quick" => report.is_quick = true,
                // cargo passes this to every bench target.
                "--bench" => {}
                name if !name.starts_with('-') => report.filter = Some(name.to_owned()),
                other => eprintln!("ignored: {other} (known: --quick, and a part of a name)"),
            }
        }
        report
    }

    /// Whether fewer rounds will do.
    pub fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// Whether the job of this name is to run.
    pub fn wants(&self, name: &str) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| name.contains(filter.as_str()))
    }

    /// Adds a figure of ours.
    pub fn figure(&mut self, name: &str, value: f64, unit: Unit) {
        println!("  {name:<44} {value:>12.3} {unit}");
        self.record(name, value, unit);
    }

    /// Adds a figure of ours that is printed for people elsewhere.
    pub fn record(&mut self, name: &str, value: f64, unit: Unit) {
        self.lines.push(format!("figure {name} {value:.3} {unit}"));
    }

    /// Adds ours divided by a peer's.
    pub fn ratio(&mut self, name: &str, peer: &str, value: f64) {
        self.lines.push(format!("ratio {name} {peer} {value:.3}"));
    }

    /// Prints the lines for scripts.
    pub fn finish(self) {
        println!();
        for line in &self.lines {
            println!("{line}");
        }
    }
}
