//! Broadcasts between whole nodes over real sockets: every lane, both suites, both address families, restarts, foreign
//! networks and slow readers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;

use std::net::{Ipv6Addr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use cast::{
    AUTHENTICATED, BOTH, EPOCH, Member, PATIENCE, PLAIN, Setup, broadcast_arrives, eventually, payload, stop,
};
use falconet::{NetworkId, Node, NodeEvent, Peer, Policy, Suite};

/// Each node leads once, with payloads of one symbol and of many.
async fn each_leads(members: &mut [Member]) {
    for leader in 0..members.len() {
        for (round, len) in [(1, 1), (2, 60_000)] {
            broadcast_arrives(members, leader, round, &payload(len, leader as u8)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_gets_every_payload_on_the_authenticated_lane() {
    let mut members = Setup::new(&[AUTHENTICATED; 4]).start().await;
    each_leads(&mut members).await;
    for member in &members {
        let stats = member.node.stats();
        assert_eq!(stats.connected_peers, 3);
        assert_eq!(stats.plain.datagrams_sent + stats.plain.datagrams_received, 0);
    }
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_gets_every_payload_on_the_plain_lane() {
    let mut members = Setup::new(&[PLAIN; 4]).start().await;
    each_leads(&mut members).await;
    for member in &members {
        assert_eq!(member.node.stats().authenticated.datagrams_sent, 0);
    }
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_a_network_may_speak_only_plain() {
    let mut setup = Setup::new(&[BOTH, BOTH, PLAIN, PLAIN]);
    setup.policy = Box::new(|_, other| if other < 2 { Policy::Require } else { Policy::Plain });
    let mut members = setup.start().await;
    each_leads(&mut members).await;
    let upgraded = members[0].node.stats();
    assert!(upgraded.authenticated.datagrams_sent > 0 && upgraded.plain.datagrams_sent > 0);
    assert_eq!(upgraded.discarded("plain_refused"), 0);
    assert_eq!(members[2].node.stats().connected_peers, 0);
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_agree_on_aes_where_both_offer_it() {
    let mut setup = Setup::new(&[AUTHENTICATED; 3]);
    setup.suites = vec![Suite::Aes256Gcm, Suite::ChaCha20Poly1305];
    let mut members = setup.start().await;
    each_leads(&mut members).await;
    let mut events = members[0].node.events();
    for _ in 0..2 {
        let event = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        assert!(
            matches!(
                event,
                Some((
                    NodeEvent::Connected {
                        suite: Suite::Aes256Gcm,
                        ..
                    },
                    0
                ))
            ),
            "{event:?}"
        );
    }
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ipv6_carries_both_lanes_at_its_own_chunk_size() {
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let mut setup = Setup::new(&[BOTH, BOTH, PLAIN]);
    setup.ip = Ipv6Addr::LOCALHOST.into();
    setup.build = Box::new(|_, builder| builder.chunk_size(1_420));
    let mut members = setup.start().await;
    each_leads(&mut members).await;
    let stats = members[0].node.stats();
    assert!(stats.authenticated.datagrams_sent > 0 && stats.plain.datagrams_sent > 0);
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_node_is_served_again() {
    let mut members = Setup::new(&[AUTHENTICATED; 3]).start().await;
    broadcast_arrives(&mut members, 0, 1, &payload(20_000, 1)).await;

    let stopped = members.pop().unwrap();
    let address = stopped.node.local_addr().unwrap();
    stopped.node.shutdown().await;
    let peers = (0..2u8).map(|number| {
        let other = members[usize::from(number)].node.local_addr().unwrap();
        Peer::new(cast::identity(number)).with_authenticated(cast::transport_key(number), other)
    });
    let builder = Node::builder(cast::keys(2))
        .listen(address)
        .validators(EPOCH, cast::validators(3))
        .peers(peers);
    members.push(Member::start(builder).await);

    // The others notice by what they cannot open, or by the new node's own dials: either way within seconds.
    let mut round = 1;
    let healed = loop {
        round += 1;
        members[0]
            .node
            .broadcast(round, payload(20_000, 2))
            .await
            .unwrap();
        if let Ok(delivery) =
            tokio::time::timeout(Duration::from_millis(500), members[2].deliveries.recv()).await
        {
            break delivery.unwrap();
        }
        assert!(round < 100, "never served again: {:?}", members[2].node.stats());
    };
    assert_eq!(healed.payload, payload(20_000, 2));
    // And it leads again, too: whoever was there before has one more payload of the restarted one.
    members[2].node.broadcast(1, payload(5_000, 3)).await.unwrap();
    loop {
        let delivery = members[1].delivery().await;
        if delivery.author == cast::identity(2) {
            assert_eq!(delivery.payload, payload(5_000, 3));
            break;
        }
    }
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_two_networks_in_one_process_share_nothing() {
    let mut setup = Setup::new(&[BOTH; 3]);
    setup.build = Box::new(|number, builder| {
        builder.network(NetworkId::from_name(if number == 0 { "one" } else { "two" }))
    });
    let mut members = setup.start().await;
    let [alone, first, second] = &mut members[..] else {
        unreachable!()
    };

    alone.node.broadcast(1, payload(9_000, 1)).await.unwrap();
    for other in [&mut *first, second] {
        eventually("chunks of another network are discarded", || {
            other.node.stats().discarded("signature") > 0
        })
        .await;
        other.has_no_delivery().await;
    }
    first.node.broadcast(1, payload(9_000, 2)).await.unwrap();
    assert_eq!(second.delivery().await.payload, payload(9_000, 2));
    eventually("chunks of another network are discarded", || {
        alone.node.stats().discarded("signature") > 0
    })
    .await;
    alone.has_no_delivery().await;
    assert_eq!(alone.node.stats().broadcasts.delivered, 0);
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_loses_the_oldest_payloads_and_learns_how_many() {
    let mut setup = Setup::new(&[AUTHENTICATED; 2]);
    setup.build = Box::new(|_, builder| builder.kept_deliveries(2));
    let mut members = setup.start().await;
    let mut late = members[1].node.deliveries();
    for round in 1..=5 {
        members[0]
            .node
            .broadcast(round, Bytes::from(vec![round as u8; 3_000]))
            .await
            .unwrap();
        eventually("it is delivered", || {
            members[1].node.stats().broadcasts.delivered == round
        })
        .await;
    }
    // The payload of round 5 is counted before it is handed over: the reader that keeps up has it.
    let mut last = members[1].delivery().await;
    let mut seen = vec![(last.round, last.missed)];
    while last.round < 5 {
        last = members[1].delivery().await;
        seen.push((last.round, last.missed));
    }
    assert_eq!(
        seen.iter().map(|(_, missed)| missed + 1).sum::<u64>(),
        5,
        "{seen:?}"
    );
    assert!(seen[0].1 >= 2, "it lost nothing: {seen:?}");
    // A second reader counts for itself.
    let first = tokio::time::timeout(PATIENCE, late.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((first.round, first.missed), (4, 3));
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_with_their_node() {
    let mut members = Setup::new(&[BOTH; 2]).start().await;
    let Member {
        node,
        mut deliveries,
        mut messages,
    } = members.remove(0);
    let mut events = node.events();
    node.shutdown().await;
    assert!(deliveries.recv().await.is_none() && messages.recv().await.is_none());
    while events.recv().await.is_some() {}
    stop(members).await;
}
