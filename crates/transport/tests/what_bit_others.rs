//! One test for each thing that bit another implementation of authenticated datagrams, named after it.
//! What concerns the broadcast and the sockets is tested in their crates.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.
#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.

#[allow(dead_code)] // Also a module of `tests/offloaded`.
const OFFLOADED: bool = false;

#[allow(dead_code)] // Other tests use the rest of it.
#[path = "it/network.rs"]
mod network;

use falconet_transport::{
    AdmissionOptions, Discard, Event, Lane, PeerConfig, PeerId, Policy, SendError, TransportConfig,
};
use network::{Flight, Network, address, initiations, message, ms, plain_address, secret, secs};
use rand_core::SeedableRng;
use std::net::SocketAddr;

fn require(_: usize, _: usize, peer: PeerConfig) -> PeerConfig {
    peer.with_policy(Policy::Require)
}

fn initiation_from(from: SocketAddr, datagram: Vec<u8>) -> Flight {
    Flight {
        to: address(1),
        from,
        lane: Lane::Authenticated,
        datagram,
    }
}

/// Runs for `millis` while `flood` is delivered to node 1 again and again, `each_ms` a millisecond.
fn run_under_flood(network: &mut Network, millis: u64, each_ms: usize, from: SocketAddr, flood: &[Vec<u8>]) {
    let mut datagrams = flood.iter().cycle();
    for _ in 0..millis {
        for datagram in datagrams.by_ref().take(each_ms) {
            network.deliver(initiation_from(from, datagram.clone()));
        }
        network.collect();
        network.run_for(ms(1));
    }
}

#[test]
fn a_handshake_retry_that_waits_for_the_session_timeout_and_drops_what_it_had_buffered() {
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    for n in 0..50 {
        network.send(0, 1, &message(n)).unwrap();
    }
    // The first initiation is lost, the retry a quarter of a second later is not.
    network.run_for(ms(200));
    network.link.loss = 0;
    network.run_for(ms(400));
    let received: Vec<_> = network.nodes[1].received.iter().map(|r| r.2.clone()).collect();
    let sent: Vec<_> = (0..50).map(|n| message(n).to_vec()).collect();
    assert_eq!(received, sent, "all of it, in order, within 600 ms");
}

#[test]
fn a_cookie_that_dies_with_its_session_livelocks_two_nodes_under_load() {
    let mut network = Network::new(2, |_, _, peer| peer.with_persistent(true));
    for node in 0..2 {
        network.set_under_load(node, true);
    }
    network.run_for(secs(3));
    // Both lose every session, again and again, while both ask everybody for cookies.
    for round in 0..10 {
        network.reset(round % 2);
        let took = network.run_until(secs(20), |n| n.is_connected(0, 1) && n.is_connected(1, 0));
        assert!(took.is_some(), "round {round}");
        network.run_for(secs(30));
    }
    // A session's end takes no cookie along: the next dial needs one initiation.
    let mut network = Network::new(2, require);
    network.set_under_load(1, true);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    let (first, _) = network.nodes[0].endpoint.stats();
    assert_eq!(first.initiations_sent, 2, "one for the cookie, one with it");
    network.nodes[1].endpoint.remove_peer(PeerId(0));
    let (now, config) = (network.now, PeerConfig::new(secret(0).public()));
    network.nodes[1]
        .endpoint
        .add_peer(now, PeerId(0), &config)
        .unwrap();
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(secs(17));
    assert!(network.is_connected(1, 0));
    let (second, _) = network.nodes[0].endpoint.stats();
    assert_eq!(second.initiations_sent, 3);
}

#[test]
fn a_filter_that_counts_spoofed_addresses_against_their_owners() {
    let mut network = Network::new(2, require);
    // A thousand a second with node 0's address as their source, and no cookie for it.
    let flood = initiations(500);
    run_under_flood(&mut network, 2000, 1, address(0), &flood);
    network.connect(0, 1);
    run_under_flood(&mut network, 1000, 1, address(0), &flood);
    assert!(network.is_connected(0, 1));
    let label = |label: &str| {
        let discards = network.nodes[1].discards.iter();
        discards.filter(|reason| reason.label() == label).count()
    };
    assert_eq!(label("source_limit"), 0);
    assert!(label("cookie_demanded") > 1000);
}

