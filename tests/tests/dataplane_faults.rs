//! What a dataplane does when its surroundings fail: it counts, keeps its bounds, and goes on when they are back.
//!
//! Short forms by default; `FALCONET_LONG_TESTS=1` takes the full times. Tests that need a network namespace of their
//! own are skipped with a printed reason where making one is not permitted.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../../crates/dataplane/tests/nodes/mod.rs"]
mod nodes;

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use falconet_crypto::TransportSecret;
use falconet_dataplane::{
    Class, Completion, Consumer, Consumers, Full, Inbound, Outgoing, Rate, Recipients, TrySendError,
};
use falconet_transport::{PeerConfig, PeerId, Policy};
use nodes::*;

/// `full` where the long forms are asked for, else `short`.
fn time(short: u64, full: u64) -> Duration {
    let is_long = std::env::var_os("FALCONET_LONG_TESTS").is_some();
    Duration::from_secs(if is_long { full } else { short })
}

/// Moves this thread, and what it starts, into a network namespace of its own, with its loopback up. False, with a
/// printed reason, where that is not permitted.
fn own_namespace() -> bool {
    if let Err(error) = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET) {
        eprintln!("skipped: no network namespace ({error}); this test needs root");
        return false;
    }
    run("ip", "link set lo up")
}

/// Runs a command in this thread's namespace; false, with a printed reason, if it fails.
fn run(program: &str, arguments: &str) -> bool {
    let done = Command::new(program).args(arguments.split(' ')).output();
    let is_done = done.as_ref().is_ok_and(|output| output.status.success());
    if !is_done {
        eprintln!("skipped: `{program} {arguments}`: {done:?}");
    }
    is_done
}

fn pair() -> (Node, Node) {
    let unpaced = || config().with_rate(Rate::Unlimited);
    let (a, b) = (start(1, unpaced()), start(2, unpaced()));
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    a.send(numbered(0x11, 1, 1_200), Class::Relay);
    b.receive(1);
    (a, b)
}

/// Sends until `count` datagrams with numbers of this round have arrived; what is lost on the way is sent again.
fn traffic_passes(a: &Node, b: &Node) {
    while b.received.try_recv().is_ok() {}
    wait_until("traffic", || {
        a.send(numbered(0x11, 10, 900), Class::Relay);
        let arrived = b.received.recv_timeout(Duration::from_millis(200));
        arrived.is_ok_and(|inbound| inbound.datagram.len() == 900)
    });
}

/// Sends one datagram after the other for `time`; returns how many were taken.
fn send_for(a: &Node, time: Duration) -> usize {
    let (started, mut tallies) = (Instant::now(), Vec::new());
    while started.elapsed() < time {
        tallies.push(a.send(numbered(0x11, 20, 1_200), Class::Relay));
        std::thread::sleep(Duration::from_millis(5));
    }
    wait_until("the reports", || {
        tallies.iter().all(|tally| tally.finished() == 20)
    });
    20 * tallies.len()
}

/// What a send did not get out while `reason` held is counted under it, and traffic passes again afterwards.
fn fails_by(reason: &str, a: &Node, b: &Node, undo: impl FnOnce() -> bool) {
    let before = a.stats().dropped(reason);
    let sent = send_for(a, time(1, 5));
    let dropped = a.stats().dropped(reason) - before;
    assert_eq!(dropped, sent as u64, "{:?}", a.stats().drops);
    assert!(undo());
    traffic_passes(a, b);
}

/// As [`pair`], each in a namespace of its own, with a virtual cable between 10.9.0.1 and 10.9.0.2. This thread stays
/// in the first one's.
fn pair_on_a_cable() -> Option<(Node, Node)> {
    if !own_namespace() {
        return None;
    }
    let at = |address: &str| {
        let address = format!("{address}:0").parse().unwrap();
        config().with_listen(address).with_listen_plain(address)
    };
    let ((told, thread), (plugged_in, cable)) = (channel(), channel());
    let other = std::thread::spawn(move || {
        own_namespace().then(|| told.send(nix::unistd::gettid()).unwrap());
        cable.recv().unwrap();
        assert!(run("ip", "addr add 10.9.0.2/24 dev vb") && run("ip", "link set vb up"));
        start(2, at("10.9.0.2"))
    });
    let thread = thread.recv().unwrap();
    let plug = format!("link add va type veth peer name vb netns {thread}");
    assert!(run("ip", &plug) && run("ip", "addr add 10.9.0.1/24 dev va") && run("ip", "link set va up"));
    plugged_in.send(()).unwrap();
    let b = other.join().unwrap();
    let a = start(1, at("10.9.0.1"));
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    traffic_passes(&a, &b);
    Some((a, b))
}

#[test]
fn an_interface_that_goes_down_and_up_costs_what_is_sent_meanwhile() {
    if let Some((a, b)) = pair_on_a_cable() {
        assert!(run("ip", "link set va down"));
        fails_by("unreachable", &a, &b, || run("ip", "link set va up"));
    }
}

