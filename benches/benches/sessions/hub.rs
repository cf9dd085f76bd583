//! A node with 10,000 peers and a session with each: memory, and time to set the sessions up.
//!
//! The peers are no endpoints but what a handshake needs of one, so that what is measured is the node alone.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use falconet_auth_framing::{OVERHEAD, Sealer};
use falconet_benches::{Report, Unit, machine};
use falconet_crypto::{Now, Suite, Tai64N, TransportSecret};
use falconet_handshake::{LocalStatic, Message, PeerStatic, PendingInitiation, SessionIndex};
use falconet_transport::{Endpoint, Lane, PeerConfig, PeerId, TransportConfig};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

const PEERS: u32 = 10_000;
/// What 10,000 peers with a session each may take beyond an empty node.
const TARGET: f64 = (48u32 << 20) as f64;
/// What a session may take.
const SESSION_TARGET: f64 = (3u32 << 10) as f64;

/// Before anything else that allocates: what others have freed would be taken for nothing.
pub(crate) fn run(report: &mut Report) {
    let mut kept = Vec::new();
    for (suite, name) in [(Suite::ChaCha20Poly1305, "chacha"), (Suite::Aes256Gcm, "aes")] {
        if report.wants(&format!("sessions/hub/{PEERS}/{name}")) {
            kept.push(measure(report, suite, name));
        }
    }
    kept.iter_mut().for_each(Hub::expire);
}

fn measure(report: &mut Report, suite: Suite, name: &str) -> Hub {
    let mut figure = |what: &str, value: f64, unit| {
        report.figure(&format!("sessions/hub/{PEERS}/{name}/{what}"), value, unit);
    };
    // What the backend allocates once is there before the first reading.
    drop(Hub::filled(1, suite));
    let empty = machine::resident();
    let mut hub = Hub::new(suite);
    let node = machine::resident();
    (1..=PEERS).for_each(|peer| hub.add(peer));
    let configured = machine::resident();
    for peer in 1..=PEERS {
        hub.connect(peer);
    }
    let connected = machine::resident();
    assert_eq!(hub.endpoint.stats().1.holders.0, PEERS as usize);
    let (each, beyond) = (
        (connected - configured) as f64 / f64::from(PEERS),
        (connected - node) as f64,
    );
    figure("empty_node", (node - empty) as f64, Unit::Bytes);
    figure(
        "a_peer",
        (configured - node) as f64 / f64::from(PEERS),
        Unit::Bytes,
    );
    figure("a_session", each, Unit::Bytes);
    figure("beyond_empty", beyond, Unit::Bytes);
    println!(
        "    targets: {SESSION_TARGET} B a session ({}), {TARGET} B beyond an empty node ({})",
        verdict(each <= SESSION_TARGET),
        verdict(beyond <= TARGET)
    );
    let per_second = f64::from(PEERS) / hub.spent.as_secs_f64();
    figure("set_up_as_responder", per_second, Unit::PerSecond);
    hub
}

const fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

struct Hub {
    endpoint: Endpoint,
    key: LocalStatic,
    suite: Suite,
    now: Now,
    rng: ChaCha20Rng,
    /// Time in calls of the endpoint.
    spent: Duration,
}

impl Hub {
    fn new(suite: Suite) -> Self {
        let now = Now {
            instant: Instant::now(),
            unix: Duration::from_secs(1_700_000_000),
        };
        let config = TransportConfig::default().with_max_sessions(2 * PEERS as usize, 1);
        Self {
            endpoint: Endpoint::new(config, secret(0), now, [0; 32]),
            key: LocalStatic::new(secret(0)),
            suite,
            now,
            rng: ChaCha20Rng::seed_from_u64(3),
            spent: Duration::ZERO,
        }
    }

    fn filled(peers: u32, suite: Suite) -> Self {
        let mut hub = Self::new(suite);
        (1..=peers).for_each(|peer| hub.add(peer));
        (1..=peers).for_each(|peer| hub.connect(peer));
        hub
    }

    fn add(&mut self, peer: u32) {
        let config = PeerConfig::new(secret(peer).public()).with_address(address(peer));
        let config = config.with_suites(vec![self.suite]);
        let added = self.endpoint.add_peer(self.now, PeerId(peer), &config);
        added.expect("a new peer");
        while self.endpoint.poll_event().is_some() {}
    }

    /// The peer dials, and confirms by a keepalive. A peer each 10 ms, so that no budget is asked.
    fn connect(&mut self, peer: u32) {
        self.now = self.now.after(Duration::from_millis(10));
        let local = LocalStatic::new(secret(peer));
        let hub = PeerStatic::new(&local, *self.key.public(), None).expect("a sound key");
        let (suite, index) = (self.suite, SessionIndex::new(peer));
        let timestamp = Tai64N::from_unix(self.now.unix);
        let (pending, initiation) =
            PendingInitiation::new(&local, &hub, suite, index, timestamp, None, &mut self.rng)
                .expect("a sound key");
        let response = self.feed(peer, &mut initiation.to_vec());
        let Ok(Message::Response(response)) = Message::parse(&response.expect("an answer")) else {
            panic!("a response");
        };
        let response = response.check_mac1(&local).expect("made for this peer");
        let keys = pending.open_response(&local, &hub, &response);
        let keys = keys.expect("made for this initiation");
        let mut sealer = Sealer::new(keys.suite, &keys.send, keys.remote_index);
        let mut keepalive = [0; OVERHEAD];
        sealer.seal(&mut keepalive).expect("a fresh key");
        self.feed(peer, &mut keepalive);
    }

    /// What the endpoint makes of a datagram, timed; its first answer.
    fn feed(&mut self, peer: u32, datagram: &mut [u8]) -> Option<Vec<u8>> {
        let started = Instant::now();
        let inbound = self
            .endpoint
            .handle_datagram(self.now, address(peer), Lane::Authenticated, datagram);
        let answer = self.endpoint.poll_transmit();
        self.spent += started.elapsed();
        inbound.expect("a valid datagram");
        while self.endpoint.poll_transmit().is_some() {}
        while self.endpoint.poll_event().is_some() {}
        answer.map(|transmit| transmit.datagram.to_vec())
    }

    /// Every deadline fires, and no session is left.
    fn expire(&mut self) {
        self.now = self.now.after(Duration::from_secs(600));
        self.endpoint.handle_timeout(self.now);
        assert_eq!(self.endpoint.stats().1.sessions, 0);
    }
}

fn secret(node: u32) -> TransportSecret {
    let mut bytes = [7; 32];
    bytes[4..8].copy_from_slice(&node.to_le_bytes());
    TransportSecret::from_bytes(bytes)
}

fn address(node: u32) -> SocketAddr {
    let [_, b, c, d] = node.to_be_bytes();
    SocketAddr::from(([10, b, c, d], 7000))
}