#[test]
fn rejected_requests_that_spend_the_budget_of_verified_ones() {
    let mut network = Network::new(2, require);
    network.set_under_load(1, true);
    // Five thousand a second are refused; the one that proves its address is admitted at once.
    let flood = initiations(500);
    let stranger = "203.0.113.5:9".parse().unwrap();
    run_under_flood(&mut network, 1000, 5, stranger, &flood);
    network.connect(0, 1);
    run_under_flood(&mut network, 500, 5, stranger, &flood);
    assert!(network.is_connected(0, 1));
    assert_eq!(network.nodes[0].endpoint.stats().0.initiations_sent, 2);
    // None of them has cost a key.
    let unknown = network.nodes[1]
        .endpoint
        .stats()
        .0
        .discards
        .of(Discard::UnknownPeer);
    assert_eq!(unknown, 0);
}

#[test]
fn an_attacker_who_stays_below_the_watermark_and_eats_the_whole_handshake_budget() {
    // Never more than the budget a second, so that nothing looks like load; never less, either.
    let mut network = Network::new(2, require);
    let flood = initiations(500);
    let stranger = "203.0.113.5:9".parse().unwrap();
    run_under_flood(&mut network, 3000, 1, stranger, &flood);
    for seed in 0..10 {
        network.reset(0);
        network.rng = rand_chacha::ChaCha20Rng::seed_from_u64(seed);
        network.connect(0, 1);
        run_under_flood(&mut network, 2000, 1, stranger, &flood);
        assert!(network.is_connected(0, 1), "within 2 s: {seed}");
    }
}

#[test]
fn limits_applied_to_the_answers_to_ones_own_dials() {
    let one = std::num::NonZeroU32::MIN;
    let options = AdmissionOptions::default()
        .with_unproved_per_second(one)
        .with_proved_per_second(one)
        .with_recorded_per_second(one)
        .with_per_source_per_second(one)
        .with_cookie_replies_per_second(one);
    // Node 1 dials thirty peers at once; each of them would admit ten thousand.
    let config = TransportConfig::default().with_admission(options).unwrap();
    let mut network = Network::with_config(31, &config, require);
    for peer in (0..31).filter(|peer| *peer != 1) {
        network.connect(1, peer);
    }
    network.run_for(ms(100));
    let connected = (0..31).filter(|peer| *peer != 1 && network.is_connected(1, *peer));
    assert_eq!(connected.count(), 30);
}

#[test]
fn replay_of_old_initiations_after_garbage_collection() {
    let mut network = Network::new(2, require);
    network.tap = Some(Vec::new());
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    let initiation = network.tap.take().unwrap().remove(0).datagram;
    // Every session is long gone, the peer itself was removed and added again.
    network.run_for(secs(100_000));
    network.forget(1, 0);
    network.deliver(initiation_from(address(0), initiation));
    network.settle();
    assert_eq!(network.nodes[1].discards, [Discard::ReplayedInitiation]);
    assert_eq!(network.intercept().len(), 0);
}

#[test]
fn replay_of_old_initiations_after_a_restart() {
    for persisted in [true, false] {
        let mut network = Network::new(2, require);
        network.tap = Some(Vec::new());
        network.send(0, 1, &message(1)).unwrap();
        network.run_for(ms(100));
        let recorded: Vec<_> = network.tap.take().unwrap();
        let stored: Vec<_> = network.nodes[1].endpoint.handshakes().peer_timestamps().collect();
        assert_eq!(stored.len(), 1);
        network.reset(1);
        network.nodes[0].address = address(7);
        for (key, timestamp) in stored.into_iter().filter(|_| persisted) {
            network.nodes[1].endpoint.raise_peer_timestamp(key, timestamp);
        }
        for flight in recorded.into_iter().filter(|flight| flight.to == address(1)) {
            network.deliver(flight);
            network.settle();
        }
        // Without the stored value it is answered once; but nothing old is delivered, and nothing new is
        // ever sent to whoever replays.
        let refused = network.nodes[1].discards.contains(&Discard::ReplayedInitiation);
        assert_eq!(refused, persisted);
        assert_eq!(network.nodes[1].received.len(), 1, "what was received before");
        network.send(1, 0, &message(2)).unwrap();
        assert!(!network.is_connected(1, 0));
        assert!(network.intercept().iter().all(|flight| flight.datagram[0] != 4));
    }
}

