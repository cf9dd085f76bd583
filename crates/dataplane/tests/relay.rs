//! A relay's burst to many peers leaves in long groups, however it was submitted.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use falconet_crypto::TransportSecret;
use falconet_dataplane::{Class, Completion, Outgoing, Rate, Recipients};
use falconet_transport::{PeerConfig, PeerId, Policy};
use nodes::*;

const PEERS: u8 = 98;
const CHUNKS: usize = 40;

/// A relay with peers on the plain lane, whose sockets nobody reads.
fn relay(rate: Rate) -> (Node, Vec<UdpSocket>) {
    let relay = start(200, config().with_rate(rate));
    let sockets = (0..PEERS).map(|peer| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let key = TransportSecret::from_bytes([peer + 1; 32]).public();
        let config = PeerConfig::new(key)
            .with_policy(Policy::Plain)
            .with_plain_address(socket.local_addr().unwrap());
        let sender = relay.dataplane.sender();
        sender.add_peer(PeerId(u32::from(peer)), config).unwrap();
        socket
    });
    let sockets = sockets.collect();
    (relay, sockets)
}

/// Submits all at once and waits until all has left; returns the segments a send.
fn segments_a_send(relay: &Node, submissions: Vec<Outgoing>) -> f64 {
    let before = relay.stats().plain;
    let tally = Arc::new(Tally::default());
    // The thread sees the whole burst at once, as it does when it is busy.
    let hold = |_, _: &mut _| std::thread::sleep(Duration::from_millis(100));
    relay.dataplane.sender().with_sessions(hold).unwrap();
    for mut outgoing in submissions {
        outgoing.completion = Some(Arc::clone(&tally) as Arc<dyn Completion>);
        relay.dataplane.sender().try_send(outgoing).unwrap();
    }
    let all = usize::from(PEERS) * CHUNKS;
    wait_until("all to leave", || tally.finished() == all);
    wait_until("the counts", || {
        relay.stats().plain.datagrams_sent - before.datagrams_sent == all as u64
    });
    all as f64 / (relay.stats().plain.sends - before.sends) as f64
}

fn chunks(count: usize) -> Vec<Bytes> {
    vec![Bytes::from(vec![0x11; 1_440]); count]
}

fn to(recipients: Recipients, chunks: Vec<Bytes>) -> Outgoing {
    Outgoing {
        to: recipients,
        class: Class::Relay,
        datagrams: chunks,
        completion: None,
    }
}

fn peer_by_peer() -> Vec<Outgoing> {
    let peers = (0..u32::from(PEERS)).map(PeerId);
    peers
        .map(|peer| to(Recipients::One(peer), chunks(CHUNKS)))
        .collect()
}

fn chunk_by_chunk() -> Vec<Outgoing> {
    let peers: Arc<[PeerId]> = (0..u32::from(PEERS)).map(PeerId).collect();
    (0..CHUNKS)
        .map(|_| to(Recipients::Many(Arc::clone(&peers)), chunks(1)))
        .collect()
}

#[test]
fn an_unpaced_burst_leaves_in_groups_of_a_peers_chunks() {
    let (relay, _sockets) = relay(Rate::Unlimited);
    let segments = segments_a_send(&relay, peer_by_peer());
    assert!(segments >= 39.0, "{segments}");
    let segments = segments_a_send(&relay, chunk_by_chunk());
    assert!(segments >= 39.0, "{segments}");
}

#[test]
fn a_paced_burst_leaves_in_groups_of_a_hundred_microseconds() {
    let (relay, _sockets) = relay(Rate::BitsPerSecond(1_000_000_000));
    for submissions in [peer_by_peer(), chunk_by_chunk()] {
        let segments = segments_a_send(&relay, submissions);
        // Eight datagrams with their frames take 100 us at 1 Gbit/s; 40 are five times eight.
        assert!(segments >= 6.0, "{segments}");
        assert!(segments <= 8.0, "{segments}");
    }
}
