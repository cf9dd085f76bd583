//! A whole `Endpoint` against wireguard-go (Debian package `wireguard-go`) over real sockets: a `ping`
//! through its tunnel is answered by us, across a rekey that we force, whoever has dialled.
//!
//! Needs root, `/dev/net/tun`, and the programs `wireguard-go`, `ip` and `ping`; without one of them the
//! tests say so and do nothing. Everything runs in a network namespace of its own, in which a test starts
//! itself again. `FALCONET_INTEROP_SECONDS` sets how long the ping lasts (default 4; CI: 30).

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

mod wireguard_go;

use std::time::Duration;
use wireguard_go::{PEER, Rig, in_namespace, now};

/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn wireguard_go_answers_our_dial_and_ping_is_answered_across_a_rekey() {
    in_namespace(
        "wireguard_go_answers_our_dial_and_ping_is_answered_across_a_rekey",
        || {
            let mut rig = Rig::new();
            rig.endpoint.connect(now(), PEER);
            assert!(rig.serve_until(PATIENCE, Rig::is_connected));
            assert_eq!(rig.endpoint.handshakes().stats().dialled, 1);
            ping_across_a_rekey(&mut rig);
        },
    );
}

#[test]
fn wireguard_go_dials_us_and_ping_is_answered_across_a_rekey() {
    in_namespace(
        "wireguard_go_dials_us_and_ping_is_answered_across_a_rekey",
        || {
            let mut rig = Rig::new();
            ping_across_a_rekey(&mut rig);
            assert!(rig.endpoint.handshakes().stats().accepted >= 1);
        },
    );
}

/// Pings through the tunnel; halfway we ask for a new session. Every single ping has to be answered.
fn ping_across_a_rekey(rig: &mut Rig) {
    let seconds = std::env::var("FALCONET_INTEROP_SECONDS").ok();
    let seconds: usize = seconds.and_then(|s| s.parse().ok()).unwrap_or(4);
    let count = seconds * 10;
    let mut ping = rig
        .tunnel
        .ping(&["-i", "0.1", "-W", "5", "-c", &count.to_string()]);
    assert!(rig.serve_until(PATIENCE, |rig| rig.answered >= count / 2));
    let before = rig.endpoint.sessions().current(PEER).unwrap();
    rig.endpoint.rekey(now(), PEER);
    assert!(rig.serve_until(PATIENCE, |_| ping.is_over()));
    let after = rig.endpoint.sessions().current(PEER).unwrap();
    assert_ne!(before.local_index, after.local_index, "a new session serves");
    let report = ping.report();
    assert!(report.contains(" 0% packet loss"), "{report}");
    assert_eq!(rig.endpoint.stats().1.discards.total(), 0);
}