#[test]
fn silent_and_permanent_downgrade_to_plaintext_when_the_auth_port_is_blocked() {
    let open = |_: usize, j: usize, peer: PeerConfig| {
        peer.with_policy(Policy::PlainUntilSeen)
            .with_plain_address(plain_address(j))
    };
    let mut network = Network::new(2, open);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    assert!(network.is_connected(0, 1));
    assert_eq!(network.nodes[0].endpoint.sessions().fallbacks(PeerId(1)), 1);
    // The authenticated port is blocked for longer than any session lives.
    let start = network.now.instant;
    let mut n = 10;
    network.link.loss = 100;
    network.tap = Some(Vec::new());
    while network.now.instant - start < secs(400) {
        n += 1;
        match network.send(0, 1, &message(n)) {
            Ok(()) | Err(SendError::BufferFull) => {}
            Err(error) => panic!("{error}"),
        }
        network.run_for(secs(5));
    }
    let tap = network.tap.take().unwrap();
    assert!(tap.iter().all(|flight| flight.lane == Lane::Authenticated));
    network.link.loss = 0;
    let failed = |event: &Event| matches!(event, Event::SendFailed { .. });
    assert!(network.nodes[0].events.iter().any(failed), "it is not silent");
    // Nor is it permanent: the port opens, and the next send is sealed.
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(10));
    assert!(network.is_connected(0, 1));
    // Where the policy allows the fall-back, each one is counted and the dial goes on.
    let mut network = Network::new(2, |i, j, peer| open(i, j, peer).with_policy(Policy::Prefer));
    for n in 0..20 {
        network.send(0, 1, &message(n)).unwrap();
        network.intercept();
    }
    assert_eq!(network.nodes[0].endpoint.sessions().fallbacks(PeerId(1)), 20);
    network.run_for(secs(10));
    assert!(network.is_connected(0, 1));
}

#[test]
fn timers_served_before_received_datagrams() {
    let mut network = Network::new(2, require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    network.send(0, 1, &message(2)).unwrap();
    // The answer is in the queue when a loop that was asleep for 20 s wakes up, and so are the timers.
    network.send(1, 0, &message(3)).unwrap();
    let answer = network
        .intercept()
        .into_iter()
        .find(|flight| flight.to == address(0));
    let late = network.now.instant + secs(20);
    network.advance(late);
    network.deliver(answer.unwrap());
    let now = network.now;
    network.nodes[0].endpoint.handle_timeout(now);
    network.collect();
    let dials = network.nodes[0].endpoint.stats().0.initiations_sent;
    assert_eq!(dials, 1, "the session was not taken for lost");
}

#[test]
fn one_spoofed_response_that_spoils_a_pending_handshake() {
    let mut network = Network::new(2, require);
    network.send(0, 1, &message(1)).unwrap();
    for flight in network.intercept() {
        network.deliver(flight);
    }
    network.collect();
    let genuine = network.intercept().remove(0);
    // Right receiver index, right mac1 (anybody can make it), wrong inside; then cut, then doubled.
    let mut forged = genuine.datagram.clone();
    forged[20] ^= 1;
    for datagram in [forged, genuine.datagram[..91].to_vec()] {
        let (to, from, lane) = (genuine.to, genuine.from, genuine.lane);
        network.deliver(Flight {
            to,
            from,
            lane,
            datagram,
        });
    }
    assert_eq!(network.nodes[0].discards.len(), 2);
    network.deliver(genuine);
    network.collect();
    network.run_for(ms(50));
    assert_eq!(network.nodes[1].received.len(), 1);
}

#[test]
fn a_session_to_an_old_address_that_is_still_used_after_the_peer_announced_a_new_one() {
    use falconet_crypto::{IdentitySecret, NetworkId, Signer};
    use falconet_transport::{Capabilities, LaneAddresses, PeerRecord, RecordContent};
    let network_id = NetworkId::from_bytes([9; 32]);
    let identity = IdentitySecret::from_bytes([5; 32]);
    let config = TransportConfig::default().with_network(network_id);
    let mut network = Network::with_config(2, &config, |_, _, peer| peer.with_persistent(true));
    network.run_for(secs(1));
    let moved = address(9);
    let SocketAddr::V4(v4) = moved else { unreachable!() };
    let content = RecordContent {
        identity: identity.identity(),
        transport_key: secret(0).public(),
        sequence: 2,
        expiry_ms: u64::MAX,
        authenticated: LaneAddresses {
            v4: Some(v4),
            v6: None,
        },
        plain: LaneAddresses::default(),
        capabilities: Capabilities::AUTHENTICATED_LANE,
        suites: 1,
        max_datagram: 1472,
        max_chunk: 1440,
    };
    let record = PeerRecord::sign(content, &network_id, &identity).unwrap();
    network.nodes[0].address = moved;
    let now = network.now;
    network.nodes[0].endpoint.set_record(now, &record).unwrap();
    network.collect();
    network.run_for(ms(100));
    assert_eq!(network.nodes[1].discards, []);
    assert_eq!(
        network.nodes[1].endpoint.sessions().address(PeerId(0)),
        Some(moved)
    );
    network.send(1, 0, &message(7)).unwrap();
    network.run_for(ms(100));
    assert_eq!(
        network.nodes[0].received.len(),
        1,
        "the very next datagram goes there"
    );
    // A rekey of the old session does not bring the old address back.
    network.run_for(secs(300));
    assert_eq!(
        network.nodes[1].endpoint.sessions().address(PeerId(0)),
        Some(moved)
    );
}

#[test]
fn a_queue_capped_in_bytes_but_not_in_entries() {
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    let tiny = bytes::Bytes::from_static(&[falconet_transport::kind::MESSAGE]);
    let accepted = (0..100_000)
        .take_while(|_| network.send(0, 1, &tiny).is_ok())
        .count();
    assert_eq!(accepted, 128);
}

/// The published longevity rig: one-sided restarts, 7 % loss, outages shorter and longer than a
/// session's timers, a partition; three nodes that all talk, for six hours.
#[test]
fn one_sided_restarts_loss_and_outages_never_end_in_a_broken_state() {
    let mut network = Network::new(3, |_, _, peer| peer.with_persistent(true));
    network.link.delay = ms(40);
    network.link.jitter = ms(10);
    let mut number = 0;
    for minute in 0..6 * 60 {
        let of_hour = minute % 60;
        network.link.loss = if (5..10).contains(&of_hour) { 7 } else { 0 };
        if (15..20).contains(&of_hour) {
            network.cut_off = Some(minute / 60 % 3);
        }
        if of_hour == 25 {
            network.reset(minute / 60 % 3);
        }
        let outage = match of_hour % 10 {
            1 => 10,
            6 => 40,
            _ => 0,
        };
        network.cut_off = network.cut_off.or((outage > 0).then_some(minute % 3));
        exchange(&mut network, &mut number, outage);
        if !(15..19).contains(&of_hour) {
            network.cut_off = None;
        }
        exchange(&mut network, &mut number, 60 - outage);
        if network.link.loss == 0 && network.cut_off.is_none() && of_hour != 25 {
            let connected = |a: usize, b: usize| a == b || network.is_connected(a, b);
            let all = (0..3).all(|a| (0..3).all(|b| connected(a, b)));
            assert!(all, "minute {minute}");
        }
    }
}

fn exchange(network: &mut Network, number: &mut u64, seconds: u64) {
    for _ in 0..seconds {
        for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0)] {
            *number += 1;
            let _ = network.send(from, to, &message(*number));
        }
        network.run_for(secs(1));
    }
}

