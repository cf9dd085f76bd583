//! What the handshake thread has stored before it sends, and what it recalls.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use falconet_crypto::{Tai64N, TransportPublicKey, TransportSecret};
use falconet_dataplane::{Class, HandshakeLog, StoredMark};
use falconet_transport::{Event, PeerConfig, Policy};
use nodes::*;

/// A log that stores nothing until the test does.
#[derive(Debug, Default)]
struct Log {
    asked: Mutex<Vec<(Tai64N, StoredMark)>>,
    accepted: Mutex<Vec<(TransportPublicKey, Tai64N)>>,
    greatest: Option<Tai64N>,
}

impl HandshakeLog for Log {
    fn greatest(&self, _key: &TransportPublicKey) -> Option<Tai64N> {
        self.greatest
    }

    fn store_mark(&self, mark: Tai64N, stored: StoredMark) {
        self.asked.lock().unwrap().push((mark, stored));
    }

    fn store_timestamps(&self, timestamps: Vec<(TransportPublicKey, Tai64N)>) {
        *self.accepted.lock().unwrap() = timestamps;
    }
}

impl Log {
    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn store(&self) {
        let asked = self.asked.lock().unwrap();
        let (mark, stored) = asked.last().unwrap();
        stored.note(*mark);
    }

    fn store_when_asked(&self) {
        wait_until("a request", || self.asked() > 0);
        self.store();
    }
}

fn logged(secret: u8, log: &Arc<Log>) -> Node {
    start(
        secret,
        config().with_handshake_log(Arc::clone(log) as Arc<dyn HandshakeLog>),
    )
}

#[test]
fn no_initiation_leaves_before_its_mark_is_stored() {
    let log = Arc::new(Log::default());
    let node = logged(1, &log);
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_nonblocking(true).unwrap();
    let key = TransportSecret::from_bytes([2; 32]).public();
    let peer = PeerConfig::new(key)
        .with_address(sink.local_addr().unwrap())
        .with_policy(Policy::Require);
    node.dataplane.sender().add_peer(PEER, peer).unwrap();
    node.send(numbered(0x20, 1, 100), Class::Control);
    // Asked again after a second: several initiations were made by then, and none has left.
    wait_until("the second request", || log.asked() >= 2);
    let mut buffer = [0; 200];
    assert!(sink.recv(&mut buffer).is_err(), "nothing has left");
    assert_eq!(node.stats().authenticated.datagrams_sent, 0);

    log.store();

    wait_until("an initiation", || {
        sink.recv(&mut buffer).is_ok_and(|length| length == 148)
    });
}

#[test]
fn while_nothing_is_stored_peers_are_answered_and_data_flows() {
    let log = Arc::new(Log::default());
    let (held, other) = (logged(1, &log), start(2, config()));
    held.knows(&other, Policy::Require);
    other.knows(&held, Policy::Require);
    held.send(numbered(0x20, 5, 100), Class::Control);
    wait_until("a request", || log.asked() >= 1);

    other.send(numbered(0x20, 5, 100), Class::Control);

    assert_eq!(numbers(&held.receive(5)), [0, 1, 2, 3, 4]);
    assert_eq!(numbers(&other.receive(5)), [0, 1, 2, 3, 4]);
}

#[test]
fn what_was_accepted_is_told_and_recalled_by_the_next_run() {
    let log = Arc::new(Log::default());
    let (node, other) = (logged(1, &log), start(2, config()));
    node.knows(&other, Policy::Require);
    other.knows(&node, Policy::Require);
    other.send(numbered(0x20, 1, 100), Class::Control);
    node.receive(1);
    drop(node);
    let accepted = log.accepted.lock().unwrap().clone();
    let [(key, timestamp)] = accepted[..] else {
        panic!("one peer: {accepted:?}")
    };
    assert_eq!(key, TransportSecret::from_bytes([2; 32]).public());

    // As if the peer's clock stood behind what it had told the run before.
    let mut later = *timestamp.as_bytes();
    later[6] += 1;
    let log = Arc::new(Log {
        greatest: Some(Tai64N::from_bytes(later)),
        ..Log::default()
    });
    let (node, other) = (logged(1, &log), start(2, config()));
    node.knows(&other, Policy::Require);
    other.knows(&node, Policy::Require);
    other.send(numbered(0x20, 1, 100), Class::Control);
    wait_until("a refusal", || node.stats().discarded("replayed_initiation") > 0);
    assert!(other.events.recv_timeout(Duration::ZERO).is_err(), "no session");
    // The node's own dial heals the pair.
    node.send(numbered(0x20, 1, 100), Class::Control);
    log.store_when_asked();
    assert!(matches!(
        other.events.recv_timeout(PATIENCE),
        Ok(Event::Connected { .. })
    ));
}
