//! The handshake thread: everything that costs a Diffie-Hellman happens here.

use std::future::{Future, poll_fn};
use std::net::{SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use falconet_crypto::Now;
use falconet_transport::{Handshakes, Lane, PeerConfig, PeerId, ToHandshakes, ToSessions, Transmit};

use crate::clock::read_clock;
use crate::drop_reason::DropReason;
use crate::socket::canonical;
use crate::stats::{Counters, Published};
use crate::timer::Timer;
use crate::wake::Wake;

/// The longest handshake message.
pub(crate) const MAX_HANDSHAKE: usize = 148;
/// Datagrams that wait for this thread; a flood fills this and nothing else
/// (docs/spec/threads.md#handshake-queue).
pub(crate) const DATAGRAMS: usize = 512;
/// Messages between the engines, each way, and peers to add and remove.
pub(crate) const MESSAGES: usize = 4096;
/// Handshake messages that wait for the dataplane thread, where a link is emulated.
pub(crate) const TRANSMITS: usize = 1024;
/// Datagrams handled before messages and timers are looked at again.
const DATAGRAMS_A_TURN: usize = 64;
/// Time that a full turn of datagrams from the socket takes up, at least: so a flood gets 64,000 looked at
/// a second, some tenth of a core, and the kernel drops the rest (docs/spec/threads.md#handshake-queue).
const JUNK_PAUSE: Duration = Duration::from_millis(1);
/// Receive buffer; messages are at most 148 bytes, anything longer is junk to be counted.
const BUFFER: usize = 64 << 10;
/// How long to wait when the dataplane thread has no room for a message.
const HELD_RETRY: Duration = Duration::from_millis(1);

/// A message of types 1-3, by value: a flood allocates nothing.
pub(crate) struct HandshakeDatagram {
    from: SocketAddr,
    length: usize,
    bytes: [u8; MAX_HANDSHAKE],
}

/// What the dataplane thread tells this one, in order.
pub(crate) enum Control {
    Message(ToHandshakes),
    AddPeer(PeerId, Box<PeerConfig>),
    RemovePeer(PeerId),
}

/// The dataplane thread's end of the queues to this thread.
pub(crate) struct Inlet {
    datagrams: Sender<HandshakeDatagram>,
    control: Sender<Control>,
    wake: Arc<Wake>,
}

impl Inlet {
    /// Forwards a datagram of types 1-3 if there is room for it.
    pub(crate) fn forward(&self, from: SocketAddr, datagram: &[u8]) -> Result<(), &'static str> {
        let mut bytes = [0; MAX_HANDSHAKE];
        let Some(place) = bytes.get_mut(..datagram.len()) else {
            return Err("handshake_length");
        };
        place.copy_from_slice(datagram);
        let message = HandshakeDatagram {
            from,
            length: datagram.len(),
            bytes,
        };
        let sent = self.datagrams.try_send(message);
        self.wake.wake();
        sent.map_err(|_| "handshake_queue_full")
    }

    /// Sends `control`; gives it back if there is no room, since none may be lost.
    pub(crate) fn try_send(&self, control: Control) -> Result<(), Control> {
        match self.control.try_send(control) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {
                self.wake.wake();
                Ok(())
            }
            Err(TrySendError::Full(control)) => Err(control),
        }
    }

    /// Datagrams that wait.
    pub(crate) fn depth(&self) -> usize {
        self.datagrams.len()
    }
}

/// This thread's end of the queues.
pub(crate) struct Outlet {
    datagrams: Receiver<HandshakeDatagram>,
    control: Receiver<Control>,
}

/// The queues to the handshake thread, which `wake` wakes.
pub(crate) fn queues(wake: Arc<Wake>) -> (Inlet, Outlet) {
    let (datagram_tx, datagram_rx) = bounded(DATAGRAMS);
    let (control_tx, control_rx) = bounded(MESSAGES);
    let inlet = Inlet {
        datagrams: datagram_tx,
        control: control_tx,
        wake,
    };
    let outlet = Outlet {
        datagrams: datagram_rx,
        control: control_rx,
    };
    (inlet, outlet)
}

/// How handshake messages leave.
pub(crate) enum Exit {
    /// By the lane's own socket, without a detour by the dataplane thread.
    Socket(UdpSocket),
    /// By the dataplane thread, which emulates the link.
    Dataplane(Sender<Transmit>),
    /// There is no authenticated lane.
    None,
}

/// The state of the handshake thread.
pub(crate) struct HandshakeThread {
    pub(crate) handshakes: Handshakes,
    pub(crate) queues: Outlet,
    /// Where the kernel steers messages of types 1-3, if it does.
    pub(crate) socket: Option<tokio::net::UdpSocket>,
    pub(crate) to_sessions: Sender<ToSessions>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) exit: Exit,
    pub(crate) timer: Timer,
    /// Wakes this thread.
    pub(crate) wake: Arc<Wake>,
    /// Wakes the dataplane thread.
    pub(crate) wake_sessions: Arc<Wake>,
    pub(crate) published: Arc<Published>,
    pub(crate) counters: Counters,
    /// A message that the dataplane thread had no room for.
    pub(crate) held: Option<ToSessions>,
    /// Until when the socket is left alone.
    pub(crate) paused_until: Option<Instant>,
}

impl HandshakeThread {
    /// Runs until told to stop.
    pub(crate) async fn run(mut self) {
        let mut buffer = vec![0; BUFFER];
        while !self.stop.load(Ordering::Acquire) {
            let busy = self.handle_inputs(&mut buffer);
            self.drain_outputs();
            self.published.publish(&self.counters);
            if busy {
                tokio::task::yield_now().await;
            } else {
                self.nap().await;
            }
        }
    }

