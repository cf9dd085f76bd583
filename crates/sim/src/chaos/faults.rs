//! The schedule of trouble.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use super::NODES;
use super::watch::Watch;
use crate::seed;
use crate::time::Time;
use crate::world::World;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// A clock that is set back by this is outside the timestamp window of everybody else.
const CLOCK_STEP: i64 = -3_600_000_000_000;
/// How long a process is away when it restarts.
const RESTART: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Loss,
    Partition,
    Down { keeps_disk: bool },
    Outage,
    Clock,
    RekeyStorm,
    Freeze,
    Move,
}

#[derive(Clone, Debug)]
struct Fault {
    begins: Time,
    ends: Time,
    kind: Kind,
    nodes: Vec<usize>,
}

/// All faults of a run, in the order in which they begin.
pub(super) struct Faults {
    planned: std::collections::VecDeque<Fault>,
    active: Vec<Fault>,
    begun: u64,
}

impl Faults {
    pub(super) fn new(seed: u64, start: Time, hours: u32) -> Self {
        let mut rng = seed::generator(seed, "faults", &[]);
        let mut planned = Vec::new();
        for hour in 0..hours {
            plan_hour(&mut planned, &mut rng, start + HOUR * hour);
        }
        planned.sort_by_key(|fault: &Fault| fault.begins);
        Self {
            planned: planned.into(),
            active: Vec::new(),
            begun: 0,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.begun
    }

    /// Ends what is over and begins what is due.
    pub(super) fn advance(&mut self, world: &mut World, watch: &mut Watch) {
        let now = world.now();
        let (over, active) = std::mem::take(&mut self.active)
            .into_iter()
            .partition(|fault| fault.ends <= now);
        self.active = active;
        let over: Vec<Fault> = over;
        for fault in over {
            end(&fault, world, watch);
        }
        while self.planned.front().is_some_and(|fault| fault.begins <= now) {
            let Some(fault) = self.planned.pop_front() else {
                return;
            };
            self.begun += 1;
            begin(&fault, world, watch);
            self.active.push(fault);
        }
    }
}

/// One hour: faults in slots of their own, so that two never befall the same network at once but for the loss.
fn plan_hour(planned: &mut Vec<Fault>, rng: &mut ChaCha20Rng, start: Time) {
    let mut add = |minute: u32, second: u32, length: Duration, kind: Kind, count: usize| {
        let begins = start + MINUTE * minute + Duration::from_secs(u64::from(second));
        planned.push(Fault {
            begins,
            ends: begins + length,
            kind,
            nodes: choose(rng, count),
        });
    };
    add(1, 0, 5 * MINUTE, Kind::Loss, 3);
    add(11, 0, 5 * MINUTE, Kind::Partition, 2);
    add(21, 0, 5 * MINUTE, Kind::Down { keeps_disk: true }, 2);
    for tens in 0..6 {
        add(tens * 10 + 7, 0, Duration::from_secs(10), Kind::Outage, 1);
        add(tens * 10 + 8, 30, Duration::from_secs(40), Kind::Outage, 1);
    }
    add(31, 0, RESTART, Kind::Down { keeps_disk: false }, 1);
    add(32, 30, RESTART, Kind::Down { keeps_disk: false }, 2);
    add(34, 0, MINUTE, Kind::Clock, 1);
    add(36, 0, Duration::from_secs(10), Kind::RekeyStorm, NODES);
    add(39, 30, RESTART, Kind::Move, 1);
    add(41, 0, 3 * MINUTE, Kind::Freeze, 1);
    add(45, 30, RESTART, Kind::Down { keeps_disk: true }, NODES);
    add(51, 0, 4 * MINUTE, Kind::Loss, 3);
}

/// Some different nodes.
fn choose(rng: &mut ChaCha20Rng, count: usize) -> Vec<usize> {
    let mut nodes: Vec<_> = (0..NODES).collect();
    for place in 0..count.min(NODES) {
        let other = place + rng.next_u32() as usize % (NODES - place);
        nodes.swap(place, other);
    }
    nodes.truncate(count);
    nodes
}

fn begin(fault: &Fault, world: &mut World, watch: &mut Watch) {
    match fault.kind {
        Kind::Loss => set_loss(fault, world, 0.07),
        Kind::Partition => set_loss(fault, world, 1.0),
        Kind::Outage => set_loss(fault, world, 1.0),
        Kind::Down { .. } => fault.nodes.iter().for_each(|node| world.crash(*node)),
        Kind::Clock => fault
            .nodes
            .iter()
            .for_each(|node| world.set_skew(*node, CLOCK_STEP)),
        Kind::Freeze => fault
            .nodes
            .iter()
            .for_each(|node| world.freeze(*node, fault.ends.since(fault.begins))),
        // The new address is in the record that it signs and offers.
        Kind::Move => fault.nodes.iter().for_each(|node| {
            world.move_address(*node, world.address_shift(*node).wrapping_add(1));
            world.publish_record(*node, true);
        }),
        Kind::RekeyStorm => {
            for node in 0..NODES {
                (0..NODES)
                    .filter(|peer| *peer != node)
                    .for_each(|peer| world.rekey(node, peer));
            }
        }
    }
    let (sessions, payloads) = harm(fault.kind);
    for node in &fault.nodes {
        watch.begin_trouble(*node, fault.ends, sessions, payloads);
    }
}

fn end(fault: &Fault, world: &mut World, watch: &mut Watch) {
    match fault.kind {
        Kind::Loss | Kind::Partition | Kind::Outage => set_loss(fault, world, 0.0),
        Kind::Down { keeps_disk } => {
            for node in &fault.nodes {
                // The options are those of the first start, which were accepted.
                let _ = world.restart(*node, keeps_disk);
            }
        }
        Kind::Clock => fault.nodes.iter().for_each(|node| world.set_skew(*node, 0)),
        Kind::Freeze | Kind::RekeyStorm | Kind::Move => {}
    }
    let (sessions, payloads) = harm(fault.kind);
    for node in &fault.nodes {
        watch.end_trouble(*node, world.now(), sessions, payloads);
    }
}

/// Whether sessions, and payloads, of the nodes may suffer. Loss of 7 %, a clock set back while sessions stand and
/// rekeys excuse no session; loss and rekeys excuse no payload either.
fn harm(kind: Kind) -> (bool, bool) {
    match kind {
        Kind::Loss | Kind::RekeyStorm => (false, false),
        Kind::Clock => (false, true),
        Kind::Partition | Kind::Down { .. } | Kind::Outage | Kind::Freeze | Kind::Move => (true, true),
    }
}

/// On all ways between the nodes of the fault and the others; those of a partition keep each other.
fn set_loss(fault: &Fault, world: &mut World, share: f64) {
    for node in &fault.nodes {
        for other in (0..NODES).filter(|other| !fault.nodes.contains(other)) {
            world.set_loss(*node, other, share);
            world.set_loss(other, *node, share);
        }
    }
}
