//! What a restart does not make a node forget.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;
mod raw_peer;

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use cast::{EPOCH, PATIENCE, eventually, identity, keys, payload, transport_key, validators};
use falconet::{
    BroadcastError, Capabilities, Class, IdentitySecret, LaneAddresses, NetworkId, Node, NodeBuilder,
    NodeEvent, Peer, PeerRecord, Policy, RecordContent, StartError,
};
use falconet_crypto::Tai64N;
use falconet_transport::{Discard, TransportConfig};
use raw_peer::{RawPeer, now};
use tempfile::TempDir;

fn network() -> NetworkId {
    NetworkId::from_name("state")
}

/// Node 0 on `listen`, with its state in `folder`.
fn node(folder: &Path, listen: &str) -> NodeBuilder {
    Node::builder(keys(0))
        .network(network())
        .listen(listen.parse().unwrap())
        .validators(EPOCH, validators(2))
        .state(folder.join("state"))
}

async fn run(
    raw: RawPeer,
    what: &'static str,
    done: impl FnMut(&RawPeer) -> bool + Send + 'static,
) -> RawPeer {
    let mut raw = raw;
    tokio::task::spawn_blocking(move || {
        raw.run_until(what, done);
        raw
    })
    .await
    .unwrap()
}

fn peer_without_address(number: u8) -> Peer {
    Peer::new(identity(number)).with_transport_key(transport_key(number))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_initiation_from_before_the_restart_is_a_replay() {
    let folder = TempDir::new().unwrap();
    let first = node(folder.path(), "127.0.0.1:0").start().await.unwrap();
    first.add_peer(peer_without_address(1)).unwrap();
    let address = first.local_addr().unwrap();
    let mut raw = RawPeer::new(1, TransportConfig::default());
    raw.knows(first.transport_key(), Some(address));
    let raw = run(raw, "a session", |raw| raw.is_connected).await;
    first.shutdown().await;

    let second = node(folder.path(), &address.to_string()).start().await.unwrap();
    second.add_peer(peer_without_address(1)).unwrap();
    second.settle().await.unwrap();
    eventually("the replay is refused", || {
        raw.socket
            .send_to(raw.initiations.last().unwrap(), address)
            .unwrap();
        second.stats().discarded("replayed_initiation") > 0
    })
    .await;
    assert_eq!(second.stats().connected_peers, 0);
    second.shutdown().await;
}

/// The first timestamps of a node that restarts, as a peer judges them who has seen one that is an hour ahead of the
/// clock: as if the clock had been set back by that hour.
async fn is_refused_after_an_hour_back(remembers: bool) -> bool {
    let folder = TempDir::new().unwrap();
    let key = transport_key(0);
    let ahead = Tai64N::from_unix(now().unix + Duration::from_secs(3_600));
    if remembers {
        // The node's own record of that hour: a state whose mark lies there.
        node(folder.path(), "127.0.0.1:0")
            .start()
            .await
            .unwrap()
            .shutdown()
            .await;
        let path = folder.path().join("state");
        let state = std::fs::read(&path).unwrap();
        std::fs::write(path, with_mark(&state, ahead)).unwrap();
    }
    let mut raw = RawPeer::new(1, TransportConfig::default());
    raw.knows(key, None);
    raw.endpoint.raise_peer_timestamp(key, ahead);
    let node = node(folder.path(), "127.0.0.1:0").start().await.unwrap();
    node.add_peer(Peer::new(identity(1)).with_authenticated(transport_key(1), raw.address()))
        .unwrap();
    let raw = run(raw, "an answer to the dial", |raw| {
        raw.is_connected || raw.discards.contains(&Discard::ReplayedInitiation)
    })
    .await;
    node.shutdown().await;
    !raw.is_connected
}

/// `state` with this mark in it (docs/spec/state.md#layout).
fn with_mark(state: &[u8], mark: Tai64N) -> Vec<u8> {
    let mut content = state[..state.len() - 32].to_vec();
    let flags = 16 + 32 + 32;
    content[flags] |= 1;
    content[flags + 1..flags + 13].copy_from_slice(mark.as_bytes());
    let checksum = falconet_crypto::blake2s(&[&content]);
    [&content[..], &checksum].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn timestamps_do_not_go_back_with_the_clock() {
    assert!(!is_refused_after_an_hour_back(true).await);
    assert!(is_refused_after_an_hour_back(false).await, "the peer does tell");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_had_a_session_is_never_again_spoken_to_in_the_clear() {
    let folder = TempDir::new().unwrap();
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_nonblocking(true).unwrap();
    let plain = sink.local_addr().unwrap();
    let start = |with_state: bool| {
        let builder = Node::builder(keys(0))
            .network(network())
            .listen("127.0.0.1:0".parse().unwrap())
            .listen_plain("127.0.0.1:0".parse().unwrap());
        match with_state {
            true => builder.state(folder.path().join("state")),
            false => builder,
        }
        .start()
    };
    let peer = |raw: &RawPeer| {
        Peer::new(identity(1))
            .with_authenticated(transport_key(1), raw.address())
            .with_plain(plain)
            .with_policy(Policy::PlainUntilSeen)
    };
    let mut raw = RawPeer::new(1, TransportConfig::default());
    raw.knows(transport_key(0), None);
    let first = start(true).await.unwrap();
    first.add_peer(peer(&raw)).unwrap();
    let raw = run(raw, "a session", |raw| raw.is_connected).await;
    first.wait_connected(PATIENCE).await.unwrap();
    first.shutdown().await;

    // Nobody answers on the authenticated lane any more.
    let mut sent_plain = Vec::new();
    for (with_state, forgets) in [(true, false), (false, false), (true, true)] {
        let node = start(with_state).await.unwrap();
        let peer = match forgets {
            true => peer(&raw).with_sessions_forgotten(),
            false => peer(&raw),
        };
        node.add_peer(peer).unwrap();
        node.settle().await.unwrap();
        node.send(&identity(1), "secret".into(), Class::Control)
            .await
            .unwrap();
        if with_state && !forgets {
            // Its dials show that the send was judged.
            eventually("a dial", || node.stats().authenticated.datagrams_sent > 0).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        } else {
            eventually("a plain datagram", || node.stats().plain.datagrams_sent > 0).await;
        }
        let fallbacks = node.peer_stats(&identity(1)).await.unwrap().fallbacks;
        let mut buffer = [0; 100];
        sent_plain.push((sink.recv(&mut buffer).is_ok(), fallbacks));
        node.shutdown().await;
    }
    // Sticky; without state not; and by the operator's word not.
    assert_eq!(
        sent_plain.iter().map(|(sent, _)| *sent).collect::<Vec<_>>(),
        [false, true, true]
    );
    assert_eq!(sent_plain[0].1, 0);
}

fn record_of_peer(sequence: u64, address: SocketAddr) -> PeerRecord {
    let SocketAddr::V4(address) = address else {
        panic!("IPv4")
    };
    let content = RecordContent {
        identity: identity(1),
        transport_key: transport_key(1),
        sequence,
        expiry_ms: now().unix_ms() + 3_600_000,
        authenticated: LaneAddresses {
            v4: Some(address),
            v6: None,
        },
        plain: LaneAddresses::default(),
        capabilities: Capabilities::AUTHENTICATED_LANE,
        suites: 1,
        max_datagram: 1_472,
        max_chunk: 1_440,
    };
    PeerRecord::sign(content, &network(), &IdentitySecret::from_bytes([2; 32])).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_in_force_is_so_after_a_restart_and_an_older_one_is_refused() {
    let folder = TempDir::new().unwrap();
    let connect = |sequence: u64, address: SocketAddr| {
        let mut raw = RawPeer::new(1, TransportConfig::default().with_network(network()));
        raw.knows(transport_key(0), Some(address));
        let record = record_of_peer(sequence, raw.address());
        raw.endpoint.set_record(now(), &record).unwrap();
        run(raw, "a session", |raw| raw.is_connected)
    };
    let first = node(folder.path(), "127.0.0.1:0").start().await.unwrap();
    let mut events = first.events();
    first.add_peer(peer_without_address(1)).unwrap();
    let raw = connect(5, first.local_addr().unwrap()).await;
    let accepted = loop {
        match tokio::time::timeout(PATIENCE, events.recv())
            .await
            .unwrap()
            .unwrap()
        {
            (NodeEvent::RecordAccepted { peer, record }, _) => break (peer, record.content().sequence),
            _ => continue,
        }
    };
    assert_eq!(accepted, (identity(1), 5));
    first.shutdown().await;

    let second = node(folder.path(), "127.0.0.1:0").start().await.unwrap();
    second.add_peer(peer_without_address(1)).unwrap();
    let known = second.peer_stats(&identity(1)).await.unwrap();
    assert_eq!(
        (known.record_sequence, known.address),
        (Some(5), Some(raw.address()))
    );
    drop(raw);
    let rolled_back = connect(4, second.local_addr().unwrap()).await;
    eventually("the refusal", || second.stats().discarded("record_old") > 0).await;
    assert_eq!(
        second.peer_stats(&identity(1)).await.unwrap().record_sequence,
        Some(5)
    );
    drop(rolled_back);
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_does_not_use_a_round_twice_whatever_happens_in_between() {
    let folder = TempDir::new().unwrap();
    let first = node(folder.path(), "127.0.0.1:0").start().await.unwrap();
    first.broadcast(7, payload(1_000, 1)).await.unwrap();
    // As a crash would leave it: nothing that is written later counts.
    let crashed = TempDir::new().unwrap();
    std::fs::copy(folder.path().join("state"), crashed.path().join("state")).unwrap();
    first.shutdown().await;

    let second = node(crashed.path(), "127.0.0.1:0").start().await.unwrap();
    for round in [7, 6] {
        let refused = second.broadcast(round, payload(1_000, 2)).await;
        assert!(matches!(refused, Err(BroadcastError::Refused(_))), "{refused:?}");
    }
    second.broadcast(8, payload(1_000, 2)).await.unwrap();
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_disk_nothing_that_must_be_stored_leaves_and_data_goes_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("disk");
    std::fs::create_dir(&path).unwrap();
    let node = node(&path, "127.0.0.1:0").start().await.unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_nonblocking(true).unwrap();
    let silent = Peer::new(identity(2)).with_authenticated(transport_key(2), sink.local_addr().unwrap());
    node.add_peer(silent).unwrap();
    node.add_peer(peer_without_address(1)).unwrap();

    let refused = node.broadcast(1, payload(1_000, 1)).await;
    assert!(matches!(refused, Err(BroadcastError::Refused(_))), "{refused:?}");
    let mut raw = RawPeer::new(1, TransportConfig::default());
    raw.knows(node.transport_key(), Some(node.local_addr().unwrap()));
    let raw = run(raw, "a session that the peer dialled", |raw| raw.is_connected).await;
    eventually("several attempts", || node.stats().state.failed_writes >= 3).await;
    assert!(sink.recv(&mut [0; 200]).is_err(), "no initiation left");

    std::fs::create_dir(&path).unwrap();
    eventually("an initiation", || sink.recv(&mut [0; 200]).is_ok()).await;
    node.broadcast(1, payload(1_000, 1)).await.unwrap();
    drop(raw);
    node.shutdown().await;
}

#[tokio::test]
async fn a_state_that_cannot_be_used_is_an_error_at_start() {
    let folder = TempDir::new().unwrap();
    let first = node(folder.path(), "127.0.0.1:0").start().await.unwrap();
    let second = node(folder.path(), "127.0.0.1:0").start().await;
    assert!(
        matches!(second, Err(StartError::State(_))),
        "two nodes, one state"
    );
    first.shutdown().await;
    let foreign = Node::builder(keys(5))
        .network(network())
        .listen("127.0.0.1:0".parse().unwrap())
        .state(folder.path().join("state"))
        .start()
        .await;
    let Err(StartError::State(error)) = foreign else {
        panic!("another node's state")
    };
    assert!(error.to_string().contains(&identity(0).to_string()), "{error}");
}
