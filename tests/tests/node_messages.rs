//! Small messages between whole nodes, and the typed errors of everything that an embedder may ask for in vain.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;

use std::net::{Ipv6Addr, SocketAddr};

use bytes::Bytes;
use cast::{AUTHENTICATED, BOTH, EPOCH, Member, PLAIN, Setup, eventually, payload, stop};
use falconet::{BroadcastError, Class, Lane, Node, Peer, PeerError, Policy, SendError, StartError};
use falconet_raptorcast::{BroadcastError as Refusal, GeometryError};
use tokio::net::UdpSocket;

const MESSAGE: u8 = 0x20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_prove_who_sent_a_message() {
    let mut members = Setup::new(&[BOTH, BOTH]).start().await;
    for (from, to) in [(0, 1), (1, 0)] {
        let (sender, receiver) = (members[from].node.identity(), members[to].node.identity());
        members[from]
            .node
            .send(&receiver, payload(100, 7), Class::Control)
            .await
            .unwrap();
        let message = members[to].message().await;
        assert_eq!(
            (message.from, message.lane, message.missed),
            (Some(sender), Lane::Authenticated, 0)
        );
        assert_eq!(message.payload, payload(100, 7));
    }
    // The longest there is, too.
    let longest = payload(members[0].node.max_message(), 8);
    let to = members[1].node.identity();
    members[0]
        .node
        .send(&to, longest.clone(), Class::Control)
        .await
        .unwrap();
    assert_eq!(members[1].message().await.payload, longest);
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plain_lane_only_hints_at_who_sent_a_message() {
    let mut members = Setup::new(&[PLAIN, PLAIN]).start().await;
    let (sender, receiver) = (members[0].node.identity(), members[1].node.identity());
    members[0]
        .node
        .send(&receiver, payload(100, 7), Class::Control)
        .await
        .unwrap();
    let message = members[1].message().await;
    assert_eq!((message.from, message.lane), (Some(sender), Lane::Plain));

    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = members[1].node.local_plain_addr().unwrap();
    stranger.send_to(&[MESSAGE, 1, 2, 3], address).await.unwrap();
    let message = members[1].message().await;
    assert_eq!((message.from, message.lane), (None, Lane::Plain));
    assert_eq!(message.payload, Bytes::from_static(&[1, 2, 3]));
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_all_reaches_each_peer_on_its_lane() {
    let mut setup = Setup::new(&[BOTH, BOTH, PLAIN]);
    setup.policy = Box::new(|_, other| if other == 2 { Policy::Plain } else { Policy::Prefer });
    let mut members = setup.start().await;
    let sender = members[0].node.identity();
    members[0]
        .node
        .send_all(payload(64, 5), Class::Control)
        .await
        .unwrap();
    for (number, lane) in [(1, Lane::Authenticated), (2, Lane::Plain)] {
        let message = members[number].message().await;
        assert_eq!(
            (message.from, message.lane, message.payload),
            (Some(sender), lane, payload(64, 5))
        );
    }
    members[0].has_no_message().await;
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_must_use_sessions_is_refused_on_the_plain_lane() {
    let mut setup = Setup::new(&[BOTH, BOTH]);
    // The second node speaks plain to the first, which requires sessions of it.
    setup.policy = Box::new(|number, _| {
        if number == 0 {
            Policy::Require
        } else {
            Policy::Plain
        }
    });
    let mut members = [start_apart(&setup, 0).await, start_apart(&setup, 1).await];
    let addresses = members.each_ref().map(|member| {
        let (sealed, plain) = (member.node.local_addr(), member.node.local_plain_addr());
        (sealed.unwrap(), plain.unwrap())
    });
    for (number, other) in [(0, 1u8), (1, 0u8)] {
        let (sealed, plain) = addresses[usize::from(other)];
        let peer = Peer::new(cast::identity(other))
            .with_authenticated(cast::transport_key(other), sealed)
            .with_plain(plain)
            .with_policy((setup.policy)(number, other));
        members[usize::from(number)].node.add_peer(peer).unwrap();
    }
    let strict = cast::identity(0);
    members[1]
        .node
        .send(&strict, payload(10, 1), Class::Control)
        .await
        .unwrap();
    eventually("it is refused", || {
        members[0].node.stats().discarded("plain_refused") == 1
    })
    .await;
    members[0].has_no_message().await;
    // A broadcast is refused just as well.
    members[1].node.broadcast(1, payload(500, 1)).await.unwrap();
    eventually("it is refused", || {
        members[0].node.stats().discarded("plain_refused") > 1
    })
    .await;
    members[0].has_no_delivery().await;
    stop(members.into()).await;
}

/// A node without peers yet.
async fn start_apart(setup: &Setup, number: u8) -> Member {
    let any = SocketAddr::new(setup.ip, 0);
    let builder = Node::builder(cast::keys(number)).listen(any).listen_plain(any);
    Member::start(builder.validators(EPOCH, cast::validators(2))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_loses_the_oldest_messages_and_learns_how_many() {
    let mut setup = Setup::new(&[PLAIN, PLAIN]);
    setup.build = Box::new(|_, builder| builder.kept_messages(8));
    let mut members = setup.start().await;
    let receiver = members[1].node.identity();
    for number in 0..20 {
        members[0]
            .node
            .send(&receiver, Bytes::from(vec![number; 10]), Class::Control)
            .await
            .unwrap();
    }
    eventually("all have come", || {
        members[1].node.stats().plain.datagrams_received == 20
    })
    .await;
    // Received is counted before it is handed over; the next message comes after both.
    members[0]
        .node
        .send(&receiver, Bytes::from_static(b"end"), Class::Control)
        .await
        .unwrap();
    eventually("the end has come", || {
        members[1].node.stats().plain.datagrams_received == 21
    })
    .await;
    let first = members[1].message().await;
    assert!(first.missed >= 12, "it lost only {}", first.missed);
    let mut accounted = first.missed + 1;
    while accounted < 21 {
        accounted += members[1].message().await.missed + 1;
    }
    assert_eq!(accounted, 21);
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broadcasts_in_vain_are_typed_errors_before_any_work() {
    let members = Setup::new(&[PLAIN, PLAIN]).start().await;
    let node = &members[0].node;
    let refused = async |round, payload| match node.broadcast(round, payload).await {
        Err(BroadcastError::Refused(reason)) => reason,
        other => panic!("not refused: {other:?}"),
    };
    let too_large = (3 << 20) + 1;
    assert_eq!(
        refused(1, Bytes::new()).await,
        Refusal::Geometry(GeometryError::Empty)
    );
    assert_eq!(
        refused(1, vec![0; too_large].into()).await,
        Refusal::Geometry(GeometryError::TooLarge(too_large))
    );
    let result = node.broadcast(1 << 48, payload(1, 1)).await;
    assert!(matches!(result, Err(BroadcastError::RoundTooLarge(round)) if round == 1 << 48));
    let stats = node.stats();
    assert_eq!(
        (stats.broadcasts.broadcasts, stats.plain.datagrams_sent),
        (0, 0),
        "work was done"
    );

    let sent = node.broadcast(5, payload(1, 1)).await.unwrap().datagrams as u64;
    eventually("all are counted", || node.stats().plain.datagrams_sent == sent).await;
    assert!(matches!(
        refused(5, payload(1, 1)).await,
        Refusal::DuplicateRound(..)
    ));
    assert!(matches!(refused(4, payload(1, 1)).await, Refusal::OldRound(..)));
    node.enter_epoch(9);
    assert!(matches!(
        refused(6, payload(1, 1)).await,
        Refusal::UnknownEpoch(_)
    ));
    let stats = node.stats();
    assert_eq!(
        (stats.broadcasts.broadcasts, stats.plain.datagrams_sent),
        (1, sent),
        "work was done"
    );
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_validators_broadcasts_nothing() {
    let node = Node::builder(cast::keys(0))
        .listen("127.0.0.1:0".parse().unwrap())
        .start()
        .await
        .unwrap();
    let result = node.broadcast(1, payload(1, 1)).await;
    assert!(matches!(result, Err(BroadcastError::NoValidators)), "{result:?}");
    // A set without this node does not help.
    node.set_validators(EPOCH, cast::validators(3).split_off(1))
        .unwrap();
    let result = node.broadcast(1, payload(1, 1)).await;
    assert!(
        matches!(result, Err(BroadcastError::Refused(Refusal::NotInSet(_)))),
        "{result:?}"
    );
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_and_peers_in_vain_are_typed_errors() {
    let members = Setup::new(&[AUTHENTICATED, AUTHENTICATED]).start().await;
    let node = &members[0].node;
    let (peer, stranger) = (members[1].node.identity(), cast::identity(77));
    let max = node.max_message();
    assert_eq!(max, 1_439);
    let too_long = payload(max + 1, 1);
    assert_eq!(
        node.send(&stranger, payload(1, 1), Class::Control).await,
        Err(SendError::UnknownPeer(stranger))
    );
    assert_eq!(
        node.send(&peer, Bytes::new(), Class::Control).await,
        Err(SendError::Empty)
    );
    assert_eq!(
        node.send_all(Bytes::new(), Class::Control).await,
        Err(SendError::Empty)
    );
    let expected = SendError::TooLarge { len: max + 1, max };
    assert_eq!(
        node.send(&peer, too_long.clone(), Class::Control).await,
        Err(expected)
    );
    let text = node
        .try_send(&peer, too_long, Class::Control)
        .unwrap_err()
        .to_string();
    assert!(text.contains("1440") && text.contains("1439"), "{text}");

    assert!(matches!(
        node.add_peer(Peer::new(node.identity())),
        Err(PeerError::Ourselves(_))
    ));
    assert!(matches!(node.add_peer(Peer::new(peer)), Err(PeerError::Duplicate(key)) if key == peer));
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_that_the_path_cannot_carry_is_refused_by_name() {
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let error = Node::builder(cast::keys(0)).listen(v6).start().await.unwrap_err();
    let StartError::ChunkTooLarge {
        chunk,
        packet,
        address,
        mtu,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((chunk, packet, address, mtu), (1_440, 1_520, v6, 1_500));
    let text = error.to_string();
    assert!(
        ["1440", "1520", "[::1]:0", "1500"]
            .iter()
            .all(|part| text.contains(part)),
        "{text}"
    );

    let v4 = "127.0.0.1:0".parse().unwrap();
    let builder = Node::builder(cast::keys(0)).listen(v4).path_mtu(1_400);
    assert!(matches!(
        builder.start().await,
        Err(StartError::ChunkTooLarge { mtu: 1_400, .. })
    ));
    for wrong in [0, 511, 9_001, 70_000] {
        let builder = Node::builder(cast::keys(0))
            .listen(v4)
            .path_mtu(1 << 20)
            .chunk_size(wrong);
        assert!(matches!(builder.start().await, Err(StartError::ChunkSize(size)) if size == wrong));
    }
    for wrong in [0.5, 8.5, f64::NAN, -1.0] {
        let builder = Node::builder(cast::keys(0)).listen(v4).redundancy(wrong);
        assert!(
            matches!(builder.start().await, Err(StartError::Redundancy(_))),
            "{wrong}"
        );
    }
    assert!(matches!(
        Node::builder(cast::keys(0)).start().await,
        Err(StartError::NoListenAddress)
    ));
}
