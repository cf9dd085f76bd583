//! Flags of `falconet sim`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::choice::{self, SuiteChoice};
use super::quantity::{self, NotAllowed};

/// A value that the simulator does not allow; [`super::usage`] says which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not allowed")]
pub(super) struct NotSimulated;

impl From<NotAllowed> for NotSimulated {
    fn from(_: NotAllowed) -> Self {
        Self
    }
}

/// What to simulate.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

/// What to simulate.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// How long a payload takes from one leader to everybody.
    ///
    /// Node 0 broadcasts; receivers in its own bucket are left out of the statistics, as in the published
    /// tables. Both lanes run on the same seeds. Exits with 1 if a payload arrived altered.
    #[command(after_help = LATENCY_EXAMPLES, verbatim_doc_comment)]
    Latency(Box<LatencyArgs>),
    /// Whether sessions and payloads survive hours of trouble.
    ///
    /// Ten nodes in five buckets under loss, partitions, outages, restarts, clocks set back, rekeys and freezes. Exits
    /// with 1 if something that must hold did not, and says how to run that seed again.
    #[command(verbatim_doc_comment)]
    Chaos(ChaosArgs),
}

const LATENCY_EXAMPLES: &str = "\
Examples:
  falconet sim latency                                       the published experiment, both lanes
  falconet sim latency --topology regions --report r.html    ten real cloud regions, as a page
  falconet sim latency --nodes 200 --model-crypto            larger, without ciphers
  falconet sim latency --loss 0.1 --seeds 5 --json out.json  10 % loss, five seeds

Latency counts from before the leader encodes to delivery at a receiver. Percentiles are nearest-rank. What
follows a figure after +- is half of its 95 % confidence interval over payloads.";

/// Flags of `falconet sim latency`.
#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    /// Nodes of the network; node 0 leads.
    #[arg(long, value_name = "N", default_value = "100", value_parser = nodes, allow_hyphen_values = true)]
    pub(crate) nodes: usize,
    /// Where the nodes are: buckets in a row, ten cloud regions, or the sites of a CSV file.
    #[arg(long, value_name = "WHERE", default_value = "buckets", value_parser = topology)]
    pub(crate) topology: TopologyChoice,
    /// Buckets the nodes are spread over [default: 10, or --nodes if fewer].
    #[arg(long, value_name = "B", value_parser = buckets, allow_hyphen_values = true)]
    pub(crate) buckets: Option<usize>,
    /// One-way delay between neighbouring buckets, in milliseconds.
    #[arg(long, value_name = "M", default_value = "20", value_parser = bucket_ms, allow_hyphen_values = true)]
    pub(crate) bucket_ms: u64,
    /// Bytes of a payload.
    #[arg(long, value_name = "SIZE", default_value = "2MB", value_parser = size, allow_hyphen_values = true)]
    pub(crate) size: usize,
    /// Time from one broadcast to the next.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval, allow_hyphen_values = true)]
    pub(crate) interval: Duration,
    /// Broadcasts of each run.
    #[arg(long, value_name = "R", default_value = "30", value_parser = messages, allow_hyphen_values = true)]
    pub(crate) messages: u32,
    /// What a node sends and receives at most, in bits per second on the wire.
    #[arg(long, value_name = "RATE", default_value = "1Gbps", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) rate: u64,
    /// Lanes to run, on the same seeds.
    #[arg(long, value_name = "LANES", default_value = "auth,plain", value_parser = lanes, allow_hyphen_values = true)]
    pub(crate) lanes: SimLanes,
    /// Cipher suite of the authenticated lane.
    #[arg(long, value_name = "SUITE", default_value = "chacha", value_parser = suite, allow_hyphen_values = true)]
    pub(crate) suite: SuiteChoice,
    /// Symbols sent for each source symbol.
    #[arg(long, value_name = "R", default_value = "2.5", value_parser = redundancy, allow_hyphen_values = true)]
    pub(crate) redundancy: u16,
    /// Share of the datagrams that is lost on their way to each node.
    #[arg(long, value_name = "P", default_value = "0", value_parser = loss, allow_hyphen_values = true)]
    pub(crate) loss: f64,
    /// Delay that is added to each datagram, drawn evenly up to this.
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = jitter, allow_hyphen_values = true)]
    pub(crate) jitter: Duration,
    /// First seed.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
    /// Seeds, one run a lane each.
    #[arg(long, value_name = "S", default_value = "1", value_parser = seeds, allow_hyphen_values = true)]
    pub(crate) seeds: u64,
    /// Cost of every operation: this project's machine, a projection for a Zen 5 core, or a file.
    #[arg(long, value_name = "TABLE", default_value = "reference", value_parser = costs)]
    pub(crate) costs: CostsChoice,
    /// Have all nodes share this many cores [default: every thread has its own].
    #[arg(long, value_name = "N", value_parser = shared_cores, allow_hyphen_values = true)]
    pub(crate) shared_cores: Option<usize>,
    /// Charge the ciphers of sessions without doing their work.
    #[arg(long)]
    pub(crate) model_crypto: bool,
    /// Also write the report to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report to this file, as one self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// Flags of `falconet sim chaos`.
