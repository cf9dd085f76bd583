//! Records in sessions, and what they do to addresses, suites and the rollout.

use crate::network::{Network, address, message, ms, plain_address, secret, secs};
use bytes::Bytes;
use falconet_crypto::{IdentitySecret, NetworkId, Signer, Suite};
use falconet_transport::{
    Capabilities, Discard, Event, Lane, LaneAddresses, PeerConfig, PeerId, PeerRecord, Policy, RecordContent,
    RecordError, TransportConfig, kind,
};
use std::net::SocketAddr;

const NETWORK: NetworkId = NetworkId::from_bytes([9; 32]);

fn identity(node: usize) -> IdentitySecret {
    IdentitySecret::from_bytes([node as u8 + 50; 32])
}

fn lane(address: SocketAddr) -> LaneAddresses {
    match address {
        SocketAddr::V4(v4) => LaneAddresses {
            v4: Some(v4),
            v6: None,
        },
        SocketAddr::V6(v6) => LaneAddresses {
            v4: None,
            v6: Some(v6),
        },
    }
}

fn content(node: usize, sequence: u64) -> RecordContent {
    RecordContent {
        identity: identity(node).identity(),
        transport_key: secret(node).public(),
        sequence,
        expiry_ms: 1_900_000_000_000,
        authenticated: lane(address(node)),
        plain: lane(plain_address(node)),
        capabilities: Capabilities::AUTHENTICATED_LANE,
        suites: 1,
        max_datagram: 1472,
        max_chunk: 1440,
    }
}

fn signed(content: RecordContent, node: usize) -> PeerRecord {
    PeerRecord::sign(content, &NETWORK, &identity(node)).unwrap()
}

fn network(configure: impl Fn(usize, usize, PeerConfig) -> PeerConfig) -> Network {
    let config = TransportConfig::default().with_network(NETWORK);
    Network::with_config(2, &config, configure)
}

fn require(_: usize, other: usize, peer: PeerConfig) -> PeerConfig {
    peer.with_policy(Policy::Require)
        .with_identity(identity(other).identity())
}

fn announce(network: &mut Network, node: usize, content: RecordContent) {
    let (now, record) = (network.now, signed(content, node));
    network.nodes[node].endpoint.set_record(now, &record).unwrap();
    network.collect();
}

/// Sequences that node `i` was told of.
fn sequences(network: &Network, i: usize) -> Vec<u64> {
    let events = network.nodes[i].events.iter();
    let told = events.filter_map(|event| match event {
        Event::RecordAccepted { record, .. } => Some(record.content().sequence),
        _ => None,
    });
    told.collect()
}

#[test]
fn each_side_gets_the_others_record_after_confirmation_and_nothing_reaches_the_consumer() {
    let mut network = network(require);
    announce(&mut network, 0, content(0, 7));
    announce(&mut network, 1, content(1, 8));
    assert_eq!(network.intercept().len(), 0, "no session, no record");
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    assert_eq!(
        (sequences(&network, 0), sequences(&network, 1)),
        (vec![8], vec![7])
    );
    assert_eq!(
        network.nodes[0].endpoint.sessions().record_sequence(PeerId(1)),
        Some(8)
    );
    assert_eq!(network.nodes[1].received.len(), 1);
    assert_eq!(network.nodes[0].received.len(), 0);
    // Each later session carries it again, for a peer that has lost it; then it is old.
    network.nodes[0].discards.clear();
    network.reset(1);
    announce(&mut network, 1, content(1, 8));
    network.connect(1, 0);
    network.run_for(secs(1));
    assert_eq!(sequences(&network, 1), [7, 7]);
    assert_eq!(network.nodes[0].discards, [Discard::RecordOld]);
}

