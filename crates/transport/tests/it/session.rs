//! Life of a session: connect, data, rekey, expiry, reset, crossing dials.

use crate::network::{Network, address, message, ms, secret, secs};
use falconet_crypto::Suite;
use falconet_handshake::Role;
use falconet_transport::{Discard, Event, Lane, PeerConfig, PeerId, Policy};
use rand_core::Rng;

fn require(_: usize, _: usize, peer: PeerConfig) -> PeerConfig {
    peer.with_policy(Policy::Require)
}

#[test]
fn connects_and_carries_data_both_ways() {
    let mut network = Network::new(2, require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    network.send(1, 0, &message(2)).unwrap();
    network.run_for(ms(100));
    assert_eq!(
        network.nodes[1].received,
        [(Some(PeerId(0)), Lane::Authenticated, message(1).to_vec())]
    );
    assert_eq!(
        network.nodes[0].received,
        [(Some(PeerId(1)), Lane::Authenticated, message(2).to_vec())]
    );
    let suite = Suite::ChaCha20Poly1305;
    assert_eq!(
        network.nodes[0].events,
        [Event::Connected {
            peer: PeerId(1),
            suite
        }]
    );
    assert_eq!(
        network.nodes[1].events,
        [Event::Connected {
            peer: PeerId(0),
            suite
        }]
    );
}

#[test]
fn suite_1_if_both_list_it() {
    let mut network = Network::new(2, |_, _, peer| peer.with_suites(vec![Suite::Aes256Gcm]));
    network.connect(0, 1);
    network.run_for(ms(100));
    let suite = Suite::Aes256Gcm;
    assert_eq!(
        network.nodes[0].events,
        [Event::Connected {
            peer: PeerId(1),
            suite
        }]
    );
}

#[test]
fn suite_1_carries_data_both_ways_and_rekeys() {
    let aes = |_: usize, _: usize, peer: PeerConfig| require(0, 0, peer).with_suites(vec![Suite::Aes256Gcm]);
    let mut network = Network::new(2, aes);
    network.link.jitter = ms(200);
    for n in 0..1500 {
        network.send(0, 1, &message(2 * n)).unwrap();
        network.send(1, 0, &message(2 * n + 1)).unwrap();
        network.run_for(ms(250));
    }
    network.run_for(secs(1));
    for (node, peer) in [(0, 1), (1, 0)] {
        let node = &network.nodes[node];
        assert_eq!(node.received.len(), 1500);
        assert_eq!(node.discards, []);
        let current = node.endpoint.sessions().current(PeerId(peer)).unwrap();
        assert_eq!(current.suite, Suite::Aes256Gcm);
        assert!(node.endpoint.stats().0.dialled + node.endpoint.stats().0.accepted >= 4);
    }
}

#[test]
fn suite_1_falls_back_after_three_tries() {
    let mut network = Network::new(2, |i, _, peer| match i {
        0 => peer.with_suites(vec![Suite::Aes256Gcm]),
        _ => peer,
    });
    network.connect(0, 1);
    network.run_for(secs(4));
    let suite = Suite::ChaCha20Poly1305;
    assert_eq!(
        network.nodes[0].events,
        [Event::Connected {
            peer: PeerId(1),
            suite
        }]
    );
    assert_eq!(network.nodes[0].endpoint.handshakes().stats().suite_fallbacks, 1);
    assert_eq!(network.nodes[1].discards, [Discard::SuiteRefused; 3]);
}

#[test]
fn buffered_sends_leave_in_order_with_the_first_session() {
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    for n in 0..100 {
        network.send(0, 1, &message(n)).unwrap();
    }
    network.run_for(secs(20));
    network.link.loss = 0;
    network.run_for(secs(7));
    let received: Vec<_> = network.nodes[1].received.iter().map(|r| r.2.clone()).collect();
    let sent: Vec<_> = (0..100).map(|n| message(n).to_vec()).collect();
    assert_eq!(received, sent);
}

#[test]
fn buffered_sends_fail_after_90_seconds_and_not_before() {
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    network.send(0, 1, &message(7)).unwrap();
    network.run_for(secs(89));
    assert_eq!(network.nodes[0].events, []);
    network.run_for(secs(2));
    let plaintext = message(7);
    assert_eq!(
        network.nodes[0].events,
        [Event::SendFailed {
            peer: PeerId(1),
            tag: 0,
            plaintext
        }]
    );
    let sent = network.nodes[0].endpoint.handshakes().stats().initiations_sent;
    network.run_for(secs(600));
    assert_eq!(
        network.nodes[0].endpoint.handshakes().stats().initiations_sent,
        sent
    );
    assert_eq!(network.nodes[0].endpoint.poll_timeout(), None);
}

#[test]
fn data_right_behind_the_response_is_never_lost() {
    // Everything between the two is delivered in one batch, in every order.
    for reversed in [false, true] {
        let mut network = Network::new(2, require);
        for n in 0..10 {
            network.send(0, 1, &message(n)).unwrap();
        }
        // The initiation arrives, then the response: ten data messages are released behind it.
        for _ in 0..2 {
            for flight in network.intercept() {
                network.deliver(flight);
            }
            network.collect();
        }
        // The responder has something to say at once, and it may not overtake the confirmation.
        network.send(1, 0, &message(99)).unwrap();
        let mut flights = network.intercept();
        let is_data = |flight: &crate::network::Flight| flight.datagram[0] == 4;
        assert!(
            flights
                .iter()
                .all(|flight| !is_data(flight) || flight.to == address(1))
        );
        if reversed {
            flights.reverse();
        }
        for flight in flights {
            network.deliver(flight);
        }
        network.collect();
        network.run_for(ms(50));
        assert_eq!(network.nodes[1].received.len(), 10);
        assert_eq!(network.nodes[0].received.len(), 1);
    }
}

#[test]
fn rekeys_under_traffic_lose_nothing() {
    let mut network = Network::new(2, require);
    network.link.jitter = ms(200);
    let mut sent = 0;
    // 10,000 datagrams each way over ten and a half rekeys, reordered by up to 200 ms.
    for _ in 0..10_000 {
        for (from, to) in [(0, 1), (1, 0)] {
            network.send(from, to, &message(sent)).unwrap();
            sent += 1;
        }
        network.run_for(ms(127));
    }
    network.run_for(secs(1));
    let received = network.nodes.iter().flat_map(|node| &node.received);
    let mut times = vec![0; sent as usize];
    for (_, _, plaintext) in received {
        times[u64::from_le_bytes(plaintext[1..9].try_into().unwrap()) as usize] += 1;
    }
    let wrong: Vec<_> = (0..).zip(&times).filter(|(_, times)| **times != 1).collect();
    let discards = network.nodes.iter().map(|node| &node.discards);
    assert!(
        wrong.is_empty(),
        "{} lost or doubled, first {:?}; discards {:?}",
        wrong.len(),
        wrong.first(),
        discards.collect::<Vec<_>>()
    );
    for node in &network.nodes {
        let (handshakes, sessions) = node.endpoint.stats();
        assert!(handshakes.dialled + handshakes.accepted >= 10, "{handshakes:?}");
        assert!(sessions.sessions <= 3);
        assert_eq!(
            node.events.len(),
            1,
            "connected once and for all: {:?}",
            node.events
        );
    }
}

#[test]
fn an_idle_session_expires_and_its_keys_go() {
    let mut network = Network::new(2, require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(179));
    assert!(network.is_connected(0, 1));
    network.run_for(secs(2));
    for node in &network.nodes {
        assert_eq!(node.endpoint.stats().1.sessions, 0);
        assert!(matches!(node.events.last(), Some(Event::Disconnected { .. })));
        assert_eq!(node.endpoint.poll_timeout(), None);
    }
}

#[test]
fn a_persistent_peer_is_kept_without_traffic() {
    let mut network = Network::new(2, |_, _, peer| peer.with_persistent(true));
    network.run_for(ms(200));
    for _ in 0..1000 {
        assert!(network.is_connected(0, 1) && network.is_connected(1, 0));
        network.run_for(secs(1));
    }
    let handshakes = network.nodes[0].endpoint.handshakes().stats();
    assert!(handshakes.initiations_sent < 20, "{handshakes:?}");
}

#[test]
fn a_persistent_peer_is_dialled_for_ever() {
    let mut network = Network::new(2, |_, _, peer| peer.with_persistent(true));
    network.link.loss = 100;
    network.run_for(secs(3600));
    network.link.loss = 0;
    assert!(
        network
            .run_until(secs(7), |n| n.is_connected(0, 1) && n.is_connected(1, 0))
            .is_some()
    );
}

#[test]
fn the_reset_of_one_side_heals() {
    for side in [0, 1] {
        let mut network = Network::new(2, require);
        network.send(0, 1, &message(0)).unwrap();
        network.run_for(secs(5));
        network.reset(side);
        let mut n = 1;
        let healed = loop {
            let _ = network.send(0, 1, &message(n));
            let _ = network.send(1, 0, &message(n + 1));
            n += 2;
            network.run_for(ms(500));
            let last = |node: usize| network.nodes[node].received.last().map(|r| r.2.clone());
            if last(1) == Some(message(n - 2).to_vec()) && last(0) == Some(message(n - 1).to_vec()) {
                break n;
            }
            assert!(n < 100, "still broken after 25 s");
        };
        assert!(healed >= 3);
    }
}

#[test]
fn simultaneous_dials_agree_on_the_smaller_keys_session() {
    let smaller = usize::from(secret(1).public() < secret(0).public());
    for jitter in [0, 5, 15] {
        for seed in 0..20 {
            let mut network = Network::new(2, require);
            network.link.jitter = ms(jitter);
            network.rng = rand_core::SeedableRng::seed_from_u64(seed);
            network.connect(0, 1);
            network.connect(1, 0);
            network.run_for(secs(3));
            let [first, second] = [(0, 1), (1, 0)].map(|(node, peer)| {
                let sessions = network.nodes[node].endpoint.sessions();
                sessions.current(PeerId(peer)).unwrap()
            });
            // One session, seen from both ends, and it is the one that the smaller key dialled.
            assert_eq!(
                first.local_index, second.remote_index,
                "jitter {jitter}, seed {seed}"
            );
            assert_eq!(second.local_index, first.remote_index);
            let dialler = usize::from(second.role == Role::Initiator);
            assert_eq!(dialler, smaller, "jitter {jitter}, seed {seed}");
            assert_ne!(first.role, second.role);
            for n in 0..20 {
                network.send(0, 1, &message(n)).unwrap();
                network.send(1, 0, &message(100 + n)).unwrap();
                network.run_for(ms(20));
            }
            network.run_for(secs(1));
            let received = (network.nodes[0].received.len(), network.nodes[1].received.len());
            assert_eq!(received, (20, 20), "jitter {jitter}, seed {seed}");
        }
    }
}

#[test]
fn replayed_initiations_are_refused_also_after_the_session() {
    let mut network = Network::new(2, require);
    network.tap = Some(Vec::new());
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    let initiation = network.tap.as_ref().unwrap()[0].datagram.clone();
    let replay = |network: &mut Network| {
        network.nodes[1].discards.clear();
        network.deliver(crate::network::Flight {
            to: address(1),
            from: address(5),
            lane: Lane::Authenticated,
            datagram: initiation.clone(),
        });
        network.settle();
        assert_eq!(network.nodes[1].discards, [Discard::ReplayedInitiation]);
        assert!(network.intercept().is_empty());
    };
    for wait in [secs(1), secs(400)] {
        network.run_for(wait);
        network.intercept();
        replay(&mut network);
    }
    // Removing the peer and adding it again forgets nothing.
    network.forget(1, 0);
    network.intercept();
    replay(&mut network);
}

#[test]
fn connects_at_every_round_trip_with_30_percent_loss() {
    for round_trip in [20, 360, 900] {
        for seed in 0..50 {
            let mut network = Network::new(2, require);
            network.link.delay = ms(round_trip / 2);
            network.link.loss = 30;
            network.rng = rand_core::SeedableRng::seed_from_u64(seed);
            network.rng.next_u32();
            network.connect(0, 1);
            let took = network.run_until(secs(90), |n| n.is_connected(0, 1));
            assert!(took.is_some(), "round trip {round_trip} ms, seed {seed}");
        }
    }
}

#[test]
fn a_peer_that_came_home_without_memory_is_found_there() {
    let mut network = Network::new(2, require);
    network.nodes[0].address = "198.51.100.9:4000".parse().unwrap();
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    network.nodes[0].address = address(0);
    network.reset(0);
    // Only node 1 has something to say, and what it knows is the place where node 0 was.
    let mut n = 10;
    let start = network.now.instant;
    while network.nodes[0].received.is_empty() {
        n += 1;
        let _ = network.send(1, 0, &message(n));
        network.run_for(ms(500));
        assert!(network.now.instant - start < secs(30));
    }
    assert_eq!(
        network.nodes[1].endpoint.sessions().address(PeerId(0)),
        Some(address(0))
    );
}

#[test]
fn after_lost_storage_and_a_clock_that_went_back_the_peers_dials_heal_the_pair() {
    for stored in [true, false] {
        let mut network = Network::new(2, |_, _, peer| peer.with_persistent(true));
        network.run_for(secs(1));
        let mark = network.nodes[0].endpoint.poll_timestamp_mark();
        assert!(mark.is_some(), "a mark to store comes with the first handshake");
        network.nodes[0].behind = secs(3600);
        network.reset(0);
        if let Some(mark) = mark.filter(|_| stored) {
            // The embedder does this before it adds peers; here the first dial is already lost.
            network.intercept();
            network.nodes[0].endpoint.raise_timestamp(mark);
        }
        network.nodes[1].discards.clear();
        let mut n = 0;
        let took = loop {
            n += 1;
            let _ = network.send(1, 0, &message(n));
            let _ = network.send(0, 1, &message(n));
            network.run_for(ms(500));
            if !network.nodes[0].received.is_empty() && network.is_connected(0, 1) {
                break n / 2;
            }
            assert!(n < 60, "still broken after 30 s");
        };
        let is_replay = |reason: &&Discard| **reason == Discard::ReplayedInitiation;
        let refused = network.nodes[1].discards.iter().filter(is_replay).count();
        if stored {
            assert!(took <= 2 && refused <= 1, "{took} s, {refused} refused");
        } else {
            assert!(
                refused >= 1 && took <= 1,
                "{took} s: its own dials are refused, and it is dialled back"
            );
        }
    }
}
