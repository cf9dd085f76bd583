//! One deadline a peer, in a heap that knows where each peer's entry is.

use crate::PeerId;
use std::time::Instant;

const ABSENT: u32 = u32::MAX;

/// Binary min-heap of at most one deadline a peer, so its size is bounded by the number of peers.
///
/// Deadlines are moved lazily: a packet only ever makes one *earlier*, which is rare; one that fires
/// early finds nothing due and is armed anew. So no packet pays for a timer set.
#[derive(Default)]
pub(crate) struct Deadlines {
    heap: Vec<(Instant, u32)>,
    /// Position in `heap` by peer, or [`ABSENT`].
    position: Vec<u32>,
}

impl Deadlines {
    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Makes sure that `peer` fires at `at` or earlier.
    #[inline]
    pub(crate) fn arm(&mut self, peer: PeerId, at: Instant) {
        match self.position.get(peer.slot()) {
            Some(&place) if place != ABSENT => {
                let place = place as usize;
                if at < self.heap[place].0 {
                    self.heap[place].0 = at;
                    self.rise(place);
                }
            }
            _ => self.insert(peer, at),
        }
    }

    /// Takes the earliest deadline out if it is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<PeerId> {
        let &(at, peer) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.remove(PeerId(peer));
        Some(PeerId(peer))
    }

    /// Forgets the deadline of `peer`, if any.
    pub(crate) fn remove(&mut self, peer: PeerId) {
        let Some(&place) = self.position.get(peer.slot()) else {
            return;
        };
        if place == ABSENT {
            return;
        }
        let place = place as usize;
        self.position[peer.slot()] = ABSENT;
        self.heap.swap_remove(place);
        if let Some(&(_, moved)) = self.heap.get(place) {
            self.position[moved as usize] = place as u32;
            self.rise(place);
            self.sink(self.position[moved as usize] as usize);
        }
    }

    fn insert(&mut self, peer: PeerId, at: Instant) {
        if self.position.len() <= peer.slot() {
            self.position.resize(peer.slot() + 1, ABSENT);
        }
        let place = self.heap.len();
        self.position[peer.slot()] = place as u32;
        self.heap.push((at, peer.0));
        self.rise(place);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].0 <= self.heap[place].0 {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(&(mut least, _)) = self.heap.get(left) else {
                break;
            };
            let mut child = left;
            if let Some(&(right, _)) = self.heap.get(left + 1)
                && right < least
            {
                (least, child) = (right, left + 1);
            }
            if self.heap[place].0 <= least {
                break;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.position[self.heap[a].1 as usize] = a as u32;
        self.position[self.heap[b].1 as usize] = b as u32;
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::time::Duration;

    proptest! {
        /// Against a map: the same deadlines, in order, and never more entries than peers.
        #[test]
        fn behaves_as_a_sorted_map(steps in prop::collection::vec((0u32..12, 0u64..100, 0u8..4), 1..200)) {
            let start = Instant::now();
            let (mut heap, mut model) = (Deadlines::default(), HashMap::<u32, Instant>::new());
            for (peer, ms, step) in steps {
                let at = start + Duration::from_millis(ms);
                match step {
                    0 => {
                        heap.remove(PeerId(peer));
                        model.remove(&peer);
                    }
                    1 => {
                        let due = heap.pop_due(at);
                        let earliest = model.values().min().copied();
                        prop_assert_eq!(due.is_some(), earliest.is_some_and(|e| e <= at));
                        if let Some(due) = due {
                            prop_assert_eq!(model.remove(&due.0), earliest);
                        }
                    }
                    _ => {
                        heap.arm(PeerId(peer), at);
                        let entry = model.entry(peer).or_insert(at);
                        *entry = at.min(*entry);
                    }
                }
                prop_assert_eq!(heap.next(), model.values().min().copied());
                prop_assert_eq!(heap.heap.len(), model.len());
            }
        }
    }
}
