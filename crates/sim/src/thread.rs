//! A thread of a node: an inbox, and the core that it runs on.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;

/// Which thread of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Data,
    Handshake,
    Cast,
}

/// What waits for a thread, and when it will look.
#[derive(Debug)]
pub(crate) struct Thread<T> {
    inbox: VecDeque<(Time, T)>,
    capacity: usize,
    /// Index of the core it runs on.
    pub(crate) core: usize,
    /// When its next turn is; earlier ones that were planned are void.
    pub(crate) turn: Option<Time>,
    /// Items that found the inbox full.
    pub(crate) dropped: u64,
}

impl<T> Thread<T> {
    pub(crate) fn new(core: usize, capacity: usize) -> Self {
        Self {
            inbox: VecDeque::new(),
            capacity,
            core,
            turn: None,
            dropped: 0,
        }
    }

    /// Puts an item in, for from `ready` on; readiness never goes back. False if it was dropped.
    pub(crate) fn push(&mut self, ready: Time, item: T) -> bool {
        if self.inbox.len() >= self.capacity {
            self.dropped += 1;
            return false;
        }
        self.inbox.push_back((ready, item));
        true
    }

    /// The oldest item, if it is ready.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        if self.inbox.front()?.0 > now {
            return None;
        }
        self.inbox.pop_front()
    }

    /// When the oldest item is or was ready.
    pub(crate) fn next_ready(&self) -> Option<Time> {
        self.inbox.front().map(|(ready, _)| *ready)
    }

    pub(crate) fn clear(&mut self) {
        self.inbox.clear();
        self.turn = None;
    }
}

/// The cores of the simulated machines: when each is free again, and how long it has worked.
#[derive(Debug)]
pub(crate) struct Cores(Vec<Core>);

#[derive(Clone, Copy, Debug, Default)]
struct Core {
    free_at: Time,
    busy: Duration,
}

impl Cores {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![Core::default(); count])
    }

    pub(crate) fn free_at(&self, core: usize) -> Time {
        self.0[core].free_at
    }

    /// Occupies the core from `start`, or from when it is free, for as long as `cost`; returns when that ends.
    pub(crate) fn charge(&mut self, core: usize, start: Time, cost: Duration) -> Time {
        let core = &mut self.0[core];
        core.free_at = core.free_at.max(start) + cost;
        core.busy += cost;
        core.free_at
    }

    /// How long all cores together have worked.
    pub(crate) fn busy(&self) -> Duration {
        self.0.iter().map(|core| core.busy).sum()
    }
}
