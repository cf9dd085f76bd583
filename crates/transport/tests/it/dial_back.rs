//! What a refused timestamp does for a pair, and what little it does for who replays one;
//! `docs/spec/session.md#dial-back`.

use crate::network::{Flight, Network, address, message, ms, secs};
use falconet_transport::{Discard, Lane, PeerConfig, PeerId};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn persistent(_: usize, _: usize, peer: PeerConfig) -> PeerConfig {
    peer.with_persistent(true)
}

/// Two nodes with sessions, and every initiation that node 1 has sent up to then.
fn connected(configure: impl Fn(usize, usize, PeerConfig) -> PeerConfig) -> (Network, Vec<Vec<u8>>) {
    let mut network = Network::new(2, configure);
    network.tap = Some(Vec::new());
    // What the first of these lives has sent is older than what was accepted of the last.
    for _ in 0..3 {
        network.reset(1);
        network.connect(1, 0);
        network.run_for(secs(30));
    }
    assert!(network.is_connected(0, 1) && network.is_connected(1, 0));
    let tap = network.tap.take().unwrap();
    let theirs = tap
        .into_iter()
        .filter(|flight| flight.from == address(1) && flight.datagram[0] == 1)
        .map(|flight| flight.datagram);
    let theirs: Vec<_> = theirs.collect();
    assert!(theirs.len() >= 2);
    (network, theirs)
}

/// Hands node 0 what is said to come from an attacker's address.
fn replay(network: &mut Network, datagram: &[u8]) {
    network.deliver(Flight {
        to: address(0),
        from: address(77),
        lane: Lane::Authenticated,
        datagram: datagram.to_vec(),
    });
    // What it costs to compute is given away where it is.
    network.collect();
    network.run_for(ms(5));
}

fn initiations_sent(network: &Network, node: usize) -> u64 {
    network.nodes[node].endpoint.stats().0.initiations_sent
}

fn refused(network: &Network, node: usize) -> u64 {
    let discards = network.nodes[node].endpoint.stats().0.discards;
    discards.of(Discard::ReplayedInitiation)
}

#[test]
fn a_peer_that_has_lost_its_memory_and_its_clock_is_dialled_back() {
    for loss in [0, 20] {
        let (mut network, _) = connected(persistent);
        network.link.loss = loss;
        network.nodes[1].behind = HOUR;
        network.reset(1);
        // Only a session of both is one that node 1 knows.
        let bound = if loss == 0 { secs(1) } else { secs(60) };
        let took = network.run_until(bound, |network| network.is_connected(1, 0));
        assert!(took.is_some(), "loss {loss}");
        assert!(refused(&network, 0) > 0, "the case that is meant");
        network.link.loss = 0;
        network.run_for(secs(1));
        network.send(1, 0, &message(1)).unwrap();
        network.send(0, 1, &message(2)).unwrap();
        network.run_for(secs(1));
        for (node, number) in [(0, 1), (1, 2)] {
            let received = &network.nodes[node].received;
            assert!(received.iter().any(|(_, _, bytes)| *bytes == message(number)));
        }
    }
}

#[test]
fn a_replay_costs_one_initiation_in_ten_seconds_to_the_recorded_address_and_no_session() {
    let (mut network, old) = connected(persistent);
    let session = network.nodes[0].endpoint.sessions().current(PeerId(1)).unwrap();
    // Node 1 does not answer: nothing of ours arrives.
    network.link.loss = 100;
    let before = initiations_sent(&network, 0);
    network.tap = Some(Vec::new());
    for _ in 0..90 {
        replay(&mut network, &old[0]);
        network.run_for(ms(95));
    }
    assert_eq!(refused(&network, 0), 90);
    assert_eq!(initiations_sent(&network, 0) - before, 1);
    let tap = network.tap.take().unwrap();
    assert!(
        tap.iter().all(|flight| flight.to == address(1)),
        "never to the source"
    );
    // The session is the one that it was, and carries data.
    assert_eq!(
        network.nodes[0].endpoint.sessions().current(PeerId(1)),
        Some(session)
    );
    network.link.loss = 0;
    network.send(0, 1, &message(7)).unwrap();
    network.run_for(ms(50));
    let (peer, _, bytes) = network.nodes[1].received.last().unwrap();
    assert_eq!((*peer, bytes), (Some(PeerId(0)), &message(7).to_vec()));
    // It is answered, or that would be a reason to dial.
    network.send(1, 0, &message(8)).unwrap();
    network.run_for(ms(50));
    // A replay every 100 ms for 65 s: seven tens of seconds have begun.
    network.link.loss = 100;
    for _ in 0..560 {
        replay(&mut network, &old[0]);
        network.run_for(ms(95));
    }
    assert!((6..=7).contains(&(initiations_sent(&network, 0) - before)));
    assert_eq!(
        network.nodes[0].endpoint.stats().0.gave_up,
        0,
        "none of them was a dial that anybody asked for"
    );
}

