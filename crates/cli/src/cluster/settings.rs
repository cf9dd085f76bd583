//! What a run is to do: the flags, checked against each other and completed.

use std::fmt;
use std::time::Duration;

use super::plan::Plan;
use super::table::grouped;
use crate::args::{ClusterArgs, Lanes, MAX_ONE_WAY_DELAY, RateLimit, SuiteChoice};
use crate::exit::Failure;
use crate::payload::PayloadSource;

/// Bytes of a generated payload unless `--size` says otherwise.
const DEFAULT_SIZE: usize = 2_000_000;
/// Buckets unless `--buckets` says otherwise (or there are fewer nodes).
const DEFAULT_BUCKETS: usize = 10;

/// Everything that determines a run.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) plan: Plan,
    pub(crate) payload: PayloadSource,
    pub(crate) rounds: u64,
    pub(crate) interval: Duration,
    pub(crate) lanes: Lanes,
    pub(crate) suite: SuiteChoice,
    pub(crate) buckets: usize,
    pub(crate) bucket_delay: Duration,
    pub(crate) loss: f64,
    pub(crate) rate: RateLimit,
    pub(crate) seed: u64,
}

impl Settings {
    /// Checks the rules that concern more than one flag, and reads the payload.
    ///
    /// # Errors
    /// Exit code 2 and the flag, its value and what is allowed.
    pub(crate) fn from_args(args: ClusterArgs) -> Result<Self, Failure> {
        let buckets = args.buckets.unwrap_or(DEFAULT_BUCKETS.min(args.nodes));
        if buckets > args.nodes {
            let allowed = format!(
                "a whole number from 1 to {}, as there are {} nodes",
                args.nodes, args.nodes
            );
            return Err(Failure::wrong_value("--buckets", buckets, allowed));
        }
        let bucket_delay = Duration::from_millis(args.bucket_ms);
        let plan = Plan::new(args.nodes, buckets, bucket_delay);
        if plan.longest_delay() > MAX_ONE_WAY_DELAY {
            let most = MAX_ONE_WAY_DELAY.as_millis() / (buckets as u128 - 1);
            let allowed = format!(
                "at most {most} with {buckets} buckets, so that no two nodes are more than {} s apart",
                MAX_ONE_WAY_DELAY.as_secs()
            );
            return Err(Failure::wrong_value("--bucket-ms", args.bucket_ms, allowed));
        }
        let payload = match args.payload {
            Some(path) => PayloadSource::load("--payload", path)?,
            None => PayloadSource::Generated {
                size: args.size.unwrap_or(DEFAULT_SIZE),
                seed: args.seed,
            },
        };
        Ok(Self {
            plan,
            payload,
            rounds: args.rounds,
            interval: args.interval,
            lanes: args.lanes,
            suite: args.suite,
            buckets,
            bucket_delay,
            loss: args.loss,
            rate: args.rate,
            seed: args.seed,
        })
    }

    /// How long a round waits for its receivers past its interval: machines with few cores cannot carry
    /// a hundred nodes each second, and a slow round is not a lost one.
    pub(crate) fn drain_limit(&self) -> Duration {
        (self.interval * 10).max(Duration::from_secs(10))
    }
}

/// The heading of a run's output, a few lines without a line break at the end.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.plan.len();
        writeln!(
            f,
            "falconet cluster: {nodes} nodes on loopback, node 0 leads, the others receive"
        )?;
        let size = grouped(self.payload.len() as u64);
        match &self.payload {
            PayloadSource::File { path, .. } => {
                writeln!(f, "  payload  {size} bytes from {}", path.display())?
            }
            PayloadSource::Generated { seed, .. } => {
                writeln!(f, "  payload  {size} pseudo-random bytes, seed {seed}")?;
            }
        }
        writeln!(f, "  rounds   {}, one every {:?}", self.rounds, self.interval)?;
        write!(f, "  lanes    {}", self.lanes)?;
        if self.lanes != Lanes::Plain {
            write!(f, ", suite {}", self.suite)?;
        }
        write!(f, "\n  links    ")?;
        if self.bucket_delay.is_zero() {
            write!(f, "no added delay")?;
        } else {
            let longest = self.plan.longest_delay();
            write!(
                f,
                "{} buckets {:?} apart (longest one way {longest:?})",
                self.buckets, self.bucket_delay
            )?;
        }
        write!(f, ", loss {}, rate {}", self.loss, self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, parse};

    fn settings(flags: &str) -> Result<Settings, Failure> {
        let words = ["falconet", "cluster"]
            .into_iter()
            .chain(flags.split_whitespace());
        let Command::Cluster(args) = parse(words.map(Into::into)).unwrap().command else {
            panic!()
        };
        Settings::from_args(args)
    }

    fn refused(flags: &str) -> String {
        settings(flags).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_ten_nodes_two_million_bytes_and_ten_buckets() {
        let settings = settings("").unwrap();
        assert_eq!(
            (settings.plan.len(), settings.payload.len(), settings.buckets),
            (10, 2_000_000, 10)
        );
        assert_eq!(settings.drain_limit(), Duration::from_secs(10));
    }

    #[test]
    fn buckets_default_to_the_nodes_if_those_are_fewer_and_may_not_exceed_them() {
        assert_eq!(settings("--nodes 3").unwrap().buckets, 3);
        let error = refused("--nodes 3 --buckets 4");
        assert_eq!(
            error,
            "--buckets 4 is not allowed; allowed: a whole number from 1 to 3, as there are 3 nodes"
        );
    }

    #[test]
    fn no_two_nodes_may_be_further_apart_than_a_handshake_bears() {
        assert!(settings("--bucket-ms 222").is_ok());
        assert!(
            refused("--bucket-ms 223").starts_with("--bucket-ms 223 is not allowed; allowed: at most 222")
        );
        assert!(settings("--bucket-ms 1000 --buckets 1").is_ok());
    }

    #[test]
    fn a_long_interval_waits_ten_of_itself() {
        assert_eq!(
            settings("--interval 3s").unwrap().drain_limit(),
            Duration::from_secs(30)
        );
    }
}
