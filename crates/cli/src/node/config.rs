//! The configuration file, as it is written. What each key means to a user: docs/node.md.

use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::text::{Identity, Interval, Pace, Size, StakeUnits, Transport};
use crate::exit::Failure;

/// A file with 17,000 peers has less than a third of it.
const MAX_BYTES: u64 = 16 << 20;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Folder of the file, from which paths in it count.
    #[serde(skip)]
    pub(super) folder: PathBuf,
    pub(super) identity: PathBuf,
    pub(super) transport: PathBuf,
    #[serde(default = "default_network")]
    pub(super) network: String,
    pub(super) listen: Option<SocketAddr>,
    pub(super) listen_plain: Option<SocketAddr>,
    pub(super) state: Option<PathBuf>,
    pub(super) name: Option<String>,
    pub(super) rate: Option<Pace>,
    pub(super) peer_rate: Option<Pace>,
    #[serde(default)]
    pub(super) suites: Vec<SuiteName>,
    pub(super) chunk_size: Option<usize>,
    pub(super) path_mtu: Option<usize>,
    pub(super) redundancy: Option<f64>,
    pub(super) relayed_payloads_per_second: Option<u32>,
    pub(super) timestamp_window: Option<Interval>,
    pub(super) warm_up: Option<Size>,
    #[serde(default)]
    pub(super) accept_unknown: bool,
    pub(super) handshake_threads: Option<usize>,
    pub(super) run_for: Option<Interval>,
    #[serde(default)]
    pub(super) log: LogLevel,
    #[serde(default)]
    pub(super) stats: Stats,
    pub(super) record: Option<Record>,
    pub(super) validators: Option<Validators>,
    #[serde(default)]
    pub(super) peers: Vec<PeerEntry>,
    pub(super) schedule: Option<Schedule>,
}

fn default_network() -> String {
    "falconet".to_owned()
}

/// A cipher suite.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum SuiteName {
    Chacha,
    Aes,
}

/// What is logged on standard error.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogLevel {
    Off,
    Error,
    #[default]
    Warn,
    Info,
    Debug,
}

/// `[stats]`: how often counters are printed.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stats {
    pub(super) interval: Option<Interval>,
    #[serde(default)]
    pub(super) peers: bool,
}

/// `[record]`: what the node says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) file: Option<PathBuf>,
    #[serde(default)]
    pub(super) authenticated: Vec<SocketAddr>,
    #[serde(default)]
    pub(super) plain: Vec<SocketAddr>,
    pub(super) days: Option<u16>,
    #[serde(default = "default_true")]
    pub(super) serves_authenticated: bool,
}

fn default_true() -> bool {
    true
}

/// `[validators]`: the set of an epoch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Validators {
    pub(super) epoch: u32,
    pub(super) members: Vec<Member>,
}

/// `[[validators.members]]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    pub(super) identity: Identity,
    pub(super) stake: StakeUnits,
}

/// `[[peers]]`: either a record file, or what would be in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerEntry {
    pub(super) record: Option<PathBuf>,
    pub(super) identity: Option<Identity>,
    pub(super) transport: Option<Transport>,
    pub(super) address: Option<SocketAddr>,
    pub(super) plain: Option<SocketAddr>,
    pub(super) policy: Option<PolicyName>,
    #[serde(default)]
    pub(super) suites: Vec<SuiteName>,
    pub(super) persistent: Option<bool>,
    pub(super) keepalive: Option<Interval>,
}

/// A policy, as in docs/spec/rollout.md.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PolicyName {
    Plain,
    Prefer,
    Require,
    PlainUntilSeen,
}

/// `[schedule]`: who broadcasts what, and when.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Schedule {
    pub(super) interval: Interval,
    pub(super) leaders: Vec<Identity>,
    pub(super) payload: Option<PathBuf>,
    pub(super) size: Option<Size>,
    #[serde(default)]
    pub(super) seed: u64,
    pub(super) count: Option<u64>,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// Exit code 2: it cannot be read, is too large, or is not as described; with the line.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            Failure::usage(format!(
                "--config {}: {why}",
                Failure::shown(&path.display().to_string())
            ))
        };
        let text = read(path, MAX_BYTES).map_err(|why| refused(&why))?;
        let parsed: Result<Self, _> = toml::from_str(&text);
        let mut config = parsed.map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.as_bytes()[..at.min(text.len())]
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count()
                + 1;
            refused(&format_args!("line {line}: {}", error.message()))
        })?;
        config.folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(config)
    }

    /// A path of the file, as seen from here.
    pub(super) fn at(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

/// The text of a regular file of at most `max` bytes.
pub(super) fn read(path: &Path, max: u64) -> Result<String, String> {
    let say = |error: std::io::Error| error.to_string();
    // By name first: opening a named pipe would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(say)?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(say)?;
    let length = file.take(max + 1).read_to_string(&mut text).map_err(say)?;
    if length as u64 > max {
        return Err(format!("it has more than {max} bytes"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_in_the_documentation_is_a_configuration() {
        let page = include_str!("../../../../docs/node.md");
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let config: Config = toml::from_str(example).unwrap();
        assert_eq!(config.peers.len(), 1);
        assert_eq!(
            config.validators.unwrap().members[1].stake.0.units(),
            10_u128.pow(20)
        );
    }
}
