//! The loop of the raptorcast thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use crossbeam_channel::{Receiver, TryRecvError, select};
use falconet_crypto::Now;
use tracing::debug;

use super::{ChunkSink, Command, EventSink, QueueFull, SharedStats};
use crate::engine::Engine;
use crate::events::{Class, Sender, Transmit};

/// How long to wait before a transmit is offered again to a full sink.
const RETRY: Duration = Duration::from_millis(1);
// The bounds of a turn: docs/spec/broadcast.md#turn
/// Runs handed to the sink between two looks at the queues.
const TRANSMITS_PER_TURN: usize = 512;
/// Chunk batches taken between two looks at the commands.
const BATCHES_PER_TURN: usize = 16;

/// What the thread owns.
pub(super) struct Driver<C, E> {
    pub(super) engine: Engine,
    pub(super) chunks: C,
    pub(super) events: E,
    pub(super) batches: Receiver<Vec<(Sender, Bytes)>>,
    pub(super) commands: Receiver<Command>,
    /// Bytes of the payloads to be ready for.
    pub(super) warm_up: Option<usize>,
    /// A run of our own broadcast that the sink had no room for.
    pub(super) waiting: Option<Transmit>,
    /// The chunks of several batches, which are cheaper to check together. Empty between turns.
    pub(super) gathered: Vec<(Sender, Bytes)>,
    pub(super) stats: Arc<SharedStats>,
}

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    Continue,
    End,
}

impl<C: ChunkSink, E: EventSink> Driver<C, E> {
    pub(super) fn run(mut self) {
        debug!("raptorcast thread started");
        self.get_ready();
        let mut has_work = false;
        while self.wait(has_work) == Flow::Continue && self.take_commands() == Flow::Continue {
            self.take_batches();
            self.engine.handle_timeout(read_clocks());
            let more_to_send = self.flush();
            // One event a turn: a decode takes milliseconds, and the queues must not wait for several.
            let event = self.engine.poll_event();
            has_work = more_to_send || event.is_some();
            self.publish_stats();
            if let Some(event) = event {
                self.events.event(event);
            }
        }
        debug!("raptorcast thread ended");
    }

    fn publish_stats(&self) {
        if let Ok(mut published) = self.stats.engine.try_lock() {
            published.clone_from(self.engine.stats());
        }
    }

    /// Waits for a queue or a timer, unless there is work left.
    fn wait(&mut self, has_work: bool) -> Flow {
        if has_work {
            return Flow::Continue;
        }
        let until = self.engine.poll_timeout();
        let mut timeout = until.map_or(Duration::from_secs(1), |at| at.saturating_duration_since(now()));
        if self.waiting.is_some() {
            timeout = timeout.min(RETRY);
        }
        select! {
            recv(self.commands) -> command => match command {
                Ok(command) => self.handle_command(command),
                Err(_) => Flow::End,
            },
            recv(self.batches) -> batch => {
                self.gathered.extend(batch.unwrap_or_default());
                Flow::Continue
            }
            default(timeout) => Flow::Continue,
        }
    }

    fn take_commands(&mut self) -> Flow {
        loop {
            let flow = match self.commands.try_recv() {
                Ok(command) => self.handle_command(command),
                Err(TryRecvError::Empty) => return Flow::Continue,
                Err(TryRecvError::Disconnected) => Flow::End,
            };
            if flow == Flow::End {
                return flow;
            }
        }
    }

    /// Checks what has come, together.
    fn take_batches(&mut self) {
        let more = self.batches.try_iter().take(BATCHES_PER_TURN);
        more.for_each(|batch| self.gathered.extend(batch));
        let taken = self.gathered.len();
        self.stats.waiting.fetch_sub(taken, Ordering::Relaxed);
        // What becomes of each is counted by the engine.
        self.engine
            .handle_chunks(read_clocks(), &self.gathered, |_, _| {});
        self.gathered.clear();
    }

    fn handle_command(&mut self, command: Command) -> Flow {
        match command {
            Command::Broadcast {
                epoch,
                round,
                payload,
                reply,
            } => {
                reply(self.engine.broadcast(read_clocks(), epoch, round, payload));
            }
            Command::SetEpoch(epoch, set) => {
                self.engine.set_epoch(epoch, set);
                self.get_ready();
            }
            Command::Participation(epoch, reply) => {
                reply(self.engine.participation(epoch).map(<[_]>::to_vec));
            }
            Command::SetSchedule(epoch, schedule) => {
                // The command for its epoch's set was queued before it, or it has no use.
                let _ = self.engine.set_schedule(epoch, schedule);
            }
            Command::SetNewestVersion(peer, newest) => {
                // Who is in no set is sent nothing.
                let _ = self.engine.set_newest_version(peer, newest);
            }
            Command::SetRound(round) => self.engine.set_round(round),
            Command::DropRoundsBefore(oldest) => {
                self.engine.drop_rounds_before(oldest);
                if self.waiting.as_ref().is_some_and(|run| run.id.round < oldest) {
                    self.waiting = None;
                }
            }
            Command::Shutdown => return Flow::End,
        }
        Flow::Continue
    }

    fn get_ready(&mut self) {
        if let Some(payload_len) = self.warm_up {
            self.engine.warm_up(payload_len);
        }
    }

    /// Hands runs to the sink; true if there may be more that it has room for.
    fn flush(&mut self) -> bool {
        for _ in 0..TRANSMITS_PER_TURN {
            let next = match self.engine.poll_relay() {
                Some(relay) => Some(relay),
                None => self.waiting.take().or_else(|| self.engine.poll_transmit()),
            };
            let Some(transmit) = next else { return false };
            if let Err(QueueFull(transmit)) = self.chunks.send(transmit) {
                self.handle_full_sink(transmit);
                if self.waiting.is_some() {
                    return false;
                }
            }
        }
        true
    }

    /// Our own broadcast waits, what we relay for others is dropped: it would only grow old.
    fn handle_full_sink(&mut self, transmit: Transmit) {
        match transmit.class {
            Class::Proposal => {
                self.stats.proposal_waits.fetch_add(1, Ordering::Relaxed);
                self.waiting = Some(transmit);
            }
            Class::Relay => {
                self.stats
                    .relays_dropped
                    .fetch_add(transmit.chunks.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

/// Both clocks. This file, and no other of the crate, reads them.
#[expect(
    clippy::disallowed_methods,
    reason = "the thread is what drives the engine with time"
)]
fn read_clocks() -> Now {
    // A clock before 1970 makes every message look too old, which is what it is.
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now {
        instant: Instant::now(),
        unix,
    }
}

fn now() -> Instant {
    read_clocks().instant
}
