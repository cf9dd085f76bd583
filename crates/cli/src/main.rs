//! The `falconet` binary: see `falconet --help`.

mod args;
mod cluster;
mod exit;
mod keygen;
mod node;
mod output;
mod output_file;
mod payload;
mod sim;
mod statistics;

use std::process::ExitCode;

use args::{Command, Refusal};
use exit::Failure;

fn main() -> ExitCode {
    let command = match args::parse(std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(Refusal::Shown(text)) => {
            output::say(text.trim_end());
            return ExitCode::SUCCESS;
        }
        Err(Refusal::NoCommand(help)) => {
            output::remark(help.trim_end());
            return ExitCode::from(2);
        }
        Err(Refusal::Wrong(failure)) => return end(&failure),
    };
    let result = match command {
        Command::Cluster(args) => cluster::cluster(args),
        Command::Keygen(args) => keygen::keygen(&args),
        Command::Node(args) => node::node(&args),
        Command::Sim(args) => sim::sim(args),
    };
    result.map_or_else(|failure| end(&failure), |()| ExitCode::SUCCESS)
}

fn end(failure: &Failure) -> ExitCode {
    output::remark(format_args!("error: {failure}"));
    failure.code()
}
