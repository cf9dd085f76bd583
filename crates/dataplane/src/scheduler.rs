//! What leaves next: classes by weight, peers in turn, bounds and ages.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_transport::PeerId;

use crate::outgoing::{Class, Completion, Cost, ENTRY_OVERHEAD};
use crate::unit::{MAX_SEGMENTS, MAX_UNIT_BYTES};

/// Bytes a peer may send in its turn before the next peer of the class has its own: eleven datagrams of
/// 1,472 bytes, since eight already get most of what grouping gives.
const QUANTUM: usize = 16 * 1024;
/// Scale of the virtual times: divisible by every default weight.
const VIRTUAL_SCALE: u64 = 840;

/// Bounds, weight and age of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassLimits {
    /// Share of the rate under contention, as a weight.
    pub(crate) weight: u64,
    /// Most queued datagrams.
    pub(crate) entries: usize,
    /// Most queued bytes, overhead counted.
    pub(crate) bytes: usize,
    /// Older datagrams are dropped instead of sent.
    pub(crate) max_age: Duration,
}

/// One datagram that waits to leave.
pub(crate) struct Entry {
    pub(crate) datagram: Bytes,
    pub(crate) completion: Option<Arc<dyn Completion>>,
    pub(crate) queued: Instant,
}

impl Entry {
    fn cost(&self) -> usize {
        self.datagram.len() + ENTRY_OVERHEAD
    }
}

/// How long a group may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    /// Most bytes, each datagram counted with `overhead`; one datagram is always allowed.
    pub(crate) bytes: usize,
    /// Longer datagrams (overhead not counted, since not every lane adds it) travel alone: no path carries
    /// them as segments.
    pub(crate) segment: usize,
    /// Bytes the frame adds to each datagram.
    pub(crate) overhead: usize,
}

/// Classes share by start-time fair queueing: the class with the smallest virtual time is served, and its
/// time advances by bytes over weight, so each backlogged class gets at least its weight's share and an
/// idle one saves nothing up. Inside a class peers take turns by deficit round robin
/// (docs/spec/threads.md#classes).
pub(crate) struct Scheduler {
    classes: [ClassQueue; Class::COUNT],
    virtual_now: u64,
}

impl Scheduler {
    pub(crate) fn new(limits: [ClassLimits; Class::COUNT]) -> Scheduler {
        Scheduler {
            classes: limits.map(ClassQueue::new),
            virtual_now: 0,
        }
    }

    /// Whether `cost` fits into `class`; an empty class takes anything, so that nothing waits for ever.
    pub(crate) fn has_room(&self, class: Class, cost: Cost) -> bool {
        let queue = &self.classes[class.index()];
        queue.held.entries == 0
            || (queue.held.entries + cost.entries <= queue.limits.entries
                && queue.held.bytes + cost.bytes <= queue.limits.bytes)
    }

    /// Queues a datagram.
    ///
    /// # Errors
    /// Gives the entry back if the class is at its cap (docs/spec/threads.md#queue-bounds).
    pub(crate) fn push(&mut self, class: Class, peer: PeerId, entry: Entry) -> Result<(), Entry> {
        let virtual_now = self.virtual_now;
        self.classes[class.index()].push(virtual_now, peer, entry)
    }

    /// Takes the next group into `group`: datagrams of one peer and class, equal in length but for a
    /// shorter last one. Peers that `holds` names are passed over. What was found too old goes into
    /// `expired` (docs/spec/threads.md#age).
    pub(crate) fn poll_group(
        &mut self,
        now: Instant,
        limits: GroupLimits,
        holds: impl Fn(PeerId) -> bool,
        group: &mut Vec<Entry>,
        expired: &mut Vec<Entry>,
    ) -> Option<(Class, PeerId)> {
        let mut passed_over = [false; Class::COUNT];
        loop {
            let class = Class::ALL
                .into_iter()
                .filter(|class| self.classes[class.index()].held.entries > 0 && !passed_over[class.index()])
                .min_by_key(|class| self.classes[class.index()].virtual_time)?;
            let queue = &mut self.classes[class.index()];
            self.virtual_now = self.virtual_now.max(queue.virtual_time);
            let Some(peer) = queue.next_turn(&holds) else {
                // Being passed over saves nothing up, as being idle does not.
                queue.virtual_time = self.virtual_now;
                passed_over[class.index()] = true;
                continue;
            };
            if queue.take_turn(peer, now, limits, group, expired) {
                return Some((class, peer));
            }
        }
    }

    /// Takes out everything queued for `peer`.
    pub(crate) fn remove_peer(&mut self, peer: PeerId, removed: &mut Vec<(Class, Entry)>) {
        for class in Class::ALL {
            let entries = self.classes[class.index()].remove_peer(peer);
            removed.extend(entries.into_iter().map(|entry| (class, entry)));
        }
    }

