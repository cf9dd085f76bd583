//! The options of an engine, their defaults and why.

use std::time::Duration;

use falconet_crypto::NetworkId;
use thiserror::Error;

use crate::bits::BitSet;
use crate::code::Decoder;
use crate::geometry::{Geometry, GeometryError};
use crate::ids::NodeIndex;
use crate::limits::{ChunkSize, HEADER_LEN, KEY_HEADER_LEN, MAX_PAYLOAD_LEN, MAX_SYMBOLS, Redundancy};
use crate::merkle::VerifiedTree;
use crate::repair::{Askers, Outstanding};
use crate::trace::Arrival;
use crate::versions::Rollout;

/// The options of an [`Engine`](crate::Engine). `network`, `chunk` and `redundancy` must be equal at every
/// node of a network; the rest is local.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub(crate) network: NetworkId,
    pub(crate) chunk: ChunkSize,
    pub(crate) redundancy: Redundancy,
    pub(crate) author_by_key: bool,
    pub(crate) datagram_overhead: usize,
    pub(crate) run_length: usize,
    pub(crate) timestamp_window: Duration,
    pub(crate) round_window: u64,
    pub(crate) message_timeout: Duration,
    pub(crate) message_slots: usize,
    pub(crate) message_bytes: usize,
    pub(crate) author_slots: usize,
    pub(crate) remembered_slots: usize,
    pub(crate) plan_slots: usize,
    pub(crate) outgoing_slots: usize,
    pub(crate) verifications_per_validator: u32,
    pub(crate) verifications_plain: u32,
    pub(crate) relay_quantum: Duration,
    pub(crate) relay_run: usize,
    pub(crate) relay_queue: usize,
    pub(crate) relay_messages_per_second: u32,
    pub(crate) decode_attempts_per_second: u32,
    pub(crate) repair_after: Duration,
    pub(crate) trace: bool,
    pub(crate) rollout: Rollout,
    pub(crate) repair_symbols_per_peer: u32,
    pub(crate) repair_symbols_per_second: u32,
}

/// Options that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The cache could not hold one largest message.
    #[error("message_bytes is {given}: one message of 3 MiB needs {needed}")]
    MessageBytes {
        /// What was asked for.
        given: usize,
        /// What one message takes.
        needed: usize,
    },
    /// A count or rate of nothing.
    #[error("{0} is 0: at least 1 is needed")]
    Zero(&'static str),
    /// Chunk size and redundancy do not allow 3 MiB.
    #[error("a payload of 3 MiB does not fit this chunk size and redundancy: {0}")]
    Geometry(GeometryError),
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident: $field:ident = $type:ty,)*) => {
        impl EngineConfig {
            $($(#[$doc])*
            #[must_use]
            pub fn $setter(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            })*
        }
    };
}

setters! {
    /// The size no chunk exceeds, in bytes; default 1,440 (IPv4 at MTU 1,500). Network-wide.
    with_chunk: chunk = ChunkSize,
    /// Symbols sent for each source symbol; default 2.5. Network-wide, so that no leader chooses it.
    with_redundancy: redundancy = Redundancy,
    /// Whether our headers carry our 32-byte key instead of our place in the set; default false, since it
    /// costs 30 bytes a chunk. For receivers that do not know the set.
    with_author_by_key: author_by_key = bool,
    /// Bytes that the layers below add to a chunk, for the figures in reports; default 32, the authenticated
    /// frame.
    with_datagram_overhead: datagram_overhead = usize,
    /// Chunks in a row to one first hop; default 8, which gets most of what segmented sends gain. Use 1 when
    /// the sends are paced, for then a longer run only makes the other hops wait.
    with_run_length: run_length = usize,
    /// How far the leader's clock may be from ours; default 10 s.
    with_timestamp_window: timestamp_window = Duration,
    /// How many rounds a message may be from the local one; default 2. Not applied before the first
    /// `set_round`.
    with_round_window: round_window = u64,
    /// How long after its first symbol an incomplete message is given up; default 10 s, the timestamp window.
    with_message_timeout: message_timeout = Duration,
    /// Incomplete messages kept; default 64.
    with_message_slots: message_slots = usize,
    /// Bytes that incomplete messages may take, all their symbols counted in advance; default 256 MiB.
    with_message_bytes: message_bytes = usize,
    /// Incomplete messages of one author; default 4, for an author leads few rounds in a window.
    with_author_slots: author_slots = usize,
    /// Finished messages that are remembered, so that nothing is relayed or delivered twice; default 4,096.
    /// A tenth of them, at least 8, may belong to one author.
    with_remembered_slots: remembered_slots = usize,
    /// Encoding plans kept; default 16. One takes about 1 MB at 2 MiB.
    with_plan_slots: plan_slots = usize,
    /// Own broadcasts that wait to leave; default 4.
    with_outgoing_slots: outgoing_slots = usize,
    /// Signatures checked a second for one validator's session; default 500.
    with_verifications_per_validator: verifications_per_validator = u32,
    /// Signatures checked a second for all plain senders together; default 4,000, a ninth of a core, and at most what
    /// comes in 50 ms at once.
    with_verifications_plain: verifications_plain = u32,
    /// How long a symbol may wait for others of its message before it is relayed; default 500 us.
    with_relay_quantum: relay_quantum = Duration,
    /// Symbols that are relayed at once without waiting; default 8.
    with_relay_run: relay_run = usize,
    /// Symbols that may wait to be relayed; default 16,384, the rest is dropped and counted.
    with_relay_queue: relay_queue = usize,
    /// Largest messages of one author that we relay our part of, a second; default 2.
    with_relay_messages_per_second: relay_messages_per_second = u32,
    /// Attempts to decode largest messages (3 MiB) of one author, a second; default 16. Smaller ones cost as much less
    /// as they are smaller. An honest leader's message takes one attempt, and hardly ever two.
    with_decode_attempts_per_second: decode_attempts_per_second = u32,
    /// Which chunk versions are accepted and published; default version 0 alone.
    with_rollout: rollout = Rollout,
    /// Whether every message ends with an [`Event::Trace`](crate::Event::Trace); default no. Costs 32 bytes a symbol.
    with_trace: trace = bool,
    /// How long after its first symbol others are asked for what an incomplete message lacks, and asked again; default
    /// 500 ms.
    with_repair_after: repair_after = Duration,
    /// Symbols that one peer may ask for, a second; default 512. At least 64.
    with_repair_symbols_per_peer: repair_symbols_per_peer = u32,
    /// Symbols that all peers together may ask for, a second; default 4,096, 47 Mbit/s. At least 64.
    with_repair_symbols_per_second: repair_symbols_per_second = u32,
}