#[derive(Debug, Args)]
pub(crate) struct ChaosArgs {
    /// Virtual hours of each run.
    #[arg(long, value_name = "H", default_value = "1", value_parser = hours, allow_hyphen_values = true)]
    pub(crate) hours: u32,
    /// First seed.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
    /// Seeds, one run each.
    #[arg(long, value_name = "S", default_value = "1", value_parser = seeds, allow_hyphen_values = true)]
    pub(crate) seeds: u64,
}

/// Where the nodes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TopologyChoice {
    /// Buckets in a row.
    Buckets,
    /// The ten regions that ship.
    Regions,
    /// The sites of a file.
    File(PathBuf),
}

/// Whose costs are charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CostsChoice {
    /// The committed table of this project's machine.
    Reference,
    /// The committed table of the design's machine.
    Zen5,
    /// A table in a file.
    File(PathBuf),
}

/// Which lanes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimLanes {
    /// The authenticated lane.
    pub(crate) auth: bool,
    /// The plain lane.
    pub(crate) plain: bool,
}

impl fmt::Display for TopologyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buckets => f.write_str("buckets"),
            Self::Regions => f.write_str("regions"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

fn topology(text: &str) -> Result<TopologyChoice, NotSimulated> {
    Ok(match text {
        "" => return Err(NotSimulated),
        "buckets" => TopologyChoice::Buckets,
        "regions" => TopologyChoice::Regions,
        path => TopologyChoice::File(path.into()),
    })
}

fn costs(text: &str) -> Result<CostsChoice, NotSimulated> {
    Ok(match text {
        "" => return Err(NotSimulated),
        "reference" => CostsChoice::Reference,
        "zen5" => CostsChoice::Zen5,
        path => CostsChoice::File(path.into()),
    })
}

fn lanes(text: &str) -> Result<SimLanes, NotSimulated> {
    let (auth, plain) = match text {
        "auth" => (true, false),
        "plain" => (false, true),
        "auth,plain" | "plain,auth" | "both" => (true, true),
        _ => return Err(NotSimulated),
    };
    Ok(SimLanes { auth, plain })
}

fn rate(text: &str) -> Result<u64, NotSimulated> {
    match quantity::rate(text)? {
        quantity::RateLimit::BitsPerSecond(bits) => Ok(bits),
        quantity::RateLimit::Unlimited => Err(NotSimulated),
    }
}

macro_rules! simulated {
    ($($name:ident: $of:path => $type:ty;)*) => {
        $(fn $name(text: &str) -> Result<$type, NotSimulated> {
            Ok($of(text)?)
        })*
    };
}

simulated! {
    nodes: quantity::sim_nodes => usize;
    buckets: quantity::buckets => usize;
    bucket_ms: quantity::bucket_ms => u64;
    size: quantity::size => usize;
    interval: quantity::interval => Duration;
    messages: quantity::messages => u32;
    hours: quantity::hours => u32;
    suite: choice::suite => SuiteChoice;
    redundancy: quantity::redundancy => u16;
    loss: quantity::loss => f64;
    jitter: quantity::jitter => Duration;
    seed: quantity::seed => u64;
    seeds: quantity::seeds => u64;
    shared_cores: quantity::shared_cores => usize;
}
