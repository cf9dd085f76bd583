//! What a node has done so far, in one cheap snapshot.

/// Counters of both lanes, discards by reason, and sessions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The authenticated lane; bytes are UDP payload, frames included.
    pub authenticated: LaneStats,
    /// The plain lane; bytes are UDP payload.
    pub plain: LaneStats,
    /// Datagrams that were dropped, by the layer's reason; only reasons that occurred.
    pub discards: Vec<(&'static str, u64)>,
    /// Peers with a session.
    pub connected_peers: usize,
}

impl Stats {
    /// How often this reason occurred.
    pub fn discarded(&self, reason: &str) -> u64 {
        self.discards.iter().filter(|(have, _)| *have == reason).map(|(_, count)| count).sum()
    }
}

/// Counters of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneStats {
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Datagrams that came and were accepted.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
}
