//! Dataplanes on real sockets of the loopback interface.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use falconet_crypto::TransportSecret;
use falconet_dataplane::{
    Class, Closed, Consumers, DataplaneConfig, LinkEmulation, Placement, Rate, Stats, ThreadStats,
};
use falconet_transport::{Event, Lane, PeerConfig, PeerId, Policy};
use nodes::*;

fn both_ways(policy: Policy, lane: Lane) {
    exchange(&start(1, config()), &start(2, config()), policy, lane);
}

fn exchange(a: &Node, b: &Node, policy: Policy, lane: Lane) {
    a.knows(b, policy);
    b.knows(a, policy);
    for (from, to) in [(a, b), (b, a)] {
        let tally = from.send(numbered(0x11, 100, 1_200), Class::Relay);
        let got = to.receive(100);
        assert_eq!(numbers(&got), (0..100).collect::<Vec<_>>());
        assert!(
            got.iter()
                .all(|i| i.lane == lane && i.peer == Some(PEER) && i.datagram.len() == 1_200)
        );
        wait_until("the completion", || tally.finished() == 100);
        assert_eq!(tally.sent.load(Ordering::Relaxed), 100);
        let overhead = if lane == Lane::Authenticated { 32 } else { 0 };
        assert_eq!(tally.bytes.load(Ordering::Relaxed), 100 * (1_200 + overhead));
    }
    wait_until("the statistics", || a.stats().lane(lane).datagrams_sent >= 100);
    assert!(a.stats().lane(lane).bytes_sent >= 100 * 1_200);
}

#[test]
fn plain_lane_both_ways() {
    both_ways(Policy::Plain, Lane::Plain);
}

#[test]
fn authenticated_lane_both_ways_without_losing_what_waited_for_the_handshake() {
    both_ways(Policy::Require, Lane::Authenticated);
}

#[test]
fn handshakes_and_data_pass_the_emulated_link() {
    let link = LinkEmulation {
        delay: Arc::new(|_| Duration::from_millis(5)),
        loss: 0.0,
        seed: 1,
    };
    let link = config().with_link_emulation(Some(link));
    let (a, b) = (start(1, link.clone()), start(2, link));
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    let start = Instant::now();
    a.send(numbered(0x20, 1, 100), Class::Control);
    b.receive(1);
    // Initiation, response, data: three ways.
    assert!(start.elapsed() >= Duration::from_millis(15));
    assert!(matches!(
        a.events.recv_timeout(PATIENCE),
        Ok(Event::Connected { peer: PEER, .. })
    ));
}

