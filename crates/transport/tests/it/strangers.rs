//! Peers that nobody has configured.

use crate::network::{Network, address, message, ms, secs};
use falconet_transport::{Discard, PeerConfig, PeerId, Policy, TransportConfig};

const MAX_PEERS: usize = 8;

/// Node 0 knows nobody; the others know it.
fn network(nodes: usize, places: usize) -> Network {
    let config = TransportConfig::default()
        .with_max_peers(MAX_PEERS)
        .with_accept_unknown(places > 0)
        .with_max_sessions(MAX_PEERS, places);
    let mut network = Network::with_config(nodes, &config, |_, _, peer| peer.with_policy(Policy::Require));
    for peer in 1..nodes {
        network.nodes[0].endpoint.remove_peer(PeerId(peer as u32));
    }
    network.collect();
    network
}

#[test]
fn a_stranger_is_taken_in_answered_and_known_by_its_place() {
    let mut network = network(2, 2);
    let place = PeerId(MAX_PEERS as u32);
    network.send(1, 0, &message(1)).unwrap();
    network.run_for(ms(100));
    assert_eq!(network.nodes[0].received[0].0, Some(place));
    network.send(0, MAX_PEERS, &message(2)).unwrap();
    network.run_for(ms(100));
    assert_eq!(network.nodes[1].received.len(), 1);
    // It renews its session like anybody, in the same place.
    for n in 0..100 {
        network.send(1, 0, &message(n)).unwrap();
        network.run_for(secs(4));
    }
    assert!(
        network.nodes[0]
            .received
            .iter()
            .all(|received| received.0 == Some(place))
    );
    assert_eq!(network.nodes[0].received.len(), 101);
    assert!(network.nodes[0].endpoint.stats().0.accepted >= 3);
}

#[test]
fn places_are_capped_and_given_again_when_their_holders_are_silent() {
    let mut network = network(5, 2);
    for node in 1..=2 {
        network.send(node, 0, &message(1)).unwrap();
        network.run_for(ms(100));
    }
    for node in 3..=4 {
        network.send(node, 0, &message(1)).unwrap();
    }
    network.run_for(secs(10));
    let full = |reason: &Discard| *reason == Discard::StrangersFull;
    assert!(network.nodes[0].discards.iter().all(full));
    assert!(!network.nodes[0].discards.is_empty());
    assert_eq!(network.nodes[0].endpoint.stats().1.sessions, 2);
    // After 15 s of silence the first makes room, and then the second.
    network.run_for(secs(12));
    let (_, sessions) = network.nodes[0].endpoint.stats();
    assert_eq!((sessions.sessions, sessions.evicted), (2, 2));
    let is_in = |node: usize| {
        let hub = &network.nodes[0].endpoint;
        let theirs = network.nodes[node].endpoint.sessions().current(PeerId(0));
        let mut ours = (0..2).filter_map(|place| hub.sessions().current(PeerId((MAX_PEERS + place) as u32)));
        let remote = theirs.map(|session| session.local_index);
        ours.any(|session| Some(session.remote_index) == remote)
    };
    assert_eq!([1, 2, 3, 4].map(is_in), [false, false, true, true]);
    // Who was forgotten is still protected from replays of what it sent.
    assert_eq!(
        network.nodes[0].endpoint.handshakes().peer_timestamps().count(),
        4
    );
}

#[test]
fn a_place_whose_session_has_ended_by_itself_is_given_again() {
    // One place, whose high watermark is one as well; its holder is never silent before it is cut off.
    let mut network = network(3, 1);
    for n in 0..10 {
        network.send(1, 0, &message(n)).unwrap();
        network.run_for(secs(10));
    }
    network.nodes[1].address = address(77);
    network.run_for(secs(200));
    assert_eq!(network.nodes[0].endpoint.stats().1.holders, (0, 0));
    network.send(2, 0, &message(2)).unwrap();
    network.run_for(secs(1));
    assert!(network.is_connected(2, 0));
}

#[test]
fn a_stranger_takes_no_place_of_a_known_peer_and_becomes_one_when_it_is_configured() {
    let mut network = network(2, 1);
    network.send(1, 0, &message(1)).unwrap();
    network.run_for(ms(100));
    let (now, config) = (network.now, PeerConfig::new(crate::network::secret(1).public()));
    let config = config.with_address(address(1));
    let endpoint = &mut network.nodes[0].endpoint;
    endpoint.add_peer(now, PeerId(1), &config).unwrap();
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(ms(100));
    assert!(network.is_connected(0, 1));
    assert_eq!(network.nodes[1].received.len(), 1);
}

#[test]
fn by_default_there_is_no_place() {
    let mut network = network(2, 0);
    network.send(1, 0, &message(1)).unwrap();
    network.run_for(ms(100));
    assert_eq!(network.nodes[0].discards, [Discard::UnknownPeer]);
}
