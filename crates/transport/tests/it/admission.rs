//! Admission as the endpoint applies it: cookies, classes, unknown keys, room, answers to own dials.

use crate::network::{Flight, Network, address, initiations, message, ms, secret, secs};
use falconet_crypto::Now;
use falconet_transport::{
    AdmissionOptions, Discard, Endpoint, Handshakes, PeerConfig, PeerId, Policy, Refusal, TransportConfig,
    split,
};
use std::num::NonZeroU32;

fn rate(per_second: u32) -> NonZeroU32 {
    NonZeroU32::new(per_second).unwrap()
}

fn require(_: usize, _: usize, peer: PeerConfig) -> PeerConfig {
    peer.with_policy(Policy::Require)
}

#[test]
fn two_nodes_that_are_both_under_load_connect() {
    let mut network = Network::new(2, |_, _, peer| peer.with_persistent(true));
    for node in 0..2 {
        network.set_under_load(node, true);
        network.reset(node);
    }
    network.intercept();
    network.run_for(secs(2));
    assert!(network.is_connected(0, 1) && network.is_connected(1, 0));
    let asked = |node: usize| network.nodes[node].discards.contains(&Discard::CookieDemanded);
    assert!(asked(0) || asked(1));
    // The cookie outlives the session that it was for: the node that was not reset needs one message.
    let sent = network.nodes[0].endpoint.stats().0.initiations_sent;
    network.nodes[0].discards.clear();
    network.reset(1);
    network.run_for(secs(3));
    assert!(network.is_connected(0, 1) && network.is_connected(1, 0));
    assert!(network.nodes[0].endpoint.stats().0.initiations_sent <= sent + 1);
}

#[test]
fn an_initiator_under_load_gets_its_mac2_in_the_next_response() {
    // The initiator asks for a cookie where the response had none, as WireGuard does under load.
    let mut network = Network::new(2, require);
    network.connect(0, 1);
    let initiation = network.intercept().remove(0);
    network.deliver(initiation);
    network.collect();
    let response = network.intercept().remove(0);
    assert_eq!(response.datagram[76..92], [0; 16]);
    let reply = cookie_reply_to(&response.datagram);
    network.deliver(Flight {
        to: address(1),
        from: address(0),
        lane: response.lane,
        datagram: reply.clone(),
    });
    assert_eq!(network.nodes[1].discards, []);
    // It dials again, from the same address and then from another one.
    for (from, has_mac2) in [(address(0), true), ("198.51.100.7:9".parse().unwrap(), false)] {
        network.reset(0);
        network.run_for(secs(1));
        network.connect(0, 1);
        let initiation = network.intercept().remove(0);
        network.deliver(Flight { from, ..initiation });
        network.collect();
        let response = network.intercept().remove(0);
        assert_eq!(response.datagram[0], 2);
        assert_eq!(response.datagram[76..92] != [0; 16], has_mac2);
    }
    // The same reply again answers nothing that is still open.
    network.deliver(Flight {
        to: address(1),
        from: address(0),
        lane: response.lane,
        datagram: reply,
    });
    assert_eq!(network.nodes[1].discards, [Discard::Unsolicited]);
}

/// What an initiator (node 0) under load sends to the responder whose response this is.
fn cookie_reply_to(response: &[u8]) -> Vec<u8> {
    use falconet_handshake::{CookieJar, LocalStatic, Message};
    use rand_core::SeedableRng;
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(5);
    let local = LocalStatic::new(secret(0));
    let now = Network::new(1, require).now;
    let jar = CookieJar::new(now, &mut rng);
    let Ok(Message::Response(response)) = Message::parse(response) else {
        panic!("a response");
    };
    let checked = response.check_mac1(&local).unwrap();
    jar.reply(&local, &checked, address(1), &mut rng).to_vec()
}

#[test]
fn strangers_cannot_spend_the_budget_of_who_has_a_cookie() {
    let options = AdmissionOptions::default()
        .with_unproved_per_second(rate(10))
        .with_cookie_replies_per_second(rate(50));
    let config = TransportConfig::default().with_admission(options).unwrap();
    let mut network = Network::with_config(2, &config, require);
    for datagram in initiations(1000) {
        let (to, from, lane) = (
            address(1),
            "203.0.113.5:9".parse().unwrap(),
            falconet_transport::Lane::Authenticated,
        );
        network.deliver(Flight {
            to,
            from,
            lane,
            datagram,
        });
    }
    let answers = network.intercept();
    assert!(answers.len() <= 5, "replies are capped: {}", answers.len());
    let stats = network.nodes[1].endpoint.stats().0;
    assert_eq!(
        stats.discards.of(Discard::UnknownPeer),
        10,
        "the budget, and no DH more"
    );
    assert!(stats.discards.of(Discard::Refused(Refusal::ReplySampled)) > 900);
    network.connect(0, 1);
    let took = network.run_until(secs(3), |n| n.is_connected(0, 1) && n.is_connected(1, 0));
    assert!(took.is_some());
}

#[test]
fn a_recorded_address_has_replies_of_its_own_and_is_matched_by_address_and_port() {
    let options = AdmissionOptions::default()
        .with_cookie_replies_per_second(rate(10))
        .with_recorded_cookie_replies_per_second(rate(1000));
    let config = TransportConfig::default().with_admission(options).unwrap();
    // Node 0 is a validator to node 1; the same host's other ports are strangers.
    let answered = |port: u16, removed: bool| {
        let persistent = |_: usize, _: usize, peer: PeerConfig| peer.with_persistent(true);
        let mut network = Network::with_config(2, &config, persistent);
        network.intercept();
        network.set_under_load(1, true);
        if removed {
            network.nodes[1].endpoint.remove_peer(PeerId(0));
        }
        let mut from = address(0);
        from.set_port(port);
        let (to, lane) = (address(1), falconet_transport::Lane::Authenticated);
        for datagram in initiations(100) {
            network.deliver(Flight {
                to,
                from,
                lane,
                datagram,
            });
        }
        network.collect();
        network.intercept().len()
    };
    assert_eq!(answered(7000, false), 100);
    assert!(answered(7001, false) <= 1);
    assert!(answered(7000, true) <= 1);
}