/// Three nodes that speak plain are upgraded one by one: nothing is ever lost but to the restart itself.
#[test]
fn authenticated_and_plain_nodes_in_one_network_upgraded_node_by_node() {
    use std::cell::Cell;
    let upgraded = Cell::new(0);
    let configure = |i: usize, j: usize, peer: PeerConfig| {
        let policy = match i < upgraded.get() && j < upgraded.get() {
            true => Policy::PlainUntilSeen,
            false => Policy::Plain,
        };
        peer.with_policy(policy).with_plain_address(plain_address(j))
    };
    let mut network = Network::new(3, configure);
    let mut number = 0;
    for stage in 0..=3 {
        upgraded.set(stage);
        network.reconfigure(configure);
        for node in 0..3 {
            network.nodes[node].received.clear();
        }
        for _ in 0..30 {
            for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
                number += 1;
                network.send(from, to, &message(number)).unwrap();
            }
            network.run_for(ms(100));
        }
        for node in 0..3 {
            let lanes = network.nodes[node].received.iter().map(|received| received.1);
            let (mut sealed, mut bare) = (0, 0);
            lanes.for_each(|lane| match lane {
                Lane::Authenticated => sealed += 1,
                Lane::Plain => bare += 1,
            });
            assert_eq!(sealed + bare, 60, "stage {stage}, node {node}");
            let between_upgraded = if node < stage { 30 * (stage - 1) } else { 0 };
            assert!(
                sealed <= between_upgraded && sealed + 4 >= between_upgraded,
                "stage {stage}, node {node}: {sealed} sealed"
            );
        }
    }
}
