//! What a run found, in the shape of its JSON file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::plan::Lane;
use super::run::LaneRun;
use super::settings::Settings;
use crate::args::RateLimit;
use crate::exit::Failure;
use crate::payload::PayloadSource;

/// All lanes of a run, and what was asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) lanes: BTreeMap<Lane, LaneReport>,
    pub(crate) config: ConfigReport,
}

/// One lane. Times in milliseconds; `null` if nothing arrived. Percentiles are nearest-rank.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct LaneReport {
    pub(crate) count: u64,
    pub(crate) lost: u64,
    pub(crate) corrupt: u64,
    pub(crate) mean_ms: Option<f64>,
    pub(crate) std_ms: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p70_ms: Option<f64>,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    /// Rounds that were broadcast; fewer than asked for after an interrupt.
    pub(crate) rounds: u64,
    /// Rounds that took longer than the interval, so that the next one came later.
    pub(crate) stretched_rounds: u64,
    /// Deliveries after their round had been given up.
    pub(crate) late: u64,
    /// Second deliveries, and such to the leader itself: an error of the node.
    pub(crate) unexpected: u64,
    /// Sessions established before the first round, and how long that took.
    pub(crate) sessions: usize,
    pub(crate) connect_ms: f64,
    /// What the leader sent, a payload.
    pub(crate) datagrams_per_payload: f64,
    pub(crate) bytes_per_payload: f64,
    /// What all nodes sent, relays included, a payload.
    pub(crate) cluster_datagrams_per_payload: f64,
    pub(crate) cluster_bytes_per_payload: f64,
    /// Datagrams of the leader that never left, in all rounds.
    pub(crate) dropped: u64,
    /// Symbols sent by symbols needed.
    pub(crate) redundancy: f64,
    pub(crate) source_symbols: usize,
    pub(crate) symbol_bytes: usize,
    /// Bytes of a datagram that are not its symbol: header, signature, proof, and the authenticated frame.
    pub(crate) overhead_bytes_per_datagram: f64,
    /// Datagrams that reached nobody, of all nodes, by reason; superfluous symbols are among them.
    pub(crate) discards: BTreeMap<&'static str, u64>,
    /// Datagrams that were to leave and did not, of all nodes, by reason; emulated loss is among them.
    pub(crate) drops: BTreeMap<&'static str, u64>,
}

/// What was asked for.
#[derive(Debug, Serialize)]
pub(crate) struct ConfigReport {
    nodes: usize,
    payload_bytes: usize,
    payload: String,
    rounds: u64,
    interval_ms: f64,
    lanes: String,
    suite: String,
    buckets: usize,
    bucket_ms: u64,
    loss: f64,
    /// Bits per second; `null` if unlimited.
    rate_bps: Option<u64>,
    seed: u64,
    version: &'static str,
}

impl Report {
    /// No lane yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let rate_bps = match settings.rate {
            RateLimit::Unlimited => None,
            RateLimit::BitsPerSecond(bits) => Some(bits),
        };
        let config = ConfigReport {
            nodes: settings.plan.len(),
            payload_bytes: settings.payload.len(),
            payload: match &settings.payload {
                PayloadSource::File { path, .. } => path.display().to_string(),
                PayloadSource::Generated { .. } => "generated".to_owned(),
            },
            rounds: settings.rounds,
            interval_ms: settings.interval.as_secs_f64() * 1e3,
            lanes: settings.lanes.to_string(),
            suite: settings.suite.to_string(),
            buckets: settings.buckets,
            bucket_ms: u64::try_from(settings.bucket_delay.as_millis()).unwrap_or(u64::MAX),
            loss: settings.loss,
            rate_bps,
            seed: settings.seed,
            version: env!("CARGO_PKG_VERSION"),
        };
        Self {
            lanes: BTreeMap::new(),
            config,
        }
    }

    /// # Errors
    /// Exit code 1 if any receiver missed a payload, got a wrong one, or got one twice.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        let faults: Vec<_> = self
            .lanes
            .iter()
            .filter_map(|(lane, report)| report.fault(*lane))
            .collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Failure::run(faults.join("; ")))
        }
    }
}

impl LaneReport {
    /// The facts of a run.
    pub(crate) fn new(run: &LaneRun) -> Self {
        let statistics = run.book.statistics();
        let latency = statistics.latency();
        let traffic = &run.traffic;
        // A run that was interrupted before its first broadcast sent nothing, for no payload.
        let payloads = traffic.broadcasts.max(1) as f64;
        Self {
            count: statistics.count(),
            lost: statistics.lost(),
            corrupt: statistics.corrupt(),
            mean_ms: latency.map(|latency| latency.mean),
            std_ms: latency.map(|latency| latency.std),
            p50_ms: latency.map(|latency| latency.p50),
            p70_ms: latency.map(|latency| latency.p70),
            p90_ms: latency.map(|latency| latency.p90),
            p95_ms: latency.map(|latency| latency.p95),
            p99_ms: latency.map(|latency| latency.p99),
            max_ms: latency.map(|latency| latency.max),
            rounds: run.rounds,
            stretched_rounds: run.stretched,
            late: run.book.late(),
            unexpected: run.book.unexpected(),
            sessions: run.sessions,
            connect_ms: milliseconds(run.connected_after),
            datagrams_per_payload: traffic.datagrams as f64 / payloads,
            bytes_per_payload: traffic.bytes as f64 / payloads,
            cluster_datagrams_per_payload: traffic.cluster_datagrams as f64 / payloads,
            cluster_bytes_per_payload: traffic.cluster_bytes as f64 / payloads,
            dropped: traffic.dropped,
            redundancy: traffic.redundancy,
            source_symbols: traffic.source_symbols,
            symbol_bytes: traffic.symbol_bytes,
            overhead_bytes_per_datagram: traffic.overhead(),
            discards: traffic.discards.clone(),
            drops: traffic.drops.clone(),
        }
    }

    fn fault(&self, lane: Lane) -> Option<String> {
        let kinds = [
            (self.lost, "lost"),
            (self.corrupt, "corrupt"),
            (self.unexpected, "delivered twice"),
        ];
        let parts: Vec<_> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| format!("{count} {kind}"))
            .collect();
        let payloads = self.count + self.lost + self.corrupt;
        (!parts.is_empty()).then(|| format!("{lane}: of {payloads} payloads {}", parts.join(", ")))
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
