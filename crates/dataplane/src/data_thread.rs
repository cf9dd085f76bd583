//! The dataplane thread: one turn after the other, in an order that nothing received can change.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver as Queue;
use falconet_transport::{Sessions, ToSessions, Transmit};

use crate::bans::Bans;
use crate::clock::read_clock;
use crate::drop_reason::DropReason;
use crate::egress::Egress;
use crate::emission::{Emission, Emitted, Turn};
use crate::handshake_thread::{Control, Inlet};
use crate::inbound::Consumers;
use crate::outgoing::Class;
use crate::receive::{Batches, Receiver};
use crate::sender::Inbox;
use crate::stats::{Counters, Published};
use crate::timer::Timer;
use crate::wake::Wake;

mod engines;
mod receiving;

/// Most groups sent in a turn: receiving must not wait for longer than these take.
const GROUPS_A_TURN: usize = 8;
/// Bytes of plaintext from which on a turn sends no further group, for the same reason.
const BYTES_A_TURN: usize = 256 << 10;
/// Most messages of each kind taken from the other threads in a turn.
const MESSAGES_A_TURN: usize = 256;
/// How long to wait when the handshake thread has no room for a message.
const HELD_RETRY: Duration = Duration::from_millis(1);

/// The state of the dataplane thread.
pub(crate) struct DataThread {
    pub(crate) sessions: Sessions,
    pub(crate) consumers: Consumers,
    pub(crate) inbox: Inbox,
    pub(crate) handshakes: Inlet,
    pub(crate) from_handshakes: Queue<ToSessions>,
    pub(crate) handshake_transmits: Queue<Transmit>,
    pub(crate) egress: Egress,
    pub(crate) emission: Emission,
    pub(crate) receiver: Receiver,
    pub(crate) bans: Bans,
    /// What the present turn has received.
    pub(crate) batches: Batches,
    pub(crate) timer: Timer,
    pub(crate) wake: Arc<Wake>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) counters: Counters,
    pub(crate) published: Arc<Published>,
    /// What the handshake thread has counted.
    pub(crate) handshakes_published: Arc<Published>,
    /// Its datagrams and bytes that the rate was charged for.
    pub(crate) charged: (u64, u64),
    /// What the handshake thread had no room for: a message at most, since the engine keeps the others
    /// meanwhile, and as many commands as its queue holds.
    pub(crate) held: VecDeque<Control>,
}

/// What is to be done behind a turn.
struct Next {
    /// There may be more to do than what a look at the queues tells.
    busy: bool,
    paced_until: Option<Instant>,
}

impl DataThread {
    /// Runs until told to stop.
    pub(crate) async fn run(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            let next = self.take_turn();
            self.publish();
            if next.busy {
                // Lets the runtime look at the sockets without sleeping.
                tokio::task::yield_now().await;
            } else {
                self.nap(next.paced_until).await;
            }
        }
        self.shut_down();
    }

    /// Commands and received datagrams first, then the other threads, then timers, then sending: so no timer
    /// declares dead what has just been received, and every step is bounded (docs/spec/threads.md#turn).
    fn take_turn(&mut self) -> Next {
        let now = read_clock();
        self.counters.note_turn(now.instant);
        self.handle_commands(now);
        self.bans.handle_timeout(now.instant, &self.sessions);
        let mut busy = self.receive(now);
        self.handle_messages(now);
        if self.sessions.poll_timeout().is_some_and(|at| at <= now.instant) {
            self.sessions.handle_timeout(now);
        }
        self.handle_submissions(now);
        self.charge_handshakes(now);
        self.drain_sessions(now);
        busy |= self.egress.handle_timeout(now.instant, &mut self.counters);
        let paced_until = self.send_groups(&mut busy);
        busy |= self.drain_sessions(now);
        Next { busy, paced_until }
    }

    /// Sends groups while rate, sockets and the turn's budget allow; returns until when the rate forbids.
    fn send_groups(&mut self, busy: &mut bool) -> Option<Instant> {
        let mut sent = 0;
        for _ in 0..GROUPS_A_TURN {
            if sent >= BYTES_A_TURN {
                break;
            }
            let mut turn = Turn {
                // Read for each group: pacing is finer than a turn is long.
                now: read_clock(),
                sessions: &mut self.sessions,
                egress: &mut self.egress,
                counters: &mut self.counters,
            };
            match self.emission.poll_group(&mut turn) {
                Emitted::Group(bytes) => sent += bytes,
                Emitted::Wait(until) => return Some(until),
                Emitted::Nothing => {
                    // What was sent has made room for what waits for it.
                    *busy |= sent > 0 && self.inbox.waits_for_room();
                    return None;
                }
            }
        }
        *busy = true;
        None
    }

    /// Sleeps until a socket, another thread or the earliest deadline has something for us.
    async fn nap(&mut self, paced_until: Option<Instant>) {
        let now = Instant::now();
        let held = (!self.held.is_empty()).then(|| now + HELD_RETRY);
        let engine = self.sessions.poll_timeout();
        let egress = self.egress.poll_timeout(now);
        let waits = [paced_until, held, engine, egress, self.bans.poll_timeout()];
        let deadline = waits.into_iter().flatten().min();
        self.wake.announce_nap();
        let overdue = deadline.is_some_and(|at| at <= now);
        if overdue || self.has_news() || self.arm(now, deadline).is_err() {
            self.wake.end_nap();
            return tokio::task::yield_now().await;
        }
        let (egress, timer) = (&self.egress, &mut self.timer);
        let mut notified = pin!(self.wake.notified());
        poll_fn(|cx| {
            let mut ready = notified.as_mut().poll(cx).is_ready();
            for (port, waited_for) in egress.ports() {
                ready |= port.poll_recv_ready(cx).is_ready();
                ready |= waited_for && port.poll_send_ready(cx).is_ready();
            }
            ready |= deadline.is_some() && timer.poll_expired(cx).is_ready();
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.wake.end_nap();
        self.counters.note_nap(now.elapsed());
    }

    fn arm(&mut self, now: Instant, deadline: Option<Instant>) -> std::io::Result<()> {
        deadline.map_or(Ok(()), |deadline| self.timer.arm(now, deadline))
    }

    fn has_news(&self) -> bool {
        self.stop.load(Ordering::Acquire)
            || !self.from_handshakes.is_empty()
            || !self.handshake_transmits.is_empty()
            || self.inbox.has_news(self.takes_commands())
    }

    fn publish(&mut self) {
        self.counters.set_delay_line(self.egress.in_flight());
        self.counters.set_handshake_queue(self.handshakes.depth());
        for class in Class::ALL {
            let submissions = self.inbox.depth(class);
            self.counters
                .set_queue(class, submissions, self.emission.depth(class));
        }
        self.published.publish(&self.counters);
    }

    /// Tells every completion that nothing more will leave.
    fn shut_down(&mut self) {
        let now = Instant::now();
        for outgoing in self.inbox.close() {
            let datagrams = outgoing.cost().entries;
            self.counters.note_dropped(DropReason::Shutdown, datagrams);
            if let Some(completion) = outgoing.completion {
                completion.finished(0, datagrams, 0, now);
            }
        }
        self.emission.shut_down(now, &mut self.counters);
        self.publish();
    }
}
