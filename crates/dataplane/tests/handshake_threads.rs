//! Handshakes computed by more than one thread.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::sync::mpsc::channel;
use std::time::Instant;

use falconet_crypto::TransportSecret;
use falconet_dataplane::{Class, Consumers, Dataplane, DataplaneConfig};
use falconet_transport::{PeerConfig, PeerId, Policy, TransportConfig, split};
use nodes::*;

/// A node whose engine hands its work out.
fn offloading(secret: u8, config: DataplaneConfig) -> Node {
    let (tx, received) = channel();
    let (event_tx, events) = channel();
    let consumers = Consumers {
        chunks: Box::new(Collect(tx.clone())),
        messages: Box::new(Collect(tx)),
        events: Box::new(move |event| {
            let _ = event_tx.send(event);
        }),
    };
    let key = TransportSecret::from_bytes([secret; 32]);
    let transport = TransportConfig::default().with_offload(true);
    let (handshakes, sessions) = split(transport, key, now(), [secret; 32]);
    Node {
        dataplane: Dataplane::start(config, handshakes, sessions, consumers).unwrap(),
        received,
        events,
        secret,
    }
}

/// Threads of this process whose names begin so.
#[cfg(target_os = "linux")]
fn threads(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

/// `count` nodes dial `server` and each sends it something.
fn serve(server: &Node, count: u8) {
    let clients: Vec<_> = (0..count).map(|number| start(number + 2, config())).collect();
    for (number, client) in clients.iter().enumerate() {
        let key = TransportSecret::from_bytes([client.secret; 32]).public();
        let peer = PeerConfig::new(key).with_policy(Policy::Require);
        let id = PeerId(u32::try_from(number).unwrap());
        server.dataplane.sender().add_peer(id, peer).unwrap();
        client.knows(server, Policy::Require);
        client.send(numbered(0x20, 1, 100), Class::Control);
    }
    let mut peers: Vec<_> = server
        .receive(usize::from(count))
        .iter()
        .map(|inbound| inbound.peer.unwrap().0)
        .collect();
    peers.sort_unstable();
    assert_eq!(peers, (0..u32::from(count)).collect::<Vec<_>>());
}

#[test]
fn a_second_thread_answers_all_who_dial_and_is_joined_at_the_end() {
    let server = offloading(1, config().with_handshake_threads(2).with_thread_prefix("two"));
    #[cfg(target_os = "linux")]
    wait_until("the threads' names", || threads("two-hs") == 2);
    serve(&server, 12);
    let start = Instant::now();
    drop(server);
    assert!(start.elapsed() < PATIENCE);
    #[cfg(target_os = "linux")]
    assert_eq!(threads("two-"), 0);
}

#[test]
fn an_engine_that_hands_its_work_out_is_served_by_one_thread_as_well() {
    serve(&offloading(1, config()), 4);
}
