//! One deadline a peer, in a heap that knows where each peer's entry is.

use crate::PeerId;
use std::time::{Duration, Instant};

const ABSENT: u32 = u32::MAX;
/// Children of an entry: with four the heap is half as deep, and they lie side by side.
const CHILDREN: usize = 4;

/// Nanoseconds since the first deadline there was, and whose it is.
type Entry = (i64, u32);

/// Min-heap of at most one deadline a peer, so its size is bounded by the number of peers.
///
/// Deadlines are moved lazily: a packet only ever makes one *earlier*, which is rare; one that fires
/// early finds nothing due and is armed anew. So no packet pays for a timer set.
#[derive(Default)]
pub struct Deadlines {
    heap: Vec<Entry>,
    start: Option<Instant>,
    /// Position in `heap` by peer, or [`ABSENT`].
    position: Vec<u32>,
}

impl Deadlines {
    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        let (&(at, _), start) = (self.heap.first()?, self.start?);
        let distance = Duration::from_nanos(at.unsigned_abs());
        Some(if at < 0 {
            start - distance
        } else {
            start + distance
        })
    }

    /// Makes sure that `peer` fires at `at` or earlier.
    #[inline]
    pub fn arm(&mut self, peer: PeerId, at: Instant) {
        let at = nanoseconds(*self.start.get_or_insert(at), at);
        match self.position.get(peer.slot()) {
            Some(&place) if place != ABSENT => {
                let place = place as usize;
                if at < self.heap[place].0 {
                    self.rise(place, (at, peer.0));
                }
            }
            _ => self.insert(peer, at),
        }
    }

    /// Takes the earliest deadline out if it is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<PeerId> {
        let &(at, peer) = self.heap.first()?;
        if at > nanoseconds(self.start?, now) {
            return None;
        }
        self.remove(PeerId(peer));
        Some(PeerId(peer))
    }

    /// Forgets the deadline of `peer`, if any.
    pub fn remove(&mut self, peer: PeerId) {
        let Some(&place) = self.position.get(peer.slot()) else {
            return;
        };
        if place == ABSENT {
            return;
        }
        let place = place as usize;
        self.position[peer.slot()] = ABSENT;
        // The last entry takes the place, or one further up or down.
        let Some(last) = self.heap.pop() else { return };
        if place < self.heap.len() {
            let hole = self.sink(place);
            self.rise(hole, last);
        }
    }

    fn insert(&mut self, peer: PeerId, at: i64) {
        if self.position.len() <= peer.slot() {
            self.position.resize(peer.slot() + 1, ABSENT);
        }
        let entry = (at, peer.0);
        self.heap.push(entry);
        self.rise(self.heap.len() - 1, entry);
    }

    /// Puts `entry` into the hole at `place`, or where its later parents make room.
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent].0 <= entry.0 {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    /// Moves the hole at `place` down to a leaf. What fills it was a leaf, so it mostly stays one: to rise from
    /// there takes fewer comparisons than to ask at every step.
    fn sink(&mut self, mut place: usize) -> usize {
        loop {
            let first = CHILDREN * place + 1;
            let end = self.heap.len().min(first + CHILDREN);
            if first >= end {
                return place;
            }
            let mut child = first;
            for other in first + 1..end {
                if self.heap[other].0 < self.heap[child].0 {
                    child = other;
                }
            }
            self.put(place, self.heap[child]);
            place = child;
        }
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.position[entry.1 as usize] = place as u32;
    }
}

/// From `start` to `at`; 292 years are as far as it goes.
fn nanoseconds(start: Instant, at: Instant) -> i64 {
    let distance = |from: Instant, to: Instant| {
        let nanoseconds = to.saturating_duration_since(from).as_nanos();
        i64::try_from(nanoseconds).unwrap_or(i64::MAX)
    };
    distance(start, at) - distance(at, start)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

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
