//! `falconet sim`: networks in virtual time.
//!
//! ```text
//! args -> settings -> runs (a seed and lane each, on all cores) -> report -> table, JSON, HTML
//! ```

mod chaos;
mod html;
mod progress;
mod published;
mod report;
mod runs;
mod settings;
mod table;
mod workers;

use crate::args::{LatencyArgs, SimArgs, SimCommand};
use crate::exit::Failure;
use crate::output::say;
use crate::output_file::OutputFile;
use report::Report;
use settings::Settings;

/// Runs the simulation that was asked for.
///
/// # Errors
/// Exit code 2 for a wrong value, before anything runs. Exit code 1 if a payload arrived altered.
pub(crate) fn sim(args: SimArgs) -> Result<(), Failure> {
    match args.command {
        SimCommand::Chaos(args) => chaos::chaos(&args),
        SimCommand::Latency(args) => latency(*args),
    }
}

fn latency(mut args: LatencyArgs) -> Result<(), Failure> {
    let (json, page) = (args.json.take(), args.report.take());
    let settings = Settings::from_args(args)?;
    let json = json.map(|path| OutputFile::open("--json", path)).transpose()?;
    let page = page.map(|path| OutputFile::open("--report", path)).transpose()?;

    say(format_args!("{settings}\n"));
    let lanes = runs::run_all(&settings)?;
    let report = Report::new(&settings, &lanes);
    say(table::render(&report));
    if let Some(json) = json {
        json.write_json(&report)?;
    }
    if let Some(page) = page {
        page.write(&html::page(&report, &lanes))?;
    }
    report.verdict()
}
