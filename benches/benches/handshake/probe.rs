//! How long it takes to connect.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

use falconet_crypto::{Now, TransportPublicKey, TransportSecret};
use falconet_transport::{Endpoint, Lane, PeerConfig, PeerId, Policy, TransportConfig};

const PEER: PeerId = PeerId(0);
/// Longest wait for a datagram; timers are as late as that.
const WAIT: Duration = Duration::from_millis(2);

/// A socket from which one node after the other dials the same victim.
pub(crate) struct Probe {
    socket: UdpSocket,
    victim: TransportPublicKey,
    target: SocketAddr,
    attempts: u64,
}

impl Probe {
    pub(crate) fn new(socket: UdpSocket, victim: TransportPublicKey, target: SocketAddr) -> Self {
        socket.set_read_timeout(Some(WAIT)).expect("an option");
        Self {
            socket,
            victim,
            target,
            attempts: 0,
        }
    }

    /// Dials as a node that was just started does, until it has a session or `is_over`; the time that took, or that
    /// was in vain.
    pub(crate) fn connect(
        &mut self,
        secret: TransportSecret,
        is_over: impl Fn() -> bool,
    ) -> Result<Duration, Duration> {
        self.attempts += 1;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.attempts.to_le_bytes());
        seed[8..24].copy_from_slice(&now().unix.as_nanos().to_le_bytes());
        let mut endpoint = Endpoint::new(TransportConfig::default(), secret, now(), seed);
        let peer = PeerConfig::new(self.victim)
            .with_address(self.target)
            .with_policy(Policy::Require)
            .with_persistent(true);
        let started = Instant::now();
        endpoint.add_peer(now(), PEER, &peer).expect("its only peer");
        let mut buffer = [0; 2_048];
        while !endpoint.sessions().is_connected(now(), PEER) {
            if is_over() {
                return Err(started.elapsed());
            }
            while let Some(transmit) = endpoint.poll_transmit() {
                // What does not leave is lost.
                let _ = self.socket.send_to(&transmit.datagram, transmit.to);
            }
            if let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
                // What was for the attempt before is discarded.
                let _ = endpoint.handle_datagram(now(), from, Lane::Authenticated, &mut buffer[..length]);
            }
            if endpoint.poll_timeout().is_some_and(|at| at <= Instant::now()) {
                endpoint.handle_timeout(now());
            }
        }
        let took = started.elapsed();
        while let Some(transmit) = endpoint.poll_transmit() {
            let _ = self.socket.send_to(&transmit.datagram, transmit.to);
        }
        Ok(took)
    }
}

fn now() -> Now {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Now {
        instant: Instant::now(),
        unix: unix.expect("a clock after 1970"),
    }
}
