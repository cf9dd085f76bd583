//! A whole `Endpoint` against boringtun's `Tunn`: who dials, data both ways, keepalives, both dial at
//! once, and a boringtun that asks for cookies.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519;
use bytes::Bytes;
use falconet_crypto::{Now, SecretBytes, TransportPublicKey, TransportSecret};
use falconet_transport::{
    Content, Discard, Endpoint, Event, Lane, PeerConfig, PeerId, Policy, TransportConfig, kind,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const PEER: PeerId = PeerId(3);

/// Our endpoint, a boringtun tunnel, and a wire between them that loses nothing.
struct Pair {
    endpoint: Endpoint,
    tunn: Tunn,
    /// Plaintexts that the endpoint handed out.
    heard: Vec<(Content, Vec<u8>)>,
    /// IP packets that boringtun handed out.
    tunnelled: Vec<Vec<u8>>,
    discards: Vec<Discard>,
    events: Vec<Event>,
}

fn tunn_address() -> SocketAddr {
    "192.0.2.7:51820".parse().unwrap()
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap(),
    }
}

/// `limit`: handshake messages a second from which boringtun asks for cookies. The seeds decide which
/// key is the smaller one.
fn pair(ours: u8, theirs: u8, limit: u64, wireguard: bool) -> Pair {
    pair_with_psk(ours, theirs, limit, wireguard, None)
}

fn pair_with_psk(ours: u8, theirs: u8, limit: u64, wireguard: bool, psk: Option<[u8; 32]>) -> Pair {
    let secret = TransportSecret::from_bytes([ours; 32]);
    let their_secret = x25519::StaticSecret::from([theirs; 32]);
    let their_public = x25519::PublicKey::from(&their_secret);
    let our_public = x25519::PublicKey::from(*secret.public().as_bytes());
    let limiter = Arc::new(RateLimiter::new(&their_public, limit));
    let tunn = Tunn::new(their_secret, our_public, psk, None, 7, Some(limiter));
    let mut peer = PeerConfig::new(TransportPublicKey::from_bytes(their_public.to_bytes()))
        .with_address(tunn_address())
        .with_policy(Policy::Require)
        .with_wireguard(wireguard);
    peer.psk = psk.map(|psk| Arc::new(SecretBytes::new(psk)));
    let mut endpoint = Endpoint::new(TransportConfig::default(), secret, now(), [ours; 32]);
    endpoint.add_peer(now(), PEER, &peer).unwrap();
    Pair {
        endpoint,
        tunn,
        heard: Vec::new(),
        tunnelled: Vec::new(),
        discards: Vec::new(),
        events: Vec::new(),
    }
}

impl Pair {
    /// Carries datagrams until both sides are silent.
    fn settle(&mut self) {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            assert_eq!(
                (transmit.to, transmit.lane),
                (tunn_address(), Lane::Authenticated)
            );
            self.deliver_to_tunn(&transmit.datagram);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push(event);
        }
    }

    fn deliver_to_tunn(&mut self, datagram: &[u8]) {
        let mut buffer = vec![0; 4096];
        let mut input = datagram;
        loop {
            match self
                .tunn
                .decapsulate(Some(tunn_address().ip()), input, &mut buffer)
            {
                TunnResult::WriteToNetwork(answer) => {
                    let mut answer = answer.to_vec();
                    self.deliver_to_endpoint(&mut answer);
                    // boringtun's contract: call again with nothing until it is done.
                    input = &[];
                }
                TunnResult::WriteToTunnelV4(packet, _) => {
                    self.tunnelled.push(packet.to_vec());
                    return;
                }
                _ => return,
            }
        }
    }

    fn deliver_to_endpoint(&mut self, datagram: &mut [u8]) {
        let result = self
            .endpoint
            .handle_datagram(now(), tunn_address(), Lane::Authenticated, datagram);
        match result {
            Ok(inbound) if inbound.content != Content::None => {
                let plaintext = datagram[inbound.start..][..inbound.len].to_vec();
                self.heard.push((inbound.content, plaintext));
            }
            Ok(_) => {}
            Err(reason) => self.discards.push(reason),
        }
    }

    /// An IP packet into the tunnel; a handshake if there is no session.
    fn tunn_sends(&mut self, packet: &[u8]) {
        let mut buffer = vec![0; 4096];
        if let TunnResult::WriteToNetwork(datagram) = self.tunn.encapsulate(packet, &mut buffer) {
            let mut datagram = datagram.to_vec();
            self.deliver_to_endpoint(&mut datagram);
        }
        self.settle();
    }

    fn endpoint_sends(&mut self, packet: &Bytes) {
        self.endpoint.send(now(), PEER, packet).unwrap();
        self.settle();
    }

    fn is_connected(&self) -> bool {
        self.endpoint.sessions().is_connected(now(), PEER)
    }
}