#[test]
fn the_session_that_a_replay_brings_about_loses_nothing() {
    let (mut network, old) = connected(persistent);
    for number in 0..400 {
        if number % 20 == 0 {
            replay(&mut network, &old[0]);
        }
        network.send(0, 1, &message(number)).unwrap();
        network.send(1, 0, &message(number)).unwrap();
        network.run_for(ms(50));
    }
    network.run_for(secs(1));
    for node in &network.nodes {
        let numbers: Vec<_> = node.received.iter().map(|(_, _, bytes)| bytes.clone()).collect();
        let expected: Vec<_> = (0..400).map(|number| message(number).to_vec()).collect();
        assert_eq!(numbers, expected);
    }
    let answered = network.nodes[1].endpoint.stats().0.accepted;
    assert!((1..=4).contains(&answered), "20 s: {answered}");
}

#[test]
fn a_copy_of_the_last_initiation_and_what_only_looks_like_one_brings_no_dial() {
    let (mut network, old) = connected(persistent);
    let before = initiations_sent(&network, 0);
    replay(&mut network, old.last().unwrap());
    assert_eq!(refused(&network, 0), 1);
    // Its proof of the key is spoiled, or that of who it is.
    for at in [100, 60] {
        let mut spoiled = old[0].clone();
        spoiled[at] ^= 1;
        replay(&mut network, &spoiled);
    }
    network.run_for(secs(1));
    assert_eq!(initiations_sent(&network, 0), before);
}

#[test]
fn peers_that_nobody_dials_in_advance_are_not_dialled_back() {
    // Not persistent; and persistent, with no address but the one that it was heard from.
    let (mut network, old) = connected(|node, _, peer| match node {
        0 => peer,
        _ => peer.with_persistent(true),
    });
    let before = initiations_sent(&network, 0);
    replay(&mut network, &old[0]);
    network.run_for(secs(1));
    assert_eq!((refused(&network, 0), initiations_sent(&network, 0)), (1, before));

    let (mut network, old) = connected(|node, _, peer| PeerConfig {
        address: peer.address.filter(|_| node == 1),
        ..peer.with_persistent(true)
    });
    let before = initiations_sent(&network, 0);
    replay(&mut network, &old[0]);
    network.run_for(secs(1));
    assert_eq!((refused(&network, 0), initiations_sent(&network, 0)), (1, before));
}

#[test]
fn what_asks_for_a_session_meanwhile_is_retried_as_always() {
    let (mut network, old) = connected(persistent);
    network.link.loss = 100;
    replay(&mut network, &old[0]);
    let before = initiations_sent(&network, 0);
    network.connect(0, 1);
    let now = network.now;
    network.nodes[0].endpoint.rekey(now, PeerId(1));
    network.run_for(secs(5));
    assert!(initiations_sent(&network, 0) - before >= 3, "a dial of its own");
    network.link.loss = 0;
    network.run_for(secs(6));
    assert!(network.is_connected(0, 1));
}

#[test]
fn it_gets_through_to_a_peer_that_asks_for_cookies() {
    let (mut network, _) = connected(persistent);
    network.set_under_load(1, true);
    network.nodes[1].behind = HOUR;
    network.reset(1);
    let took = network.run_until(secs(2), |network| network.is_connected(1, 0));
    assert!(took.is_some());
    assert!(network.nodes[1].endpoint.stats().0.cookie_replies_sent > 0);
    assert!(refused(&network, 0) > 0, "the case that is meant");
}

#[test]
fn both_may_have_lost_everything_but_one_clock() {
    // Node 0 remembers what node 1 sent last, from its disk; node 1's clock is back and its disk is gone.
    let (mut network, _) = connected(persistent);
    let greatest: Vec<_> = network.nodes[0].endpoint.handshakes().peer_timestamps().collect();
    network.nodes[1].behind = HOUR;
    network.reset(1);
    network.reset(0);
    for (key, timestamp) in greatest {
        network.nodes[0].endpoint.raise_peer_timestamp(key, timestamp);
    }
    let both = |network: &Network| network.is_connected(1, 0) && network.is_connected(0, 1);
    assert!(network.run_until(secs(15), both).is_some());
}
