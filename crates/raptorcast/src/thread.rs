//! The raptorcast thread: owns an engine, takes chunks and commands from bounded queues, blocks on nothing but
//! them.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use crossbeam_channel::{Sender as Queue, TrySendError, bounded};
use falconet_crypto::IdentityKey;
use thiserror::Error;

use crate::engine::Engine;
use crate::events::{BroadcastReport, Event, Sender, Transmit};
use crate::ids::{Epoch, Round};
use crate::participation::Participation;
use crate::publish::BroadcastError;
use crate::schedule::LeaderSchedule;
use crate::set::ValidatorSet;
use crate::stats::Stats;
use crate::versions::Version;
pub use config::ThreadConfig;
use driver::Driver;

mod config;
mod driver;

/// Takes the runs that the engine wants sent.
pub trait ChunkSink: Send {
    /// Queues a run. Never blocks.
    ///
    /// # Errors
    ///
    /// Gives the run back if there is no room.
    fn send(&mut self, transmit: Transmit) -> Result<(), QueueFull>;
}

/// Takes the events of the engine.
pub trait EventSink: Send {
    /// Takes an event. Never blocks.
    fn event(&mut self, event: Event);
}

/// The queue behind a [`ChunkSink`] has no room for this run.
#[derive(Debug)]
pub struct QueueFull(pub Transmit);

/// Why a handle could not pass something on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The queue is full: the thread is behind.
    #[error("the queue of the raptorcast thread is full")]
    Full,
    /// The thread has ended.
    #[error("the raptorcast thread has ended")]
    Stopped,
}

/// What is called with the outcome of a broadcast, on the raptorcast thread: it must not block.
type Reply = Box<dyn FnOnce(Result<BroadcastReport, BroadcastError>) + Send>;

/// What is called with a copy of an epoch's participation; as for [`Reply`].
type Roster = Box<dyn FnOnce(Option<Vec<Participation>>) + Send>;

enum Command {
    Broadcast {
        epoch: Epoch,
        round: Round,
        payload: Bytes,
        reply: Reply,
    },
    SetEpoch(Epoch, Arc<ValidatorSet>),
    SetSchedule(Epoch, Arc<dyn LeaderSchedule>),
    SetNewestVersion(IdentityKey, Version),
    SetRound(Round),
    DropRoundsBefore(Round),
    Participation(Epoch, Roster),
    Shutdown,
}

/// Counters of the queues around the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// Chunks dropped because the queue of batches was full.
    pub chunks_dropped: u64,
    /// Relayed chunks dropped because the sink was full.
    pub relays_dropped: u64,
    /// Times that a run of our own broadcast had to wait for the sink.
    pub proposal_waits: u64,
}

#[derive(Debug, Default)]
struct SharedStats {
    chunks_dropped: AtomicU64,
    relays_dropped: AtomicU64,
    proposal_waits: AtomicU64,
    /// Chunks in the queue of batches.
    waiting: AtomicUsize,
    /// Written once a turn, and skipped if a reader holds it.
    engine: Mutex<Stats>,
}

/// A running raptorcast thread. Dropping it ends the thread and waits for it.
pub struct RaptorcastThread {
    handle: RaptorcastHandle,
    thread: Option<JoinHandle<()>>,
}

impl RaptorcastThread {
    /// Starts a thread that drives `engine`.
    ///
    /// # Errors
    ///
    /// What the system says when it cannot start a thread.
    pub fn start(
        config: ThreadConfig,
        engine: Engine,
        chunks: impl ChunkSink + 'static,
        events: impl EventSink + 'static,
    ) -> io::Result<Self> {
        let (batch_queue, batches) = bounded(config.batch_slots);
        let (command_queue, commands) = bounded(config.command_slots);
        let stats = Arc::new(SharedStats::default());
        let driver = Driver {
            engine,
            chunks,
            events,
            batches,
            commands,
            waiting: None,
            gathered: Vec::new(),
            warm_up: config.warm_up,
            stats: Arc::clone(&stats),
        };
        let thread = std::thread::Builder::new()
            .name(config.name)
            .spawn(move || driver.run())?;
        let handle = RaptorcastHandle {
            batches: batch_queue,
            chunk_slots: config.chunk_slots,
            commands: command_queue,
            stats,
        };
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }

    /// A handle to pass things to the thread with.
    pub fn handle(&self) -> RaptorcastHandle {
        self.handle.clone()
    }

    /// Ends the thread and waits for it. Broadcasts that have not left are lost.
    pub fn shutdown(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Blocks only until the thread has taken a command; an error means that it has ended.
            let _ = self.handle.commands.send(Command::Shutdown);
            if thread.join().is_err() {
                tracing::error!("the raptorcast thread panicked");
            }
        }
    }
}

