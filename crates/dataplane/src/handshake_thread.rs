//! The handshake thread: everything that costs a Diffie-Hellman happens here.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Select, Sender, TryRecvError, TrySendError, bounded};
use falconet_transport::{Handshakes, Lane, PeerConfig, PeerId, ToHandshakes, ToSessions, Transmit};

use crate::clock::read_clock;
use crate::socket::canonical;
use crate::stats::{Counters, DropReason, Published};
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
        self.datagrams
            .try_send(message)
            .map_err(|_| "handshake_queue_full")
    }

    /// Sends `control`; gives it back if there is no room, since none may be lost.
    pub(crate) fn try_send(&self, control: Control) -> Result<(), Control> {
        match self.control.try_send(control) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
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

/// The queues to the handshake thread.
pub(crate) fn queues() -> (Inlet, Outlet) {
    let (datagram_tx, datagram_rx) = bounded(DATAGRAMS);
    let (control_tx, control_rx) = bounded(MESSAGES);
    let inlet = Inlet {
        datagrams: datagram_tx,
        control: control_tx,
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
    pub(crate) to_sessions: Sender<ToSessions>,
    /// Disconnected when the thread is to stop.
    pub(crate) stop: Receiver<()>,
    pub(crate) exit: Exit,
    pub(crate) wake: Arc<Wake>,
    pub(crate) published: Arc<Published>,
    pub(crate) counters: Counters,
    /// A message that the dataplane thread had no room for.
    pub(crate) held: Option<ToSessions>,
}

impl HandshakeThread {
    /// Runs until the stop channel is disconnected.
    pub(crate) fn run(mut self) {
        while self.stop.try_recv() == Err(TryRecvError::Empty) {
            self.wait();
            self.handle_inputs();
            self.drain_outputs();
            self.published.publish(&self.counters);
        }
    }

    /// Sleeps until something arrives or a timer is due.
    fn wait(&self) {
        let mut select = Select::new();
        select.recv(&self.queues.datagrams);
        select.recv(&self.queues.control);
        select.recv(&self.stop);
        let retry = self.held.is_some().then(|| Instant::now() + HELD_RETRY);
        match self.handshakes.poll_timeout().into_iter().chain(retry).min() {
            Some(deadline) => {
                let _ = select.ready_deadline(deadline);
            }
            None => {
                select.ready();
            }
        }
    }

    /// Messages first: a flood of datagrams must not keep our own dials waiting. Timers are served every
    /// turn, behind what was received.
    fn handle_inputs(&mut self) {
        let now = read_clock();
        for control in self.queues.control.try_iter().take(MESSAGES) {
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
            let bytes = &datagram.bytes[..datagram.length];
            if let Err(reason) = self.handshakes.handle_datagram(now, datagram.from, bytes) {
                self.counters.note_discarded(reason.label(), 1);
            }
        }
        if self.handshakes.poll_timeout().is_some_and(|at| at <= now.instant) {
            self.handshakes.handle_timeout(now);
        }
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
            self.wake.wake();
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