#[test]
fn a_session_carries_one_record_in_ten_seconds_and_the_newest_in_the_end() {
    let mut network = network(require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    for sequence in 1..=20 {
        announce(&mut network, 0, content(0, sequence));
        network.run_for(ms(1000));
    }
    network.run_for(secs(15));
    let told = sequences(&network, 1);
    assert!(told.len() <= 4, "{told:?}");
    assert_eq!(told.last(), Some(&20));
    assert_eq!(network.nodes[1].discards, []);
}

#[test]
fn whoever_sends_records_faster_is_not_worth_a_signature_check() {
    let mut network = network(require);
    for sequence in 1..=50 {
        let mut plaintext = vec![kind::RECORD];
        plaintext.extend(signed(content(0, sequence), 0).encode());
        network.send(0, 1, &Bytes::from(plaintext)).unwrap();
        network.run_for(ms(100));
    }
    assert_eq!(sequences(&network, 1), [1]);
    assert_eq!(network.nodes[1].discards, [Discard::RecordTooSoon; 49]);
}

#[test]
fn only_the_peers_own_record_of_this_network_is_taken() {
    let other_network = NetworkId::from_bytes([8; 32]);
    let foreign = PeerRecord::sign(content(0, 9), &other_network, &identity(0)).unwrap();
    let somebody_elses_key = signed(
        RecordContent {
            transport_key: secret(5).public(),
            ..content(0, 9)
        },
        0,
    );
    let somebody_else = signed(
        RecordContent {
            identity: identity(5).identity(),
            ..content(0, 9)
        },
        5,
    );
    let expired = signed(
        RecordContent {
            expiry_ms: 1_600_000_000_000,
            ..content(0, 9)
        },
        0,
    );
    let mut forged = signed(content(0, 9), 0).encode();
    forged[80] ^= 1;
    let encodings = [foreign, somebody_elses_key, somebody_else, expired].map(|record| record.encode());
    for encoding in encodings.into_iter().chain([forged, vec![], vec![1; 300]]) {
        let mut network = network(require);
        let plaintext = [vec![kind::RECORD], encoding].concat();
        network.send(0, 1, &Bytes::from(plaintext)).unwrap();
        network.run_for(ms(100));
        assert_eq!(network.nodes[1].discards, [Discard::RecordRefused]);
        assert_eq!(
            network.nodes[1].endpoint.sessions().record_sequence(PeerId(0)),
            None
        );
        assert!(network.is_connected(1, 0));
    }
    let mut network = network(require);
    let now = network.now;
    let record = signed(content(1, 1), 1);
    let result = network.nodes[0].endpoint.set_record(now, &record);
    assert_eq!(result, Err(RecordError::WrongKey));
}

#[test]
fn a_node_without_a_network_takes_no_record() {
    let mut network = Network::new(2, require);
    announce(&mut network, 0, content(0, 7));
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    assert_eq!(network.nodes[1].discards, [Discard::RecordRefused]);
}

#[test]
fn a_higher_sequence_resets_the_address_once() {
    let moved: SocketAddr = "10.0.0.77:7000".parse().unwrap();
    let mut network = network(require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    let known = |network: &Network| network.nodes[1].endpoint.sessions().address(PeerId(0)).unwrap();
    let record = signed(
        RecordContent {
            authenticated: lane(moved),
            ..content(0, 5)
        },
        0,
    );
    let now = network.now;
    let endpoint = &mut network.nodes[1].endpoint;
    endpoint.update_record(now, PeerId(0), &record).unwrap();
    assert_eq!(known(&network), moved);
    // From then on the peer's datagrams move it, and the same record does not move it back.
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(ms(100));
    assert_eq!(known(&network), address(0));
    let endpoint = &mut network.nodes[1].endpoint;
    assert_eq!(
        endpoint.update_record(now, PeerId(0), &record),
        Err(Discard::RecordOld)
    );
    assert_eq!(known(&network), address(0));
}

#[test]
fn a_validator_that_moves_is_followed_by_its_record_and_by_nothing_else() {
    let mut network = network(|i, j, peer| require(i, j, peer).with_persistent(true));
    network.run_for(ms(300));
    // Node 0 moves: the same keys, another address, and no word from the old one.
    let moved: SocketAddr = "10.0.0.77:7000".parse().unwrap();
    network.nodes[0].address = moved;
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    assert_eq!(network.nodes[1].received.len(), 1);
    let known = |network: &Network| network.nodes[1].endpoint.sessions().address(PeerId(0)).unwrap();
    assert_eq!(known(&network), address(0));
    announce(
        &mut network,
        0,
        RecordContent {
            authenticated: lane(moved),
            ..content(0, 5)
        },
    );
    network.run_for(ms(100));
    assert_eq!(known(&network), moved);
    network.send(1, 0, &message(2)).unwrap();
    network.run_for(ms(100));
    assert_eq!(network.nodes[0].received.len(), 1);
}

#[test]
fn stickiness_ends_by_a_newer_record_without_the_authenticated_lane_and_by_nothing_less() {
    let mut network = network(|i, j, peer| {
        require(i, j, peer)
            .with_policy(Policy::PlainUntilSeen)
            .with_plain_address(plain_address(j))
    });
    network.connect(0, 1);
    network.run_for(secs(1));
    announce(&mut network, 1, content(1, 5));
    network.run_for(secs(12));
    assert_eq!(sequences(&network, 0), [5]);
    let (now, rollback) = (
        network.now,
        RecordContent {
            capabilities: Capabilities::from_bits(0),
            ..content(1, 5)
        },
    );
    let old = signed(rollback.clone(), 1);
    let endpoint = &mut network.nodes[0].endpoint;
    assert_eq!(
        endpoint.update_record(now, PeerId(1), &old),
        Err(Discard::RecordOld)
    );
    announce(
        &mut network,
        1,
        RecordContent {
            sequence: 6,
            ..rollback
        },
    );
    network.run_for(secs(12));
    assert_eq!(sequences(&network, 0), [5, 6]);
    // The session could still seal, but the peer is about to go.
    network.send(0, 1, &message(1)).unwrap();
    let lanes: Vec<_> = network.intercept().iter().map(|flight| flight.lane).collect();
    assert_eq!(lanes, [Lane::Plain]);
    // Nor is it dialled, however much is sent.
    network.run_for(secs(300));
    let dialled = network.nodes[0].endpoint.stats().0.initiations_sent;
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(secs(10));
    assert_eq!(network.nodes[0].endpoint.stats().0.initiations_sent, dialled);
    // It comes back: one more record, and the first session makes it sticky again.
    announce(&mut network, 1, content(1, 7));
    let now = network.now;
    let back = signed(content(1, 7), 1);
    let endpoint = &mut network.nodes[0].endpoint;
    endpoint.update_record(now, PeerId(1), &back).unwrap();
    network.send(0, 1, &message(3)).unwrap();
    network.run_for(secs(1));
    assert!(network.is_connected(0, 1));
    network.link.loss = 100;
    network.run_for(secs(400));
    network.tap = Some(Vec::new());
    network.send(0, 1, &message(4)).unwrap();
    let tap = network.tap.as_ref().unwrap();
    assert!(tap.iter().all(|flight| flight.lane == Lane::Authenticated));
}

#[test]
fn a_record_that_lists_suite_1_is_followed_by_the_next_handshake() {
    let mut network = network(require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    for node in 0..2 {
        announce(
            &mut network,
            node,
            RecordContent {
                suites: 0b11,
                ..content(node, 5)
            },
        );
    }
    network.run_for(secs(130));
    network.send(0, 1, &message(2)).unwrap();
    network.run_for(secs(1));
    let current = network.nodes[0].endpoint.sessions().current(PeerId(1)).unwrap();
    assert_eq!(current.suite, Suite::Aes256Gcm);
    assert_eq!(network.nodes[0].endpoint.stats().0.suite_fallbacks, 0);
}

#[test]
fn a_persisted_sequence_refuses_older_records_in_the_next_run() {
    let mut network = network(|i, j, peer| require(i, j, peer).with_record_sequence(10));
    announce(&mut network, 0, content(0, 10));
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(100));
    assert_eq!(network.nodes[1].discards, [Discard::RecordOld]);
}

#[test]
fn a_record_without_the_lane_ends_a_dial_that_is_under_way() {
    let mut network = network(|node, other, peer| require(node, other, peer).with_persistent(true));
    network.run_for(secs(1));
    assert!(network.is_connected(0, 1));
    // A renewal whose initiation is lost, and then the record of a node that is being rolled back.
    let now = network.now;
    network.nodes[0].endpoint.rekey(now, PeerId(1));
    network.intercept();
    let rolled_back = RecordContent {
        capabilities: Capabilities::from_bits(0),
        ..content(1, 9)
    };
    announce(&mut network, 1, rolled_back);
    network.run_for(ms(50));
    assert_eq!(sequences(&network, 0), [9]);
    network.link.loss = 100;
    let sent = |network: &Network| network.nodes[0].endpoint.stats().0.initiations_sent;
    let before = sent(&network);
    network.run_for(secs(120));
    assert_eq!(sent(&network), before, "nobody is there to answer");
    // The next record that lists the lane begins anew.
    let update = signed(content(1, 10), 1);
    let now = network.now;
    network.nodes[0]
        .endpoint
        .update_record(now, PeerId(1), &update)
        .unwrap();
    network.collect();
    network.link.loss = 0;
    network.nodes[1].endpoint.handle_timeout(now);
    network.run_for(secs(80));
    assert!(network.is_connected(0, 1));
}

#[test]
fn a_record_that_was_verified_long_ago_is_not_put_in_force_once_it_has_expired() {
    let mut network = network(require);
    let record = signed(content(1, 7), 1);
    network.now.unix = std::time::Duration::from_millis(record.content().expiry_ms);
    let now = network.now;
    let endpoint = &mut network.nodes[0].endpoint;
    assert_eq!(
        endpoint.update_record(now, PeerId(1), &record),
        Err(Discard::RecordRefused)
    );
    assert_eq!(endpoint.sessions().record_sequence(PeerId(1)), None);
}
