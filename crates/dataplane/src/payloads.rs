//! The datagrams that wait to leave, stored once a submission, whoever and however many they are for.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::outgoing::{Completion, Cost, ENTRY_OVERHEAD};

/// Names one submission's datagrams in [`Payloads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadId(u32);

/// Neighbouring datagrams of one submission for one peer: what the scheduler queues, so that a datagram costs
/// neither an entry nor a reference count of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) payload: PayloadId,
    next: u32,
    end: u32,
    pub(crate) queued: Instant,
}

impl Run {
    /// Number of datagrams.
    pub(crate) fn len(&self) -> usize {
        (self.end - self.next) as usize
    }
}

struct Payload {
    datagrams: Vec<Bytes>,
    completion: Option<Arc<dyn Completion>>,
    /// Runs that refer to this; the slot is free at 0.
    runs: usize,
    /// Whether it is for one peer, so that each datagram can go as soon as it is done with.
    is_for_one: bool,
}

/// A table of submissions. Bounded by the scheduler's caps: each submission in it has at least one entry there.
#[derive(Default)]
pub(crate) struct Payloads {
    slots: Vec<Payload>,
    free: Vec<u32>,
}

impl Payloads {
    /// Stores `datagrams` for `recipients` peers (at least 1) and gives the run that each of them gets.
    pub(crate) fn insert(
        &mut self,
        datagrams: Vec<Bytes>,
        completion: Option<Arc<dyn Completion>>,
        recipients: usize,
        queued: Instant,
    ) -> Run {
        // More than 2^32 do not fit into any class.
        let end = u32::try_from(datagrams.len()).unwrap_or(u32::MAX);
        let payload = Payload {
            datagrams,
            completion,
            runs: recipients,
            is_for_one: recipients == 1,
        };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = payload;
            slot
        } else {
            self.slots.push(payload);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        };
        Run {
            payload: PayloadId(slot),
            next: 0,
            end,
            queued,
        }
    }

    /// The datagrams of `run`.
    pub(crate) fn datagrams(&self, run: &Run) -> &[Bytes] {
        &self.slots[run.payload.0 as usize].datagrams[run.next as usize..run.end as usize]
    }

    /// Who is told of the datagrams of `run`.
    pub(crate) fn completion(&self, run: &Run) -> Option<&Arc<dyn Completion>> {
        self.slots[run.payload.0 as usize].completion.as_ref()
    }

    /// What the datagrams of `run` cost in a queue.
    pub(crate) fn cost(&self, run: &Run) -> Cost {
        let bytes = self.datagrams(run).iter().map(|d| d.len() + ENTRY_OVERHEAD);
        Cost {
            entries: run.len(),
            bytes: bytes.sum(),
        }
    }

    /// Splits the first `count` datagrams off `run`; both parts are to be released.
    pub(crate) fn split(&mut self, run: &mut Run, count: usize) -> Run {
        let at = run.next + u32::try_from(count).unwrap_or(u32::MAX).min(run.end - run.next);
        let front = Run { end: at, ..*run };
        run.next = at;
        self.slots[run.payload.0 as usize].runs += 1;
        front
    }

    /// `run` is done with. What is for one peer goes at once, what is for many with the last of them.
    pub(crate) fn release(&mut self, run: Run) {
        let slot = &mut self.slots[run.payload.0 as usize];
        slot.runs = slot.runs.saturating_sub(1);
        if slot.is_for_one {
            slot.datagrams[run.next as usize..run.end as usize].fill(Bytes::new());
        }
        if slot.runs == 0 {
            slot.datagrams = Vec::new();
            slot.completion = None;
            self.free.push(run.payload.0);
        }
    }

    /// Submissions stored.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagrams(count: usize) -> Vec<Bytes> {
        (0..count).map(|i| Bytes::from(vec![i as u8; 10])).collect()
    }

    #[test]
    fn the_last_run_lets_its_datagrams_go_and_the_slot_is_used_again() {
        let (mut payloads, now) = (Payloads::default(), Instant::now());
        let mut run = payloads.insert(datagrams(3), None, 2, now);
        let other = run;
        let front = payloads.split(&mut run, 2);
        assert_eq!((front.len(), run.len()), (2, 1));
        assert_eq!(payloads.datagrams(&run)[0][0], 2);
        assert_eq!(
            payloads.cost(&front),
            Cost {
                entries: 2,
                bytes: 2 * (10 + ENTRY_OVERHEAD)
            }
        );
        payloads.release(front);
        payloads.release(run);
        assert_eq!(payloads.len(), 1, "the other peer's run is still there");
        payloads.release(other);
        assert_eq!(payloads.len(), 0);
        let next = payloads.insert(datagrams(1), None, 1, now);
        assert_eq!((next.payload, payloads.slots.len()), (other.payload, 1));
    }
}
