//! Symbols on their way from us, their first hop, to everybody else: gathered into runs, held no longer than
//! the quantum (`docs/spec/chunk.md#rebroadcast`).

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::events::{Class, Recipients, Transmit};
use crate::ids::{MessageId, Round};

/// Runs that are being gathered and runs that may leave.
#[derive(Debug)]
pub(crate) struct RelayQueue {
    gathering: BTreeMap<MessageId, Run>,
    ready: VecDeque<Transmit>,
    /// Chunks in both.
    queued: usize,
    capacity: usize,
    run_length: usize,
    quantum: Duration,
}

#[derive(Debug)]
struct Run {
    chunks: Vec<Bytes>,
    leaves_at: Instant,
}

impl RelayQueue {
    pub(crate) const fn new(capacity: usize, run_length: usize, quantum: Duration) -> Self {
        Self {
            gathering: BTreeMap::new(),
            ready: VecDeque::new(),
            queued: 0,
            capacity,
            run_length,
            quantum,
        }
    }

    /// Queues a chunk; false if there is no room.
    pub(crate) fn push(&mut self, now: Instant, id: MessageId, chunk: Bytes) -> bool {
        if self.queued >= self.capacity {
            return false;
        }
        self.queued += 1;
        let run = self.gathering.entry(id).or_insert_with(|| Run {
            chunks: Vec::with_capacity(self.run_length),
            leaves_at: now + self.quantum,
        });
        run.chunks.push(chunk);
        if run.chunks.len() >= self.run_length {
            self.release(id);
        }
        true
    }

    /// Queues chunks that need no gathering, repair requests and answers; false if there is no room.
    pub(crate) fn push_lone(&mut self, transmit: Transmit) -> bool {
        let has_room = self.queued + transmit.chunks.len() <= self.capacity;
        if has_room {
            self.queued += transmit.chunks.len();
            self.ready.push_back(transmit);
        }
        has_room
    }

    /// Lets the runs go that have waited for the quantum.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let due: Vec<_> = self
            .gathering
            .iter()
            .filter(|(_, run)| run.leaves_at <= now)
            .map(|(id, _)| *id)
            .collect();
        due.into_iter().for_each(|id| self.release(id));
    }

    /// When the next run has waited long enough.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.gathering.values().map(|run| run.leaves_at).min()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.ready.pop_front()?;
        self.queued -= transmit.chunks.len();
        Some(transmit)
    }

    /// Drops what has not left of rounds before this one.
    pub(crate) fn drop_rounds_before(&mut self, oldest: Round) {
        self.gathering.retain(|id, _| id.round >= oldest);
        self.ready.retain(|transmit| transmit.id.round >= oldest);
        let gathering = self.gathering.values().map(|run| run.chunks.len());
        let ready = self.ready.iter().map(|transmit| transmit.chunks.len());
        self.queued = gathering.chain(ready).sum();
    }

    fn release(&mut self, id: MessageId) {
        if let Some(run) = self.gathering.remove(&id) {
            let to = Recipients::AllBut { author: id.author };
            self.ready.push_back(Transmit {
                id,
                to,
                class: Class::Relay,
                chunks: run.chunks,
            });
        }
    }
}
