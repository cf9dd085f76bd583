//! One lane's UDP socket: options, grouped sends, grouped receives.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Once;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use falconet_transport::Lane;
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::drop_reason::DropReason;
use crate::pacer::ip_udp_overhead;
use crate::stats::Counters;
use crate::unit::Unit;

/// Opens and binds a socket with buffers of about `buffer` bytes; a v6 socket also takes IPv4 unless the
/// system forbids it.
pub(crate) fn bind(address: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // A system without dual stack still serves IPv6.
        let _ = socket.set_only_v6(false);
    }
    size_buffers(&socket, buffer);
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Asks past the system's limits, then within them; smaller buffers lose bursts but are never fatal.
/// docs/spec/threads.md#socket-buffers
fn size_buffers(socket: &Socket, bytes: usize) {
    static WARNED: Once = Once::new();
    #[cfg(target_os = "linux")]
    let (receive_forced, send_forced) = (
        crate::sys::force_receive_buffer(socket, bytes).is_ok(),
        crate::sys::force_send_buffer(socket, bytes).is_ok(),
    );
    #[cfg(not(target_os = "linux"))]
    let (receive_forced, send_forced) = (false, false);
    if !receive_forced {
        let _ = socket.set_recv_buffer_size(bytes);
    }
    if !send_forced {
        let _ = socket.set_send_buffer_size(bytes);
    }
    let got = socket.recv_buffer_size().unwrap_or(0);
    if got < bytes {
        WARNED.call_once(|| {
            tracing::warn!(
                asked = bytes,
                got,
                "receive buffer clamped by the system; raise the sysctl net.core.rmem_max"
            );
        });
    }
}

/// Why a group could not leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The socket's buffer is full: wait until it is writable.
    UntilWritable,
    /// The device's queue is full, of which no readiness tells: try again soon.
    ForAWhile,
}

/// A lane's socket inside the runtime.
pub(crate) struct Port {
    lane: Lane,
    /// Waited for until it is readable, and not until it is writable: each datagram that leaves the send buffer would
    /// wake the thread.
    io: AsyncFd<UdpSocket>,
    /// A second handle while the send buffer is full, waited for until it is writable.
    writable: Option<AsyncFd<UdpSocket>>,
    state: UdpSocketState,
    local: SocketAddr,
    segmentation: Segmentation,
    options: PortOptions,
}

/// How a socket is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortOptions {
    /// Groups leave by segmentation offload, where the system has it.
    pub(crate) segmentation: bool,
    /// The kernel may hand over aggregates.
    pub(crate) aggregation: bool,
    /// Bytes of an IP packet on the path.
    pub(crate) mtu: usize,
}

/// Whether groups leave by segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segmentation {
    /// Never: the configuration says so.
    Off,
    On,
    /// The system refused; a route by another device may have come up by then.
    RefusedUntil(Instant),
}

/// How long segmentation offload is left alone after a refusal (docs/spec/threads.md#send-errors).
pub(crate) const SEGMENTATION_RETRY: Duration = Duration::from_secs(60);

impl Port {
    /// Must be called inside the runtime. Sets path MTU discovery to probing: an ICMP message that claims
    /// a smaller MTU changes nothing (docs/spec/threads.md#path-mtu).
    pub(crate) fn new(lane: Lane, socket: UdpSocket, options: PortOptions) -> io::Result<Port> {
        let local = socket.local_addr()?;
        let state = socket_state(&socket, options)?;
        let io = crate::sys::watch(socket, Interest::READABLE)?;
        Ok(Port {
            lane,
            io,
            writable: None,
            state,
            local,
            segmentation: if options.segmentation {
                Segmentation::On
            } else {
                Segmentation::Off
            },
            options,
        })
    }

