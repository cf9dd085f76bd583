//! The thread that stores a node's memory: coalesced, except for what must be stored before something leaves.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use falconet_crypto::{IdentityKey, Tai64N, TransportPublicKey};
use falconet_dataplane::StoredMark;
use falconet_raptorcast::{Epoch, Round};
use falconet_transport::PeerRecord;

use super::file::Storage;
use super::format;
use super::memory::Memory;

/// How long what nobody waits for may stay unwritten (docs/spec/state.md#when).
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// Pauses between attempts while storing fails: doubling from the first to the last.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// What is to be remembered.
pub(super) enum Change {
    Mark(Tai64N, StoredMark),
    Round(Epoch, Round, Stored),
    RecordSequence(u64, Stored),
    Timestamps(Vec<(TransportPublicKey, Tai64N)>),
    Session(IdentityKey),
    Record(Box<PeerRecord>),
    Configured {
        peer: IdentityKey,
        sequence: u64,
        is_plain_only: bool,
    },
    ForgetSession(IdentityKey),
}

/// Told whether what it waits for was stored.
pub(super) type Stored = Sender<io::Result<()>>;

/// What the thread has done; every count only grows.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) writes: AtomicU64,
    pub(super) failures: AtomicU64,
    /// Changes that found no room in the queue or in the memory.
    pub(super) lost: AtomicU64,
}

/// The state of the thread.
pub(super) struct Writer<S> {
    memory: Memory,
    storage: S,
    changes: Receiver<Change>,
    counts: Arc<Counts>,
    /// What waits to be told of the next attempt.
    waiting: Vec<Stored>,
    /// The mark that is wanted, and whom to tell once it is stored.
    mark: Option<(Tai64N, StoredMark)>,
    /// Since when something is not stored.
    dirty_since: Option<Instant>,
    /// While storing fails: when to try again, and the pause that led there.
    retry: Option<(Instant, Duration)>,
}

impl<S: Storage> Writer<S> {
    pub(super) fn new(memory: Memory, storage: S, changes: Receiver<Change>, counts: Arc<Counts>) -> Self {
        Self {
            memory,
            storage,
            changes,
            counts,
            waiting: Vec::new(),
            mark: None,
            dirty_since: None,
            retry: None,
        }
    }

    /// Runs until every sender is gone, then writes what is left.
    pub(super) fn run(mut self) {
        loop {
            let first = match self.deadline() {
                None => self.changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => self.changes.recv_deadline(at),
            };
            match first {
                Ok(change) => self.handle(change),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Whatever came meanwhile shares the write.
            while let Ok(change) = self.changes.try_recv() {
                self.handle(change);
            }
            if !self.waiting.is_empty() || self.deadline().is_some_and(|at| at <= Instant::now()) {
                self.write();
            }
        }
        if self.dirty_since.is_some() {
            self.write();
        }
    }

    fn handle(&mut self, change: Change) {
        let has_room = match change {
            Change::Mark(mark, stored) => {
                self.memory.mark = self.memory.mark.max(Some(mark));
                self.mark = Some((mark, stored));
                true
            }
            Change::Round(epoch, round, stored) => {
                self.memory.round = self.memory.round.max(Some((epoch, round)));
                self.waiting.push(stored);
                true
            }
            Change::RecordSequence(sequence, stored) => {
                self.memory.record_sequence = self.memory.record_sequence.max(Some(sequence));
                self.waiting.push(stored);
                true
            }
            Change::Timestamps(timestamps) => {
                self.memory.raise_timestamps(&timestamps);
                true
            }
            Change::Session(peer) => self.memory.note_session(peer),
            Change::Record(record) => self.memory.note_record(&record),
            Change::Configured {
                peer,
                sequence,
                is_plain_only,
            } => self.memory.note_configured(peer, sequence, is_plain_only),
            Change::ForgetSession(peer) => {
                self.memory.forget_session(&peer);
                true
            }
        };
        if has_room {
            self.dirty_since.get_or_insert_with(Instant::now);
        } else {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// When to write at the latest.
    fn deadline(&self) -> Option<Instant> {
        let dirty_since = self.dirty_since?;
        Some(match self.retry {
            Some((at, _)) => at,
            None if self.mark.is_some() => dirty_since,
            None => dirty_since + WRITE_INTERVAL,
        })
    }

    /// docs/spec/state.md#failing: who waits is told; what is only wanted is tried again.
    fn write(&mut self) {
        let result = self.storage.replace(&format::encode(&self.memory));
        for stored in self.waiting.drain(..) {
            // Whoever gave up waiting is told nothing.
            let _ = stored.send(result.as_ref().copied().map_err(|error| error.kind().into()));
        }
        match result {
            Ok(()) => {
                self.counts.writes.fetch_add(1, Ordering::Relaxed);
                self.dirty_since = None;
                if self.retry.take().is_some() {
                    tracing::info!("the state file can be written again");
                }
                if let Some((mark, stored)) = self.mark.take() {
                    stored.note(mark);
                }
            }
            Err(error) => {
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
                if self.retry.is_none() {
                    tracing::warn!(%error, "the state file cannot be written: the node sends no broadcasts, and soon no initiations");
                }
                let pause = self
                    .retry
                    .map_or(FIRST_RETRY, |(_, pause)| (pause * 2).min(LAST_RETRY));
                self.retry = Some((Instant::now() + pause, pause));
            }
        }
    }
}
