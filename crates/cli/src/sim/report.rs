//! What a simulation gave, as it is written to a JSON file and shown in the table.

use std::collections::BTreeMap;

use falconet_sim::statistics::{Estimate, Summary, overhead, summarise};
use serde::Serialize;

use super::runs::LaneRun;
use super::settings::Settings;
use crate::cluster::Lane;
use crate::exit::Failure;

/// The whole report. Latencies are milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// What was simulated, in words.
    pub(crate) description: String,
    /// The machine whose costs were charged.
    pub(crate) costs: String,
    /// Whether the published table shows the same geometry.
    pub(crate) is_published_geometry: bool,
    /// By lane.
    pub(crate) lanes: BTreeMap<Lane, LaneReport>,
    /// What the authenticated lane takes more than the plain one, in percent.
    pub(crate) overhead: Option<Overhead>,
}

/// One lane.
#[derive(Debug, Serialize)]
pub(crate) struct LaneReport {
    pub(crate) latency: Option<Summary>,
    /// Payloads that did not come.
    pub(crate) lost: u64,
    /// Payloads that came altered.
    pub(crate) corrupt: u64,
    /// Bytes on the wire for one payload, the leader's and a receiver's.
    pub(crate) leader_bytes: u64,
    pub(crate) relay_bytes: u64,
    /// CPU time for one payload, all nodes together.
    pub(crate) cpu_ms: f64,
    /// Datagrams and chunks that found a queue full.
    pub(crate) dropped: u64,
    /// The digest of the runs.
    pub(crate) digest: String,
}

/// What authentication costs, paired by payload.
#[derive(Debug, Serialize)]
pub(crate) struct Overhead {
    pub(crate) mean_percent: Estimate,
    pub(crate) p99_percent: Estimate,
}

impl Report {
    pub(crate) fn new(settings: &Settings, lanes: &[LaneRun]) -> Self {
        let of = |lane| lanes.iter().find(|run| run.lane == lane);
        let overhead = of(Lane::Plain)
            .zip(of(Lane::Auth))
            .and_then(|(plain, auth)| overhead(&plain.run.samples, &auth.run.samples))
            .map(|(mean_percent, p99_percent)| Overhead {
                mean_percent,
                p99_percent,
            });
        Self {
            description: settings.to_string().replace('\n', "; "),
            costs: settings.machine().to_owned(),
            is_published_geometry: settings.is_published(),
            lanes: lanes.iter().map(|run| (run.lane, LaneReport::new(run))).collect(),
            overhead,
        }
    }

    /// # Errors
    /// Exit code 1 if a payload arrived altered. Loss is a result, not a failure: links may be lossy by choice.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        let corrupt: u64 = self.lanes.values().map(|lane| lane.corrupt).sum();
        if corrupt > 0 {
            return Err(Failure::run(format!("{corrupt} payloads arrived altered")));
        }
        Ok(())
    }
}

impl LaneReport {
    fn new(LaneRun { run, .. }: &LaneRun) -> Self {
        Self {
            latency: summarise(&run.samples),
            lost: run.lost,
            corrupt: run.corrupt,
            leader_bytes: run.leader_bytes,
            relay_bytes: run.relay_bytes,
            cpu_ms: run.cpu.as_secs_f64() * 1e3,
            dropped: run.dropped,
            digest: run.fingerprint.to_string(),
        }
    }
}
