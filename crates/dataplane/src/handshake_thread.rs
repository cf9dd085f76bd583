//! The handshake thread: everything that costs a Diffie-Hellman happens here.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};
use falconet_crypto::Now;
use falconet_transport::{Handshakes, PeerConfig, PeerId, ToSessions};

use crate::clock::read_clock;
use crate::stats::{Counters, Published};
use crate::timer::Timer;
use crate::wake::Wake;
pub(crate) use crew::Crew;
use durable::Durable;
pub use durable::{HandshakeLog, StoredMark};
pub(crate) use exit::{Exit, TRANSMITS};
pub(crate) use intake::Intake;
use load::Load;
pub(crate) use options::{HandshakeOptions, MAX_THREADS};
use queues::Outlet;
pub(crate) use queues::{Control, Inlet, MESSAGES, queues};

mod crew;
mod durable;
mod exit;
mod intake;
mod load;
mod options;
mod queues;
mod sys;

/// Datagrams handled before messages and timers are looked at again.
const DATAGRAMS_A_TURN: usize = 64;
/// Messages between two looks at the processor time: as many Diffie-Hellmans take a few milliseconds.
const METERED: usize = 8;
/// Messages in a window (about 10 ms) from which on they are gathered, and for how long: a thousand a second.
const MANY_IN_A_WINDOW: usize = 10;
const GATHER: Duration = Duration::from_millis(1);
/// How long to wait when the dataplane thread has no room for a message.
const HELD_RETRY: Duration = Duration::from_millis(1);

/// What the handshake thread is made of.
pub(crate) struct HandshakeParts {
    pub(crate) handshakes: Handshakes,
    pub(crate) queues: Outlet,
    /// Where the kernel steers messages of types 1-3, if it does.
    pub(crate) intake: Option<Intake>,
    pub(crate) to_sessions: Sender<ToSessions>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) exit: Exit,
    pub(crate) timer: Timer,
    /// Wakes this thread.
    pub(crate) wake: Arc<Wake>,
    /// Wakes the dataplane thread.
    pub(crate) wake_sessions: Arc<Wake>,
    pub(crate) published: Arc<Published>,
    pub(crate) options: HandshakeOptions,
    pub(crate) crew: Crew,
}

/// The state of the handshake thread.
pub(crate) struct HandshakeThread {
    parts: HandshakeParts,
    counters: Counters,
    /// Lives on the thread itself, whose processor time it measures.
    load: Load,
    durable: Option<Durable>,
    /// A message that the dataplane thread had no room for.
    held: Option<ToSessions>,
    /// Until when the socket is left alone.
    paused_until: Option<Instant>,
    /// Messages read since the processor time was looked at, and in this window.
    unmetered: usize,
    in_window: usize,
    published_at: Instant,
    asleep: Duration,
    started: Instant,
}

impl HandshakeThread {
    /// To be called on the thread that will run it.
    pub(crate) fn new(parts: HandshakeParts) -> Self {
        let now = Instant::now();
        let cpu = sys::thread_cpu().unwrap_or_default();
        let options = &parts.options;
        Self {
            load: Load::new(options.cpu * options.threads as f64, now, cpu),
            durable: options
                .log
                .clone()
                .map(|log| Durable::new(log, Arc::clone(&parts.wake))),
            counters: Counters::default(),
            held: None,
            paused_until: None,
            unmetered: 0,
            in_window: 0,
            published_at: now,
            asleep: Duration::ZERO,
            started: now,
            parts,
        }
    }

    /// Runs until told to stop.
    pub(crate) async fn run(mut self) {
        while !self.parts.stop.load(Ordering::Acquire) {
            let busy = self.handle_inputs();
            self.drain_outputs();
            if busy {
                self.publish_now_and_then();
                tokio::task::yield_now().await;
            } else {
                self.parts.published.publish(&self.counters);
                self.nap().await;
            }
        }
        if let Some(durable) = &mut self.durable {
            durable.tell_now(&self.parts.handshakes);
        }
    }

