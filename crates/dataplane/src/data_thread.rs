//! The dataplane thread: one turn after the other, in an order that nothing received can change.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::{Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver as Queue;
use falconet_crypto::Now;
use falconet_transport::{Event, Lane, Sessions, ToSessions, Transmit};

use crate::bans::Bans;
use crate::clock::read_clock;
use crate::drop_reason::DropReason;
use crate::egress::Egress;
use crate::emission::{Emission, Emitted, Turn};
use crate::handshake_thread::{Control, Inlet, MESSAGES};
use crate::inbound::{Consumer, Consumers, Inbound};
use crate::judge::{judge_authenticated, judge_plain, judge_under_bans};
use crate::outgoing::Class;
use crate::pacer::wire_bytes;
use crate::receive::{Batches, Judged, Receiver};
use crate::sender::{COMMANDS, Command, Inbox};
use crate::stats::{Counters, Published};
use crate::timer::Timer;
use crate::unit::Unit;
use crate::wake::Wake;

/// Most datagrams taken from the data socket in a turn (docs/spec/threads.md#receive-budget).
const DATA_BUDGET: usize = 256;
/// Most datagrams taken from the plain socket in a turn.
const PLAIN_BUDGET: usize = 128;
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

    /// Receives within the lanes' budgets and hands the batches over; true if there may be more.
    fn receive(&mut self, now: Now) -> bool {
        let mut busy = self.receive_lane(now, Lane::Authenticated, DATA_BUDGET);
        busy |= self.receive_lane(now, Lane::Plain, PLAIN_BUDGET);
        let (consumers, batches, counters) = (&mut self.consumers, &mut self.batches, &mut self.counters);
        let chunks = consumers.chunks.as_mut();
        deliver(chunks, &mut batches.chunks, "chunks_full", counters);
        let messages = consumers.messages.as_mut();
        deliver(messages, &mut batches.messages, "messages_full", counters);
        busy
    }

    /// Receives from one lane until nothing is there or `budget` datagrams were taken; true if there may be more.
    fn receive_lane(&mut self, now: Now, lane: Lane, budget: usize) -> bool {
        let mut taken = 0;
        while let Some(port) = self.egress.port(lane) {
            let asked = self.receiver.room(budget - taken.min(budget));
            if asked == 0 {
                return true;
            }
            let filled = self.receiver.fill(port, asked, &mut self.counters);
            if filled == 0 {
                break;
            }
            // Whoever sent this may have done so because our embedder had added it as a peer: that
            // command is in the queue by now (docs/spec/threads.md#commands).
            self.handle_commands(now);
            let (sessions, handshakes, bans) = (&mut self.sessions, &self.handshakes, &self.bans);
            let timings = Arc::clone(&self.counters.timings);
            let mut is_sampled = false;
            let mut judge = |from, datagram: &mut [u8]| match lane {
                Lane::Authenticated => {
                    let since = (!is_sampled).then(Instant::now);
                    let judged = judge_authenticated(sessions, handshakes, now, from, datagram);
                    if let (Some(since), Judged::Chunk(..) | Judged::Message(..)) = (since, &judged) {
                        is_sampled = true;
                        timings.opening.note(since.elapsed());
                    }
                    judged
                }
                Lane::Plain => judge_plain(sessions, now, from, datagram),
            };
            let judge = |from: SocketAddr, datagram: &mut [u8]| {
                if bans.is_empty() {
                    judge(from, datagram)
                } else {
                    judge_under_bans(bans, from, || judge(from, datagram))
                }
            };
            let (counters, batches) = (&mut self.counters, &mut self.batches);
            taken += self.receiver.judge(lane, filled, counters, batches, judge);
            if filled < asked {
                break;
            }
        }
        false
    }

    fn handle_messages(&mut self, now: Now) {
        for message in self.from_handshakes.try_iter().take(MESSAGES_A_TURN) {
            self.sessions.handle_message(now, message);
        }
        for _ in 0..MESSAGES_A_TURN {
            let Ok(transmit) = self.handshake_transmits.try_recv() else {
                break;
            };
            self.transmit(now, transmit);
        }
    }

    /// Takes every command that is there. Both engines see them in the same order; only if the handshake
    /// thread is so far behind that as many wait for it as its queue holds, the others wait, too.
    fn handle_commands(&mut self, now: Now) {
        self.retry_held();
        for _ in 0..COMMANDS {
            if !self.takes_commands() {
                break;
            }
            let Ok(command) = self.inbox.commands.try_recv() else {
                break;
            };
            self.handle_command(now, command);
        }
    }

    fn takes_commands(&self) -> bool {
        self.held.len() < MESSAGES
    }

    fn handle_command(&mut self, now: Now, command: Command) {
        match command {
            Command::AddPeer(peer, config) => match self.sessions.add_peer(now, peer, &config) {
                Ok(()) => self.tell_handshakes(Control::AddPeer(peer, config)),
                Err(error) => tracing::warn!(?peer, ?error, "peer not added"),
            },
            Command::RemovePeer(peer) => {
                self.sessions.remove_peer(peer);
                self.bans.remove_peer(peer);
                // First what the engine itself gives up, so that no tag is left behind.
                self.drain_sessions(now);
                self.emission.remove_peer(now.instant, peer, &mut self.counters);
                self.tell_handshakes(Control::RemovePeer(peer));
            }
            Command::Connect(peer) => self.sessions.connect(now, peer),
            Command::Ban(ban, time) => self.bans.ban(now.instant, ban, time),
            Command::Trust(peer, is_trusted) => self.bans.trust(peer, is_trusted),
            Command::WithSessions(action) => action(now, &mut self.sessions),
            // Nobody waits for it any more: that is fine.
            Command::Settle(done) => drop(done.send(())),
        }
    }

    fn handle_submissions(&mut self, now: Now) {
        for class in Class::ALL {
            for _ in 0..MESSAGES_A_TURN {
                let emission = &self.emission;
                let Some(outgoing) = self.inbox.poll(class, |cost| emission.has_room(class, cost)) else {
                    break;
                };
                self.emission.push(now.instant, outgoing, &mut self.counters);
            }
        }
        self.inbox.notify_room();
    }

    /// Everything the sessions want to say; the engine bounds it. True if some of it was scheduled.
    fn drain_sessions(&mut self, now: Now) -> bool {
        while let Some(transmit) = self.sessions.poll_transmit() {
            self.transmit(now, transmit);
        }
        while self.held.is_empty()
            && let Some(message) = self.sessions.poll_message()
        {
            self.tell_handshakes(Control::Message(message));
        }
        let mut is_scheduled = false;
        while let Some(released) = self.sessions.poll_released() {
            is_scheduled = true;
            let (tag, plaintext) = (released.tag, released.plaintext);
            self.emission
                .handle_released(now.instant, tag, plaintext, &mut self.counters);
        }
        while let Some(event) = self.sessions.poll_event() {
            self.handle_event(now, event);
        }
        is_scheduled
    }

    fn handle_event(&mut self, now: Now, event: Event) {
        let event = match event {
            Event::SendFailed { peer, tag, plaintext } => {
                let counters = &mut self.counters;
                let class = self.emission.handle_send_failed(now.instant, tag, counters);
                let tag = class.map_or(0, Class::index) as u32;
                Event::SendFailed { peer, tag, plaintext }
            }
            event => event,
        };
        (self.consumers.events)(event);
    }

    fn transmit(&mut self, now: Now, transmit: Transmit) {
        let (lane, length) = (transmit.lane, transmit.datagram.len());
        match self.egress.route(lane, transmit.to) {
            Ok(to) => {
                let mut bytes = self.egress.buffer();
                bytes.extend_from_slice(&transmit.datagram);
                self.emission.charge(now.instant, wire_bytes(length, to));
                let unit = Unit::new(lane, to, length, bytes);
                self.egress.push(now.instant, unit, &mut self.counters);
            }
            Err(reason) => self.counters.note_dropped(reason, 1),
        }
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

    /// Charges the rate for what the handshake thread has sent by itself: nothing of it may wait, but what it took is
    /// not there for others (docs/spec/threads.md#pacing).
    fn charge_handshakes(&mut self, now: Now) {
        let (datagrams, bytes) = self.handshakes_published.sent_authenticated();
        let (more, more_bytes) = (datagrams - self.charged.0, bytes - self.charged.1);
        if more > 0 {
            self.charged = (datagrams, bytes);
            // As over IPv6: a few bytes too many, where it was IPv4.
            let each = wire_bytes(0, (Ipv6Addr::UNSPECIFIED, 0).into());
            let wire = (more * each as u64).saturating_add(more_bytes);
            self.emission
                .charge(now.instant, usize::try_from(wire).unwrap_or(usize::MAX));
        }
    }

    fn tell_handshakes(&mut self, control: Control) {
        self.held.push_back(control);
        self.retry_held();
    }

    fn retry_held(&mut self) {
        while let Some(control) = self.held.pop_front() {
            if let Err(control) = self.handshakes.try_send(control) {
                return self.held.push_front(control);
            }
        }
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

/// Hands `batch` over and puts an empty one in its place.
fn deliver(
    consumer: &mut dyn Consumer,
    batch: &mut Vec<Inbound>,
    reason: &'static str,
    counters: &mut Counters,
) {
    if batch.is_empty() {
        return;
    }
    let datagrams = batch.len();
    let empty = consumer.spare().filter(Vec::is_empty);
    // One allocation a batch at most: the next one is likely no longer.
    let full = std::mem::replace(batch, empty.unwrap_or_else(|| Vec::with_capacity(datagrams)));
    if consumer.deliver(full).is_err() {
        counters.note_discarded(reason, datagrams);
    }
}