#[test]
fn answers_to_own_dials_pass_while_the_strangers_budget_is_spent() {
    let options = AdmissionOptions::default()
        .with_unproved_per_second(rate(1))
        .with_cookie_replies_per_second(rate(1));
    let config = TransportConfig::default().with_admission(options).unwrap();
    let mut network = Network::with_config(2, &config, require);
    network.connect(0, 1);
    let flood = initiations(200);
    for datagram in flood {
        let (to, from) = (address(0), address(9));
        let lane = falconet_transport::Lane::Authenticated;
        network.deliver(Flight {
            to,
            from,
            lane,
            datagram,
        });
    }
    network.run_for(ms(50));
    assert!(network.is_connected(0, 1));
}

/// The two halves of node 1, which knows nodes 0 and 2; nothing drains them by itself.
fn halves() -> (Handshakes, Now) {
    let now = Network::new(1, require).now;
    let (mut handshakes, _) = split(TransportConfig::default(), secret(1), now, [7; 32]);
    for peer in [0, 2] {
        let config = PeerConfig::new(secret(peer).public());
        handshakes.add_peer(now, PeerId(peer as u32), &config).unwrap();
    }
    (handshakes, now)
}

#[test]
fn without_room_towards_the_data_plane_no_key_is_used() {
    let (mut handshakes, now) = halves();
    assert_eq!(fill_outbox(&mut handshakes, now), 64, "the cap");
    // A forged one is still judged by its mac first; a good one ends before its first DH.
    let mut datagram = fresh_initiation(now.after(secs(3000)));
    let before = handshakes.stats();
    let at = now.after(secs(10));
    assert_eq!(
        handshakes.handle_datagram(at, address(2), &datagram),
        Err(Discard::NoRoom)
    );
    datagram[130] ^= 1;
    assert!(matches!(
        handshakes.handle_datagram(at, address(2), &datagram),
        Err(Discard::Handshake(_))
    ));
    assert_eq!(handshakes.stats().accepted, before.accepted);
    assert_eq!(handshakes.stats().discards.of(Discard::NoRoom), 1);
    handshakes.poll_message().unwrap();
    datagram[130] ^= 1;
    assert_eq!(handshakes.handle_datagram(at, address(2), &datagram), Ok(()));
}

/// Accepts handshakes until there is no room.
fn fill_outbox(handshakes: &mut Handshakes, mut now: Now) -> usize {
    let mut filled = 0;
    while handshakes.has_room() {
        now = now.after(ms(25));
        let datagram = fresh_initiation(now.after(secs(2000)));
        handshakes.handle_datagram(now, address(2), &datagram).unwrap();
        filled += 1;
    }
    filled
}

/// Node 2's initiation to node 1 at `now`.
fn fresh_initiation(now: Now) -> Vec<u8> {
    let mut endpoint = falconet_transport::Endpoint::new(TransportConfig::default(), secret(2), now, [9; 32]);
    let config = PeerConfig::new(secret(1).public()).with_address(address(1));
    endpoint.add_peer(now, PeerId(1), &config).unwrap();
    endpoint.connect(now, PeerId(1));
    endpoint.poll_transmit().unwrap().datagram.to_vec()
}

#[test]
fn cookie_replies_that_nobody_sends_are_capped() {
    let options = AdmissionOptions::default().with_cookie_replies_per_second(rate(1_000_000));
    let config = TransportConfig::default().with_admission(options).unwrap();
    let now = Network::new(1, require).now;
    let (mut handshakes, _) = split(config, secret(1), now, [7; 32]);
    handshakes.set_under_load(true);
    let datagram = fresh_initiation(now);
    for _ in 0..5000 {
        let result = handshakes.handle_datagram(now, address(2), &datagram);
        assert_eq!(result, Err(Discard::CookieDemanded));
    }
    let queued = std::iter::from_fn(|| handshakes.poll_transmit()).count();
    assert_eq!(queued, 4096);
    assert_eq!(handshakes.stats().cookie_replies_sent, 4096);
}

#[test]
fn an_unknown_key_ends_after_one_dh_and_leaves_nothing() {
    let mut network = Network::new(2, require);
    network.nodes[1].endpoint.remove_peer(PeerId(0));
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(50));
    assert_eq!(network.nodes[1].discards, [Discard::UnknownPeer]);
    assert_eq!(network.nodes[1].endpoint.stats().1.sessions, 0);
    assert_eq!(network.nodes[1].endpoint.poll_timeout(), None);
}

#[test]
fn a_validators_address_is_recorded_for_as_long_as_it_is_a_peer() {
    let mut network = Network::new(3, |_, other, peer| match other {
        1 => peer.with_persistent(true),
        _ => peer,
    });
    let endpoint = &mut network.nodes[0].endpoint;
    let is_recorded = |endpoint: &Endpoint, at| endpoint.handshakes().is_recorded(at);
    assert!(is_recorded(endpoint, address(1)));
    assert!(
        !is_recorded(endpoint, address(2)),
        "neither persistent nor with an identity"
    );
    let mut other_port = address(1);
    other_port.set_port(1);
    assert!(!is_recorded(endpoint, other_port));
    endpoint.remove_peer(PeerId(1));
    assert!(!is_recorded(endpoint, address(1)));
}