#[test]
fn routes_that_lead_nowhere_cost_what_is_sent_meanwhile() {
    let Some((a, b)) = pair_on_a_cable() else {
        return;
    };
    // What the system answers to a black hole, EINVAL, is also how it refuses segmentation offload.
    for (kind, reason) in [
        ("prohibit", "not_permitted"),
        ("unreachable", "unreachable"),
        ("blackhole", "send_error"),
    ] {
        assert!(run("ip", &format!("route add {kind} 10.9.0.2/32")));
        let undo = format!("route del {kind} 10.9.0.2/32");
        fails_by(reason, &a, &b, || run("ip", &undo));
    }
}

#[test]
fn a_firewall_that_rejects_everything_costs_what_is_sent_meanwhile() {
    if !own_namespace() {
        return;
    }
    let (a, b) = pair();
    let rules = [
        "add table inet faults",
        "add chain inet faults out { type filter hook output priority 0 ; }",
        "add rule inet faults out meta l4proto udp reject",
    ];
    if !rules.into_iter().all(|rule| run("nft", rule)) {
        return;
    }
    fails_by("not_permitted", &a, &b, || run("nft", "delete table inet faults"));
}

/// The rule as the operators' page prints it, for this device and port.
fn documented_rule(device: &str, port: u16) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operators.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page
        .lines()
        .skip_while(|line| !line.contains("table netdev falconet"));
    let lines: Vec<&str> = block.take_while(|line| line.starts_with("    ")).collect();
    let rule = lines.join("\n");
    assert!(rule.contains("eth0") && rule.contains("8001"), "{rule}");
    rule.replace("eth0", device).replace("8001", &port.to_string())
}

#[test]
fn the_documented_ingress_rule_lets_sessions_through_and_drops_junk() {
    let Some((a, b)) = pair_on_a_cable() else {
        return;
    };
    let port = a.dataplane.local_addr().unwrap().port();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), documented_rule("va", port)).unwrap();
    // The rule is the node's whose device this thread can see; the other end sends.
    if !run("nft", &format!("-f {}", file.path().display())) {
        return;
    }
    let received = |node: &Node| node.stats().authenticated.datagrams_received;
    let before = received(&a);
    b.send(numbered(0x11, 30, 900), Class::Relay);
    assert_eq!(a.receive(30).len(), 30);
    b.dataplane
        .sender()
        .with_sessions(|now, sessions| sessions.rekey(now, PEER))
        .unwrap();
    wait_until("a handshake through the rule", || {
        b.send(numbered(0x11, 1, 900), Class::Relay);
        received(&a) > before + 31
    });
    let dropped_nothing = || {
        let listed = Command::new("nft").args(["list", "ruleset"]).output().unwrap();
        String::from_utf8(listed.stdout)
            .unwrap()
            .contains("counter packets 0 ")
    };
    assert!(dropped_nothing(), "what is valid passes");
    // Datagrams of the plain lane are junk to the authenticated port.
    let stranger = PeerConfig::new(TransportSecret::from_bytes([9; 32]).public())
        .with_policy(Policy::Plain)
        .with_plain_address(a.dataplane.local_addr().unwrap());
    b.dataplane.sender().add_peer(PeerId(9), stranger).unwrap();
    let mut junk = outgoing(numbered(0x20, 10, 100), Class::Relay, None);
    junk.to = Recipients::One(PeerId(9));
    b.dataplane.sender().try_send(junk).unwrap();
    wait_until("the rule to drop junk", || !dropped_nothing());
}

/// Takes everything, or refuses everything.
struct Gate {
    is_shut: Arc<AtomicBool>,
    through: Collect,
}

impl Consumer for Gate {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        if self.is_shut.load(Ordering::Relaxed) {
            return Err(Full);
        }
        self.through.deliver(batch)
    }
}

#[test]
fn a_consumer_that_stops_loses_its_batches_and_nobody_elses() {
    let is_shut = Arc::new(AtomicBool::new(false));
    let ((tx, received), gate) = (channel(), Arc::clone(&is_shut));
    let consumers = move |events| Consumers {
        chunks: Box::new(Gate {
            is_shut: gate,
            through: Collect(tx.clone()),
        }),
        messages: Box::new(Collect(tx)),
        events,
    };
    let a = start(1, config());
    let b = start_with(2, config(), consumers, received);
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    traffic_passes(&a, &b);
    is_shut.store(true, Ordering::Relaxed);
    let sent = send_for(&a, time(2, 10));
    let all_counted = || b.stats().discarded("chunks_full") as usize >= sent;
    wait_until("the count of what the consumer refused", all_counted);
    while b.received.try_recv().is_ok() {}
    a.send(numbered(0x20, 1, 77), Class::Regular);
    let message = b.receive(1).remove(0);
    assert_eq!(message.datagram.len(), 77, "the other consumer's traffic passes");
    is_shut.store(false, Ordering::Relaxed);
    traffic_passes(&a, &b);
}

