//! What a node says of itself, and who believes it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;

use std::net::{SocketAddr, SocketAddrV4};

use cast::{PATIENCE, eventually, identity, keys, transport_key};
use falconet::{
    Capabilities, Class, Events, LaneAddresses, NetworkId, Node, NodeBuilder, NodeEvent, OwnRecord, Peer,
    PeerRecord, Policy, PublishError, StartError, Suite,
};

fn network() -> NetworkId {
    NetworkId::from_name("own record")
}

fn node(number: u8) -> NodeBuilder {
    Node::builder(keys(number))
        .network(network())
        .listen("127.0.0.1:0".parse().unwrap())
}

async fn next_record(events: &mut Events) -> Box<PeerRecord> {
    loop {
        let next = tokio::time::timeout(PATIENCE, events.recv()).await;
        if let (NodeEvent::RecordAccepted { peer, record }, _) = next.expect("a record in time").unwrap() {
            assert_eq!(peer, record.content().identity);
            return record;
        }
    }
}

fn v4(address: Option<SocketAddr>) -> LaneAddresses {
    let Some(SocketAddr::V4(v4)) = address else {
        panic!("the tests listen on IPv4")
    };
    LaneAddresses {
        v4: Some(v4),
        v6: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_reaches_peers_by_their_sessions_and_a_newer_one_takes_its_place() {
    let speaker = node(0)
        .suites(&[Suite::Aes256Gcm, Suite::ChaCha20Poly1305])
        .record(OwnRecord::new())
        .start()
        .await
        .unwrap();
    let listener = node(1).start().await.unwrap();
    let mut events = listener.events();
    let address = speaker.local_addr().unwrap();
    listener
        .add_peer(Peer::new(identity(0)).with_authenticated(transport_key(0), address))
        .unwrap();
    speaker
        .add_peer(Peer::new(identity(1)).with_authenticated(transport_key(1), listener.local_addr().unwrap()))
        .unwrap();

    let first = next_record(&mut events).await;
    let content = first.content();
    assert_eq!(content.identity, identity(0));
    assert_eq!(content.transport_key, transport_key(0));
    assert_eq!(content.authenticated, v4(Some(address)));
    assert_eq!(
        (content.suites, content.max_datagram, content.max_chunk),
        (0b11, 1_472, 1_440)
    );

    let moved = LaneAddresses {
        v4: Some(SocketAddrV4::new([127, 0, 0, 1].into(), 9)),
        v6: None,
    };
    let published = speaker
        .publish_record(OwnRecord::new().with_authenticated(moved))
        .await
        .unwrap();
    assert!(published.supersedes(&first));
    let second = next_record(&mut events).await;
    assert_eq!(*second, published);
    let known = listener.peer_stats(&identity(0)).await.unwrap();
    assert_eq!(known.address, moved.v4.map(SocketAddr::V4));
    assert!(known.session.is_some(), "the session goes on");
    for node in [speaker, listener] {
        node.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_is_published_first_ends_stickiness() {
    let any = || "127.0.0.1:0".parse().unwrap();
    let upgraded = node(0)
        .listen_plain(any())
        .record(OwnRecord::new())
        .start()
        .await
        .unwrap();
    let other = node(1).listen_plain(any()).start().await.unwrap();
    let mut events = other.events();
    let peer = |number, node: &Node| {
        Peer::new(identity(number))
            .with_authenticated(transport_key(number), node.local_addr().unwrap())
            .with_plain(node.local_plain_addr().unwrap())
            .with_policy(Policy::PlainUntilSeen)
    };
    other.add_peer(peer(0, &upgraded)).unwrap();
    upgraded.add_peer(peer(1, &other)).unwrap();
    other.wait_connected(PATIENCE).await.unwrap();
    next_record(&mut events).await;

    let rollback = OwnRecord::new().without_authenticated_lane();
    let record = upgraded.publish_record(rollback).await.unwrap();
    assert_eq!(record.content().capabilities, Capabilities::default());
    assert_eq!(*next_record(&mut events).await, record);

    other
        .send(&identity(0), "in the clear".into(), Class::Control)
        .await
        .unwrap();
    eventually("it leaves on the plain lane", || {
        other.stats().plain.datagrams_sent > 0
    })
    .await;
    for node in [upgraded, other] {
        node.shutdown().await;
    }
}

#[tokio::test]
async fn an_address_that_nobody_can_send_to_is_not_published() {
    let everywhere = Node::builder(keys(0))
        .listen("0.0.0.0:0".parse().unwrap())
        .record(OwnRecord::new())
        .start()
        .await;
    assert!(matches!(
        everywhere,
        Err(StartError::Record(PublishError::Unreachable(_)))
    ));
}
