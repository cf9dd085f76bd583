//! 100,000 timers, beside what the standard library has for the job.
//!
//! The peers are complete: they too have one deadline for each of the 100,000, which can be moved. A `BTreeSet` of
//! deadlines is moved at once; a `BinaryHeap` gets another entry, and the old one is skipped when it comes up.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::hint::black_box;
use std::time::{Duration, Instant};

use falconet_benches::{Contest, Report, Unit};
use falconet_transport::PeerId;
use falconet_transport::deadlines::Deadlines;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const TIMERS: u32 = 100_000;
/// Deadlines lie within so many milliseconds.
const SPAN: u32 = 180_000;

trait Timers: Default {
    /// `peer` fires at `at` or earlier.
    fn arm(&mut self, peer: u32, at: Instant);
    /// The peer with the earliest deadline, if it is due.
    fn pop_due(&mut self, now: Instant) -> Option<u32>;
}

impl Timers for Deadlines {
    fn arm(&mut self, peer: u32, at: Instant) {
        Deadlines::arm(self, PeerId(peer), at);
    }

    fn pop_due(&mut self, now: Instant) -> Option<u32> {
        Deadlines::pop_due(self, now).map(|peer| peer.0)
    }
}

#[derive(Default)]
struct Tree {
    deadlines: BTreeSet<(Instant, u32)>,
    of_peer: Vec<Option<Instant>>,
}

impl Timers for Tree {
    fn arm(&mut self, peer: u32, at: Instant) {
        if let Some(at) = earlier(&mut self.of_peer, peer, at, |former| {
            self.deadlines.remove(&(former, peer));
        }) {
            self.deadlines.insert((at, peer));
        }
    }

    fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, peer) = self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.deadlines.pop_first();
        self.of_peer[peer as usize] = None;
        Some(peer)
    }
}

#[derive(Default)]
struct Heap {
    deadlines: BinaryHeap<Reverse<(Instant, u32)>>,
    of_peer: Vec<Option<Instant>>,
}

impl Timers for Heap {
    fn arm(&mut self, peer: u32, at: Instant) {
        if let Some(at) = earlier(&mut self.of_peer, peer, at, |_| {}) {
            self.deadlines.push(Reverse((at, peer)));
        }
    }

    fn pop_due(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Reverse((at, peer))) = self.deadlines.peek() {
            if at > now {
                return None;
            }
            self.deadlines.pop();
            if self.of_peer[peer as usize] == Some(at) {
                self.of_peer[peer as usize] = None;
                return Some(peer);
            }
        }
        None
    }
}

/// Notes `at` if it is earlier than what `peer` has; `replaced` hears of that.
fn earlier(
    of_peer: &mut Vec<Option<Instant>>,
    peer: u32,
    at: Instant,
    replaced: impl FnOnce(Instant),
) -> Option<Instant> {
    let slot = peer as usize;
    if of_peer.len() <= slot {
        of_peer.resize(slot + 1, None);
    }
    match of_peer[slot] {
        Some(former) if former <= at => return None,
        Some(former) => replaced(former),
        None => {}
    }
    of_peer[slot] = Some(at);
    Some(at)
}

/// The deadlines that every contender gets, in an order that is not theirs.
struct Script {
    start: Instant,
    /// Each timer once, in random order, with its deadline.
    first: Vec<(u32, Instant)>,
    /// Each once, in another order, with an earlier one.
    earlier: Vec<(u32, Instant)>,
}

