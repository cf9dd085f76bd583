//! Sockets that keep to one network device.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod nodes;

use falconet_dataplane::{Class, StartError};
use falconet_transport::Policy;
use nodes::*;

#[test]
fn a_device_carries_both_lanes_and_a_wrong_one_is_a_typed_error() {
    for policy in [Policy::Require, Policy::Plain] {
        let (a, b) = (
            start(1, config().with_device("lo")),
            start(2, config().with_device("lo")),
        );
        a.knows(&b, policy);
        b.knows(&a, policy);
        a.send(numbered(0x20, 1, 100), Class::Regular);
        assert_eq!(b.receive(1).len(), 1);
    }
    let wrong = try_start(3, config().with_device("no-such-device"));
    assert!(matches!(wrong, Err(StartError::Bind { .. })));
}
