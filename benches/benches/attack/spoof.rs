//! Datagrams under addresses that are not the sender's; needs root.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// A socket that takes whole IPv4 packets, and only to this machine.
pub(crate) struct Spoofer {
    socket: Socket,
    packet: Vec<u8>,
}

impl Spoofer {
    /// None if the system does not let us.
    pub(crate) fn open() -> Option<Self> {
        // IPPROTO_RAW: the header is ours.
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).ok()?;
        Some(Self {
            socket,
            packet: Vec::new(),
        })
    }

    /// Sends `datagram` as if `from` had; says whether it left.
    ///
    /// # Panics
    /// If `to` is another machine.
    pub(crate) fn send(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> bool {
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else {
            return false;
        };
        assert!(to.ip().is_loopback(), "nothing but this machine is attacked");
        self.packet.clear();
        self.packet.extend(header(*from.ip(), *to.ip(), datagram.len()));
        self.packet.extend(from.port().to_be_bytes());
        self.packet.extend(to.port().to_be_bytes());
        self.packet
            .extend(((UDP_HEADER + datagram.len()) as u16).to_be_bytes());
        // No checksum: IPv4 does without.
        self.packet.extend([0, 0]);
        self.packet.extend(datagram);
        let address = SockAddr::from(SocketAddrV4::new(*to.ip(), 0));
        self.socket.send_to(&self.packet, &address).is_ok()
    }
}

/// The kernel fills in the checksum and the id.
fn header(from: Ipv4Addr, to: Ipv4Addr, payload: usize) -> [u8; IP_HEADER] {
    let mut header = [0; IP_HEADER];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&((IP_HEADER + UDP_HEADER + payload) as u16).to_be_bytes());
    header[8] = 64;
    header[9] = 17;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    header
}
