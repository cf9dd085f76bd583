//! `falconet node`: one node, as a file describes it, until it is told to stop.
//!
//! ```text
//! config (TOML) -> setup (checked) -> run: deliveries, events, schedule, statistics, reloads
//!                                      \- event: one JSON object a line on stdout
//! ```

mod config;
mod event;
mod lead;
mod run;
mod setup;
mod signals;
mod text;

use tracing_subscriber::filter::LevelFilter;

use crate::args::NodeArgs;
use crate::exit::Failure;
use crate::output::say;
use config::{Config, LogLevel};
use setup::Setup;

/// Runs the node, or only checks its configuration.
///
/// # Errors
/// Exit code 2 if the configuration or something that it names is wrong, before anything is opened on the network; 1 if
/// the node cannot start. SIGINT and SIGTERM are a success.
pub(crate) fn node(args: &NodeArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    let setup = Setup::new(&config)?;
    if args.check {
        let validators = setup.validators.as_ref().map_or(0, |(_, members)| members.len());
        say(format_args!(
            "{}: right; {} with {} peers and {validators} validators",
            Failure::shown(&args.config.display().to_string()),
            setup.identity,
            setup.peers.len(),
        ));
        return Ok(());
    }
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(level(config.log))
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::run(format!("cannot start the async runtime: {error}")))?;
    runtime.block_on(run::run(&args.config, config, setup))
}

fn level(log: LogLevel) -> LevelFilter {
    match log {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}