    /// Ready when something may be there to receive.
    pub(crate) fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.io.poll_read_ready(cx).map(drop)
    }

    /// Ready when a socket that was [`Blocked::UntilWritable`] may take something.
    pub(crate) fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.writable {
            Some(writable) => writable.poll_write_ready(cx).map(drop),
            None => Poll::Ready(()),
        }
    }

    /// Begins to wait until the socket is writable. A new handle each time: it is told at once if that is so already.
    fn wait_until_writable(&mut self) -> Blocked {
        let second = self.io.get_ref().try_clone();
        let registered = second.and_then(|socket| crate::sys::watch(socket, Interest::WRITABLE));
        self.writable = registered.ok();
        match self.writable {
            Some(_) => Blocked::UntilWritable,
            None => Blocked::ForAWhile,
        }
    }

    /// `to` as this socket can send to it; `None` if it cannot.
    pub(crate) fn reachable(&self, to: SocketAddr) -> Option<SocketAddr> {
        match (self.local.is_ipv4(), to) {
            // The system would answer EINVAL, which looks like a refusal of segmentation offload.
            _ if to.port() == 0 => None,
            (true, SocketAddr::V4(_)) | (false, SocketAddr::V6(_)) => Some(to),
            (false, SocketAddr::V4(v4)) if self.local.ip().is_unspecified() => {
                Some((v4.ip().to_ipv6_mapped(), v4.port()).into())
            }
            _ => None,
        }
    }

    /// Sends what is left of `unit`, all at once where segmentation offload works, else datagram by
    /// datagram; returns how many datagrams the system refused. Errors that are about a destination are
    /// counted and skip the datagrams (docs/spec/threads.md#send-errors).
    pub(crate) fn send(
        &mut self,
        now: Instant,
        unit: &mut Unit,
        counters: &mut Counters,
    ) -> Result<usize, Blocked> {
        self.retry_segmentation(now);
        // Segments longer than the path carries would be answered like a refusal of the offload itself.
        let carried = unit.segment() + ip_udp_overhead(unit.to) <= self.options.mtu;
        let mut refused = 0;
        while !unit.remaining().is_empty() {
            let whole = carried && self.groups();
            let contents = if whole {
                unit.remaining()
            } else {
                unit.next_datagram()
            };
            let (length, datagrams) = (contents.len(), contents.len().div_ceil(unit.segment()));
            let transmit = quinn_udp::Transmit {
                destination: unit.to,
                ecn: None,
                contents,
                segment_size: (datagrams > 1).then_some(unit.segment()),
                src_ip: None,
            };
            let sent = self.state.try_send(self.io.get_ref().into(), &transmit);
            match sent {
                Ok(()) => counters.note_sent(self.lane, datagrams, length),
                Err(error) => match classify(&error, datagrams) {
                    Failure::Blocked(Blocked::UntilWritable) => return Err(self.wait_until_writable()),
                    Failure::Blocked(blocked) => return Err(blocked),
                    Failure::Segmentation => {
                        tracing::debug!(%error, "segmentation offload refused; switched off for a while");
                        self.segmentation = Segmentation::RefusedUntil(now + SEGMENTATION_RETRY);
                        continue;
                    }
                    Failure::Destination(reason) => {
                        counters.note_dropped(reason, datagrams);
                        refused += datagrams;
                    }
                },
            }
            unit.advance(length);
        }
        self.writable = None;
        Ok(refused)
    }

    fn groups(&self) -> bool {
        self.segmentation == Segmentation::On && self.state.max_gso_segments() > 1
    }

    /// Switches segmentation offload on again some time after it was refused.
    fn retry_segmentation(&mut self, now: Instant) {
        let Segmentation::RefusedUntil(at) = self.segmentation else {
            return;
        };
        // The old state remembers the refusal, so the socket needs a new one.
        if at <= now
            && let Ok(state) = socket_state(self.io.get_ref(), self.options)
        {
            self.state = state;
            self.segmentation = Segmentation::On;
        }
    }

    /// Receives into `buffers`; returns how many were filled, 0 if nothing is there. If fewer were filled than are
    /// given, nothing more is there, and the runtime is told so without another system call.
    pub(crate) fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
        counters: &mut Counters,
    ) -> usize {
        let (given, mut filled) = (buffers.len(), 0);
        let received = self.io.try_io(Interest::READABLE, |socket| {
            filled = self.state.recv(socket.into(), buffers, metas)?;
            // The next datagram makes the socket readable anew: readiness is told by edges.
            if filled < given {
                Err(io::ErrorKind::WouldBlock.into())
            } else {
                Ok(())
            }
        });
        if received.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            counters.note_receive_error();
        }
        filled
    }
}

/// Sets the options of a socket for grouped sends and receives.
fn socket_state(socket: &UdpSocket, options: PortOptions) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    #[cfg(target_os = "linux")]
    if !options.aggregation {
        // A kernel without receive offload has nothing to switch off.
        let _ = crate::sys::set_receive_offload(socket, false);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = options;
    Ok(state)
}

/// An IPv4 source as a dual-stack socket reports it, in its own form: addresses are compared.
pub(crate) fn canonical(from: SocketAddr) -> SocketAddr {
    match from.ip() {
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => (v4, from.port()).into(),
            None => from,
        },
        IpAddr::V4(_) => from,
    }
}

enum Failure {
    Blocked(Blocked),
    Segmentation,
    Destination(DropReason),
}

