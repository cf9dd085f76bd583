//! A peer that is only an engine and a socket, so that a test can make it say what no node would.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use falconet::{Now, Policy, TransportPublicKey};
use falconet_transport::{Discard, Endpoint, Event, Lane, PeerConfig, PeerId, TransportConfig};

/// The node, as this peer knows it.
pub(crate) const NODE: PeerId = PeerId(0);

/// Both clocks now.
pub(crate) fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now().duration_since(UNIX_EPOCH).unwrap(),
    }
}

/// An engine behind a socket on loopback.
pub(crate) struct RawPeer {
    pub(crate) endpoint: Endpoint,
    pub(crate) socket: UdpSocket,
    /// All initiations that it sent.
    pub(crate) initiations: Vec<Vec<u8>>,
    /// Why it dropped what came.
    pub(crate) discards: Vec<Discard>,
    pub(crate) is_connected: bool,
}

impl RawPeer {
    /// Cast member `number`.
    pub(crate) fn new(number: u8, config: TransportConfig) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let secret = falconet::TransportSecret::from_bytes([number + 101; 32]);
        let mut seed = [number; 32];
        seed[..2].copy_from_slice(&socket.local_addr().unwrap().port().to_le_bytes());
        Self {
            endpoint: Endpoint::new(config, secret, now(), seed),
            socket,
            initiations: Vec::new(),
            discards: Vec::new(),
            is_connected: false,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Adds the node, which is dialled if it is at an address.
    pub(crate) fn knows(&mut self, key: TransportPublicKey, address: Option<SocketAddr>) {
        let mut peer = PeerConfig::new(key).with_policy(Policy::Require);
        if let Some(address) = address {
            peer = peer.with_address(address).with_persistent(true);
        }
        self.endpoint.add_peer(now(), NODE, &peer).unwrap();
    }

    /// Sends and receives until `done`.
    pub(crate) fn run_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "waited in vain for {what}"
            );
            self.turn();
        }
    }

    fn turn(&mut self) {
        let mut buffer = [0; 2_048];
        if let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            let datagram = &mut buffer[..length];
            let handled = self
                .endpoint
                .handle_datagram(now(), from, Lane::Authenticated, datagram);
            self.discards.extend(handled.err());
        }
        if self
            .endpoint
            .poll_timeout()
            .is_some_and(|at| at <= Instant::now())
        {
            self.endpoint.handle_timeout(now());
        }
        while let Some(transmit) = self.endpoint.poll_transmit() {
            if transmit.datagram.first() == Some(&1) {
                self.initiations.push(transmit.datagram.to_vec());
            }
            self.socket.send_to(&transmit.datagram, transmit.to).unwrap();
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Connected { .. } => self.is_connected = true,
                Event::Disconnected { .. } => self.is_connected = false,
                _ => {}
            }
        }
    }
}
