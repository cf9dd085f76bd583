//! What a snapshot tells of traffic that has passed.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::time::{Duration, Instant};

use falconet_dataplane::{Class, Rate};
use falconet_transport::Policy;
use nodes::*;

#[test]
fn traffic_is_counted_by_class_and_operations_are_timed() {
    let unpaced = || config().with_rate(Rate::Unlimited);
    let (a, b) = (start(1, unpaced()), start(2, unpaced()));
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    a.send(numbered(0x20, 1, 100), Class::Control);
    b.receive(1);
    a.send(numbered(0x11, 440, 1_200), Class::Relay);
    b.receive(440);
    wait_until("the counts", || {
        a.stats().queues[Class::Relay.index()].datagrams_sent == 440
    });
    let (sent, received) = (a.stats(), b.stats());
    assert_eq!(
        sent.queues[Class::Relay.index()].bytes_sent,
        440 * 1_232,
        "frames counted"
    );
    let control = sent.queues[Class::Control.index()];
    assert_eq!((control.datagrams_sent, control.bytes_sent), (1, 132));
    assert_eq!(sent.queues[Class::Proposal.index()].datagrams_sent, 0);
    // Ten groups of 44, and the message.
    assert!((11..=14).contains(&sent.sealing.count()), "{:?}", sent.sealing);
    let median = sent.sealing.quantile(0.5).unwrap();
    assert!(
        median > Duration::from_nanos(50) && median < Duration::from_millis(10),
        "{median:?}"
    );
    assert!(received.opening.count() >= 2, "{:?}", received.opening);
    assert!(sent.authenticated.segments_a_send() > 20.0);
    assert!(received.sealing.count() <= 1 && sent.opening.count() == 0);
}

#[test]
fn a_peers_rate_holds_though_the_nodes_is_unlimited() {
    // 10 Mbit/s: 250 datagrams of 1,250 bytes on the wire take 250 ms.
    let paced = config()
        .with_rate(Rate::Unlimited)
        .with_peer_rate(Rate::BitsPerSecond(10_000_000));
    let (a, b) = (start(1, paced), start(2, config()));
    a.knows(&b, Policy::Plain);
    b.knows(&a, Policy::Plain);
    let started = Instant::now();
    let tally = a.send(numbered(0x11, 250, 1_250 - 66), Class::Relay);
    b.receive(250);
    wait_until("the reports", || tally.finished() == 250);
    // 200 us of burst, and the last group is charged when it has left. No upper bound: the machine may be busy.
    assert!(
        started.elapsed() >= Duration::from_millis(245),
        "{:?}",
        started.elapsed()
    );
}