impl Drop for RaptorcastThread {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Passes chunks and commands to a raptorcast thread; cheap to clone. No call blocks.
#[derive(Clone)]
pub struct RaptorcastHandle {
    batches: Queue<Vec<(Sender, Bytes)>>,
    chunk_slots: usize,
    commands: Queue<Command>,
    stats: Arc<SharedStats>,
}

impl RaptorcastHandle {
    /// Hands over a batch of chunks. Waking the thread costs microseconds: hand over as many as are there.
    ///
    /// # Errors
    ///
    /// [`CommandError`]; the batch is dropped and its chunks are counted.
    pub fn chunks(&self, batch: Vec<(Sender, Bytes)>) -> Result<(), CommandError> {
        let count = batch.len();
        // docs/spec/broadcast.md#waiting-chunks
        let waiting = self.stats.waiting.fetch_add(count, Ordering::Relaxed);
        let queued = if waiting >= self.chunk_slots {
            Err(CommandError::Full)
        } else {
            self.batches.try_send(batch).map_err(|error| refused(&error))
        };
        if queued.is_err() {
            self.stats.waiting.fetch_sub(count, Ordering::Relaxed);
            self.stats
                .chunks_dropped
                .fetch_add(count as u64, Ordering::Relaxed);
        }
        queued
    }

    /// Broadcasts a payload; `reply` is called on the raptorcast thread once everything is encoded and must
    /// not block.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the thread cannot be asked; `reply` is dropped then.
    pub fn broadcast(
        &self,
        epoch: Epoch,
        round: Round,
        payload: Bytes,
        reply: impl FnOnce(Result<BroadcastReport, BroadcastError>) + Send + 'static,
    ) -> Result<(), CommandError> {
        self.command(Command::Broadcast {
            epoch,
            round,
            payload,
            reply: Box::new(reply),
        })
    }

    /// See [`Engine::set_epoch`].
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the thread cannot be told.
    pub fn set_epoch(&self, epoch: Epoch, set: Arc<ValidatorSet>) -> Result<(), CommandError> {
        self.command(Command::SetEpoch(epoch, set))
    }

    /// See [`Engine::set_round`].
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the thread cannot be told.
    pub fn set_round(&self, round: Round) -> Result<(), CommandError> {
        self.command(Command::SetRound(round))
    }

    /// See [`Engine::set_schedule`]. A schedule for an epoch that is not known is dropped.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the thread cannot be told.
    pub fn set_schedule(&self, epoch: Epoch, schedule: Arc<dyn LeaderSchedule>) -> Result<(), CommandError> {
        self.command(Command::SetSchedule(epoch, schedule))
    }

    /// See [`Engine::set_newest_version`].
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the thread cannot be told.
    pub fn set_newest_version(&self, peer: IdentityKey, newest: Version) -> Result<(), CommandError> {
        self.command(Command::SetNewestVersion(peer, newest))
    }

    /// See [`Engine::drop_rounds_before`].
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the thread cannot be told.
    pub fn drop_rounds_before(&self, oldest: Round) -> Result<(), CommandError> {
        self.command(Command::DropRoundsBefore(oldest))
    }

    /// See [`Engine::participation`]; `reply` is called on the raptorcast thread and must not block.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the thread cannot be asked; `reply` is dropped then.
    pub fn participation(
        &self,
        epoch: Epoch,
        reply: impl FnOnce(Option<Vec<Participation>>) + Send + 'static,
    ) -> Result<(), CommandError> {
        self.command(Command::Participation(epoch, Box::new(reply)))
    }

    /// The engine's counters as of its last turn.
    pub fn engine_stats(&self) -> Stats {
        self.stats
            .engine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The counters of the queues.
    pub fn thread_stats(&self) -> ThreadStats {
        ThreadStats {
            chunks_dropped: self.stats.chunks_dropped.load(Ordering::Relaxed),
            relays_dropped: self.stats.relays_dropped.load(Ordering::Relaxed),
            proposal_waits: self.stats.proposal_waits.load(Ordering::Relaxed),
        }
    }

    fn command(&self, command: Command) -> Result<(), CommandError> {
        self.commands.try_send(command).map_err(|error| refused(&error))
    }
}

fn refused<T>(error: &TrySendError<T>) -> CommandError {
    match error {
        TrySendError::Full(_) => CommandError::Full,
        TrySendError::Disconnected(_) => CommandError::Stopped,
    }
}

#[cfg(test)]
mod tests;