/// An IPv4 packet with `len` bytes of payload; boringtun looks at version, length and source only.
fn ip_packet(len: usize, fill: u8) -> Bytes {
    let total = 20 + len;
    let mut packet = vec![fill; total];
    packet[..20].fill(0);
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&u16::try_from(total).unwrap().to_be_bytes());
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet.into()
}

#[test]
fn boringtun_answers_our_dial_and_data_flows_both_ways() {
    let mut pair = pair(1, 2, 1_000, true);
    for n in 0..50 {
        pair.endpoint_sends(&ip_packet(n as usize, n));
    }
    let expected: Vec<_> = (0..50).map(|n| ip_packet(n as usize, n).to_vec()).collect();
    assert_eq!(pair.tunnelled, expected);
    for n in 0..50 {
        pair.tunn_sends(&ip_packet(n as usize, n));
    }
    // A WireGuard peer may pad to 16: the packet is what its own length says.
    let heard = pair.heard.iter().map(|(content, plaintext)| {
        assert_eq!(*content, Content::Other);
        let total = usize::from(u16::from_be_bytes([plaintext[2], plaintext[3]]));
        plaintext[..total].to_vec()
    });
    assert_eq!(heard.collect::<Vec<_>>(), expected);
    assert_eq!(pair.discards, []);
    assert_eq!(pair.events.len(), 1);
}

#[test]
fn boringtun_dials_us_and_data_flows_both_ways() {
    let mut pair = pair(1, 2, 1_000, true);
    pair.tunn_sends(&ip_packet(100, 7));
    assert!(pair.is_connected());
    assert_eq!(
        pair.heard.len(),
        1,
        "what boringtun had queued followed the response"
    );
    pair.endpoint_sends(&ip_packet(100, 8));
    assert_eq!(pair.tunnelled, [ip_packet(100, 8).to_vec()]);
    let stats = pair.endpoint.handshakes().stats();
    assert_eq!((stats.accepted, stats.dialled), (1, 0));
}

#[test]
fn boringtun_and_we_dial_at_once_with_either_key_the_smaller() {
    for (ours, theirs) in [(1, 2), (2, 1), (3, 9), (9, 3)] {
        let mut pair = pair(ours, theirs, 1_000, true);
        // Both initiations are on the wire before either arrives.
        pair.endpoint.connect(now(), PEER);
        let initiation = pair.endpoint.poll_transmit().unwrap();
        let mut buffer = vec![0; 4096];
        let TunnResult::WriteToNetwork(theirs) = pair.tunn.encapsulate(&ip_packet(9, 9), &mut buffer) else {
            panic!("boringtun dials");
        };
        let mut theirs = theirs.to_vec();
        pair.deliver_to_endpoint(&mut theirs);
        // boringtun forgets its own initiation when it answers ours, and sends another: a responder
        // takes that only 20 ms after the first.
        std::thread::sleep(Duration::from_millis(25));
        pair.deliver_to_tunn(&initiation.datagram);
        pair.settle();
        for n in 0..20 {
            pair.endpoint_sends(&ip_packet(40, n));
            pair.tunn_sends(&ip_packet(40, n));
        }
        assert_eq!(
            (pair.tunnelled.len(), pair.heard.len()),
            (20, 21),
            "{:?}",
            pair.discards
        );
    }
}

#[test]
fn boringtun_under_load_is_satisfied_by_a_cookie() {
    let mut pair = pair(1, 2, 0, true);
    pair.endpoint.connect(now(), PEER);
    // The cookie reply hastens a second initiation, which boringtun sees too soon after the first or
    // answers: 20 ms are kept by our own timer.
    let start = Instant::now();
    pair.settle();
    while !pair.is_connected() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
        pair.endpoint.handle_timeout(now());
        pair.settle();
    }
    assert!(pair.is_connected());
    pair.endpoint_sends(&ip_packet(10, 1));
    assert_eq!(pair.tunnelled.len(), 1);
}