#[test]
fn a_receiver_that_stops_reading_loses_in_its_kernel_and_goes_on() {
    let (a, b) = pair();
    let stopped = time(2, 10);
    let hold = move |_, _: &mut _| std::thread::sleep(stopped);
    b.dataplane.sender().with_sessions(hold).unwrap();
    let (started, mut sent) = (Instant::now(), 1);
    while started.elapsed() < stopped {
        a.send(numbered(0x11, 440, 1_200), Class::Relay);
        sent += 440;
        std::thread::sleep(Duration::from_millis(10));
    }
    let seen = || {
        let stats = b.stats();
        // An aggregate that finds no room is one drop, whatever it holds.
        (stats.authenticated.datagrams_received, stats.discarded("kernel"))
    };
    wait_until("the kernel to drop", || seen().1 > 0);
    traffic_passes(&a, &b);
    let (received, dropped) = seen();
    assert!(
        received < sent as u64 && received > 1_000,
        "{received} of {sent}, {dropped} drops"
    );
    let queue = b.stats().queues[Class::Relay.index()];
    assert_eq!((queue.entries, queue.submissions), (0, 0), "{queue:?}");
}

/// Bytes of memory that this process occupies.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

#[test]
fn a_sender_that_is_faster_than_the_pacing_is_pushed_back_and_nothing_grows() {
    const ENTRIES: usize = 4_000;
    const AGE: Duration = Duration::from_millis(500);
    let config = config()
        .with_rate(Rate::BitsPerSecond(50_000_000))
        .with_class_caps(Class::Relay, ENTRIES, 64 << 20)
        .with_class_age(Class::Relay, AGE);
    let a = start(1, config);
    let b = start(2, nodes::config());
    a.knows(&b, Policy::Plain);
    b.knows(&a, Policy::Plain);
    let tally = Arc::new(Tally::default());
    let batch = numbered(0x11, 100, 1_200);
    let (started, mut taken, mut refused, mut settled) = (Instant::now(), 0, 0_u64, None);
    let run = time(4, 60);
    while started.elapsed() < run {
        match a
            .dataplane
            .sender()
            .try_send(outgoing(batch.clone(), Class::Relay, Some(&tally)))
        {
            Ok(()) => taken += 100,
            Err(TrySendError::Full(_)) => {
                refused += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            Err(error) => panic!("{error}"),
        }
        while b.received.try_recv().is_ok() {}
        let entries = a.stats().queues[Class::Relay.index()].entries;
        assert!(entries as usize <= ENTRIES, "{entries}");
        if started.elapsed() > run / 2 {
            settled.get_or_insert_with(resident);
        }
    }
    let grown = resident().saturating_sub(settled.unwrap());
    assert!(grown < 32 << 20, "{grown} bytes more in the second half");
    assert!(refused > 0);
    let stats = a.stats();
    assert!(stats.dropped("expired") > 0, "{:?}", stats.drops);
    let longest = stats.queues[Class::Relay.index()].longest_age;
    assert!(longest > Duration::ZERO && longest <= AGE, "{longest:?}");
    wait_until("the reports", || tally.finished() == taken);
}

#[test]
fn ten_thousand_peers_get_their_datagrams_and_leave_nothing_behind() {
    const PEERS: u32 = 10_000;
    let address = "0.0.0.0:0".parse().unwrap();
    let config = config().with_listen_plain(address).with_rate(Rate::Unlimited);
    let a = start(1, config);
    let receiver = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = receiver.local_addr().unwrap().port();
    let sender = a.dataplane.sender();
    for peer in 0..PEERS {
        let mut secret = [3; 32];
        secret[..4].copy_from_slice(&peer.to_le_bytes());
        let [_, _, high, low] = peer.to_be_bytes();
        let to = (Ipv4Addr::new(127, 1, high, low), port).into();
        let peer_config = PeerConfig::new(TransportSecret::from_bytes(secret).public())
            .with_policy(Policy::Plain)
            .with_plain_address(to);
        sender.add_peer(PeerId(peer), peer_config).unwrap();
    }
    let tally = Arc::new(Tally::default());
    let broadcast = Outgoing {
        to: Recipients::Many((0..PEERS).map(PeerId).collect()),
        class: Class::Proposal,
        datagrams: numbered(0x11, 3, 200),
        completion: Some(Arc::clone(&tally) as Arc<dyn Completion>),
    };
    sender.try_send(broadcast).unwrap();
    wait_until("all to leave", || tally.finished() == 30_000);
    assert_eq!(
        tally.sent.load(Ordering::Relaxed),
        30_000,
        "{:?}",
        a.stats().drops
    );
    assert_eq!(a.stats().plain.sends, u64::from(PEERS), "one group a peer");
    assert_eq!(receiver.recv(&mut [0; 300]).unwrap(), 200);
    for peer in 0..PEERS {
        sender.remove_peer(PeerId(peer)).unwrap();
    }
    wait_until("an empty queue", || a.stats().queues[0].entries == 0);
}