    /// Messages first: a flood of datagrams must not keep our own dials waiting. Timers are served every
    /// turn, behind what was received. True if there may be more.
    fn handle_inputs(&mut self, buffer: &mut [u8]) -> bool {
        let now = read_clock();
        self.counters.note_turn(now.instant);
        let mut handled = 0;
        for control in self.queues.control.try_iter().take(MESSAGES) {
            handled += 1;
            match control {
                Control::Message(message) => self.handshakes.handle_message(now, message),
                Control::AddPeer(peer, config) => {
                    if let Err(error) = self.handshakes.add_peer(now, peer, &config) {
                        tracing::warn!(?peer, ?error, "peer not added to the handshake thread");
                    }
                }
                Control::RemovePeer(peer) => self.handshakes.remove_peer(peer),
            }
        }
        for datagram in self.queues.datagrams.try_iter().take(DATAGRAMS_A_TURN) {
            handled += 1;
            let bytes = &datagram.bytes[..datagram.length];
            if let Err(reason) = self.handshakes.handle_datagram(now, datagram.from, bytes) {
                self.counters.note_discarded(reason.label(), 1);
            }
        }
        handled += self.receive(now, buffer);
        if self.handshakes.poll_timeout().is_some_and(|at| at <= now.instant) {
            self.handshakes.handle_timeout(now);
        }
        handled > 0
    }

    /// Reads the steered messages, within the budget of a flood.
    fn receive(&mut self, now: Now, buffer: &mut [u8]) -> usize {
        let Some(socket) = &self.socket else {
            return 0;
        };
        if self.paused_until.is_some_and(|until| now.instant < until) {
            return 0;
        }
        self.paused_until = None;
        for taken in 0..DATAGRAMS_A_TURN {
            let (length, from) = match socket.try_recv_from(buffer) {
                Ok(received) => received,
                Err(error) => {
                    if error.kind() != std::io::ErrorKind::WouldBlock {
                        self.counters.note_receive_error();
                    }
                    return taken;
                }
            };
            self.counters.note_received(Lane::Authenticated, 1, length);
            let verdict = match buffer.get(..length) {
                Some(bytes) if length <= MAX_HANDSHAKE => {
                    let handled = self.handshakes.handle_datagram(now, canonical(from), bytes);
                    handled.map_err(|reason| reason.label())
                }
                _ => Err("handshake_length"),
            };
            if let Err(reason) = verdict {
                self.counters.note_discarded(reason, 1);
            }
        }
        self.paused_until = Some(now.instant + JUNK_PAUSE);
        DATAGRAMS_A_TURN
    }

    /// Sleeps until something arrives or a timer is due.
    async fn nap(&mut self) {
        let now = Instant::now();
        let retry = self.held.is_some().then(|| now + HELD_RETRY);
        let engine = self.handshakes.poll_timeout();
        let deadline = [retry, engine, self.paused_until].into_iter().flatten().min();
        self.wake.announce_nap();
        let overdue = deadline.is_some_and(|at| at <= now);
        let armed = deadline.map_or(Ok(()), |deadline| self.timer.arm(now, deadline));
        if overdue || self.has_news() || armed.is_err() {
            self.wake.end_nap();
            return tokio::task::yield_now().await;
        }
        let socket = self.socket.as_ref().filter(|_| self.paused_until.is_none());
        let timer = &mut self.timer;
        let mut notified = pin!(self.wake.notified());
        poll_fn(|cx| {
            let mut ready = notified.as_mut().poll(cx).is_ready();
            ready |= socket.is_some_and(|socket| socket.poll_recv_ready(cx).is_ready());
            ready |= deadline.is_some() && timer.poll_expired(cx).is_ready();
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.wake.end_nap();
        self.counters.note_nap(now.elapsed());
    }

    fn has_news(&self) -> bool {
        self.stop.load(Ordering::Acquire)
            || !self.queues.control.is_empty()
            || !self.queues.datagrams.is_empty()
    }

    fn drain_outputs(&mut self) {
        let mut wake = false;
        while let Some(message) = self.held.take().or_else(|| self.handshakes.poll_message()) {
            wake = true;
            match self.to_sessions.try_send(message) {
                Ok(()) => {}
                Err(TrySendError::Full(message)) => {
                    self.held = Some(message);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        while let Some(transmit) = self.handshakes.poll_transmit() {
            wake |= matches!(self.exit, Exit::Dataplane(_));
            self.send(transmit);
        }
        if wake {
            self.wake_sessions.wake();
        }
    }

    fn send(&mut self, transmit: Transmit) {
        let dropped = match &self.exit {
            Exit::None => Some(DropReason::NoSocket),
            Exit::Dataplane(queue) => queue.try_send(transmit).err().map(|_| DropReason::Backlog),
            Exit::Socket(socket) => {
                let to = reachable(socket, transmit.to);
                match socket.send_to(&transmit.datagram, to) {
                    Ok(bytes) => {
                        self.counters.note_sent(Lane::Authenticated, 1, bytes);
                        None
                    }
                    // The initiator repeats itself: a message that finds no room is a lost one.
                    Err(_) => Some(DropReason::SendError),
                }
            }
        };
        if let Some(reason) = dropped {
            self.counters.note_dropped(reason, 1);
        }
    }
}

/// `to` in the form of the socket's family.
fn reachable(socket: &UdpSocket, to: SocketAddr) -> SocketAddr {
    match (socket.local_addr(), canonical(to)) {
        (Ok(SocketAddr::V6(_)), SocketAddr::V4(v4)) => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
        (_, to) => to,
    }
}
