//! IPv4, IPv6, and a socket that serves both.
#![allow(clippy::unwrap_used)]

mod nodes;

use falconet_dataplane::{Class, DataplaneConfig};
use falconet_transport::{Lane, Policy};
use nodes::*;

fn at(address: &str) -> DataplaneConfig {
    let address = address.parse().unwrap();
    DataplaneConfig::new().with_listen(address)
}

fn has_ipv6() -> bool {
    let there = std::net::UdpSocket::bind("[::1]:0").is_ok();
    if !there {
        eprintln!("skipped in part: no IPv6 here");
    }
    there
}

/// A session that `from` dials, and a datagram each way.
fn talk(from: &str, to: &str) {
    let (a, b) = (start(1, at(from)), start(2, at(to)));
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    a.send(numbered(0x20, 1, 100), Class::Regular);
    let there = b.receive(1).remove(0);
    b.send(numbered(0x20, 1, 100), Class::Regular);
    let back = a.receive(1).remove(0);
    for inbound in [&there, &back] {
        assert_eq!((inbound.peer, inbound.lane), (Some(PEER), Lane::Authenticated));
    }
    let v4 = to.starts_with("127");
    assert_eq!(
        back.from.is_ipv4(),
        v4,
        "an IPv4 source is given as IPv4: {}",
        back.from
    );
}

#[test]
fn each_family_and_both_on_one_socket() {
    talk("127.0.0.1:0", "127.0.0.1:0");
    if has_ipv6() {
        talk("[::1]:0", "[::1]:0");
        talk("[::]:0", "[::1]:0");
        talk("[::]:0", "127.0.0.1:0");
    }
}
