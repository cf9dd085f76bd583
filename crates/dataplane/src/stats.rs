//! Counting in plain fields on the owner's thread, published once a turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use falconet_transport::Lane;

use crate::drop_reason::DropReason;
use crate::histogram::{Histogram, Recorder};
use crate::outgoing::{Class, Cost};

/// One cheap snapshot of a dataplane; every count starts at 0 with the dataplane and only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The authenticated lane, handshake messages included.
    pub authenticated: LaneStats,
    /// The plain lane.
    pub plain: LaneStats,
    /// Received datagrams that reached no consumer, by reason (docs/spec/threads.md#discards).
    pub discards: Vec<(&'static str, u64)>,
    /// Datagrams to send that did not leave, by reason (docs/spec/threads.md#drops).
    pub drops: Vec<(&'static str, u64)>,
    /// The send queues and what has left by them, in the order of [`Class::ALL`]. What is received has no class: that
    /// is not on the wire.
    pub queues: [QueueStats; Class::COUNT],
    /// Groups in flight on the emulated link.
    pub delay_line: u64,
    /// Datagrams that wait for the handshake thread.
    pub handshake_queue: u64,
    /// Receive calls that failed with something other than "nothing there".
    pub receive_errors: u64,
    /// How long sealing one datagram takes, sampled once a group: its first datagram.
    pub sealing: Histogram,
    /// How long judging one datagram of the authenticated lane takes if it is opened, sampled once a receive call: the
    /// first one of it.
    pub opening: Histogram,
    /// What the dataplane thread does with its time.
    pub data_thread: ThreadStats,
    /// What the handshake thread does with its time.
    pub handshake_thread: ThreadStats,
}

/// What a thread does with its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// Turns of its loop.
    pub turns: u64,
    /// Times it went to sleep.
    pub naps: u64,
    /// Time asleep. The nap that it may be taking is not in it yet.
    pub asleep: Duration,
    /// Time since it was started, up to its last turn.
    pub up: Duration,
}

impl ThreadStats {
    /// Share of the time in which it was not asleep since `before`, 0.0 to 1.0. It may have waited for a
    /// processor meanwhile: near 1.0 the node is at its limit, whatever the reason.
    #[must_use]
    pub fn busy_fraction(&self, before: &ThreadStats) -> f64 {
        let up = self.up.saturating_sub(before.up).as_secs_f64();
        let asleep = self.asleep.saturating_sub(before.asleep).as_secs_f64();
        if up > 0.0 {
            (1.0 - asleep / up).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

/// Traffic of one lane; bytes are UDP payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// System calls that sent them: datagrams over sends are the segments a group.
    pub sends: u64,
    /// Datagrams received, the discarded ones included.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Aggregates that carried them: datagrams over receives are the segments an aggregate.
    pub receives: u64,
}

impl LaneStats {
    /// Segments a grouped send, on average; 0.0 before the first one.
    #[must_use]
    pub fn segments_a_send(&self) -> f64 {
        average(self.datagrams_sent, self.sends)
    }

    /// Datagrams of a received aggregate, on average; 0.0 before the first one.
    #[must_use]
    pub fn segments_a_receive(&self) -> f64 {
        average(self.datagrams_received, self.receives)
    }
}

fn average(sum: u64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        sum as f64 / count as f64
    }
}

/// One class's send queue at the time of the snapshot, and what has left by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Submissions that the dataplane thread has not taken.
    pub submissions: u64,
    /// Datagrams scheduled, times recipients.
    pub entries: u64,
    /// Their bytes, overhead of an entry counted.
    pub bytes: u64,
    /// Datagrams handed to the kernel, or to the emulated link; handshakes and keepalives have no class.
    pub datagrams_sent: u64,
    /// Their bytes of UDP payload.
    pub bytes_sent: u64,
    /// How long the datagram that left last had waited in the scheduler.
    pub age: Duration,
    /// The longest that any datagram that left had waited there.
    pub longest_age: Duration,
}

impl Stats {
    /// The traffic of `lane`.
    #[must_use]
    pub fn lane(&self, lane: Lane) -> &LaneStats {
        match lane {
            Lane::Authenticated => &self.authenticated,
            Lane::Plain => &self.plain,
        }
    }

    /// Discards by `reason`.
    #[must_use]
    pub fn discarded(&self, reason: &str) -> u64 {
        count_of(&self.discards, reason)
    }

