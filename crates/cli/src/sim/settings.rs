//! What is simulated, checked and complete.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use falconet_crypto::Suite;
use falconet_sim::latency::Schedule;
use falconet_sim::{Costs, LaneUse, Loss, Topology, WorldConfig};

use crate::args::{CostsChoice, LatencyArgs, SuiteChoice, TopologyChoice};
use crate::cluster::{Lane, grouped};
use crate::exit::Failure;

/// Buckets of the published geometry.
const BUCKETS: usize = 10;
/// The longest file that is read as a matrix or a table of costs.
const LONGEST_FILE: u64 = 1 << 20;

/// A simulation that can be run.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) seeds: std::ops::Range<u64>,
    pub(crate) schedule: Schedule,
    base: WorldConfig,
    place: String,
}

impl Settings {
    /// # Errors
    /// Exit code 2 names the flag that is wrong.
    pub(crate) fn from_args(args: LatencyArgs) -> Result<Self, Failure> {
        let (topology, place) = topology(&args)?;
        let mut lanes = Vec::new();
        lanes.extend(args.lanes.auth.then_some(Lane::Auth));
        lanes.extend(args.lanes.plain.then_some(Lane::Plain));
        let last = args.seed.checked_add(args.seeds);
        let last = last.ok_or_else(|| Failure::usage("--seed and --seeds together go past 2^64"))?;
        Ok(Self {
            lanes,
            seeds: args.seed..last,
            schedule: Schedule {
                messages: args.messages,
                interval: args.interval,
                payload_len: args.size,
            },
            base: world(&args, topology)?,
            place,
        })
    }

    /// The network of one lane and seed.
    pub(crate) fn world(&self, lane: Lane, seed: u64) -> WorldConfig {
        let lanes = match lane {
            Lane::Plain => LaneUse::Plain,
            Lane::Auth | Lane::Mixed => LaneUse::Auth,
        };
        let mut world = self.base.clone();
        world.lanes.fill(lanes);
        world.seed = seed;
        world
    }

    /// The machine whose costs are charged.
    pub(crate) fn machine(&self) -> &str {
        &self.base.costs.machine
    }

    /// Whether this is the experiment that the published table shows.
    pub(crate) fn is_published(&self) -> bool {
        self.base.topology == Topology::buckets(100, BUCKETS, Duration::from_millis(20))
            && self.schedule.payload_len == 2_000_000
            && self.base.link.rate == 1_000_000_000
            && self.base.link.loss == Loss::None
    }
}

fn world(args: &LatencyArgs, topology: Topology) -> Result<WorldConfig, Failure> {
    let mut world = WorldConfig::new(topology, LaneUse::Auth, costs(&args.costs)?, args.seed, base());
    world.link.rate = args.rate;
    world.link.jitter = args.jitter;
    if args.loss > 0.0 {
        world.link.loss = Loss::Independent(args.loss);
    }
    world.suite = match args.suite {
        SuiteChoice::ChaCha => Suite::ChaCha20Poly1305,
        SuiteChoice::Aes => Suite::Aes256Gcm,
    };
    world.redundancy = falconet_sim::Redundancy::from_hundredths(args.redundancy)
        .ok_or_else(|| Failure::usage("--redundancy is not what the protocol can carry"))?;
    world.shared_cores = args.shared_cores;
    world.model_crypto = args.model_crypto;
    Ok(world)
}

/// The instant that virtual time counts from; which one does not matter.
fn base() -> Instant {
    Instant::now()
}

/// The topology, and in words where the nodes are.
fn topology(args: &LatencyArgs) -> Result<(Topology, String), Failure> {
    if args.topology != TopologyChoice::Buckets && args.buckets.is_some() {
        return Err(Failure::usage("--buckets is for --topology buckets alone"));
    }
    let wrong =
        |error| Failure::wrong_value("--topology", &args.topology, format_args!("a matrix ({error})"));
    match &args.topology {
        TopologyChoice::Buckets => {
            let buckets = args.buckets.unwrap_or(BUCKETS.min(args.nodes));
            if buckets > args.nodes {
                let allowed = format_args!("at most --nodes, {}", args.nodes);
                return Err(Failure::wrong_value("--buckets", buckets, allowed));
            }
            let step = Duration::from_millis(args.bucket_ms);
            let place = format!("{buckets} buckets, {} ms apart", args.bucket_ms);
            Ok((Topology::buckets(args.nodes, buckets, step), place))
        }
        TopologyChoice::Regions => {
            let topology = Topology::regions(args.nodes).map_err(wrong)?;
            Ok((topology, "10 cloud regions".to_owned()))
        }
        TopologyChoice::File(path) => {
            let topology = Topology::from_csv(&read("--topology", path)?, args.nodes).map_err(wrong)?;
            let place = format!("{} sites of {}", topology.sites().len(), path.display());
            Ok((topology, place))
        }
    }
}

fn costs(choice: &CostsChoice) -> Result<Costs, Failure> {
    let (costs, name) = match choice {
        CostsChoice::Reference => (Costs::reference(), "reference".to_owned()),
        CostsChoice::Zen5 => (Costs::zen5(), "zen5".to_owned()),
        CostsChoice::File(path) => (
            Costs::from_json(&read("--costs", path)?),
            path.display().to_string(),
        ),
    };
    costs.map_err(|error| Failure::wrong_value("--costs", name, format_args!("a table of costs ({error})")))
}

/// The text of a regular file of at most [`LONGEST_FILE`] bytes: a device or a pipe might have no end.
fn read(flag: &str, path: &Path) -> Result<String, Failure> {
    let refused = |why: String| {
        let allowed = format_args!("a readable file of at most 1 MiB ({why})");
        Failure::wrong_value(flag, path.display(), allowed)
    };
    let metadata = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if !metadata.is_file() {
        return Err(refused("it is no regular file".to_owned()));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| refused(error.to_string()))?;
    let read = file.take(LONGEST_FILE + 1).read_to_string(&mut text);
    match read.map_err(|error| refused(error.to_string()))? as u64 {
        0..=LONGEST_FILE => Ok(text),
        _ => Err(refused("it is longer".to_owned())),
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Schedule {
            messages,
            interval,
            payload_len,
        } = self.schedule;
        let world = &self.base;
        write!(
            f,
            "{} nodes in {}; {} bytes every {interval:?}, {messages} payloads, seeds {} to {}\n\
             {} Mbit/s a node, redundancy {}; costs: {}",
            world.topology.nodes(),
            self.place,
            grouped(payload_len as u64),
            self.seeds.start,
            self.seeds.end - 1,
            world.link.rate / 1_000_000,
            f64::from(world.redundancy.hundredths()) / 100.0,
            self.machine(),
        )?;
        if let Loss::Independent(share) = world.link.loss {
            write!(f, "; {} % lost", share * 100.0)?;
        }
        if let Some(cores) = world.shared_cores {
            write!(f, "; all nodes share {cores} cores")?;
        }
        if world.model_crypto {
            f.write_str("; ciphers charged, not computed")?;
        }
        Ok(())
    }
}
