//! What a node keeps on disk from one run to the next (docs/spec/state.md).
//!
//! ```text
//!   handshake thread: mark, timestamps ---\
//!   raptorcast thread: round --------------+--> bounded queue --> state thread --> file
//!   dataplane thread: sessions, records ---/         (the only one that waits for a disk)
//! ```

mod file;
mod format;
mod memory;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use falconet_crypto::{IdentityKey, NetworkId, Tai64N, TransportPublicKey};
use falconet_dataplane::{HandshakeLog, StoredMark};
use falconet_raptorcast::{Epoch, Round};
use falconet_transport::PeerRecord;

pub use file::{StateError, StateProblem};
pub use format::StateFormatError;
pub(crate) use memory::{Memory, PeerMemory};

use file::StateFile;
use writer::{Change, Counts, Writer};

/// Changes that wait for the state thread (docs/spec/state.md#bounds).
const CHANGES: usize = 4_096;
/// How long a broadcast or a record waits for the disk before it is refused.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long shutdown waits for the last write; a disk that hangs must not hang the node.
const LAST_WRITE: Duration = Duration::from_millis(800);

/// What the state file costs and whether it works; every count only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateStats {
    /// Times the file was replaced.
    pub writes: u64,
    /// Attempts that failed.
    pub failed_writes: u64,
    /// Changes that are not remembered, since the queue or the memory had no room.
    pub lost_changes: u64,
}

/// The state thread, the memory it started with, and the lock on the file.
pub(crate) struct State {
    loaded: Arc<Memory>,
    changes: Option<Sender<Change>>,
    counts: Arc<Counts>,
    finished: Receiver<()>,
    thread: Option<JoinHandle<()>>,
    _lock: File,
}

impl State {
    /// Loads the file, tries out that it can be written, and starts the thread.
    pub(crate) fn open(
        path: &Path,
        identity: IdentityKey,
        network: NetworkId,
        name: String,
    ) -> Result<Self, StateError> {
        let mut file = StateFile::new(path);
        let lock = file.lock()?;
        let loaded = file.load(identity, network)?;
        let memory = loaded.unwrap_or_else(|| Memory::new(identity, network));
        file.try_out(&memory)?;
        let (changes, queue) = bounded(CHANGES);
        let counts = Arc::new(Counts::default());
        let writer = Writer::new(memory.clone(), file, queue, Arc::clone(&counts));
        let (done, finished) = bounded(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            writer.run();
            let _ = done.send(());
        });
        let thread = thread.map_err(|source| StateError {
            path: path.to_owned(),
            problem: StateProblem::Io {
                action: "start a thread for",
                source,
            },
        })?;
        Ok(Self {
            loaded: Arc::new(memory),
            changes: Some(changes),
            counts,
            finished,
            thread: Some(thread),
            _lock: lock,
        })
    }

    /// What the last run has left.
    pub(crate) fn loaded(&self) -> &Memory {
        &self.loaded
    }

    /// What other threads hand changes to. The thread ends once all of these are gone.
    pub(crate) fn handle(&self) -> Option<StateHandle> {
        let changes = self.changes.clone()?;
        Some(StateHandle {
            changes,
            loaded: Arc::clone(&self.loaded),
            counts: Arc::clone(&self.counts),
        })
    }

    pub(crate) fn stats(&self) -> StateStats {
        StateStats {
            writes: self.counts.writes.load(Ordering::Relaxed),
            failed_writes: self.counts.failures.load(Ordering::Relaxed),
            lost_changes: self.counts.lost.load(Ordering::Relaxed),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.changes = None;
        if self.finished.recv_timeout(LAST_WRITE).is_err() {
            tracing::warn!("the last state was not written in time");
            return;
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the state thread has panicked");
        }
    }
}

/// Hands changes to the state thread; never waits but where it says so.
#[derive(Clone)]
pub(crate) struct StateHandle {
    changes: Sender<Change>,
    loaded: Arc<Memory>,
    counts: Arc<Counts>,
}

impl StateHandle {
    /// Waits until the round is stored.
    pub(crate) fn store_round(&self, epoch: Epoch, round: Round) -> io::Result<()> {
        self.store(|stored| Change::Round(epoch, round, stored))
    }

    /// Waits until the sequence of our next record is stored.
    pub(crate) fn store_record_sequence(&self, sequence: u64) -> io::Result<()> {
        self.store(|stored| Change::RecordSequence(sequence, stored))
    }

    pub(crate) fn note_session(&self, peer: IdentityKey) {
        self.note(Change::Session(peer));
    }

    pub(crate) fn note_record(&self, record: Box<PeerRecord>) {
        self.note(Change::Record(record));
    }

    pub(crate) fn note_configured(&self, peer: IdentityKey, sequence: u64, is_plain_only: bool) {
        self.note(Change::Configured {
            peer,
            sequence,
            is_plain_only,
        });
    }

    pub(crate) fn forget_session(&self, peer: IdentityKey) {
        self.note(Change::ForgetSession(peer));
    }

    fn note(&self, change: Change) {
        if self.changes.try_send(change).is_err() {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// docs/spec/state.md#failing: after a while the answer is no, whatever becomes of the write.
    fn store(&self, change: impl FnOnce(Sender<io::Result<()>>) -> Change) -> io::Result<()> {
        let (stored, outcome) = bounded(1);
        self.changes
            .send_timeout(change(stored), PATIENCE)
            .map_err(|_| io::ErrorKind::TimedOut)?;
        outcome
            .recv_timeout(PATIENCE)
            .map_err(|_| io::ErrorKind::TimedOut)?
    }
}

impl std::fmt::Debug for StateHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateHandle").finish_non_exhaustive()
    }
}

impl HandshakeLog for StateHandle {
    fn greatest(&self, key: &TransportPublicKey) -> Option<Tai64N> {
        let timestamps: &BTreeMap<_, _> = &self.loaded.timestamps;
        timestamps.get(key).copied()
    }

    fn store_mark(&self, mark: Tai64N, stored: StoredMark) {
        self.note(Change::Mark(mark, stored));
    }

    fn store_timestamps(&self, timestamps: Vec<(TransportPublicKey, Tai64N)>) {
        self.note(Change::Timestamps(timestamps));
    }
}