impl Script {
    fn new() -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let start = Instant::now();
        let mut first: Vec<_> = (0..TIMERS)
            .map(|peer| (peer, start + milliseconds(SPAN / 2 + rng.next_u32() % (SPAN / 2))))
            .collect();
        shuffle(&mut first, &mut rng);
        let mut earlier = first.clone();
        shuffle(&mut earlier, &mut rng);
        for (_, at) in &mut earlier {
            *at -= milliseconds(rng.next_u32() % (SPAN / 2));
        }
        Self {
            start,
            first,
            earlier,
        }
    }

    fn filled<T: Timers>(&self) -> T {
        let mut timers = T::default();
        self.first.iter().for_each(|&(peer, at)| timers.arm(peer, at));
        timers
    }

    /// Times `step` on all timers, on what `prepare` makes, for `repeats` timers in all: always all of them,
    /// because a few are cheaper.
    fn time<T>(
        &self,
        repeats: u32,
        mut prepare: impl FnMut() -> T,
        mut step: impl FnMut(&mut T, usize),
    ) -> Duration {
        let rounds = repeats.div_ceil(TIMERS);
        let mut elapsed = Duration::ZERO;
        for _ in 0..rounds {
            let mut timers = prepare();
            let started = Instant::now();
            (0..TIMERS as usize).for_each(|n| step(&mut timers, n));
            elapsed += started.elapsed();
            black_box(timers);
        }
        elapsed.mul_f64(f64::from(repeats) / f64::from(rounds * TIMERS))
    }

    /// Nothing is armed, but all were: the memory is there.
    fn emptied<T: Timers>(&self) -> T {
        let mut timers: T = self.filled();
        while timers.pop_due(self.start + milliseconds(SPAN)).is_some() {}
        timers
    }

    fn arm<T: Timers>(&self, repeats: u32) -> Duration {
        self.time(
            repeats,
            || self.emptied::<T>(),
            |timers, n| {
                let (peer, at) = self.first[n];
                timers.arm(peer, at);
            },
        )
    }

    fn re_arm<T: Timers>(&self, repeats: u32) -> Duration {
        self.time(
            repeats,
            || self.filled::<T>(),
            |timers, n| {
                let (peer, at) = self.earlier[n];
                timers.arm(peer, at);
            },
        )
    }

    fn expire<T: Timers>(&self, repeats: u32) -> Duration {
        let end = self.start + milliseconds(SPAN);
        self.time(
            repeats,
            || self.filled::<T>(),
            |timers, _| {
                black_box(timers.pop_due(end).expect("all are due"));
            },
        )
    }

    /// One expires and is armed again, further on: what a node does all day.
    fn cycle<T: Timers>(&self, timers: &mut T, repeats: u32) -> Duration {
        let started = Instant::now();
        // So far ahead that everything is due for as long as this is measured.
        let end = self.start + Duration::from_secs(1 << 32);
        for n in 0..repeats as usize {
            let peer = timers.pop_due(end).expect("all are due");
            let (_, at) = self.first[(peer as usize + n) % self.first.len()];
            timers.arm(peer, at + milliseconds(n as u32 / 8));
        }
        started.elapsed()
    }
}

pub(crate) fn run(report: &mut Report) {
    let script = Script::new();
    println!("timers: peers are std's BTreeSet, and its BinaryHeap with entries that are skipped");
    type Measure = (&'static str, [fn(&Script, u32) -> Duration; 3]);
    let measures: [Measure; 3] = [
        (
            "arm",
            [Script::arm::<Deadlines>, Script::arm::<Tree>, Script::arm::<Heap>],
        ),
        (
            "rearm",
            [
                Script::re_arm::<Deadlines>,
                Script::re_arm::<Tree>,
                Script::re_arm::<Heap>,
            ],
        ),
        (
            "expire",
            [
                Script::expire::<Deadlines>,
                Script::expire::<Tree>,
                Script::expire::<Heap>,
            ],
        ),
    ];
    for (name, [ours, tree, heap]) in measures {
        Contest::with_untimed(format!("sessions/timers/{TIMERS}/{name}"), |n| ours(&script, n))
            .against_with_untimed("btreeset", |n| tree(&script, n))
            .against_with_untimed("binaryheap", |n| heap(&script, n))
            .run(report, Unit::Nanoseconds);
    }
    let (mut ours, mut tree, mut heap): (Deadlines, Tree, Heap) =
        (script.filled(), script.filled(), script.filled());
    Contest::with_untimed(format!("sessions/timers/{TIMERS}/cycle"), |n| {
        script.cycle(&mut ours, n)
    })
    .against_with_untimed("btreeset", |n| script.cycle(&mut tree, n))
    .against_with_untimed("binaryheap", |n| script.cycle(&mut heap, n))
    .run(report, Unit::Nanoseconds);
    removed(&script);
}

/// Forgetting a peer leaves the others in order.
fn removed(script: &Script) {
    let mut timers: Deadlines = script.filled();
    (0..TIMERS).for_each(|peer| timers.remove(PeerId(peer)));
    assert!(timers.next().is_none());
}

fn milliseconds(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}

fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.next_u32() as usize % (last + 1));
    }
}
