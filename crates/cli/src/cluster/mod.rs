//! `falconet cluster`: a real broadcast through real nodes on loopback, measured and checked.
//!
//! ```text
//! args -> settings -> run (a lane at a time) -> report -> table on stdout, JSON in a file
//!                      |   \- rounds: who got what when
//!                      \- nodes: start, introduce, connect, stop
//! ```

mod nodes;
mod plan;
mod progress;
mod report;
mod rounds;
mod run;
mod settings;
mod stop;
mod table;

pub(crate) use plan::Lane;
pub(crate) use table::grouped;

use crate::args::ClusterArgs;
use crate::exit::Failure;
use crate::output::say;
use crate::output_file::OutputFile;
use progress::Progress;
use report::{LaneReport, Report};
use settings::Settings;
use stop::Stop;

/// Runs the lanes that were asked for, one after the other, each in a cluster of its own.
///
/// # Errors
/// Exit code 2 for a wrong value, before any node starts. Exit code 1 if a cluster did not come up, a
/// payload was lost or arrived altered. Exit code 130 after SIGINT. What was measured until then is
/// reported in any case.
pub(crate) fn cluster(args: ClusterArgs) -> Result<(), Failure> {
    let json = args.json.clone();
    let settings = Settings::from_args(args)?;
    let json = json.map(|path| OutputFile::open("--json", path)).transpose()?;

    say(format_args!("{settings}\n"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::run(format!("cannot start the async runtime: {error}")))?;
    let (report, ended) = runtime.block_on(run_lanes(settings));

    if !report.lanes.is_empty() {
        say(table::render(&report.lanes));
        if let Some(json) = json {
            json.write_json(&report)?;
        }
    }
    ended.and_then(|()| report.verdict())
}

/// What was measured, and why it ended early if it did.
async fn run_lanes(settings: Settings) -> (Report, Result<(), Failure>) {
    let stop = Stop::on_interrupt();
    let mut report = Report::new(&settings);
    for &lane in settings.lanes.runs() {
        let progress = Progress::new(lane, settings.rounds);
        match run::run_lane(&settings, lane, &progress, stop.clone()).await {
            Ok(run) => {
                progress.finish();
                report.lanes.insert(lane, LaneReport::new(&run));
            }
            Err(failure) => {
                progress.finish();
                return (report, Err(failure));
            }
        }
        if stop.is_requested() {
            return (
                report,
                Err(Failure::interrupted(
                    "interrupted; the report covers the rounds until then",
                )),
            );
        }
    }
    (report, Ok(()))
}