#[test]
fn emulated_loss_is_counted() {
    let link = LinkEmulation {
        delay: Arc::new(|_| Duration::ZERO),
        loss: 0.5,
        seed: 1,
    };
    let (a, b) = (
        start(1, config().with_link_emulation(Some(link))),
        start(2, config()),
    );
    a.knows(&b, Policy::Plain);
    let tally = a.send(numbered(0x11, 400, 500), Class::Relay);
    wait_until("the completion", || tally.finished() == 400);
    wait_until("the rest", || {
        let stats = a.stats();
        stats.plain.datagrams_sent + stats.dropped("emulated_loss") == 400
    });
    let left = a.stats().plain.datagrams_sent;
    assert!((140..260).contains(&left), "{left} of 400 at 50 %");
    b.receive(usize::try_from(left).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn equal_lengths_leave_in_groups() {
    for policy in [Policy::Plain, Policy::Require] {
        let unpaced = || config().with_rate(Rate::Unlimited);
        let (a, b) = (start(1, unpaced()), start(2, unpaced()));
        a.knows(&b, policy);
        b.knows(&a, policy);
        a.send(numbered(0x20, 1, 50), Class::Regular);
        b.receive(1);
        let before = a.stats();
        a.send(numbered(0x11, 440, 1_400), Class::Relay);
        b.receive(440);
        wait_until("the statistics", || {
            let (before, after) = (total(&before), total(&a.stats()));
            after.0 - before.0 >= 440 && after.0 - before.0 >= 5 * (after.1 - before.1)
        });
    }
}

/// Datagrams and system calls of both lanes.
#[cfg(target_os = "linux")]
fn total(stats: &Stats) -> (u64, u64) {
    let (a, b) = (stats.authenticated, stats.plain);
    (a.datagrams_sent + b.datagrams_sent, a.sends + b.sends)
}

/// Sends junk of many lengths and types to both lanes and waits until each datagram has a reason.
fn junk_with(config: DataplaneConfig) -> Stats {
    let node = start(1, config);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let targets = [
        node.dataplane.local_addr().unwrap(),
        node.dataplane.local_plain_addr().unwrap(),
    ];
    let lengths = (0..=300).chain([1_471, 1_472, 1_473, 9_000, 65_506, 65_507]);
    let mut sent = 0;
    for length in lengths {
        for fill in [0x00, 0x01, 0x02, 0x03, 0x04, 0xff] {
            for target in targets {
                socket.send_to(&vec![fill; length], target).unwrap();
                sent += 1;
            }
        }
        let seen = || {
            let stats = node.stats();
            let received = stats.authenticated.datagrams_received + stats.plain.datagrams_received;
            received + stats.discarded("kernel")
        };
        // In step, so that neither socket buffers nor the handshake queue overflow.
        wait_until("the datagrams", || seen() == sent);
    }
    wait_until("a reason for each", || {
        node.stats().discards.iter().map(|(_, count)| count).sum::<u64>() == sent
    });
    assert!(node.received.try_recv().is_err());
    node.stats()
}

#[test]
fn junk_of_every_length_has_a_reason_with_and_without_steering() {
    for steering in [true, false] {
        let stats = junk_with(config().with_kernel_steering(steering).with_kernel_filter(false));
        assert_eq!(stats.discarded("kernel"), 0);
        assert_eq!(stats.discarded("empty"), 12, "{:?}", stats.discards);
        assert!(stats.discarded("unknown_type") > 0 && stats.discarded("unknown_kind") > 0);
        assert!(stats.discarded("handshake_length") > 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_filters_keep_junk_from_the_threads() {
    let stats = junk_with(config());
    let received = stats.authenticated.datagrams_received + stats.plain.datagrams_received;
    assert_eq!(received, 0, "{:?}", stats.discards);
    assert!(stats.discarded("kernel") > 3_000);
}

#[test]
fn sessions_come_about_in_user_space_alone() {
    let alone = || {
        config()
            .with_kernel_steering(false)
            .with_kernel_filter(false)
            .with_aggregation(false)
    };
    let (a, b) = (start(1, alone()), start(2, alone()));
    exchange(&a, &b, Policy::Require, Lane::Authenticated);
}

#[test]
fn a_placement_that_the_system_refuses_stops_nothing() {
    let elsewhere = Placement {
        processor: Some(1 << 20),
        nice: 0,
    };
    let (a, b) = (
        start(1, config().with_data_thread(elsewhere)),
        start(2, config().with_handshake_thread(elsewhere)),
    );
    exchange(&a, &b, Policy::Require, Lane::Authenticated);
    let (before, thread) = (ThreadStats::default(), b.stats().data_thread);
    assert!(thread.turns > 0 && (0.0..=1.0).contains(&thread.busy_fraction(&before)));
}

#[test]
fn a_refusing_consumer_costs_its_own_batches_only() {
    let (tx, received) = channel();
    let b = start_with(
        2,
        config(),
        |events| Consumers {
            chunks: Box::new(Refuse),
            messages: Box::new(Collect(tx)),
            events,
        },
        received,
    );
    let a = start(1, config());
    a.knows(&b, Policy::Plain);
    a.send(numbered(0x11, 50, 100), Class::Relay);
    wait_until("the refused chunks", || b.stats().discarded("chunks_full") == 50);
    a.send(numbered(0x20, 5, 100), Class::Regular);
    assert_eq!(numbers(&b.receive(5)), [0, 1, 2, 3, 4]);
}

#[test]
fn the_sender_pushes_back_and_every_datagram_is_accounted_for() {
    let slow = config()
        .with_rate(Rate::BitsPerSecond(1_000_000))
        .with_class_caps(Class::Regular, 100, 100_000)
        .with_class_age(Class::Regular, Duration::from_millis(100));
    let (a, b) = (start(1, slow), start(2, config()));
    a.knows(&b, Policy::Plain);
    let sender = a.dataplane.sender();
    let tally = Arc::new(Tally::default());
    let mut taken = 0;
    let mut refused = 0;
    while refused < 100 {
        match sender.try_send(outgoing(numbered(0x20, 1, 1_000), Class::Regular, Some(&tally))) {
            Ok(()) => taken += 1,
            Err(_) => refused += 1,
        }
    }
    wait_until("all to leave or expire", || tally.finished() == taken);
    assert!(a.stats().dropped("expired") > 0);
    let queue = a.stats().queues[Class::Regular.index()];
    assert!(queue.bytes <= 100_000 && queue.entries <= 100);
}

#[test]
fn waiting_senders_get_room_and_learn_of_the_end() {
    let slow = config().with_class_caps(Class::Regular, 10, 20_000);
    let (a, b) = (start(1, slow), start(2, config()));
    a.knows(&b, Policy::Plain);
    let sender = a.dataplane.sender();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for _ in 0..200 {
            let datagrams = numbered(0x20, 1, 1_000);
            sender
                .send(outgoing(datagrams, Class::Regular, None))
                .await
                .unwrap();
        }
    });
    b.receive(200);
    a.dataplane.shutdown();
    let last = runtime.block_on(sender.send(outgoing(numbered(0x20, 1, 9), Class::Regular, None)));
    assert_eq!(last, Err(Closed));
    assert_eq!(sender.connect(PEER), Err(Closed));
}

#[test]
fn a_removed_peer_is_told_of() {
    let (a, b) = (start(1, config()), start(2, config()));
    // Nobody answers there.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let key = TransportSecret::from_bytes([b.secret; 32]).public();
    let config = PeerConfig::new(key)
        .with_policy(Policy::Require)
        .with_address(silent.local_addr().unwrap());
    a.dataplane.sender().add_peer(PEER, config).unwrap();
    let tally = a.send(numbered(0x20, 7, 100), Class::Regular);
    wait_until("the initiation", || a.stats().authenticated.datagrams_sent > 0);
    a.dataplane.sender().remove_peer(PEER).unwrap();
    wait_until("the completion", || tally.dropped.load(Ordering::Relaxed) == 7);
}

#[test]
fn address_in_use_and_bad_configuration_are_typed_errors() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let holder = UdpSocket::bind(taken).unwrap();
    let error = try_start(1, DataplaneConfig::new().with_listen(taken)).unwrap_err();
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
    drop(holder);
}

#[test]
fn what_a_peer_sends_after_it_was_added_is_never_a_strangers() {
    let node = start(1, config());
    let to = node.dataplane.local_plain_addr().unwrap();
    for peer in 0..300 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let key = TransportSecret::from_bytes([100; 32].map(|b: u8| b.wrapping_add(peer as u8))).public();
        let config = PeerConfig::new(key)
            .with_policy(Policy::Plain)
            .with_plain_address(socket.local_addr().unwrap());
        node.dataplane.sender().add_peer(PeerId(peer), config).unwrap();
        socket.send_to(&[0x20, 1, 2, 3, 4], to).unwrap();
        let inbound = node.received.recv_timeout(PATIENCE).unwrap();
        assert_eq!(inbound.peer, Some(PeerId(peer)));
        node.dataplane.sender().remove_peer(PeerId(peer)).unwrap();
    }
}

#[test]
fn senders_learn_when_their_commands_were_carried_out() {
    let (a, b) = (start(1, config()), start(2, config()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let sender = a.dataplane.sender();
    a.knows(&b, Policy::Require);
    sender.connect(PEER).unwrap();
    assert_eq!(runtime.block_on(sender.settle()), Ok(()));
    drop(a.dataplane);
    assert_eq!(runtime.block_on(sender.settle()), Err(Closed));
}
