//! What is printed: one JSON object a line. The fields are part of the interface (docs/node.md#events).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use falconet::{BroadcastReport, Delivery, LaneStats, NodeEvent};
use serde::Serialize;

use crate::output::say;
use crate::payload::{PayloadDigest, digest};

/// What happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    Started {
        identity: String,
        transport: String,
        listen: Option<SocketAddr>,
        listen_plain: Option<SocketAddr>,
        version: &'static str,
    },
    Connected {
        peer: String,
        suite: u8,
    },
    Disconnected {
        peer: String,
    },
    SendFailed {
        peer: String,
        bytes: usize,
    },
    RecordAccepted {
        peer: String,
        sequence: u64,
    },
    RecordPublished {
        sequence: u64,
        record: String,
    },
    Published {
        epoch: u32,
        round: u64,
        bytes: usize,
        sha256: String,
        datagrams: usize,
        wire_bytes: usize,
        dropped: usize,
        took_ms: f64,
    },
    PublishFailed {
        round: u64,
        error: String,
    },
    Delivered {
        author: String,
        epoch: u32,
        round: u64,
        bytes: usize,
        sha256: String,
        symbols: u32,
        /// From the author's clock to ours.
        latency_ms: f64,
        /// From the first symbol to the payload.
        assembly_ms: f64,
        missed: u64,
    },
    Tainted {
        author: String,
        epoch: u32,
        round: u64,
    },
    Expired {
        author: String,
        epoch: u32,
        round: u64,
        reason: String,
        symbols: u32,
        needed: u16,
    },
    Joiners {
        epoch: u32,
        members: Vec<String>,
    },
    ClockSkew {
        peer: String,
        offset_ms: i64,
        samples: usize,
    },
    Equivocation {
        author: String,
        epoch: u32,
        round: u64,
    },
    /// An event that this version has no name for.
    Other {
        text: String,
    },
    EventsMissed {
        count: u64,
    },
    Stats(Box<Counters>),
    Reloaded {
        peers_added: usize,
        epoch: Option<u32>,
    },
    ReloadFailed {
        error: String,
    },
    Stopped,
}

/// The counters of a node, from its start.
#[derive(Debug, Serialize)]
pub(super) struct Counters {
    pub(super) connected_peers: usize,
    pub(super) authenticated: LaneCounters,
    pub(super) plain: LaneCounters,
    pub(super) broadcasts: u64,
    pub(super) delivered: u64,
    pub(super) chunks_received: u64,
    pub(super) chunks_accepted: u64,
    pub(super) chunks_relayed: u64,
    pub(super) tainted: u64,
    pub(super) expired: u64,
    pub(super) equivocations: u64,
    pub(super) discards: BTreeMap<&'static str, u64>,
    pub(super) drops: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) peers: Vec<PeerCounters>,
}

/// One lane.
#[derive(Debug, Serialize)]
pub(super) struct LaneCounters {
    datagrams_sent: u64,
    bytes_sent: u64,
    datagrams_received: u64,
    bytes_received: u64,
}

impl From<&LaneStats> for LaneCounters {
    fn from(lane: &LaneStats) -> Self {
        Self {
            datagrams_sent: lane.datagrams_sent,
            bytes_sent: lane.bytes_sent,
            datagrams_received: lane.datagrams_received,
            bytes_received: lane.bytes_received,
        }
    }
}

/// One peer.
#[derive(Debug, Serialize)]
pub(super) struct PeerCounters {
    pub(super) peer: String,
    pub(super) address: Option<SocketAddr>,
    pub(super) session_s: Option<u64>,
    pub(super) fallbacks: u64,
    pub(super) record_sequence: Option<u64>,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Milliseconds since the Unix epoch.
    time_ms: u64,
    #[serde(flatten)]
    event: &'a Event,
}

impl Event {
    /// Prints it.
    pub(super) fn print(&self) {
        let line = Line {
            time_ms: unix().as_millis() as u64,
            event: self,
        };
        // Every event is plain data with text keys, which JSON has.
        if let Ok(line) = serde_json::to_string(&line) {
            say(line);
        }
    }

    pub(super) fn published(
        (epoch, round): (u32, u64),
        (bytes, sha256): (usize, PayloadDigest),
        report: &BroadcastReport,
    ) -> Self {
        Self::Published {
            epoch,
            round,
            bytes,
            sha256: hex::encode(sha256),
            datagrams: report.datagrams,
            wire_bytes: report.bytes,
            dropped: report.dropped,
            took_ms: milliseconds(report.last_sent - report.started),
        }
    }

    pub(super) fn delivered(delivery: &Delivery) -> Self {
        let at = unix().saturating_sub(Instant::now().saturating_duration_since(delivery.at));
        Self::Delivered {
            author: delivery.author.to_string(),
            epoch: delivery.epoch,
            round: delivery.round,
            bytes: delivery.payload.len(),
            sha256: hex::encode(digest(&delivery.payload)),
            symbols: delivery.symbols,
            // Below zero if the author's clock is ahead of ours.
            latency_ms: (at.as_secs_f64() - delivery.author_time.as_secs_f64()) * 1e3,
            assembly_ms: milliseconds(delivery.at.saturating_duration_since(delivery.first_symbol_at)),
            missed: delivery.missed,
        }
    }
}

impl From<NodeEvent> for Event {
    fn from(event: NodeEvent) -> Self {
        match event {
            NodeEvent::Connected { peer, suite } => Self::Connected {
                peer: peer.to_string(),
                suite: suite.id(),
            },
            NodeEvent::Disconnected { peer } => Self::Disconnected {
                peer: peer.to_string(),
            },
            NodeEvent::SendFailed { peer, payload } => Self::SendFailed {
                peer: peer.to_string(),
                bytes: payload.len(),
            },
            NodeEvent::RecordAccepted { peer, record } => Self::RecordAccepted {
                peer: peer.to_string(),
                sequence: record.content().sequence,
            },
            NodeEvent::Tainted(taint) => Self::Tainted {
                author: taint.author.to_string(),
                epoch: taint.id.epoch.number(),
                round: taint.id.round.number(),
            },
            NodeEvent::Expired(expiry) => Self::Expired {
                author: expiry.author.to_string(),
                epoch: expiry.id.epoch.number(),
                round: expiry.id.round.number(),
                reason: format!("{:?}", expiry.reason),
                symbols: expiry.symbols_received,
                needed: expiry.source_symbols,
            },
            NodeEvent::Joiners(joiners) => Self::Joiners {
                epoch: joiners.epoch.number(),
                members: joiners.members.iter().map(ToString::to_string).collect(),
            },
            NodeEvent::ClockSkew(skew) => Self::ClockSkew {
                peer: skew.peer.to_string(),
                offset_ms: skew.offset_ms,
                samples: skew.samples,
            },
            NodeEvent::Equivocation(evidence) => Self::Equivocation {
                author: evidence.author.to_string(),
                epoch: evidence.id.epoch.number(),
                round: evidence.id.round.number(),
            },
            other => Self::Other {
                text: format!("{other:?}"),
            },
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Time since the Unix epoch.
pub(super) fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