    /// Without a nap between turns: others need no newer figures than these, and writing all of them costs more than
    /// most messages.
    fn publish_now_and_then(&mut self) {
        let now = Instant::now();
        if now.saturating_duration_since(self.published_at) >= GATHER {
            self.published_at = now;
            self.parts.published.publish(&self.counters);
        }
    }

    /// Messages first: a flood of datagrams must not keep our own dials waiting. Timers are served every
    /// turn, behind what was received. True if there may be more.
    fn handle_inputs(&mut self) -> bool {
        let now = read_clock();
        self.counters.note_turn(now.instant);
        self.measure(now.instant);
        let mut handled = self.handle_controls(now);
        handled += self.take_in(now);
        for _ in 0..DATAGRAMS_A_TURN {
            let Ok(datagram) = self.parts.queues.datagrams.try_recv() else {
                break;
            };
            handled += 1;
            self.handle_datagram(now, datagram.from, datagram.bytes());
        }
        handled += self.receive(now);
        let handshakes = &mut self.parts.handshakes;
        if handshakes.poll_timeout().is_some_and(|at| at <= now.instant) {
            handshakes.handle_timeout(now);
        }
        let counters = &mut self.counters;
        let mut refused = |reason| counters.note_discarded(reason, 1);
        self.parts
            .crew
            .hand_out(now, &mut self.parts.handshakes, &mut refused);
        handled > 0
    }

    /// What other threads have computed.
    fn take_in(&mut self, now: Now) -> usize {
        let counters = &mut self.counters;
        let mut refused = |reason| counters.note_discarded(reason, 1);
        self.parts
            .crew
            .take_in(now, &mut self.parts.handshakes, &mut refused)
    }

    fn handle_controls(&mut self, now: Now) -> usize {
        let mut handled = 0;
        while handled < MESSAGES
            && let Ok(control) = self.parts.queues.control.try_recv()
        {
            handled += 1;
            match control {
                Control::Message(message) => self.parts.handshakes.handle_message(now, message),
                Control::AddPeer(peer, config) => self.add_peer(now, peer, &config),
                Control::RemovePeer(peer) => self.parts.handshakes.remove_peer(peer),
            }
        }
        handled
    }

    fn add_peer(&mut self, now: Now, peer: PeerId, config: &PeerConfig) {
        match self.parts.handshakes.add_peer(now, peer, config) {
            Ok(()) => {
                if let (Some(durable), Some(key)) = (&self.durable, config.transport_key) {
                    durable.recall(&mut self.parts.handshakes, key);
                }
            }
            Err(error) => tracing::warn!(?peer, ?error, "peer not added to the handshake thread"),
        }
    }

    /// Reads the steered messages, as long as there is processor time for them.
    fn receive(&mut self, now: Now) -> usize {
        if self.paused_until.is_some_and(|until| now.instant < until) {
            return 0;
        }
        self.paused_until = None;
        let Some(mut intake) = self.parts.intake.take() else {
            return 0;
        };
        let mut taken = 0;
        while taken < DATAGRAMS_A_TURN {
            let filled = intake.fill(&mut self.counters);
            if filled == 0 {
                break;
            }
            for index in 0..filled {
                match intake.message(index, &mut self.counters) {
                    Ok((from, message)) => self.handle_datagram(now, from, message),
                    Err(reason) => self.counters.note_discarded(reason, 1),
                }
            }
            taken += filled;
        }
        self.parts.intake = Some(intake);
        self.pause(now.instant, taken);
        taken
    }

    /// Whether reading goes on: not while the window's time is used up, and not at once while many messages come, since
    /// waking for each costs more than most of them do.
    fn pause(&mut self, now: Instant, taken: usize) {
        self.unmetered += taken;
        self.in_window += taken;
        if self.unmetered >= METERED {
            self.unmetered = 0;
            self.paused_until = self.load.paused_until(self.cpu());
        }
        if taken > 0 && taken < DATAGRAMS_A_TURN && self.in_window > MANY_IN_A_WINDOW {
            self.paused_until = self.paused_until.max(Some(now + GATHER));
        }
    }

