//! Peers that are known by their signed records alone.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cast::{
    EPOCH, Member, PATIENCE, broadcast_arrives, identity, keys, payload, stop, transport_key, validators,
};
use falconet::{
    Capabilities, IdentitySecret, LaneAddresses, NetworkId, Node, Now, Peer, PeerRecord, RecordContent,
    RecordError, Suite,
};

fn network() -> NetworkId {
    NetworkId::from_name("records")
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now().duration_since(UNIX_EPOCH).unwrap(),
    }
}

/// The record that node `number` would publish, as bytes on a disk.
fn record_of(number: u8, address: SocketAddr, suites: u16) -> Vec<u8> {
    let SocketAddr::V4(address) = address else {
        panic!("the tests listen on IPv4")
    };
    let content = RecordContent {
        identity: identity(number),
        transport_key: transport_key(number),
        sequence: 1,
        expiry_ms: now().after(Duration::from_secs(3_600)).unix_ms(),
        authenticated: LaneAddresses {
            v4: Some(address),
            v6: None,
        },
        plain: LaneAddresses::default(),
        capabilities: Capabilities::AUTHENTICATED_LANE,
        suites,
        max_datagram: 1_472,
        max_chunk: 1_440,
    };
    // As `cast` makes the identity of a number.
    let secret = Arc::new(IdentitySecret::from_bytes([number + 1; 32]));
    PeerRecord::sign(content, &network(), &*secret).unwrap().encode()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_know_each_other_by_records_broadcast_to_each_other() {
    let mut members = Vec::new();
    for number in 0..3 {
        let builder = Node::builder(keys(number))
            .network(network())
            .listen("127.0.0.1:0".parse().unwrap())
            .suites(&[Suite::Aes256Gcm, Suite::ChaCha20Poly1305])
            .validators(EPOCH, validators(3));
        members.push(Member::start(builder).await);
    }
    let records: Vec<_> = (0..3)
        .map(|number| {
            record_of(
                number,
                members[usize::from(number)].node.local_addr().unwrap(),
                0b11,
            )
        })
        .collect();
    for (number, member) in members.iter().enumerate() {
        for (_, record) in records.iter().enumerate().filter(|(other, _)| *other != number) {
            let record = PeerRecord::decode(record)
                .unwrap()
                .verify(&network(), now())
                .unwrap();
            member.node.add_peer(Peer::from_record(&record)).unwrap();
        }
    }
    for member in &members {
        member.node.wait_connected(PATIENCE).await.unwrap();
    }

    broadcast_arrives(&mut members, 0, 1, &payload(50_000, 3)).await;

    stop(members).await;
}

#[test]
fn a_record_of_another_network_or_with_a_flipped_bit_makes_no_peer() {
    let record = record_of(0, "127.0.0.1:9".parse().unwrap(), 1);
    let foreign = PeerRecord::decode(&record)
        .unwrap()
        .verify(&NetworkId::from_name("another"), now());
    assert_eq!(foreign.unwrap_err(), RecordError::BadSignature);
    for bit in 0..record.len() * 8 {
        let mut flipped = record.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let verified = PeerRecord::decode(&flipped).and_then(|record| record.verify(&network(), now()));
        assert!(verified.is_err(), "bit {bit}");
    }
}
