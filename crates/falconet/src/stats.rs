//! What a node has done so far, in one cheap snapshot.

use falconet_dataplane::{Histogram, LaneStats, QueueStats, Stats as DataplaneStats, ThreadStats};
use falconet_raptorcast::Stats as EngineStats;

use crate::state::StateStats;

/// Counters of the node's threads since it started; every count only grows.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The authenticated lane, handshake messages included; bytes are UDP payload, frames included.
    pub authenticated: LaneStats,
    /// The plain lane; bytes are UDP payload.
    pub plain: LaneStats,
    /// Datagrams that came and reached nobody, by reason; only reasons that occurred.
    pub discards: Vec<(&'static str, u64)>,
    /// Datagrams that were to be sent and did not leave, by reason; only reasons that occurred.
    pub drops: Vec<(&'static str, u64)>,
    /// What the broadcast engine has done.
    pub broadcasts: EngineStats,
    /// Peers with a session.
    pub connected_peers: usize,
    /// What the state file costs, and whether it works.
    pub state: StateStats,
}

/// What the node's threads do with their time, and what waits for them. Two snapshots give a share
/// ([`ThreadStats::busy_fraction`]).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ThreadsStats {
    /// The dataplane thread.
    pub dataplane: ThreadStats,
    /// The handshake thread.
    pub handshake: ThreadStats,
    /// What waits to be sent, by class, in the order of [`falconet_dataplane::Class::ALL`]: entries, bytes, ages.
    pub queues: Vec<QueueStats>,
    /// Handshake messages that wait where the kernel does not steer them.
    pub handshake_queue: u64,
    /// Groups under way on the emulated link.
    pub delay_line: u64,
    /// How long sealing a datagram takes, of a sample.
    pub sealing: Histogram,
    /// How long opening one takes, of a sample.
    pub opening: Histogram,
}

impl From<DataplaneStats> for ThreadsStats {
    fn from(stats: DataplaneStats) -> Self {
        Self {
            dataplane: stats.data_thread,
            handshake: stats.handshake_thread,
            queues: stats.queues.to_vec(),
            handshake_queue: stats.handshake_queue,
            delay_line: stats.delay_line,
            sealing: stats.sealing,
            opening: stats.opening,
        }
    }
}

impl Stats {
    pub(crate) fn new(
        dataplane: DataplaneStats,
        thread: &falconet_raptorcast::ThreadStats,
        engine: EngineStats,
    ) -> Self {
        let mut discards = dataplane.discards;
        discards.push(("raptorcast_queue_full", thread.chunks_dropped));
        discards.extend(engine.discards().map(|(reason, count)| (reason.label(), count)));
        let mut drops = dataplane.drops;
        drops.push(("relay_queue_full", thread.relays_dropped));
        for counts in [&mut discards, &mut drops] {
            counts.retain(|(_, count)| *count > 0);
        }
        Self {
            authenticated: dataplane.authenticated,
            plain: dataplane.plain,
            discards,
            drops,
            broadcasts: engine,
            connected_peers: 0,
            state: StateStats::default(),
        }
    }

    /// How often this reason occurred among [`Stats::discards`].
    pub fn discarded(&self, reason: &str) -> u64 {
        count_of(&self.discards, reason)
    }

    /// How often this reason occurred among [`Stats::drops`].
    pub fn dropped(&self, reason: &str) -> u64 {
        count_of(&self.drops, reason)
    }
}

fn count_of(counts: &[(&'static str, u64)], reason: &str) -> u64 {
    counts
        .iter()
        .filter(|(have, _)| *have == reason)
        .map(|(_, count)| count)
        .sum()
}
