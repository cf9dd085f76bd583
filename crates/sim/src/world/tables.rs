//! What an observer sees of a node: how full its tables are, and whether it used a counter twice.

use super::World;
use crate::counters::{Counters, Reuse};
use crate::node::MESSAGE_BYTES;

/// A table, queue or cache of an engine that has a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it holds, as the engine's counters call it.
    pub name: &'static str,
    /// Entries, or bytes where the name says so.
    pub used: usize,
    /// As many there may be at most.
    pub cap: usize,
}

/// Sessions of one peer (docs/spec/session.md#keypairs), and its messages that can be answered.
const SESSIONS_A_PEER: usize = 3;
/// Sends of one peer that wait (docs/spec/session.md#buffered).
const BUFFERED_BYTES_A_PEER: usize = 128 << 10;
const BUFFERED_A_PEER: usize = 128;
const MAX_BUFFERED: usize = 65_536;
/// Keys that are no peers, whose timestamps are remembered (docs/spec/session.md#timestamps).
const REMEMBERED_KEYS: usize = 4_096;
/// Results that wait for the data plane, and Diffie-Hellmans under way (docs/spec/session.md#room).
const RESULTS: usize = 128;
const IN_WORK: usize = 64;
/// Datagrams of an endpoint and of its handshakes that wait to leave.
const TRANSMITS: usize = 16_384;
const HANDSHAKE_TRANSMITS: usize = 4_096;
/// Messages that are incomplete, or remembered (docs/spec/chunk.md#cache).
const INCOMPLETE: usize = 64;
const REMEMBERED: usize = 4_096;

impl World {
    /// Has every counter of a session looked at when it leaves, from now on.
    pub fn watch_counters(&mut self) {
        self.counters.get_or_insert_default();
    }

    /// Data messages whose counters were looked at.
    #[must_use]
    pub fn watched_counters(&self) -> u64 {
        self.counters.as_ref().map_or(0, Counters::noted)
    }

    /// Counters that left twice since the last call.
    pub fn take_reused_counters(&mut self) -> Vec<Reuse> {
        self.counters
            .as_mut()
            .map(Counters::take_reused)
            .unwrap_or_default()
    }

    /// The tables of a node's engines.
    #[must_use]
    pub fn tables(&self, node: usize) -> Vec<Table> {
        let node = &self.nodes[node];
        let peers = self.nodes.len() - 1;
        let (handshakes, sessions) = node.endpoint.stats();
        let occupancy = node.engine.occupancy();
        let table = |name, used, cap| Table { name, used, cap };
        vec![
            table("sessions", sessions.sessions, SESSIONS_A_PEER * peers),
            table("holders", sessions.holders.0, peers),
            table(
                "buffered_bytes",
                sessions.buffered_bytes,
                BUFFERED_BYTES_A_PEER * peers,
            ),
            table(
                "buffered_entries",
                sessions.buffered_entries,
                BUFFERED_A_PEER * peers,
            ),
            table("queued_events", sessions.queued_events, peers + MAX_BUFFERED),
            table("queued_requests", sessions.queued_messages, peers),
            table("queued_transmits", sessions.queued_transmits, TRANSMITS),
            table("answerable", handshakes.answerable, SESSIONS_A_PEER * peers),
            table("remembered_keys", handshakes.remembered, REMEMBERED_KEYS),
            table("queued_results", handshakes.queued_messages, RESULTS),
            table("in_work", handshakes.in_work, IN_WORK),
            table(
                "queued_handshakes",
                handshakes.queued_transmits,
                HANDSHAKE_TRANSMITS,
            ),
            table("incomplete_messages", occupancy.incomplete, INCOMPLETE),
            table("incomplete_bytes", occupancy.bytes, MESSAGE_BYTES),
            table("remembered_messages", occupancy.remembered, REMEMBERED),
            table("kept_bytes", occupancy.kept_bytes, MESSAGE_BYTES / 8),
        ]
    }
}
