//! How handshake messages leave.

use std::net::{SocketAddr, UdpSocket};

use crossbeam_channel::Sender;
use falconet_transport::{Lane, Transmit};

use crate::drop_reason::DropReason;
use crate::socket::canonical;
use crate::stats::Counters;

/// Handshake messages that wait for the dataplane thread, where a link is emulated.
pub(crate) const TRANSMITS: usize = 1024;

/// How handshake messages leave.
pub(crate) enum Exit {
    /// By the lane's own socket, without a detour by the dataplane thread.
    Socket(UdpSocket),
    /// By the dataplane thread, which emulates the link.
    Dataplane(Sender<Transmit>),
    /// There is no authenticated lane.
    None,
}

impl Exit {
    /// Whether the dataplane thread has to be woken for what is sent.
    pub(super) fn passes_dataplane(&self) -> bool {
        matches!(self, Exit::Dataplane(_))
    }

    pub(super) fn send(&self, transmit: Transmit, counters: &mut Counters) {
        let dropped = match self {
            Exit::None => Some(DropReason::NoSocket),
            Exit::Dataplane(queue) => queue.try_send(transmit).err().map(|_| DropReason::Backlog),
            Exit::Socket(socket) => {
                let to = reachable(socket, transmit.to);
                match socket.send_to(&transmit.datagram, to) {
                    Ok(bytes) => {
                        counters.note_sent(Lane::Authenticated, 1, bytes);
                        None
                    }
                    // The initiator repeats itself: a message that finds no room is a lost one.
                    Err(_) => Some(DropReason::SendError),
                }
            }
        };
        if let Some(reason) = dropped {
            counters.note_dropped(reason, 1);
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