#[test]
fn boringtun_plaintexts_are_a_named_discard_unless_the_peer_is_wireguard() {
    let mut pair = pair(1, 2, 1_000, false);
    pair.tunn_sends(&ip_packet(100, 7));
    assert_eq!(pair.heard, []);
    assert_eq!(pair.discards, [Discard::UnknownKind]);
    assert_ne!(kind::MESSAGE, 0x45);
}

#[test]
fn boringtun_with_a_preshared_key_in_both_roles() {
    for we_dial in [true, false] {
        let mut pair = pair_with_psk(1, 2, 1_000, true, Some([9; 32]));
        if we_dial {
            pair.endpoint_sends(&ip_packet(40, 1));
            pair.tunn_sends(&ip_packet(40, 2));
        } else {
            pair.tunn_sends(&ip_packet(40, 2));
            pair.endpoint_sends(&ip_packet(40, 1));
        }
        assert_eq!((pair.tunnelled.len(), pair.heard.len()), (1, 1), "{we_dial}");
        assert_eq!(pair.endpoint.stats().0.dialled, u64::from(we_dial));
    }
}

#[test]
fn boringtun_takes_part_in_ten_rekeys_of_ours_without_a_lost_packet() {
    let mut pair = pair(1, 2, 1_000, true);
    pair.endpoint_sends(&ip_packet(40, 0));
    let mut indices = Vec::new();
    for n in 1..=10 {
        // boringtun tells initiations apart by whole milliseconds, we send one in 20 ms.
        std::thread::sleep(Duration::from_millis(25));
        let later = now().after(Duration::from_secs(6) * n);
        pair.endpoint.rekey(later, PEER);
        pair.settle();
        let current = pair.endpoint.sessions().current(PEER).unwrap();
        assert!(!indices.contains(&current.local_index));
        indices.push(current.local_index);
        let sent = pair.endpoint.send(later, PEER, &ip_packet(40, n as u8));
        sent.unwrap();
        pair.settle();
        pair.tunn_sends(&ip_packet(40, n as u8));
    }
    assert_eq!((pair.tunnelled.len(), pair.heard.len()), (11, 10));
    assert_eq!(pair.discards, []);
    assert_eq!(pair.events.len(), 1, "connected once and for all");
}

#[test]
fn boringtun_satisfies_us_under_load_with_our_cookie() {
    let mut pair = pair(1, 2, 1_000, true);
    pair.endpoint.set_under_load(true);
    pair.tunn_sends(&ip_packet(40, 1));
    assert!(!pair.is_connected());
    assert_eq!(pair.discards, [Discard::CookieDemanded]);
    // Its own timer would do this after 5 s.
    std::thread::sleep(Duration::from_millis(25));
    let mut buffer = vec![0; 4096];
    let TunnResult::WriteToNetwork(again) = pair.tunn.format_handshake_initiation(&mut buffer, true) else {
        panic!("boringtun dials again");
    };
    let mut again = again.to_vec();
    pair.deliver_to_endpoint(&mut again);
    pair.settle();
    assert!(pair.is_connected());
    assert_eq!(pair.heard.len(), 1);
}

#[test]
fn boringtun_is_followed_to_another_address() {
    let mut pair = pair(1, 2, 1_000, true);
    pair.endpoint_sends(&ip_packet(40, 1));
    let moved: SocketAddr = "198.51.100.4:1234".parse().unwrap();
    let mut buffer = vec![0; 4096];
    let TunnResult::WriteToNetwork(datagram) = pair.tunn.encapsulate(&ip_packet(40, 2), &mut buffer) else {
        panic!("boringtun seals");
    };
    let lane = Lane::Authenticated;
    let result = pair.endpoint.handle_datagram(now(), moved, lane, datagram);
    assert_eq!(result.unwrap().content, Content::Other);
    pair.endpoint.send(now(), PEER, &ip_packet(40, 3)).unwrap();
    assert_eq!(pair.endpoint.poll_transmit().unwrap().to, moved);
}