    /// Within what the processor time allows (docs/spec/threads.md#handshake-cpu).
    fn handle_datagram(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) {
        let is_initiation = datagram.first() == Some(&durable::INITIATION);
        let handshakes = &self.parts.handshakes;
        if !self.load.looks_at(is_initiation, || handshakes.is_recorded(from)) {
            self.counters.note_discarded("handshake_sampled", 1);
            return;
        }
        if let Err(reason) = self.parts.handshakes.handle_datagram(now, from, datagram) {
            self.counters.note_discarded(reason.label(), 1);
        }
    }

    fn measure(&mut self, now: Instant) {
        if !self.load.is_due(now) {
            return;
        }
        self.in_window = 0;
        let cpu = self.cpu();
        self.load.measure(now, cpu);
        self.parts.handshakes.set_under_load(self.load.is_under_load());
    }

    /// Processor time of all handshake threads so far; where the system does not tell, all time that this one was not
    /// asleep.
    fn cpu(&self) -> Duration {
        let own = sys::thread_cpu().unwrap_or_else(|| self.started.elapsed().saturating_sub(self.asleep));
        own + self.parts.crew.cpu()
    }

    /// Sleeps until something arrives or a timer is due.
    async fn nap(&mut self) {
        let now = Instant::now();
        let deadline = self.next_deadline(now);
        self.parts.wake.announce_nap();
        let overdue = deadline.is_some_and(|at| at <= now);
        let armed = deadline.map_or(Ok(()), |deadline| self.parts.timer.arm(now, deadline));
        if overdue || self.has_news() || armed.is_err() {
            self.parts.wake.end_nap();
            return tokio::task::yield_now().await;
        }
        let intake = self.parts.intake.as_ref().filter(|_| self.paused_until.is_none());
        let timer = &mut self.parts.timer;
        let mut notified = pin!(self.parts.wake.notified());
        poll_fn(|cx| {
            let mut ready = notified.as_mut().poll(cx).is_ready();
            ready |= intake.is_some_and(|intake| intake.poll_ready(cx).is_ready());
            ready |= deadline.is_some() && timer.poll_expired(cx).is_ready();
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.parts.wake.end_nap();
        let asleep = now.elapsed();
        self.asleep += asleep;
        self.counters.note_nap(asleep);
    }

    fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let retry = self.held.is_some().then(|| now + HELD_RETRY);
        let engine = self.parts.handshakes.poll_timeout();
        let durable = self.durable.as_ref().and_then(Durable::next_deadline);
        let deadlines = [retry, engine, durable, self.paused_until];
        deadlines.into_iter().flatten().min()
    }

    fn has_news(&self) -> bool {
        self.parts.stop.load(Ordering::Acquire) || !self.parts.queues.is_empty() || self.parts.crew.has_news()
    }

    fn drain_outputs(&mut self) {
        self.write_key_log();
        let mut wake = false;
        while let Some(message) = self.held.take().or_else(|| self.parts.handshakes.poll_message()) {
            wake = true;
            match self.parts.to_sessions.try_send(message) {
                Ok(()) => {}
                Err(TrySendError::Full(message)) => {
                    self.held = Some(message);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        let now = Instant::now();
        while let Some(transmit) = match &mut self.durable {
            Some(durable) => durable.poll_transmit(now, &mut self.parts.handshakes),
            None => self.parts.handshakes.poll_transmit(),
        } {
            wake |= self.parts.exit.passes_dataplane();
            self.parts.exit.send(transmit, &mut self.counters);
        }
        if let Some(durable) = &mut self.durable {
            durable.tell(now, &self.parts.handshakes);
        }
        if wake {
            self.parts.wake_sessions.wake();
        }
    }

    /// Before the messages that the keys are of leave: who captures these can read them at once.
    fn write_key_log(&mut self) {
        let Some(file) = &self.parts.options.key_log else {
            return;
        };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(line) = self.parts.handshakes.poll_key_log() {
            if let Err(error) = file.append(&line) {
                tracing::warn!(%error, "the key log ends here");
                drop(file);
                self.parts.options.key_log = None;
                return;
            }
        }
    }
}
