//! What can be set about a node, and what it shows of itself.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;

use std::path::Path;
use std::time::Duration;

use cast::{
    AUTHENTICATED, BOTH, EPOCH, Setup, broadcast_arrives, eventually, identity, keys, payload, stop,
    transport_key,
};
use falconet::{
    Class, IdentitySecret, Node, NodeKeys, Peer, PeerError, Placement, Policy, Rate, Round, SocketOptions,
    StartError, ThreadOptions, TransportSecret,
};
use falconet_crypto::keyfile;
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_everything_set_otherwise_broadcast_and_tell_what_their_threads_do() {
    let mut setup = Setup::new(&[AUTHENTICATED; 3]);
    setup.build = Box::new(|_, builder| {
        let placement = Placement {
            processor: Some(0),
            nice: 1,
        };
        let threads = ThreadOptions::new()
            .with_prefix("other")
            .with_dataplane(placement)
            .with_handshake(placement)
            .with_handshake_threads(2)
            .with_handshake_cpu(0.25);
        let sockets = SocketOptions::new()
            .with_steering(false)
            .with_filter(false)
            .with_aggregation(false)
            .with_segmentation(false)
            .with_buffer(1 << 20);
        builder
            .threads(threads)
            .sockets(sockets)
            .max_sessions(10, 1)
            .peer_rate(Rate::BitsPerSecond(500_000_000))
    });
    let mut members = setup.start().await;
    broadcast_arrives(&mut members, 0, 1, &payload(50_000, 1)).await;
    let stats = members[0].node.thread_stats();
    assert!(stats.dataplane.turns > 0 && stats.handshake.turns > 0);
    assert!(stats.dataplane.busy_fraction(&falconet::ThreadStats::default()) > 0.0);
    assert_eq!(stats.queues.len(), Class::ALL.len());
    assert_ne!(stats.sealing, falconet::Histogram::default());
    let peer = members[0].node.peer_stats(&identity(1)).await.unwrap();
    assert_eq!(peer.address, members[1].node.local_addr());
    assert_eq!(peer.fallbacks, 0);
    assert!(peer.session.is_some());
    let unknown = members[0].node.peer_stats(&identity(9)).await;
    assert!(matches!(unknown, Err(PeerError::Unknown(_))));
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_leader_of_a_round_is_listened_to() {
    let mut members = Setup::new(&[AUTHENTICATED; 2]).start().await;
    let leader = identity(0);
    let schedule = move |round: Round| (round.number() == 2).then_some(leader);
    members[1].node.set_leader_schedule(EPOCH, schedule).unwrap();
    members[0].node.broadcast(1, payload(1_000, 1)).await.unwrap();
    members[0].node.broadcast(2, payload(1_000, 2)).await.unwrap();
    assert_eq!(members[1].delivery().await.round, 2);
    assert!(members[1].discards() > 0);
    assert!(members[1].node.drop_rounds_before(1 << 48).is_err());
    members[1].node.drop_rounds_before(3).unwrap();
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_banned_peer_is_not_heard_until_the_ban_is_lifted() {
    let mut members = Setup::new(&[AUTHENTICATED; 2]).start().await;
    let (sender, hour) = (identity(0), Duration::from_secs(3_600));
    let say = async |members: &[cast::Member], word: &'static str| {
        let to = identity(1);
        let sent = members[0].node.send(&to, word.into(), Class::Control);
        sent.await.unwrap();
    };
    members[1].node.ban(&sender, hour).unwrap();
    members[1].node.settle().await.unwrap();
    say(&members, "banned").await;
    eventually("a discard", || members[1].node.stats().discarded("banned") > 0).await;
    members[1].node.ban(&sender, Duration::ZERO).unwrap();
    members[1].node.settle().await.unwrap();
    say(&members, "heard").await;
    assert_eq!(&members[1].message().await.payload[..], b"heard");
    let unknown = members[1].node.ban(&identity(9), hour);
    assert!(matches!(unknown, Err(PeerError::Unknown(_))));
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fallbacks_to_the_plain_lane_are_counted_by_peer() {
    let mut setup = Setup::new(&[BOTH; 1]);
    setup.policy = Box::new(|_, _| Policy::Prefer);
    let members = setup.start().await;
    let node = &members[0].node;
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let peer = Peer::new(identity(1))
        .with_authenticated(transport_key(1), at)
        .with_plain(at);
    node.add_peer(peer).unwrap();
    for _ in 0..3 {
        node.send(&identity(1), "anyway".into(), Class::Control)
            .await
            .unwrap();
    }
    eventually("they have left", || node.stats().plain.datagrams_sent == 3).await;
    // However many of them left together.
    assert_eq!(node.peer_stats(&identity(1)).await.unwrap().fallbacks, 3);
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_has_a_session_only_where_that_is_allowed() {
    for allowed in [false, true] {
        let host = Node::builder(keys(0)).listen("127.0.0.1:0".parse().unwrap());
        let host = if allowed { host.accept_unknown() } else { host };
        let host = host.start().await.unwrap();
        let mut messages = host.messages();
        let guest = Node::builder(keys(1))
            .listen("127.0.0.1:0".parse().unwrap())
            .start()
            .await
            .unwrap();
        let peer = Peer::new(identity(0)).with_authenticated(transport_key(0), host.local_addr().unwrap());
        guest.add_peer(peer.with_policy(Policy::Require)).unwrap();
        guest
            .send(&identity(0), "hello".into(), Class::Control)
            .await
            .unwrap();
        if allowed {
            let message = messages.recv().await.unwrap();
            assert_eq!((message.from, &message.payload[..]), (None, &b"hello"[..]));
        } else {
            eventually("the refusal", || host.stats().discarded("unknown_peer") > 0).await;
            assert_eq!(guest.stats().connected_peers, 0);
        }
        guest.shutdown().await;
        host.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_log_is_written_for_a_disposable_key_and_refused_for_any_other() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("keys.log");
    let start = |keys: NodeKeys| {
        let builder = Node::builder(keys).listen("127.0.0.1:0".parse().unwrap());
        builder.key_log(&log).start()
    };
    let refused = start(keys(0)).await;
    assert!(
        matches!(refused, Err(StartError::KeyLogRefused(_))),
        "{refused:?}"
    );
    assert!(!log.exists());

    let (identity_file, transport_file) = (folder.path().join("id"), folder.path().join("tk"));
    write_disposable(&identity_file, &transport_file);
    let logged = start(NodeKeys::load(&identity_file, &transport_file).unwrap())
        .await
        .unwrap();
    let other = Node::builder(keys(1))
        .listen("127.0.0.1:0".parse().unwrap())
        .start()
        .await
        .unwrap();
    for (node, peer) in [(&logged, &other), (&other, &logged)] {
        let address = peer.local_addr().unwrap();
        node.add_peer(Peer::new(peer.identity()).with_authenticated(peer.transport_key(), address))
            .unwrap();
    }
    logged.wait_connected(cast::PATIENCE).await.unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("LOCAL_EPHEMERAL_PRIVATE_KEY"), "{text}");
    logged.shutdown().await;
    other.shutdown().await;
}

/// The key files of a node that only serves to be looked at.
fn write_disposable(identity: &Path, transport: &Path) {
    keyfile::create_identity(identity, &IdentitySecret::from_bytes([77; 32])).unwrap();
    keyfile::create_disposable_transport(transport, &TransportSecret::from_bytes([78; 32])).unwrap();
}
