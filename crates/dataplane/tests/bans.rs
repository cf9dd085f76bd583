//! Who is banned is not heard, on either lane, in the kernel or in user space, until the ban ends.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::time::Duration;

use falconet_dataplane::{Ban, Class, DataplaneConfig, Rate};
use falconet_transport::Policy;
use nodes::*;

const LONG: Duration = Duration::from_secs(3_600);

/// Whether a datagram from `a` reaches `b` within a short time; it is sent more than once, since a ban in the kernel
/// has no edge that could be waited for.
fn is_heard(a: &Node, b: &Node) -> bool {
    while b.received.try_recv().is_ok() {}
    (0..5).any(|_| {
        a.send(numbered(0x20, 1, 100), Class::Regular);
        b.received.recv_timeout(Duration::from_millis(60)).is_ok()
    })
}

fn pair(policy: Policy, config: impl Fn() -> DataplaneConfig) -> (Node, Node) {
    let (a, b) = (start(1, config()), start(2, config()));
    a.knows(&b, policy);
    b.knows(&a, policy);
    a.send(numbered(0x20, 1, 100), Class::Regular);
    b.receive(1);
    (a, b)
}

fn ban(node: &Node, ban: Ban, time: Duration) {
    node.dataplane.sender().ban(ban, time).unwrap();
    // Orders are carried out one after the other, and the kernel is told behind them in the same turn.
    let (done, told) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let done = done.clone();
        let tell = move |_, _: &mut _| done.send(()).unwrap();
        node.dataplane.sender().with_sessions(tell).unwrap();
        told.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn an_address_is_banned_and_heard_again_with_and_without_the_kernel() {
    let address = Ban::Address("127.0.0.1".parse().unwrap());
    for policy in [Policy::Require, Policy::Plain] {
        for filter in [true, false] {
            let (a, b) = pair(policy, || config().with_kernel_filter(filter));
            ban(&b, address, LONG);
            let before = (b.stats().discarded("kernel"), b.stats().discarded("banned"));
            assert!(!is_heard(&a, &b), "{policy:?}, filter {filter}");
            let stats = b.stats();
            let counted = (
                stats.discarded("kernel") - before.0,
                stats.discarded("banned") - before.1,
            );
            if cfg!(target_os = "linux") && filter {
                // The kernel is told behind the orders of a turn: the first one may still come through to the thread.
                assert!(counted.0 >= 3 && counted.0 + counted.1 >= 5, "{counted:?}");
            } else {
                assert!(counted.0 == 0 && counted.1 >= 5, "{counted:?}");
            }
            ban(&b, address, Duration::ZERO);
            assert!(is_heard(&a, &b), "{policy:?}, filter {filter}");
            ban(&b, address, Duration::from_millis(1));
            wait_until("the end of the ban", || is_heard(&a, &b));
        }
    }
}

#[test]
fn a_banned_peer_is_not_heard_and_a_trusted_one_always_is() {
    for policy in [Policy::Require, Policy::Plain] {
        let (a, b) = pair(policy, || config().with_rate(Rate::Unlimited));
        ban(&b, Ban::Peer(PEER), LONG);
        assert!(!is_heard(&a, &b), "{policy:?}");
        assert!(b.stats().discarded("banned") >= 5);
        b.dataplane.sender().trust(PEER, true).unwrap();
        ban(&b, Ban::Address("127.0.0.1".parse().unwrap()), LONG);
        wait_until("the trusted peer", || is_heard(&a, &b));
    }
}

#[test]
fn a_banned_address_of_ipv6_is_turned_away_in_user_space() {
    let v6 = || {
        let address = "[::1]:0".parse().unwrap();
        config().with_listen(address).with_listen_plain(address)
    };
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: no IPv6 here");
        return;
    }
    let (a, b) = pair(Policy::Require, v6);
    ban(&b, Ban::Address("::1".parse().unwrap()), LONG);
    assert!(!is_heard(&a, &b));
    assert!(b.stats().discarded("banned") >= 5);
}