impl EngineConfig {
    /// The defaults for a network.
    pub fn new(network: NetworkId) -> Self {
        Self {
            network,
            chunk: ChunkSize::IPV4,
            redundancy: Redundancy::DEFAULT,
            author_by_key: false,
            datagram_overhead: 32,
            run_length: 8,
            timestamp_window: Duration::from_secs(10),
            round_window: 2,
            message_timeout: Duration::from_secs(10),
            message_slots: 64,
            message_bytes: 256 << 20,
            author_slots: 4,
            remembered_slots: 4096,
            plan_slots: 16,
            outgoing_slots: 4,
            verifications_per_validator: 500,
            verifications_plain: 4_000,
            relay_quantum: Duration::from_micros(500),
            relay_run: 8,
            relay_queue: 16_384,
            relay_messages_per_second: 2,
            decode_attempts_per_second: 16,
            trace: false,
            rollout: Rollout::PublishOld,
            repair_after: Duration::from_millis(500),
            repair_symbols_per_peer: 512,
            repair_symbols_per_second: 4096,
        }
    }

    /// Bytes of the headers we write.
    pub(crate) fn header_len(&self) -> usize {
        if self.author_by_key {
            KEY_HEADER_LEN
        } else {
            HEADER_LEN
        }
    }

    /// Finished messages of one author that are remembered.
    pub(crate) fn remembered_per_author(&self) -> usize {
        (self.remembered_slots / 10).max(8)
    }

    /// How long a message can still be accepted after it was first: made at the late edge of the timestamp
    /// window, sent until the early edge.
    pub(crate) fn memory_of_finished(&self) -> Duration {
        2 * self.timestamp_window
    }

    /// After how long an author who had no attempt to decode left surely has one again.
    pub(crate) fn decode_retry(&self) -> Duration {
        Duration::from_secs(1) / self.decode_attempts_per_second
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            ("run_length", self.run_length),
            ("message_slots", self.message_slots),
            ("author_slots", self.author_slots),
            ("remembered_slots", self.remembered_slots),
            ("plan_slots", self.plan_slots),
            ("outgoing_slots", self.outgoing_slots),
            (
                "verifications_per_validator",
                self.verifications_per_validator as usize,
            ),
            (
                "repair_symbols_per_peer",
                self.repair_symbols_per_peer as usize / 64,
            ),
            (
                "repair_symbols_per_second",
                self.repair_symbols_per_second as usize / 64,
            ),
            ("verifications_plain", self.verifications_plain as usize),
            ("relay_run", self.relay_run),
            ("relay_queue", self.relay_queue),
            (
                "relay_messages_per_second",
                self.relay_messages_per_second as usize,
            ),
            (
                "decode_attempts_per_second",
                self.decode_attempts_per_second as usize,
            ),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(ConfigError::Zero(name));
        }
        let one_hop = |scaled| u64::from(scaled) + 1;
        let largest = Geometry::derive(
            MAX_PAYLOAD_LEN,
            self.chunk,
            KEY_HEADER_LEN,
            self.redundancy,
            one_hop,
        )
        .map_err(ConfigError::Geometry)?;
        let needed = message_memory(&Geometry {
            symbols: MAX_SYMBOLS.min(2 * largest.symbols),
            ..largest
        });
        if self.message_bytes < needed {
            return Err(ConfigError::MessageBytes {
                given: self.message_bytes,
                needed,
            });
        }
        Ok(())
    }
}

/// Bytes that an incomplete message may come to take: everything it could hold is counted in advance, so that
/// no symbol can push the cache over its limit.
pub(crate) fn message_memory(geometry: &Geometry) -> usize {
    let symbols = usize::from(geometry.symbols);
    // A first hop, a place among those who sent and one in the trace, for each symbol.
    let by_symbol = symbols * (size_of::<NodeIndex>() + size_of::<(NodeIndex, u32)>() + size_of::<Arrival>());
    let repair = Outstanding::memory() + Askers::memory() + BitSet::memory(symbols);
    VerifiedTree::memory(geometry.depth) + Decoder::memory(geometry) + by_symbol + repair
}
