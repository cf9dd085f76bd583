//! Counting in plain fields on the owner's thread, published once a turn.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use falconet_transport::Lane;

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
    /// The send queues, in the order of [`Class::ALL`].
    pub queues: [QueueStats; Class::COUNT],
    /// Groups in flight on the emulated link.
    pub delay_line: u64,
    /// Datagrams that wait for the handshake thread.
    pub handshake_queue: u64,
    /// Receive calls that failed with something other than "nothing there".
    pub receive_errors: u64,
    /// Turns of the dataplane thread.
    pub turns: u64,
    /// Times the dataplane thread went to sleep.
    pub naps: u64,
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

/// One class's send queue at the time of the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Submissions that the dataplane thread has not taken.
    pub submissions: u64,
    /// Datagrams scheduled, times recipients.
    pub entries: u64,
    /// Their bytes, overhead of an entry counted.
    pub bytes: u64,
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

/// Why a datagram that was to be sent did not leave; the label is the metric label
/// (docs/spec/threads.md#drops).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    QueueFull,
    Expired,
    PeerRemoved,
    Shutdown,
    NoSocket,
    Unroutable,
    Empty,
    TooLong,
    SendRefused,
    BufferFull,
    HandshakeTimeout,
    Backlog,
    NotPermitted,
    Unreachable,
    Refused,
    SendError,
    EmulatedLoss,
    DelayLineFull,
}

impl DropReason {
    const ALL: [DropReason; 18] = [
        DropReason::QueueFull,
        DropReason::Expired,
        DropReason::PeerRemoved,
        DropReason::Shutdown,
        DropReason::NoSocket,
        DropReason::Unroutable,
        DropReason::Empty,
        DropReason::TooLong,
        DropReason::SendRefused,
        DropReason::BufferFull,
        DropReason::HandshakeTimeout,
        DropReason::Backlog,
        DropReason::NotPermitted,
        DropReason::Unreachable,
        DropReason::Refused,
        DropReason::SendError,
        DropReason::EmulatedLoss,
        DropReason::DelayLineFull,
    ];

    const fn label(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Expired => "expired",
            DropReason::PeerRemoved => "peer_removed",
            DropReason::Shutdown => "shutdown",
            DropReason::NoSocket => "no_socket",
            DropReason::Unroutable => "unroutable",
            DropReason::Empty => "empty",
            DropReason::TooLong => "too_long",
            DropReason::SendRefused => "send_refused",
            DropReason::BufferFull => "buffer_full",
            DropReason::HandshakeTimeout => "handshake_timeout",
            DropReason::Backlog => "backlog",
            DropReason::NotPermitted => "not_permitted",
            DropReason::Unreachable => "unreachable",
            DropReason::Refused => "refused",
            DropReason::SendError => "send_error",
            DropReason::EmulatedLoss => "emulated_loss",
            DropReason::DelayLineFull => "delay_line_full",
        }
    }
}

/// Most different discard labels; more than all crates together have.
const MAX_LABELS: usize = 96;
const GAUGES: usize = 2 + 3 * Class::COUNT;

/// What one thread counts, in plain fields.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lanes: [LaneStats; 2],
    drops: [u64; DropReason::ALL.len()],
    discards: Vec<(&'static str, u64)>,
    receive_errors: u64,
    turns: u64,
    naps: u64,
    gauges: [u64; GAUGES],
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

    pub(crate) fn note_turn(&mut self) {
        self.turns += 1;
    }

    pub(crate) fn note_nap(&mut self) {
        self.naps += 1;
    }

    pub(crate) fn set_delay_line(&mut self, groups: usize) {
        self.gauges[0] = groups as u64;
    }

    pub(crate) fn set_handshake_queue(&mut self, datagrams: usize) {
        self.gauges[1] = datagrams as u64;
    }

    pub(crate) fn set_queue(&mut self, class: Class, submissions: usize, scheduled: Cost) {
        let at = 2 + 3 * class.index();
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
            .chain([self.receive_errors, self.turns, self.naps])
            .chain(self.gauges)
    }
}

const LANE_FIELDS: usize = 6;
const DROPS_AT: usize = 2 * LANE_FIELDS;
const TOTALS_AT: usize = DROPS_AT + DropReason::ALL.len();
const GAUGES_AT: usize = TOTALS_AT + 3;
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
        stats.turns += at(TOTALS_AT + 1);
        stats.naps += at(TOTALS_AT + 2);
        stats.delay_line += at(GAUGES_AT);
        stats.handshake_queue += at(GAUGES_AT + 1);
        for (i, queue) in stats.queues.iter_mut().enumerate() {
            queue.submissions += at(GAUGES_AT + 2 + 3 * i);
            queue.entries += at(GAUGES_AT + 3 + 3 * i);
            queue.bytes += at(GAUGES_AT + 4 + 3 * i);
        }
    }
}

fn add(counts: &mut Vec<(&'static str, u64)>, label: &'static str, count: u64) {
    if count == 0 {
        return;
    }
    match counts.iter_mut().find(|(l, _)| *l == label) {
        Some((_, sum)) => *sum += count,
        None => counts.push((label, count)),
    }
}

const fn lane_index(lane: Lane) -> usize {
    match lane {
        Lane::Authenticated => 0,
        Lane::Plain => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_shows_what_was_counted() {
        let mut counters = Counters::default();
        counters.note_sent(Lane::Plain, 3, 300);
        counters.note_received(Lane::Authenticated, 2, 20);
        counters.note_dropped(DropReason::DelayLineFull, 5);
        counters.note_dropped(DropReason::QueueFull, 6);
        counters.note_discarded("bad_tag", 7);
        counters.note_discarded("bad_tag", 1);
        counters.note_nap();
        let depth = Cost { entries: 8, bytes: 9 };
        counters.set_queue(Class::Control, 4, depth);
        let published = Published::default();
        published.publish(&counters);
        published.publish(&counters);
        let mut stats = Stats::default();
        published.add_to(&mut stats);
        assert_eq!(stats.lane(Lane::Plain).datagrams_sent, 3);
        assert_eq!(stats.plain.bytes_sent, 300);
        assert_eq!(stats.authenticated.datagrams_received, 2);
        assert_eq!(
            (stats.dropped("delay_line_full"), stats.dropped("queue_full")),
            (5, 6)
        );
        assert_eq!(stats.discards, [("bad_tag", 8)]);
        assert_eq!((stats.turns, stats.naps), (0, 1));
        let queue = QueueStats {
            submissions: 4,
            entries: 8,
            bytes: 9,
        };
        assert_eq!(
            stats.queues,
            [
                QueueStats::default(),
                QueueStats::default(),
                QueueStats::default(),
                queue
            ]
        );
    }

    #[test]
    fn labels_of_two_threads_add_up() {
        let mut stats = Stats::default();
        for _ in 0..2 {
            let (mut counters, published) = (Counters::default(), Published::default());
            counters.note_discarded("empty", 2);
            published.publish(&counters);
            published.add_to(&mut stats);
        }
        assert_eq!(stats.discarded("empty"), 4);
    }

    #[test]
    fn reasons_are_listed_in_their_order_and_named_once() {
        for (i, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, i);
            let same = DropReason::ALL.iter().filter(|r| r.label() == reason.label());
            assert_eq!(same.count(), 1);
        }
    }
}
