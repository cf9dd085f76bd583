//! Caps on sessions, and whose are given up; `docs/spec/session.md#caps`.

use crate::network::{Network, address, message, ms, secret, secs};
use falconet_crypto::{IdentitySecret, Now, Signer};
use falconet_transport::{
    AddPeerError, Discard, Endpoint, PeerConfig, PeerId, Policy, TransportConfig, split,
};
use std::time::{Duration, Instant};

const MAX_PEERS: usize = 64;

/// Node 0 is a hub that knows the nodes before `strangers`. `configure` completes what it and
/// a node know of each other.
fn network(
    nodes: usize,
    strangers: usize,
    (known, unknown): (usize, usize),
    configure: impl Fn(usize, PeerConfig) -> PeerConfig,
) -> Network {
    let config = TransportConfig::default()
        .with_max_peers(MAX_PEERS)
        .with_accept_unknown(true)
        .with_max_sessions(known, unknown);
    let mut network = Network::with_config(nodes, &config, |i, j, peer| {
        let peer = peer.with_policy(Policy::Require);
        // What the hub knows of a node, and the node of the hub.
        if i * j == 0 { configure(i + j, peer) } else { peer }
    });
    for peer in strangers..nodes {
        network.nodes[0].endpoint.remove_peer(PeerId(peer as u32));
    }
    network.collect();
    network
}

/// Each of `nodes` sends to the hub once a second.
fn keep_busy(network: &mut Network, nodes: std::ops::Range<usize>, seconds: u64, each: impl Fn(&Network)) {
    for second in 0..seconds {
        for node in nodes.clone() {
            let _ = network.send(node, 0, &message(second * 100 + node as u64));
        }
        network.run_for(secs(1));
        each(network);
    }
}

fn holders(network: &Network) -> (usize, usize) {
    network.nodes[0].endpoint.stats().1.holders
}

/// Whether the hub has the session that `node` sends in.
fn is_served(network: &Network, node: usize) -> bool {
    let theirs = network.nodes[node].endpoint.sessions().current(PeerId(0));
    let places = (0..2 * MAX_PEERS as u32).map(PeerId);
    let ours = places.filter_map(|peer| network.nodes[0].endpoint.sessions().current(peer));
    let index = theirs.map(|session| session.local_index);
    ours.into_iter()
        .any(|session| Some(session.remote_index) == index)
}

#[test]
fn strangers_beyond_the_cap_take_nothing_from_validators() {
    let mut network = network(33, 4, (3, 8), |node, peer| peer.with_persistent(node < 4));
    network.run_for(secs(1));
    // Thirty keys that nobody knows, all of them busy, before, while and after the validators lose everything.
    for round in 0..4 {
        keep_busy(&mut network, 4..33, 10, |network| {
            assert!(holders(network).1 <= 8)
        });
        assert_eq!(holders(&network).1, 8);
        (1..4).for_each(|validator| network.reset(validator));
        keep_busy(&mut network, 4..33, 16, |network| {
            assert!(holders(network).1 <= 8)
        });
        (1..4).for_each(|validator| assert!(is_served(&network, validator), "{validator} in {round}"));
        assert_eq!(holders(&network), (3, 8));
    }
    let (handshakes, sessions) = network.nodes[0].endpoint.stats();
    assert!(handshakes.discards.of(Discard::StrangersFull) > 100);
    assert_eq!(sessions.discards.of(Discard::SessionsFull), 0);
}

#[test]
fn transient_peers_beyond_the_cap_take_nothing_from_validators_that_come_later() {
    let is_validator = |node: usize| node > 10;
    let mut network = network(13, 13, (4, 1), |node, peer| {
        peer.with_persistent(is_validator(node))
    });
    // The validators are elsewhere at first; the ten others are more than there are places.
    for validator in [11, 12] {
        network.nodes[validator].address = address(100 + validator);
    }
    keep_busy(&mut network, 1..11, 20, |network| {
        assert!(holders(network).0 <= 4)
    });
    assert_eq!(holders(&network).0, 4);
    assert!(
        network.nodes[0]
            .endpoint
            .stats()
            .1
            .discards
            .of(Discard::SessionsFull)
            > 0
    );
    for validator in [11, 12] {
        network.nodes[validator].address = address(validator);
    }
    keep_busy(&mut network, 1..11, 15, |network| {
        assert!(holders(network).0 <= 4)
    });
    // However busy the others are, and for however long.
    keep_busy(&mut network, 1..11, 400, |network| {
        assert!(holders(network).0 <= 4);
        assert!(is_served(network, 11) && is_served(network, 12));
    });
}

