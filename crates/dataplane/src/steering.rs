//! A second socket on the authenticated lane's port, to which the kernel steers handshake messages.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use falconet_transport::IndexKey;

/// The authenticated lane's sockets.
pub(crate) struct Steered {
    /// Data messages, or everything if there is no other.
    pub(crate) data: UdpSocket,
    /// Messages of types 1-3.
    pub(crate) handshakes: Option<UdpSocket>,
    pub(crate) local: SocketAddr,
}

/// Adds the handshake socket beside `data` if the system steers, and if `filtered` the filters of both. What
/// the system refuses is done in user space instead, and said once (docs/spec/threads.md#steering).
pub(crate) fn steer(data: UdpSocket, steered: bool, filtered: Option<IndexKey>) -> io::Result<Steered> {
    let local = data.local_addr()?;
    let handshakes = if steered {
        second_socket(&data, local)
    } else {
        None
    };
    if let (Some(handshakes), Some(key)) = (&handshakes, filtered) {
        attach_filters(&data, handshakes, key);
    }
    Ok(Steered {
        data,
        handshakes,
        local,
    })
}

#[cfg(target_os = "linux")]
fn second_socket(data: &UdpSocket, local: SocketAddr) -> Option<UdpSocket> {
    match linux::join(data, local) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::info!(%error, "no steering by the kernel: handshake messages pass the data socket");
            None
        }
    }
}

#[cfg(target_os = "linux")]
fn attach_filters(data: &UdpSocket, handshakes: &UdpSocket, key: IndexKey) {
    let attached = crate::sys::attach_filter(data, &crate::filter::data(key))
        .and_then(|()| crate::sys::attach_filter(handshakes, &crate::filter::handshakes(key)));
    if let Err(error) = attached {
        tracing::info!(%error, "no filter in the kernel: every datagram is judged in user space");
    }
}

/// Keeps what cannot be for the plain lane off its socket, where the system has filters.
pub(crate) fn filter_plain(socket: &UdpSocket) {
    #[cfg(target_os = "linux")]
    if let Err(error) = crate::sys::attach_filter(socket, &crate::filter::plain()) {
        tracing::info!(%error, "no filter in the kernel for the plain lane");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

#[cfg(not(target_os = "linux"))]
fn second_socket(_data: &UdpSocket, _local: SocketAddr) -> Option<UdpSocket> {
    None
}

#[cfg(not(target_os = "linux"))]
fn attach_filters(_data: &UdpSocket, _handshakes: &UdpSocket, _key: IndexKey) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::{SocketAddr, UdpSocket};

    use socket2::{Domain, Protocol, SockRef, Socket, Type};

    /// What the handshake socket asks for, which the kernel doubles: some 340 messages. More would only be
    /// a longer queue in a flood (docs/spec/threads.md#steering).
    const RECEIVE_BUFFER: usize = 128 << 10;

    /// Opens a socket on the address of `data` and steers messages of types 1-3 to it.
    pub(super) fn join(data: &UdpSocket, local: SocketAddr) -> io::Result<UdpSocket> {
        let first = SockRef::from(data);
        // Only now, behind an exclusive bind: a second node on this port gets an error, as it should.
        first.set_reuse_port(true)?;
        let joined = second(&first, local).and_then(|socket| {
            // The order of binding is the order of the selector's numbers.
            crate::sys::attach_selector(&socket, &crate::filter::selector())?;
            Ok(socket)
        });
        if joined.is_err() {
            first.set_reuse_port(false)?;
        }
        joined.map(Into::into)
    }

    fn second(first: &SockRef<'_>, local: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        if local.is_ipv6() {
            socket.set_only_v6(first.only_v6()?)?;
        }
        // Sockets of one port are one group only on the same device.
        socket.bind_device(first.device()?.as_deref())?;
        socket.set_reuse_port(true)?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.set_nonblocking(true)?;
        socket.bind(&local.into())?;
        Ok(socket)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::socket::bind;

    #[test]
    fn types_go_to_their_sockets_and_the_port_stays_exclusive() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(data) = bind(address.parse().unwrap(), 1 << 20) else {
                continue; // no IPv6 here
            };
            let steered = steer(data, true, None).unwrap();
            let handshakes = steered.handshakes.unwrap();
            let sender = bind(address.parse().unwrap(), 1 << 20).unwrap();
            let to: SocketAddr = match steered.local {
                SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
                    ([0, 0, 0, 0, 0, 0, 0, 1], v6.port()).into()
                }
                other => other,
            };
            for kind in 0..=255_u8 {
                sender.send_to(&[kind; 100], to).unwrap();
                let (this, that) = if (1..=3).contains(&kind) {
                    (&handshakes, &steered.data)
                } else {
                    (&steered.data, &handshakes)
                };
                let mut buffer = [0; 200];
                assert_eq!(this.recv(&mut buffer).unwrap(), 100, "{kind}");
                assert!(that.recv(&mut buffer).is_err(), "{kind}");
            }
            sender.send_to(&[], to).unwrap();
            assert_eq!(steered.data.recv(&mut [0; 9]).unwrap(), 0);
            assert!(bind(steered.local, 1 << 20).is_err(), "a second node is told");
        }
    }
}
