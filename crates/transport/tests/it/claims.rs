//! What peers cannot get by claiming it in their records; `docs/spec/session.md#record-claims`.

use crate::network::{Flight, Network, address, message, ms, plain_address, secret, secs};
use falconet_crypto::{IdentitySecret, NetworkId, Signer};
use falconet_transport::{
    Capabilities, Discard, Event, Lane, LaneAddresses, PeerConfig, PeerId, PeerRecord, Policy, RecordContent,
    TransportConfig,
};
use std::net::SocketAddr;

const NETWORK: NetworkId = NetworkId::from_bytes([9; 32]);
const MAX_PEERS: usize = 8;

/// The victim of what node 2 claims.
const VICTIM: usize = 1;
const LIAR: usize = 2;

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

/// A record that node 2 signs itself, which says that it is at `plain`.
fn claim(plain: SocketAddr, sequence: u64) -> PeerRecord {
    let identity = IdentitySecret::from_bytes([52; 32]);
    let content = RecordContent {
        identity: identity.identity(),
        transport_key: secret(LIAR).public(),
        sequence,
        expiry_ms: 1_900_000_000_000,
        authenticated: lane(address(LIAR)),
        plain: lane(plain),
        capabilities: Capabilities::AUTHENTICATED_LANE,
        suites: 3,
        max_datagram: 1472,
        max_chunk: 1440,
    };
    PeerRecord::sign(content, &NETWORK, &identity).unwrap()
}

fn announce(network: &mut Network, record: &PeerRecord) {
    let now = network.now;
    network.nodes[LIAR].endpoint.set_record(now, record).unwrap();
    network.collect();
    network.run_for(secs(12));
}

/// What node 0 makes of a plain message from the victim's address.
fn plain_from_victim(network: &mut Network) -> Result<Option<PeerId>, Discard> {
    let discards = network.nodes[0].discards.len();
    network.deliver(Flight {
        to: plain_address(0),
        from: plain_address(VICTIM),
        lane: Lane::Plain,
        datagram: message(9).to_vec(),
    });
    match network.nodes[0].discards.get(discards) {
        Some(reason) => Err(*reason),
        None => Ok(network.nodes[0].received.last().unwrap().0),
    }
}

/// Node 0 has sessions with the others, under these policies.
fn network(victims: Policy, liars: Policy) -> Network {
    let config = TransportConfig::default().with_network(NETWORK);
    let mut network = Network::with_config(3, &config, |_, other, peer| {
        let policy = if other == VICTIM { victims } else { liars };
        peer.with_policy(policy).with_plain_address(plain_address(other))
    });
    network.connect(LIAR, 0);
    network.run_for(secs(1));
    network
}

#[test]
fn a_record_with_another_peers_plain_address_does_not_silence_that_peer() {
    // The liar requires sessions: were the victim's address its own, the victim's datagrams would be refused.
    let mut network = network(Policy::Prefer, Policy::Require);
    assert_eq!(plain_from_victim(&mut network), Ok(Some(PeerId(VICTIM as u32))));
    announce(&mut network, &claim(plain_address(VICTIM), 1));
    assert_eq!(
        network.nodes[0].endpoint.sessions().record_sequence(PeerId(2)),
        Some(1),
        "the record is in force"
    );
    assert_eq!(plain_from_victim(&mut network), Ok(Some(PeerId(VICTIM as u32))));
    // Nor does it when it moves on.
    announce(&mut network, &claim(plain_address(LIAR), 2));
    assert_eq!(plain_from_victim(&mut network), Ok(Some(PeerId(VICTIM as u32))));
}

#[test]
fn a_record_with_another_peers_plain_address_opens_no_door_that_the_policy_closes() {
    let mut network = network(Policy::Require, Policy::Prefer);
    assert_eq!(plain_from_victim(&mut network), Err(Discard::PlainRefused));
    announce(&mut network, &claim(plain_address(VICTIM), 1));
    assert_eq!(plain_from_victim(&mut network), Err(Discard::PlainRefused));
    announce(&mut network, &claim(plain_address(LIAR), 2));
    assert_eq!(plain_from_victim(&mut network), Err(Discard::PlainRefused));
}

#[test]
fn an_address_that_its_peer_has_left_is_the_next_ones_that_has_claimed_it() {
    let mut network = network(Policy::Prefer, Policy::Require);
    announce(&mut network, &claim(plain_address(VICTIM), 1));
    network.nodes[0].endpoint.remove_peer(PeerId(VICTIM as u32));
    assert_eq!(plain_from_victim(&mut network), Err(Discard::PlainRefused));
    // A configured peer is where the configuration says.
    let now = network.now;
    let config = PeerConfig::new(secret(VICTIM).public()).with_plain_address(plain_address(VICTIM));
    let added = network.nodes[0]
        .endpoint
        .add_peer(now, PeerId(VICTIM as u32), &config);
    added.unwrap();
    assert_eq!(plain_from_victim(&mut network), Ok(Some(PeerId(VICTIM as u32))));
}

#[test]
fn a_stranger_has_no_record() {
    let config = TransportConfig::default()
        .with_network(NETWORK)
        .with_max_peers(MAX_PEERS)
        .with_accept_unknown(true)
        .with_max_sessions(MAX_PEERS, 2);
    let mut network = Network::with_config(3, &config, |_, other, peer| {
        peer.with_policy(Policy::Require)
            .with_plain_address(plain_address(other))
    });
    network.nodes[0].endpoint.remove_peer(PeerId(LIAR as u32));
    network.connect(LIAR, 0);
    network.run_for(secs(1));
    assert_eq!(network.nodes[0].endpoint.stats().1.holders, (0, 1));
    announce(&mut network, &claim(plain_address(VICTIM), 1));
    let place = PeerId(MAX_PEERS as u32);
    let sessions = network.nodes[0].endpoint.sessions();
    assert_eq!(sessions.record_sequence(place), None);
    assert!(network.nodes[0].discards.contains(&Discard::RecordRefused));
    let is_told = |event: &Event| matches!(event, Event::RecordAccepted { .. });
    assert!(!network.nodes[0].events.iter().any(is_told));
    assert_eq!(plain_from_victim(&mut network), Err(Discard::PlainRefused));
    // It is none when it is handed in either.
    let (now, record) = (network.now, claim(plain_address(VICTIM), 2));
    let result = network.nodes[0].endpoint.update_record(now, place, &record);
    assert_eq!(result, Err(Discard::RecordRefused));
    network.run_for(ms(10));
}
