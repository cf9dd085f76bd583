//! Runs with and without an attack in turns.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use falconet_benches::flood::Flood;
use falconet_benches::machine::{pin, processor_time, resident};
use falconet_benches::rig::SENDER;

use crate::attacks::{Generator, Kind};
use crate::cluster::{Cluster, NODES, Traffic, VICTIM};

/// Pairs and length of a run, and the same of a quick one.
const FULL: (usize, Duration) = (10, Duration::from_millis(2_300));
const QUICK: (usize, Duration) = (3, Duration::from_millis(1_500));
/// Threads of a node.
pub(crate) const THREADS: [&str; 3] = ["data", "hs", "cast"];

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) traffic: Traffic,
    /// Datagrams of the attack a second.
    pub(crate) rate: f64,
    /// Of the victim's threads, in percent of a core.
    pub(crate) threads: [f64; 3],
    /// Of all threads of all nodes.
    pub(crate) cluster: f64,
    /// Bytes.
    pub(crate) resident: f64,
}

/// All runs of a row.
pub(crate) struct Found {
    pub(crate) base: Vec<Run>,
    pub(crate) attacked: Vec<Run>,
    /// Before the first run.
    pub(crate) resident_before: f64,
    /// What the victim discarded while it was attacked, most of it first.
    pub(crate) discards: Vec<(&'static str, u64)>,
}

pub(crate) fn measure(
    cluster: &mut Cluster,
    mut generator: Generator<'_>,
    (kind, rate): (Kind, Option<f64>),
    is_quick: bool,
) -> Found {
    let (pairs, time) = if is_quick { QUICK } else { FULL };
    // What the caches take at first is not the attack's.
    let mut found = Found {
        base: Vec::new(),
        attacked: Vec::new(),
        resident_before: run(cluster, &mut generator, None, time).resident,
        discards: Vec::new(),
    };
    for pair in 0..pairs {
        // Every second pair runs backwards, so that neither always runs after the other.
        for turn in 0..2 {
            if (pair + turn) % 2 == 0 {
                found.base.push(run(cluster, &mut generator, None, time));
            } else {
                let before = cluster.stats();
                found
                    .attacked
                    .push(run(cluster, &mut generator, Some((kind, rate)), time));
                add(&mut found.discards, &before.discards, &cluster.stats().discards);
            }
        }
    }
    found.discards.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}

/// `attack`: its kind and rate; none for a base run.
fn run(
    cluster: &mut Cluster,
    generator: &mut Generator<'_>,
    attack: Option<(Kind, Option<f64>)>,
    time: Duration,
) -> Run {
    if attack.is_some() {
        generator.prepare();
    }
    let is_unread = attack.is_some_and(|(kind, _)| kind == Kind::Unread);
    cluster.is_unread.store(is_unread, Ordering::Relaxed);
    let (started, sent) = (Instant::now(), generator.datagrams);
    let (before, all_before) = (victims_threads(), clusters_threads());
    let traffic = std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            pin(SENDER);
            let rate = attack.map_or(Some(0.0), |(_, rate)| rate);
            Flood::new(generator.target(), rate, time).run(generator.burst(), |_| generator.send());
        });
        let traffic = cluster.run(time);
        flood.join().expect("no panic");
        traffic
    });
    let elapsed = started.elapsed().as_secs_f64();
    let percent = |now: Duration, before| 100.0 * now.saturating_sub(before).as_secs_f64() / elapsed;
    let (after, all_after) = (victims_threads(), clusters_threads());
    Run {
        rate: (generator.datagrams - sent) as f64 / time.as_secs_f64(),
        threads: std::array::from_fn(|thread| percent(after[thread], before[thread])),
        cluster: percent(all_after, all_before),
        resident: resident() as f64,
        traffic,
    }
}

fn victims_threads() -> [Duration; 3] {
    THREADS.map(|thread| processor_time(&format!("n{VICTIM}-{thread}")))
}

fn clusters_threads() -> Duration {
    let threads = (0..NODES).flat_map(|node| THREADS.map(|thread| format!("n{node}-{thread}")));
    threads.map(|thread| processor_time(&thread)).sum()
}

fn add(sums: &mut Vec<(&'static str, u64)>, before: &[(&'static str, u64)], after: &[(&'static str, u64)]) {
    for (label, count) in after {
        let earlier = before.iter().find(|(have, _)| have == label);
        let more = count - earlier.map_or(0, |(_, count)| *count);
        match sums.iter_mut().find(|(have, _)| have == label) {
            Some((_, sum)) => *sum += more,
            None if more > 0 => sums.push((label, more)),
            None => {}
        }
    }
}