    /// Takes out everything.
    pub(crate) fn drain(&mut self, removed: &mut Vec<(Class, Entry)>) {
        for class in Class::ALL {
            while let Some(peer) = self.classes[class.index()].turns.front().copied() {
                let entries = self.classes[class.index()].remove_peer(peer);
                removed.extend(entries.into_iter().map(|entry| (class, entry)));
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.classes.iter().all(|class| class.held.entries == 0)
    }

    /// What is queued in `class`.
    pub(crate) fn depth(&self, class: Class) -> Cost {
        self.classes[class.index()].held
    }
}

struct ClassQueue {
    limits: ClassLimits,
    virtual_time: u64,
    held: Cost,
    peers: HashMap<PeerId, PeerQueue>,
    /// Peers with something queued, in the order of their turns.
    turns: VecDeque<PeerId>,
}

#[derive(Default)]
struct PeerQueue {
    entries: VecDeque<Entry>,
    /// Bytes left of this turn.
    deficit: usize,
}

impl ClassQueue {
    fn new(limits: ClassLimits) -> ClassQueue {
        ClassQueue {
            limits,
            virtual_time: 0,
            held: Cost::default(),
            peers: HashMap::new(),
            turns: VecDeque::new(),
        }
    }

    fn push(&mut self, virtual_now: u64, peer: PeerId, entry: Entry) -> Result<(), Entry> {
        let cost = entry.cost();
        let full = self.held.entries >= self.limits.entries
            || self.held.bytes.saturating_add(cost) > self.limits.bytes;
        if full {
            return Err(entry);
        }
        if self.held.entries == 0 {
            self.virtual_time = self.virtual_time.max(virtual_now);
        }
        self.held.entries += 1;
        self.held.bytes += cost;
        let queue = self.peers.entry(peer).or_default();
        if queue.entries.is_empty() {
            queue.deficit = QUANTUM;
            self.turns.push_back(peer);
        }
        queue.entries.push_back(entry);
        Ok(())
    }

    /// One group of the peer at the front; false if all that was looked at had expired.
    fn take_turn(
        &mut self,
        peer: PeerId,
        now: Instant,
        limits: GroupLimits,
        group: &mut Vec<Entry>,
        expired: &mut Vec<Entry>,
    ) -> bool {
        let Some(queue) = self.peers.get_mut(&peer) else {
            return false;
        };
        let held_before = (expired.len(), group.len());
        while queue
            .entries
            .front()
            .is_some_and(|e| is_expired(e, now, self.limits.max_age))
        {
            expired.extend(queue.entries.pop_front());
        }
        let sent = take_group(queue, limits, group);
        let taken = expired
            .iter()
            .skip(held_before.0)
            .chain(group.iter().skip(held_before.1));
        for entry in taken {
            self.held.entries -= 1;
            self.held.bytes -= entry.cost();
        }
        queue.deficit = queue.deficit.saturating_sub(sent);
        self.virtual_time += sent as u64 * VIRTUAL_SCALE / self.limits.weight.max(1);
        if queue.entries.is_empty() {
            self.peers.remove(&peer);
            self.turns.pop_front();
        }
        sent > 0
    }

    /// The peer at the front, once its turn pays for its next datagram; `None` if each is to be passed over.
    /// A lone peer shares with nobody and has no turns. A datagram costs at most five, so the loop ends.
    fn next_turn(&mut self, holds: &impl Fn(PeerId) -> bool) -> Option<PeerId> {
        let mut passed_over = 0;
        let is_alone = self.turns.len() == 1;
        while passed_over < self.turns.len() {
            let peer = *self.turns.front()?;
            if holds(peer) {
                passed_over += 1;
            } else {
                passed_over = 0;
                let queue = self.peers.get_mut(&peer)?;
                if is_alone {
                    queue.deficit = MAX_UNIT_BYTES;
                }
                let next = queue.entries.front().map_or(0, |entry| entry.datagram.len());
                if queue.deficit >= next {
                    return Some(peer);
                }
                queue.deficit += QUANTUM;
            }
            self.turns.rotate_left(1);
        }
        None
    }

    fn remove_peer(&mut self, peer: PeerId) -> VecDeque<Entry> {
        let Some(queue) = self.peers.remove(&peer) else {
            return VecDeque::new();
        };
        self.turns.retain(|turn| *turn != peer);
        for entry in &queue.entries {
            self.held.entries -= 1;
            self.held.bytes -= entry.cost();
        }
        queue.entries
    }
}

fn is_expired(entry: &Entry, now: Instant, max_age: Duration) -> bool {
    now.saturating_duration_since(entry.queued) > max_age
}

/// Moves the longest allowed run from the front of `queue` into `group`; returns its bytes.
fn take_group(queue: &mut PeerQueue, limits: GroupLimits, group: &mut Vec<Entry>) -> usize {
    let Some(first) = queue.entries.front() else {
        return 0;
    };
    let length = first.datagram.len() + limits.overhead;
    let most = limits.bytes.min(MAX_UNIT_BYTES).min(queue.deficit);
    let mut total = 0;
    for taken in 0..MAX_SEGMENTS {
        let Some(next) = queue.entries.front() else {
            break;
        };
        let next_length = next.datagram.len() + limits.overhead;
        let fits = next_length <= length
            && total + next_length <= most
            && length - limits.overhead <= limits.segment;
        if taken > 0 && !fits {
            break;
        }
        total += next_length;
        group.extend(queue.entries.pop_front());
        if next_length < length {
            break;
        }
    }
    total
}

#[cfg(test)]
mod tests;
