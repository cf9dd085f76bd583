//! What each flag allows: bounds for the parsers, and words for people.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Nodes of a cluster: one leader and at least one receiver.
pub(super) const NODES: RangeInclusive<usize> = 2..=100;
/// Bytes of a payload; the upper end is the protocol's.
pub(super) const SIZE: RangeInclusive<usize> = crate::payload::PAYLOAD_BYTES;
/// Broadcasts of a run.
pub(super) const ROUNDS: RangeInclusive<u64> = 1..=1_000_000;
/// From one broadcast to the next.
pub(super) const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3_600);
/// Buckets; a run further demands no more than it has nodes.
pub(super) const BUCKETS: RangeInclusive<usize> = 1..=100;
/// Milliseconds between neighbouring buckets.
pub(super) const BUCKET_MS: RangeInclusive<u64> = 0..=1_000;
/// Share of lost datagrams.
pub(super) const LOSS: RangeInclusive<f64> = 0.0..=0.5;
/// Bits per second of a paced node.
pub(super) const RATE: RangeInclusive<u64> = 1_000_000..=400_000_000_000;

/// Nodes of a simulation.
pub(super) const SIM_NODES: RangeInclusive<usize> = 2..=4_096;
/// Virtual hours of a simulation.
pub(super) const HOURS: RangeInclusive<u32> = 1..=10_000;
/// Seeds of a simulation, one run a lane each.
pub(super) const SEEDS: RangeInclusive<u64> = 1..=10_000;
/// Cores that all nodes share.
pub(super) const SHARED_CORES: RangeInclusive<usize> = 1..=4_096;
/// Symbols sent for each source symbol, in hundredths; the range is the protocol's.
pub(super) const REDUNDANCY: RangeInclusive<u64> = 100..=800;
/// The most that jitter adds.
pub(super) const JITTER: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(1);

/// Longest emulated one-way delay between two nodes: with more, a handshake's answer would come after its
/// first retry at 5 seconds.
pub(crate) const MAX_ONE_WAY_DELAY: Duration = Duration::from_secs(2);

/// What the flag `--{flag}` allows, or `None` if it takes no value.
pub(crate) fn of(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "nodes" => "a whole number from 2 to 100",
        "payload" => "a readable regular file of 1 byte to 3 MiB",
        "size" => "1 byte to 3MiB, as 2MB, 64KiB or 2000000",
        "rounds" => "a whole number from 1 to 1000000",
        "interval" => "1ms to 1h, as 500ms, 1s or 2m",
        "lanes" => "auth, plain, both or mixed",
        "suite" => "chacha or aes",
        "bucket-ms" => "a whole number of milliseconds from 0 to 1000",
        "buckets" => "a whole number from 1 to 100, at most --nodes",
        "loss" => "a share from 0 to 0.5, as 0.1",
        "rate" => "1Mbps to 400Gbps, as 1Gbps or 250Mbps, or unlimited",
        "seed" => "a whole number from 0 to 18446744073709551615",
        "json" => "a path that can be written",
        "config" => "a readable regular file, as docs/node.md describes",
        "identity" | "transport" => "a path at which no file exists yet",
        _ => return None,
    })
}

/// The same for a flag of `falconet sim`, where some allow more.
pub(super) fn of_sim(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "nodes" => "a whole number from 2 to 4096",
        "topology" => "buckets, regions, or a file with a matrix of round trips",
        "messages" => "a whole number from 1 to 1000000",
        "lanes" => "auth, plain, or auth,plain",
        "hours" | "seeds" => "a whole number from 1 to 10000",
        "rate" => "1Mbps to 400Gbps, as 1Gbps or 250Mbps",
        "jitter" => "0ms to 1s, as 500us or 2ms",
        "redundancy" => "1 to 8, as 2.5, with at most two decimals",
        "costs" => "reference, zen5, or a file like those in crates/sim/data",
        "shared-cores" => "a whole number from 1 to 4096",
        "report" => "a path that can be written",
        "payload" | "rounds" | "identity" | "transport" => return None,
        flag => return of(flag),
    })
}
