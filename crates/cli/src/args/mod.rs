//! The command line: what is accepted, and one line for everything that is not.
//!
//! Flags are declared once, with `clap`; what a flag allows is declared once, in [`allowed`], and is
//! shown both by `--help` and by the error for a wrong value.

mod allowed;
mod choice;
mod quantity;
mod sim;
mod usage;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use allowed::{MAX_ONE_WAY_DELAY, of as allowed};
pub(crate) use choice::{Lanes, SuiteChoice};
pub(crate) use quantity::{NotAllowed, RateLimit, interval, rate, size};
pub(crate) use sim::{ChaosArgs, CostsChoice, LatencyArgs, SimArgs, SimCommand, TopologyChoice};

use crate::exit::Failure;

/// Authenticated datagrams and broadcast of large payloads over UDP.
#[derive(Debug, Parser)]
#[command(
    name = "falconet",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 the run failed, 2 wrong use, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Broadcast a payload through a cluster of nodes on loopback, and measure it.
    ///
    /// Starts the nodes in this process, each with its own keys, sockets and threads, establishes
    /// sessions by handshake over the sockets, lets node 0 broadcast a payload each round, and checks
    /// the SHA-256 of what every other node received. Exits with 1 if any payload was lost or arrived
    /// altered.
    #[command(after_help = CLUSTER_EXAMPLES, verbatim_doc_comment)]
    Cluster(ClusterArgs),
    /// Make key files: an identity, a transport key, or both.
    ///
    /// Files are written with mode 0600 and never overwritten. The public key of each is printed, in a
    /// text form that carries a checksum. Without flags, identity.key and transport.key are made in the
    /// current directory; with --identity or --transport only what is named.
    #[command(after_help = KEYGEN_EXAMPLES, verbatim_doc_comment)]
    Keygen(KeygenArgs),
    /// Run one node, as a configuration file describes it, until SIGINT or SIGTERM.
    ///
    /// Prints what happens as one JSON object a line; docs/node.md has the keys of the file and the
    /// fields of every event. SIGHUP reads the file again: new peers, a later validator set, a changed record.
    #[command(after_help = NODE_EXAMPLES, verbatim_doc_comment)]
    Node(NodeArgs),
    /// Simulate a network in virtual time: the real engines, a modelled wire and modelled cores.
    ///
    /// One seed gives one run, with the same digest on every machine.
    #[command(verbatim_doc_comment)]
    Sim(SimArgs),
}

const CLUSTER_EXAMPLES: &str = "\
Examples:
  falconet cluster                                           10 nodes, 2 MB, both lanes
  falconet cluster --nodes 4 --payload photo.jpg             a real file
  falconet cluster --bucket-ms 20 --buckets 10 --rate 1Gbps  wide-area delays, paced
  falconet cluster --lanes mixed --loss 0.1 --json out.json  a network in migration, 10 % loss

Latency counts from before the leader encodes to delivery at a receiver. Percentiles are nearest-rank:
the smallest measured value that at least that share of the values does not exceed. Datagrams, bytes and
overhead are those of the leader; overhead is all of a datagram but its symbol: chunk header, signature,
Merkle proof and, on the authenticated lane, the 32 bytes that authenticate it.";

const KEYGEN_EXAMPLES: &str = "\
Examples:
  falconet keygen                                     identity.key and transport.key
  falconet keygen --transport next.key                only a transport key, to rotate to
  falconet keygen --disposable --transport test.key   a transport key for debugging";

const NODE_EXAMPLES: &str = "\
Examples:
  falconet node --config node.toml            run it
  falconet node --config node.toml --check    only say whether the file and the keys it names are right";

/// Flags of `falconet node`.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The configuration, in TOML; paths in it are relative to its folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Check the file and everything that it names, and start nothing.
    #[arg(long)]
    pub(crate) check: bool,
}

/// Flags of `falconet cluster`.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Nodes in the cluster; node 0 leads, all others receive.
    #[arg(long, value_name = "N", default_value = "10", value_parser = quantity::nodes, allow_hyphen_values = true)]
    pub(crate) nodes: usize,
    /// Broadcast this file each round.
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub(crate) payload: Option<PathBuf>,
    /// Broadcast pseudo-random bytes of this size, different each round [default: 2MB].
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, allow_hyphen_values = true)]
    pub(crate) size: Option<usize>,
    /// Rounds, one broadcast each.
    #[arg(long, value_name = "R", default_value = "10", value_parser = quantity::rounds, allow_hyphen_values = true)]
    pub(crate) rounds: u64,
    /// Time from one broadcast to the next; stretched while receivers still miss the last payload.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval, allow_hyphen_values = true)]
    pub(crate) interval: Duration,
    /// Lanes to run: `both` runs auth, then plain; in `mixed` every second node speaks only plain.
    #[arg(long, value_name = "LANES", default_value = "both", value_parser = choice::lanes, allow_hyphen_values = true)]
    pub(crate) lanes: Lanes,
    /// Cipher suite of the authenticated lane.
    #[arg(long, value_name = "SUITE", default_value = "chacha", value_parser = choice::suite, allow_hyphen_values = true)]
    pub(crate) suite: SuiteChoice,
    /// One-way delay between neighbouring buckets, in milliseconds.
    #[arg(long, value_name = "M", default_value = "0", value_parser = quantity::bucket_ms, allow_hyphen_values = true)]
    pub(crate) bucket_ms: u64,
    /// Buckets the nodes are spread over, as regions of the world [default: 10, or --nodes if fewer].
    #[arg(long, value_name = "B", value_parser = quantity::buckets, allow_hyphen_values = true)]
    pub(crate) buckets: Option<usize>,
    /// Share of the datagrams that is lost on their way to each node.
    #[arg(long, value_name = "P", default_value = "0", value_parser = quantity::loss, allow_hyphen_values = true)]
    pub(crate) loss: f64,
    /// Pace of each node's sending, in bits per second on the wire.
    #[arg(long, value_name = "RATE", default_value = "unlimited", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) rate: RateLimit,
    /// Seed of the generated payloads and of the emulated loss.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = quantity::seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
    /// Also write the report to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `falconet keygen`.
#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// Make an identity (Ed25519: names a validator and signs) in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Make a transport key (X25519: establishes sessions) in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) transport: Option<PathBuf>,
    /// Mark the transport key as disposable: one whose sessions may be revealed to a packet analyser.
    /// Never use it in production.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) disposable: bool,
}

/// How a command line ends, other than in a command to run.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Help or version was asked for: print this on standard output, exit with 0.
    Shown(String),
    /// No command was named: print the help on standard error, exit with 2.
    NoCommand(String),
    /// One line for standard error, exit with 2.
    Wrong(Failure),
}

/// Parses a whole command line, program name first.
///
/// # Errors
/// See [`Refusal`].
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Refusal> {
    let mut command = command();
    command
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| usage::refusal(&error))
}

/// The declared flags, with what each allows added to its help.
fn command() -> clap::Command {
    Cli::command().mut_subcommands(|subcommand| {
        if subcommand.get_name() == "sim" {
            subcommand.mut_subcommands(|simulation| with_allowed(simulation, allowed::of_sim))
        } else {
            with_allowed(subcommand, allowed::of)
        }
    })
}

fn with_allowed(command: clap::Command, allowed: fn(&str) -> Option<&'static str>) -> clap::Command {
    command.mut_args(|arg| match arg.get_long().and_then(allowed) {
        Some(allowed) => {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.help(format!("{help}\nAllowed: {allowed}"))
        }
        None => arg,
    })
}
