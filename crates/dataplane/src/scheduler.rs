//! What leaves next: classes by weight, bounds and ages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_transport::PeerId;

use crate::class_queue::ClassQueue;
use crate::outgoing::{Class, Completion, Cost};
use crate::payloads::{Payloads, Run};

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
    payloads: Payloads,
    virtual_now: u64,
}

impl Scheduler {
    /// A peer sends up to `quantum` bytes in its turn.
    pub(crate) fn new(limits: [ClassLimits; Class::COUNT], quantum: usize) -> Scheduler {
        Scheduler {
            classes: limits.map(|limits| ClassQueue::new(limits, quantum)),
            payloads: Payloads::default(),
            virtual_now: 0,
        }
    }

    /// Whether `cost` fits into `class`; an empty class takes anything, so that nothing waits for ever.
    pub(crate) fn has_room(&self, class: Class, cost: Cost) -> bool {
        let queue = &self.classes[class.index()];
        queue.held.entries == 0 || queue.fits(cost)
    }

    /// Queues `datagrams` for each of `peers`; returns how many of them, from the end, do not fit within the
    /// class's caps (docs/spec/threads.md#queue-bounds).
    pub(crate) fn push(
        &mut self,
        now: Instant,
        class: Class,
        peers: &[PeerId],
        mut datagrams: Vec<Bytes>,
        completion: Option<Arc<dyn Completion>>,
    ) -> usize {
        let queue = &mut self.classes[class.index()];
        let offered = datagrams.len();
        datagrams.truncate(queue.room_for(&datagrams, peers.len()));
        let refused = offered - datagrams.len();
        if datagrams.is_empty() || peers.is_empty() {
            return refused;
        }
        let run = self.payloads.insert(datagrams, completion, peers.len(), now);
        let cost = self.payloads.cost(&run);
        for peer in peers {
            queue.push(self.virtual_now, *peer, run, cost);
        }
        refused
    }

    /// Takes the next group into `group`: datagrams of one peer and class, equal in length but for a
    /// shorter last one. Peers that `holds` names are passed over. What was found too old goes into
    /// `expired` (docs/spec/threads.md#age). The runs in both are to be released.
    pub(crate) fn poll_group(
        &mut self,
        now: Instant,
        limits: GroupLimits,
        mut holds: impl FnMut(PeerId) -> bool,
        group: &mut Vec<Run>,
        expired: &mut Vec<Run>,
    ) -> Option<(Class, PeerId)> {
        let mut passed_over = [false; Class::COUNT];
        loop {
            let class = Class::ALL
                .into_iter()
                .filter(|class| self.classes[class.index()].held.entries > 0 && !passed_over[class.index()])
                .min_by_key(|class| self.classes[class.index()].virtual_time)?;
            let queue = &mut self.classes[class.index()];
            self.virtual_now = self.virtual_now.max(queue.virtual_time);
            let Some(peer) = queue.next_turn(&mut holds) else {
                // Being passed over saves nothing up, as being idle does not.
                queue.virtual_time = self.virtual_now;
                passed_over[class.index()] = true;
                continue;
            };
            queue.expire(&self.payloads, peer, now, expired);
            if queue.take_turn(&mut self.payloads, peer, limits, group) {
                return Some((class, peer));
            }
        }
    }

    /// The datagrams of `run`.
    pub(crate) fn datagrams(&self, run: &Run) -> &[Bytes] {
        self.payloads.datagrams(run)
    }

    /// Who is told of the datagrams of `run`.
    pub(crate) fn completion(&self, run: &Run) -> Option<&Arc<dyn Completion>> {
        self.payloads.completion(run)
    }

    /// A run that was taken is done with.
    pub(crate) fn release(&mut self, run: Run) {
        self.payloads.release(run);
    }

    /// Takes out everything queued for `peer`.
    pub(crate) fn remove_peer(&mut self, peer: PeerId, removed: &mut Vec<Run>) {
        for class in &mut self.classes {
            class.remove_peer(&self.payloads, peer, removed);
        }
    }

    /// Takes out everything.
    pub(crate) fn drain(&mut self, removed: &mut Vec<Run>) {
        for class in &mut self.classes {
            while let Some(peer) = class.first_peer() {
                class.remove_peer(&self.payloads, peer, removed);
            }
        }
    }

    /// Whether anything is queued for `peer`.
    pub(crate) fn has(&self, peer: PeerId) -> bool {
        self.classes.iter().any(|class| class.has(peer))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.classes.iter().all(|class| class.held.entries == 0)
    }

    /// What is queued in `class`.
    pub(crate) fn depth(&self, class: Class) -> Cost {
        self.classes[class.index()].held
    }
}

#[cfg(test)]
mod tests;
