//! The queues to the handshake thread.

use std::net::SocketAddr;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use falconet_transport::{PeerConfig, PeerId, ToHandshakes};

use crate::wake::Wake;

/// The longest handshake message.
pub(crate) const MAX_HANDSHAKE: usize = 148;
/// Datagrams that wait for this thread; a flood fills this and nothing else
/// (docs/spec/threads.md#handshake-queue).
const DATAGRAMS: usize = 512;
/// Messages between the engines, each way, and peers to add and remove.
pub(crate) const MESSAGES: usize = 4096;

/// A message of types 1-3, by value: a flood allocates nothing.
pub(crate) struct HandshakeDatagram {
    pub(super) from: SocketAddr,
    length: usize,
    bytes: [u8; MAX_HANDSHAKE],
}

impl HandshakeDatagram {
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
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

/// The handshake thread's end of the queues.
pub(crate) struct Outlet {
    pub(super) datagrams: Receiver<HandshakeDatagram>,
    pub(super) control: Receiver<Control>,
}

impl Outlet {
    pub(super) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.datagrams.is_empty()
    }
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