/// docs/spec/threads.md#send-errors
fn classify(error: &io::Error, datagrams: usize) -> Failure {
    if error.kind() == io::ErrorKind::WouldBlock {
        return Failure::Blocked(Blocked::UntilWritable);
    }
    match error.raw_os_error() {
        Some(libc::ENOBUFS) => Failure::Blocked(Blocked::ForAWhile),
        Some(libc::EIO | libc::EINVAL) if datagrams > 1 => Failure::Segmentation,
        Some(libc::EPERM | libc::EACCES) => Failure::Destination(DropReason::NotPermitted),
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL) => {
            Failure::Destination(DropReason::Unreachable)
        }
        Some(libc::EMSGSIZE) => Failure::Destination(DropReason::TooLong),
        Some(libc::ECONNREFUSED) => Failure::Destination(DropReason::Refused),
        _ => Failure::Destination(DropReason::SendError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: PortOptions = PortOptions {
        segmentation: true,
        aggregation: true,
        mtu: 1500,
    };

    fn in_runtime<T>(test: impl FnOnce() -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _guard = runtime.enter();
        test()
    }

    #[test]
    fn errors_about_a_destination_are_never_fatal() {
        let of = |errno, datagrams| classify(&io::Error::from_raw_os_error(errno), datagrams);
        assert!(matches!(
            of(libc::EAGAIN, 1),
            Failure::Blocked(Blocked::UntilWritable)
        ));
        assert!(matches!(
            of(libc::ENOBUFS, 1),
            Failure::Blocked(Blocked::ForAWhile)
        ));
        assert!(matches!(of(libc::EIO, 2), Failure::Segmentation));
        assert!(matches!(of(libc::EINVAL, 2), Failure::Segmentation));
        assert!(matches!(
            of(libc::EINVAL, 1),
            Failure::Destination(DropReason::SendError)
        ));
        assert!(matches!(
            of(libc::EPERM, 2),
            Failure::Destination(DropReason::NotPermitted)
        ));
        assert!(matches!(
            of(libc::ENETUNREACH, 2),
            Failure::Destination(DropReason::Unreachable)
        ));
        assert!(matches!(
            of(libc::EMSGSIZE, 1),
            Failure::Destination(DropReason::TooLong)
        ));
        assert!(matches!(
            of(libc::ECONNREFUSED, 1),
            Failure::Destination(DropReason::Refused)
        ));
    }

    #[test]
    fn families_are_matched_before_the_system_is_asked() {
        in_runtime(|| {
            let v4 = bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
            let port = Port::new(Lane::Plain, v4, OPTIONS).unwrap();
            assert!(port.reachable("127.0.0.1:5".parse().unwrap()).is_some());
            assert!(port.reachable("127.0.0.1:0".parse().unwrap()).is_none());
            assert!(port.reachable("[::1]:5".parse().unwrap()).is_none());
        });
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:7".parse().unwrap();
        assert_eq!(canonical(mapped), "10.0.0.1:7".parse().unwrap());
        let v6 = "[2001:db8::1]:7".parse().unwrap();
        assert_eq!(canonical(v6), v6);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn path_mtu_is_probed_not_believed() {
        in_runtime(|| {
            for (address, v6) in [("127.0.0.1:0", false), ("[::1]:0", true)] {
                let Ok(socket) = bind(address.parse().unwrap(), 1 << 20) else {
                    continue; // no IPv6 here
                };
                let port = Port::new(Lane::Plain, socket, OPTIONS).unwrap();
                let mode = crate::sys::path_mtu_discovery(port.io.get_ref(), v6).unwrap();
                assert_eq!(mode, libc::IP_PMTUDISC_PROBE, "{address}");
            }
        });
    }

    #[test]
    fn without_segmentation_offload_every_datagram_still_arrives() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            for segmentation in [true, false] {
                let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
                let socket = bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
                let options = PortOptions {
                    segmentation,
                    ..OPTIONS
                };
                let mut port = Port::new(Lane::Plain, socket, options).unwrap();
                let to = receiver.local_addr().unwrap();
                let mut unit = Unit::new(Lane::Plain, to, 100, vec![7; 950]);
                let mut counters = Counters::default();
                port.send(Instant::now(), &mut unit, &mut counters).unwrap();
                let mut buffer = [0; 2000];
                let lengths: Vec<_> = (0..10).map(|_| receiver.recv(&mut buffer).unwrap()).collect();
                assert_eq!(lengths, [[100; 9].as_slice(), &[50]].concat());
            }
        });
    }

    #[test]
    fn refused_segmentation_is_tried_again_later() {
        in_runtime(|| {
            let socket = bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
            let mut port = Port::new(Lane::Plain, socket, OPTIONS).unwrap();
            let could = port.groups();
            let refused = Instant::now();
            port.segmentation = Segmentation::RefusedUntil(refused + SEGMENTATION_RETRY);
            port.retry_segmentation(refused + SEGMENTATION_RETRY - Duration::from_millis(1));
            assert!(!port.groups());
            port.retry_segmentation(refused + SEGMENTATION_RETRY);
            assert_eq!(port.groups(), could);
        });
    }
}
