//! What a dataplane leaves behind: nothing. Alone in its process, so that counts are exact.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod nodes;

use std::sync::atomic::Ordering;

use falconet_dataplane::{Class, Rate};
use falconet_transport::Policy;
use nodes::*;

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// One test, since the counts are those of the process.
#[test]
fn no_thread_and_no_descriptor_outlives_a_dataplane() {
    // Whatever the runtime keeps for the process is made by the first one.
    start(1, config()).dataplane.shutdown();
    let (threads, descriptors) = (entries("/proc/self/task"), entries("/proc/self/fd"));
    for round in 0..20 {
        start(1, config()).dataplane.shutdown();
        assert_eq!(entries("/proc/self/fd"), descriptors, "round {round}");
    }
    shut_down_under_load(threads);
    assert_eq!(entries("/proc/self/task"), threads);
    assert_eq!(entries("/proc/self/fd"), descriptors);
    failed_starts_leave_nothing();
    assert_eq!(entries("/proc/self/task"), threads);
    assert_eq!(entries("/proc/self/fd"), descriptors);
}

fn shut_down_under_load(threads_before: usize) {
    let unpaced = || config().with_rate(Rate::Unlimited);
    let (a, b) = (start(1, unpaced()), start(2, unpaced()));
    assert_eq!(entries("/proc/self/task"), threads_before + 4);
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    let tally = a.send(numbered(0x11, 20_000, 1_400), Class::Relay);
    b.receive(1);
    a.dataplane.shutdown();
    drop(b.dataplane);
    assert_eq!(tally.finished(), 20_000, "every datagram left or was given up");
    assert!(tally.sent.load(Ordering::Relaxed) > 0);
}

fn failed_starts_leave_nothing() {
    let holder = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = config().with_listen_plain(holder.local_addr().unwrap());
    assert!(try_start(1, taken).is_err());
}