#[test]
fn past_the_high_watermark_the_longest_idle_go_and_busy_ones_stay() {
    // High is 7 of 8, low is 6.
    let mut network = network(9, 1, (4, 8), |_, peer| peer);
    for node in 1..8 {
        network.send(node, 0, &message(node as u64)).unwrap();
        network.run_for(ms(100));
    }
    assert_eq!(holders(&network), (0, 7));
    let evicted = |network: &Network| network.nodes[0].endpoint.stats().1.evicted;
    keep_busy(&mut network, 1..2, 14, |network| assert_eq!(evicted(network), 0));
    keep_busy(&mut network, 1..2, 10, |_| {});
    assert_eq!((holders(&network), evicted(&network)), ((0, 6), 1));
    let served: Vec<_> = (1..8).filter(|node| is_served(&network, *node)).collect();
    assert_eq!(
        served,
        [1, 3, 4, 5, 6, 7],
        "the first is busy, the second was idle for longest"
    );
    // Below the watermark nobody goes, however idle.
    network.run_for(secs(60));
    assert_eq!(evicted(&network), 1);
    // Who was given up finds out by itself and comes again; its place has been given to another.
    network.send(8, 0, &message(8)).unwrap();
    network.run_for(ms(100));
    network.send(2, 0, &message(9)).unwrap();
    network.run_for(secs(20));
    network.send(2, 0, &message(10)).unwrap();
    network.run_for(ms(100));
    let sender = |number: u64| {
        let mut received = network.nodes[0].received.iter();
        received.find(|received| received.2 == message(number)).unwrap().0
    };
    assert!(is_served(&network, 2));
    assert_eq!(sender(8), sender(2), "the place that was freed");
    assert_ne!(sender(10), sender(2));
}

#[test]
fn peers_with_an_identity_go_last() {
    let identity = |node: usize| IdentitySecret::from_bytes([node as u8; 32]).identity();
    // High is 7 of 8.
    let mut network = network(8, 8, (8, 1), |node, peer| match node {
        1..4 => peer.with_identity(identity(node)),
        _ => peer,
    });
    for node in 1..8 {
        network.send(node, 0, &message(node as u64)).unwrap();
        network.run_for(ms(100));
    }
    network.run_for(secs(20));
    let served: Vec<_> = (1..8).filter(|node| is_served(&network, *node)).collect();
    assert_eq!(
        served,
        [1, 2, 3, 5, 6, 7],
        "the fourth, though the first was idle for longer"
    );
    // It was known, and is told of.
    let told = &network.nodes[0].events;
    assert!(
        told.iter()
            .any(|event| format!("{event:?}").contains("Disconnected"))
    );
}

#[test]
fn more_persistent_peers_than_sessions_are_refused_when_they_are_added() {
    let now = now();
    let config = TransportConfig::default().with_max_sessions(2, 1);
    let mut endpoint = Endpoint::new(config, secret(0), now, [3; 32]);
    let peer = |n: usize| PeerConfig::new(secret(n).public()).with_persistent(true);
    for n in 1..3 {
        endpoint.add_peer(now, PeerId(n as u32), &peer(n)).unwrap();
    }
    let refused = endpoint.add_peer(now, PeerId(3), &peer(3));
    assert_eq!(refused, Err(AddPeerError::TooManyPersistent));
    // One that has no session, or may lose it, is none of them.
    let plain = peer(3).with_policy(Policy::Plain);
    endpoint.add_peer(now, PeerId(3), &plain).unwrap();
    let transient = peer(4).with_persistent(false);
    endpoint.add_peer(now, PeerId(4), &transient).unwrap();
    endpoint.remove_peer(PeerId(1));
    endpoint.add_peer(now, PeerId(1), &peer(1)).unwrap();
    assert_eq!(
        endpoint.add_peer(now, PeerId(5), &peer(5)),
        Err(AddPeerError::TooManyPersistent)
    );
}

/// The two halves on their threads: one gives a session up while the other has agreed on the next.
#[test]
fn a_place_is_not_free_if_its_holder_has_a_newer_session_under_way() {
    let mut now = now();
    let config = TransportConfig::default()
        .with_max_peers(1)
        .with_accept_unknown(true)
        .with_max_sessions(1, 1);
    let (mut handshakes, mut sessions) = split(config, secret(0), now, [4; 32]);
    let caller = |key: usize, now: Now| {
        let mut caller = Endpoint::new(TransportConfig::default(), secret(key), now, [key as u8; 32]);
        let hub = PeerConfig::new(secret(0).public()).with_address(address(0));
        caller.add_peer(now, PeerId(0), &hub).unwrap();
        caller.connect(now, PeerId(0));
        caller.poll_transmit().unwrap().datagram
    };
    handshakes
        .handle_datagram(now, address(1), &caller(1, now))
        .unwrap();
    sessions.handle_message(now, handshakes.poll_message().unwrap());
    now = now.after(secs(16));
    sessions.handle_timeout(now);
    assert_eq!(sessions.stats().evicted, 1);
    // Before that is known to the other half, the same stranger calls again.
    handshakes
        .handle_datagram(now, address(1), &caller(1, now))
        .unwrap();
    while let Some(message) = sessions.poll_message() {
        handshakes.handle_message(now, message);
    }
    let refused = handshakes.handle_datagram(now, address(2), &caller(2, now));
    assert_eq!(refused, Err(Discard::StrangersFull));
    sessions.handle_message(now, handshakes.poll_message().unwrap());
    assert_eq!(sessions.stats().holders, (0, 1));
    // Given up once more, and heard of in time.
    now = now.after(secs(16));
    sessions.handle_timeout(now);
    while let Some(message) = sessions.poll_message() {
        handshakes.handle_message(now, message);
    }
    handshakes
        .handle_datagram(now, address(2), &caller(2, now))
        .unwrap();
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    }
}