    /// Drops by `reason`.
    #[must_use]
    pub fn dropped(&self, reason: &str) -> u64 {
        count_of(&self.drops, reason)
    }
}

fn count_of(counts: &[(&'static str, u64)], label: &str) -> u64 {
    counts.iter().filter(|(l, _)| *l == label).map(|(_, n)| n).sum()
}

/// Most different discard labels; more than all crates together have.
const MAX_LABELS: usize = 96;
const QUEUE_GAUGES: usize = 7;
const GAUGES: usize = 2 + QUEUE_GAUGES * Class::COUNT;
/// Receive errors, turns, naps, nanoseconds asleep, nanoseconds up.
const TOTALS: usize = 5;

/// What one thread counts, in plain fields.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lanes: [LaneStats; 2],
    drops: [u64; DropReason::ALL.len()],
    discards: Vec<(&'static str, u64)>,
    receive_errors: u64,
    turns: u64,
    naps: u64,
    asleep: Duration,
    started: Option<Instant>,
    up: Duration,
    gauges: [u64; GAUGES],
    pub(crate) timings: Arc<Timings>,
}

/// How long the operations on datagrams take.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    pub(crate) sealing: Recorder,
    pub(crate) opening: Recorder,
}

impl Counters {
    pub(crate) fn note_sent(&mut self, lane: Lane, datagrams: usize, bytes: usize) {
        let lane = &mut self.lanes[lane_index(lane)];
        lane.sends += 1;
        lane.datagrams_sent += datagrams as u64;
        lane.bytes_sent += bytes as u64;
    }

    pub(crate) fn note_received(&mut self, lane: Lane, datagrams: usize, bytes: usize) {
        let lane = &mut self.lanes[lane_index(lane)];
        lane.receives += 1;
        lane.datagrams_received += datagrams as u64;
        lane.bytes_received += bytes as u64;
    }

    pub(crate) fn note_dropped(&mut self, reason: DropReason, datagrams: usize) {
        self.drops[reason as usize] += datagrams as u64;
    }

    pub(crate) fn note_discarded(&mut self, label: &'static str, datagrams: usize) {
        if let Some((_, count)) = self.discards.iter_mut().find(|(l, _)| *l == label) {
            *count += datagrams as u64;
        } else if self.discards.len() < MAX_LABELS {
            self.discards.push((label, datagrams as u64));
        }
    }

    pub(crate) fn note_receive_error(&mut self) {
        self.receive_errors += 1;
    }

    pub(crate) fn note_turn(&mut self, now: Instant) {
        self.turns += 1;
        self.up = now.saturating_duration_since(*self.started.get_or_insert(now));
    }

    pub(crate) fn note_nap(&mut self, asleep: Duration) {
        self.naps += 1;
        self.asleep += asleep;
    }

    /// A datagram of `class` left after it had waited for `age`.
    pub(crate) fn note_age(&mut self, class: Class, age: Duration) {
        let at = 2 + QUEUE_GAUGES * class.index();
        self.gauges[at + 3] = nanoseconds(age);
        self.gauges[at + 4] = self.gauges[at + 4].max(nanoseconds(age));
    }

    /// Datagrams of `class` left.
    pub(crate) fn note_left(&mut self, class: Class, datagrams: usize, bytes: usize) {
        let at = 2 + QUEUE_GAUGES * class.index();
        self.gauges[at + 5] += datagrams as u64;
        self.gauges[at + 6] += bytes as u64;
    }

    pub(crate) fn set_delay_line(&mut self, groups: usize) {
        self.gauges[0] = groups as u64;
    }

    pub(crate) fn set_handshake_queue(&mut self, datagrams: usize) {
        self.gauges[1] = datagrams as u64;
    }

    pub(crate) fn set_queue(&mut self, class: Class, submissions: usize, scheduled: Cost) {
        let at = 2 + QUEUE_GAUGES * class.index();
        self.gauges[at] = submissions as u64;
        self.gauges[at + 1] = scheduled.entries as u64;
        self.gauges[at + 2] = scheduled.bytes as u64;
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let lanes = self.lanes.iter().flat_map(|lane| {
            [
                lane.datagrams_sent,
                lane.bytes_sent,
                lane.sends,
                lane.datagrams_received,
                lane.bytes_received,
                lane.receives,
            ]
        });
        lanes
            .chain(self.drops)
            .chain([
                self.receive_errors,
                self.turns,
                self.naps,
                nanoseconds(self.asleep),
                nanoseconds(self.up),
            ])
            .chain(self.gauges)
    }
}

const LANE_FIELDS: usize = 6;
const DROPS_AT: usize = 2 * LANE_FIELDS;
const TOTALS_AT: usize = DROPS_AT + DropReason::ALL.len();
const GAUGES_AT: usize = TOTALS_AT + TOTALS;
const NUMBERS: usize = GAUGES_AT + GAUGES;

/// What one thread has published: written by that thread once a turn, read by anybody at any time
/// (docs/spec/threads.md#counting).
#[derive(Debug)]
pub(crate) struct Published {
    numbers: [AtomicU64; NUMBERS],
    labels: [(OnceLock<&'static str>, AtomicU64); MAX_LABELS],
}

impl Default for Published {
    fn default() -> Self {
        Published {
            numbers: std::array::from_fn(|_| AtomicU64::new(0)),
            labels: std::array::from_fn(|_| (OnceLock::new(), AtomicU64::new(0))),
        }
    }
}

impl Published {
    /// Publishes `counters`; plain stores, since there is one writer.
    pub(crate) fn publish(&self, counters: &Counters) {
        for (slot, value) in self.numbers.iter().zip(counters.numbers()) {
            slot.store(value, Ordering::Relaxed);
        }
        for ((label, count), (name, value)) in self.labels.iter().zip(&counters.discards) {
            label.get_or_init(|| name);
            count.store(*value, Ordering::Relaxed);
        }
    }

    /// Adds what is published here to `stats`.
    pub(crate) fn add_to(&self, stats: &mut Stats) {
        let at = |i: usize| self.numbers[i].load(Ordering::Relaxed);
        for (lane, from) in [(&mut stats.authenticated, 0), (&mut stats.plain, LANE_FIELDS)] {
            lane.datagrams_sent += at(from);
            lane.bytes_sent += at(from + 1);
            lane.sends += at(from + 2);
            lane.datagrams_received += at(from + 3);
            lane.bytes_received += at(from + 4);
            lane.receives += at(from + 5);
        }
        for reason in DropReason::ALL {
            add(&mut stats.drops, reason.label(), at(DROPS_AT + reason as usize));
        }
        for (label, count) in &self.labels {
            if let Some(label) = label.get() {
                add(&mut stats.discards, label, count.load(Ordering::Relaxed));
            }
        }
        stats.receive_errors += at(TOTALS_AT);
        stats.delay_line += at(GAUGES_AT);
        stats.handshake_queue += at(GAUGES_AT + 1);
        for (i, queue) in stats.queues.iter_mut().enumerate() {
            let first = GAUGES_AT + 2 + QUEUE_GAUGES * i;
            queue.submissions += at(first);
            queue.entries += at(first + 1);
            queue.bytes += at(first + 2);
            queue.age += Duration::from_nanos(at(first + 3));
            queue.longest_age += Duration::from_nanos(at(first + 4));
            queue.datagrams_sent += at(first + 5);
            queue.bytes_sent += at(first + 6);
        }
    }

    /// Datagrams that the thread has sent on the authenticated lane, and their bytes.
    pub(crate) fn sent_authenticated(&self) -> (u64, u64) {
        let at = |i: usize| self.numbers[i].load(Ordering::Relaxed);
        (at(0), at(1))
    }

    /// What the thread that publishes here does with its time.
    pub(crate) fn thread(&self) -> ThreadStats {
        let at = |i: usize| self.numbers[TOTALS_AT + i].load(Ordering::Relaxed);
        ThreadStats {
            turns: at(1),
            naps: at(2),
            asleep: Duration::from_nanos(at(3)),
            up: Duration::from_nanos(at(4)),
        }
    }
}

pub(crate) fn add(counts: &mut Vec<(&'static str, u64)>, label: &'static str, count: u64) {
    if count == 0 {
        return;
    }
    match counts.iter_mut().find(|(l, _)| *l == label) {
        Some((_, sum)) => *sum += count,
        None => counts.push((label, count)),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

const fn lane_index(lane: Lane) -> usize {
    match lane {
        Lane::Authenticated => 0,
        Lane::Plain => 1,
    }
}

#[cfg(test)]
mod tests;
