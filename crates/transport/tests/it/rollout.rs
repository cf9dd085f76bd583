//! Mixed lanes, roaming.

use crate::network::{Flight, Network, address, message, ms, plain_address, secs};
use falconet_transport::{Discard, Event, Lane, PeerConfig, PeerId, Policy, SendError};

fn with_policy(policy: Policy) -> impl Fn(usize, usize, PeerConfig) -> PeerConfig {
    move |_, other, peer| peer.with_policy(policy).with_plain_address(plain_address(other))
}

fn lanes(network: &Network, node: usize) -> Vec<Lane> {
    network.nodes[node]
        .received
        .iter()
        .map(|received| received.1)
        .collect()
}

#[test]
fn prefer_sends_plain_at_once_and_seals_as_soon_as_it_can() {
    let mut network = Network::new(2, with_policy(Policy::Prefer));
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(ms(100));
    assert_eq!(lanes(&network, 1), [Lane::Plain, Lane::Authenticated]);
    assert_eq!(network.nodes[0].endpoint.sessions().fallbacks(PeerId(1)), 1);
    assert_eq!(
        network.nodes[1].received[0].0,
        Some(PeerId(0)),
        "the address is a hint"
    );
}

#[test]
fn a_blocked_authenticated_lane_is_never_silent() {
    let mut network = Network::new(2, with_policy(Policy::Prefer));
    for n in 0..50 {
        network.send(0, 1, &message(n)).unwrap();
        // The firewall: handshakes never arrive.
        for flight in network.intercept() {
            if flight.lane == Lane::Plain {
                network.deliver(flight);
            }
        }
        network.run_for(ms(1));
    }
    assert_eq!(lanes(&network, 1), [Lane::Plain; 50]);
    assert_eq!(network.nodes[0].endpoint.sessions().fallbacks(PeerId(1)), 50);
}

#[test]
fn require_refuses_plain_in_both_directions() {
    let mut network = Network::new(2, with_policy(Policy::Require));
    network.send(0, 1, &message(1)).unwrap();
    network.deliver(Flight {
        to: plain_address(1),
        from: plain_address(0),
        lane: Lane::Plain,
        datagram: message(2).to_vec(),
    });
    network.run_for(ms(100));
    assert_eq!(lanes(&network, 1), [Lane::Authenticated]);
    assert_eq!(network.nodes[1].discards, [Discard::PlainRefused]);
}

#[test]
fn plain_until_seen_is_sticky_beyond_the_session() {
    let mut network = Network::new(2, with_policy(Policy::PlainUntilSeen));
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    network.run_for(secs(1000));
    assert!(matches!(
        network.nodes[0].events.last(),
        Some(Event::Disconnected { .. })
    ));
    // The authenticated lane is blocked now: nothing leaves plain, it fails visibly.
    network.link.loss = 100;
    network.tap = Some(Vec::new());
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(secs(100));
    assert!(
        network
            .tap
            .as_ref()
            .unwrap()
            .iter()
            .all(|flight| flight.lane == Lane::Authenticated)
    );
    assert!(matches!(
        network.nodes[0].events.last(),
        Some(Event::SendFailed { .. })
    ));
}

#[test]
fn a_peer_that_only_speaks_plain() {
    let mut network = Network::new(2, with_policy(Policy::Plain));
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(10));
    assert_eq!(lanes(&network, 1), [Lane::Plain]);
    assert_eq!(network.nodes[0].endpoint.stats().0.initiations_sent, 0);
    let mut network = Network::new(2, |_, _, peer| peer.with_policy(Policy::Plain));
    assert_eq!(network.send(0, 1, &message(1)), Err(SendError::NoAddress));
}

#[test]
fn an_address_moves_only_by_the_newest_authenticated_datagram() {
    let moved = "198.51.100.9:4000".parse().unwrap();
    let mut network = Network::new(2, |_, _, peer| peer.with_policy(Policy::Require));
    network.send(0, 1, &message(0)).unwrap();
    network.run_for(ms(100));
    let known = |network: &Network| network.nodes[1].endpoint.sessions().address(PeerId(0)).unwrap();
    let from_afar = |network: &mut Network, spoil: bool| {
        network.send(0, 1, &message(1)).unwrap();
        let mut flight = network.intercept().pop().unwrap();
        flight.from = moved;
        flight.datagram[20] ^= u8::from(spoil);
        flight
    };
    let forged = from_afar(&mut network, true);
    network.deliver(forged);
    assert_eq!(known(&network), address(0));
    let late = from_afar(&mut network, false);
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(ms(100));
    network.deliver(late);
    assert_eq!(known(&network), address(0), "an overtaken datagram moves nothing");
    let newest = from_afar(&mut network, false);
    network.deliver(newest);
    assert_eq!(known(&network), moved);
}

#[test]
fn a_validator_does_not_roam() {
    let mut network = Network::new(2, |_, _, peer| peer.with_persistent(true));
    network.run_for(ms(200));
    network.send(0, 1, &message(1)).unwrap();
    let mut flight = network.intercept().pop().unwrap();
    flight.from = "198.51.100.9:4000".parse().unwrap();
    network.deliver(flight);
    assert_eq!(network.nodes[1].received.len(), 1);
    assert_eq!(
        network.nodes[1].endpoint.sessions().address(PeerId(0)),
        Some(address(0))
    );
}
