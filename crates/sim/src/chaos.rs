//! Longevity: a network under a schedule of trouble, and what must hold all the time.
//!
//! Ten nodes in five buckets. The published schedule, each hour: 7 % loss for 5 minutes on three nodes, a partition of
//! two nodes for 5 minutes, two nodes down for 5 minutes; and every 10 minutes outages of 10 s and of 40 s. Beside it:
//! restarts with and without memory, of one node and of all at once, a clock that is set back, a storm of rekeys, a
//! node that is frozen for 3 minutes, another address. One payload of 16 KiB every 2 s from a rotating leader, one of 2 MB every
//! 10 minutes.

mod faults;
mod watch;

use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_raptorcast::Round;
use rand_core::Rng;

use crate::config::{LaneUse, WorldConfig};
use crate::costs::Costs;
use crate::digest::Fingerprint;
use crate::seed;
use crate::time::Time;
use crate::topology::Topology;
use crate::world::{World, WorldError};
use faults::Faults;
use watch::Watch;

pub use watch::Violation;

/// Nodes of the network.
pub const NODES: usize = 10;
const BUCKETS: usize = 5;
const STEP: Duration = Duration::from_secs(1);
/// Steps from one small payload to the next, and from one large one to the next.
const SMALL_EVERY: u64 = 2;
const LARGE_EVERY: u64 = 600;
const SMALL: usize = 16 << 10;
const LARGE: usize = 2_000_000;
/// How long the network may take to be whole before anything is demanded of it.
const WARM_UP: Duration = Duration::from_secs(10);

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What did not hold, at most 20 of them.
    pub violations: Vec<Violation>,
    /// Payloads that were broadcast.
    pub broadcasts: u64,
    /// Payloads that arrived, at all receivers together.
    pub deliveries: u64,
    /// Deliveries that were demanded: receivers that nothing had befallen.
    pub demanded: u64,
    /// Faults that befell the network.
    pub faults: u64,
    /// Data messages whose counters were looked at.
    pub counters: u64,
    /// The digest of the run.
    pub fingerprint: Fingerprint,
}

/// Runs the schedule for some virtual hours. `base` is any reading of the system's clock; it decides nothing.
///
/// # Errors
///
/// None: the network is always the same.
pub fn run(seed: u64, hours: u32, costs: Costs, base: Instant) -> Result<Outcome, WorldError> {
    let topology = Topology::buckets(NODES, BUCKETS, Duration::from_millis(20));
    let mut config = WorldConfig::new(topology, LaneUse::Auth, costs, seed, base);
    config.payload_len = SMALL;
    config.stand_ins = true;
    let mut world = World::new(config)?;
    world.watch_counters();
    world.run_until(Time::START + WARM_UP);
    let mut faults = Faults::new(seed, world.now(), hours);
    let mut watch = Watch::new(seed, world.now());
    for step in 0..u64::from(hours) * 3_600 {
        faults.advance(&mut world, &mut watch);
        watch.check(&world);
        if let Some(length) = payload_len(step) {
            broadcast(&mut world, &mut watch, (seed, step), length);
        }
        let next = world.now() + STEP;
        world.run_until(next);
        watch.take_reports(&mut world);
    }
    Ok(watch.finish(faults.count(), &world))
}

fn payload_len(step: u64) -> Option<usize> {
    if step % LARGE_EVERY == LARGE_EVERY / 2 {
        return Some(LARGE);
    }
    step.is_multiple_of(SMALL_EVERY).then_some(SMALL)
}

fn broadcast(world: &mut World, watch: &mut Watch, (seed, step): (u64, u64), length: usize) {
    let leader = (step / SMALL_EVERY) as usize % NODES;
    if !world.is_up(leader) || world.is_frozen(leader) {
        return;
    }
    let mut payload = vec![0; length];
    seed::generator(seed, "chaos payload", &[step]).fill_bytes(&mut payload);
    let payload = Bytes::from(payload);
    let Some(round) = Round::new(step + 1) else { return };
    watch.note_broadcast(world.now(), leader, round, payload.clone());
    let epoch = world.epoch();
    world.broadcast(leader, epoch, round, payload);
}
