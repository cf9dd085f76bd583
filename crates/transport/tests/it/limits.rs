//! Every cap, filled.

use crate::network::{Network, address, message, ms, secret, secs};
use bytes::Bytes;
use falconet_crypto::TransportPublicKey;
use falconet_transport::{
    AddPeerError, Event, PeerConfig, PeerId, Policy, SendError, TransportConfig, kind, split,
};

fn require(_: usize, _: usize, peer: PeerConfig) -> PeerConfig {
    peer.with_policy(Policy::Require)
}

fn sized(len: usize) -> Bytes {
    let mut bytes = vec![0; len];
    bytes[0] = kind::MESSAGE;
    bytes.into()
}

#[test]
fn entries_and_bytes_that_wait_are_capped() {
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    for n in 0..128 {
        network.send(0, 1, &message(n)).unwrap();
    }
    assert_eq!(network.send(0, 1, &message(0)), Err(SendError::BufferFull));
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    network.send(0, 1, &sized(60_000)).unwrap();
    network.send(0, 1, &sized(60_000)).unwrap();
    assert_eq!(network.send(0, 1, &sized(12_000)), Err(SendError::BufferFull));
    network.send(0, 1, &sized(11_072)).unwrap();
    assert_eq!(network.nodes[0].endpoint.stats().1.buffered_bytes, 128 << 10);
    network.run_for(secs(100));
    assert_eq!(network.nodes[0].endpoint.stats().1.buffered_bytes, 0);
    assert_eq!(network.nodes[0].events.len(), 3);
}

#[test]
fn bytes_that_wait_for_all_peers_together_are_capped() {
    let config = TransportConfig::default().with_buffered(1000, 10, 1500);
    let mut network = Network::with_config(3, &config, require);
    network.link.loss = 100;
    network.send(0, 1, &sized(1000)).unwrap();
    assert_eq!(network.send(0, 2, &sized(501)), Err(SendError::BufferFull));
    network.send(0, 2, &sized(500)).unwrap();
}

#[test]
fn what_cannot_be_sent_is_a_typed_error() {
    let mut network = Network::new(2, require);
    assert_eq!(network.send(0, 1, &Bytes::new()), Err(SendError::Empty));
    assert_eq!(network.send(0, 1, &sized(65_476)), Err(SendError::TooLarge));
    assert_eq!(network.send(0, 7, &sized(10)), Err(SendError::UnknownPeer));
}

#[test]
fn peers_are_capped_and_unique() {
    let config = TransportConfig::default().with_max_peers(2);
    let mut network = Network::with_config(2, &config, require);
    let now = network.now;
    let endpoint = &mut network.nodes[0].endpoint;
    let other = PeerConfig::new(TransportPublicKey::from_bytes([9; 32]));
    assert_eq!(
        endpoint.add_peer(now, PeerId(2), &other),
        Err(AddPeerError::TooMany)
    );
    assert_eq!(
        endpoint.add_peer(now, PeerId(1), &other),
        Err(AddPeerError::Duplicate)
    );
    let same_key = PeerConfig::new(secret(1).public());
    assert_eq!(
        endpoint.add_peer(now, PeerId(0), &same_key),
        Err(AddPeerError::Duplicate)
    );
    let low_order = PeerConfig::new(TransportPublicKey::from_bytes([0; 32]));
    assert_eq!(
        endpoint.add_peer(now, PeerId(0), &low_order),
        Err(AddPeerError::LowOrderKey)
    );
    endpoint.add_peer(now, PeerId(0), &other).unwrap();
}

#[test]
fn a_removed_peer_takes_its_sessions_along() {
    let mut network = Network::new(2, require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    network.nodes[0].endpoint.remove_peer(PeerId(1));
    network.collect();
    assert_eq!(
        network.nodes[0].events.last(),
        Some(&Event::Disconnected { peer: PeerId(1) })
    );
    assert_eq!(network.nodes[0].endpoint.stats().1.sessions, 0);
    assert_eq!(network.nodes[0].endpoint.poll_timeout(), None);
    assert_eq!(network.send(0, 1, &message(2)), Err(SendError::UnknownPeer));
}

#[test]
fn entries_that_wait_for_all_peers_together_are_capped() {
    // 513 peers with 128 datagrams of two bytes each: bytes alone would let eight times as many wait.
    let now = Network::new(1, require).now;
    let (_, mut sessions) = split(TransportConfig::default(), secret(0), now, [1; 32]);
    let small = Bytes::from_static(&[kind::MESSAGE, 1]);
    let mut refused = 0;
    for peer in 0..513u32 {
        let mut key = [3; 32];
        key[..4].copy_from_slice(&peer.to_le_bytes());
        let config = PeerConfig::new(TransportPublicKey::from_bytes(key));
        let config = config.with_policy(Policy::Require).with_address(address(1));
        sessions.add_peer(now, PeerId(peer), &config).unwrap();
        for _ in 0..128 {
            refused += usize::from(sessions.buffer(now, PeerId(peer), small.clone(), 0).is_err());
        }
    }
    assert_eq!((sessions.stats().buffered_entries, refused), (65_536, 128));
    // What has failed still counts until it is polled.
    let later = now.after(secs(91));
    sessions.handle_timeout(later);
    assert_eq!(sessions.stats().buffered_entries, 65_536);
    assert_eq!(std::iter::from_fn(|| sessions.poll_event()).count(), 65_536);
    assert_eq!(sessions.stats().buffered_entries, 0);
}

#[test]
fn requests_and_events_that_nobody_polls_are_one_a_peer() {
    let now = Network::new(1, require).now;
    let (_, mut sessions) = split(TransportConfig::default(), secret(0), now, [1; 32]);
    for peer in 0..3 {
        let config = PeerConfig::new(secret(peer as usize + 1).public()).with_address(address(1));
        sessions.add_peer(now, PeerId(peer), &config).unwrap();
    }
    let mut later = now;
    for _ in 0..1000 {
        later = later.after(secs(6));
        (0..3).for_each(|peer| sessions.connect(later, PeerId(peer)));
    }
    assert_eq!(std::iter::from_fn(|| sessions.poll_message()).count(), 3);
    // An endpoint whose events nobody takes: a session comes and goes a hundred times.
    let mut network = Network::new(2, require);
    network.keeps_events = true;
    for n in 0..100 {
        network.send(0, 1, &message(n)).unwrap();
        network.run_for(secs(200));
    }
    let told = std::iter::from_fn(|| network.nodes[0].endpoint.poll_event());
    assert_eq!(told.count(), 0, "the last one has ended, too");
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    let told: Vec<_> = std::iter::from_fn(|| network.nodes[0].endpoint.poll_event()).collect();
    assert!(matches!(told[..], [Event::Connected { .. }]), "{told:?}");
}

#[test]
fn datagrams_that_nobody_takes_are_capped() {
    let mut network = Network::new(2, require);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(secs(1));
    let now = network.now;
    let endpoint = &mut network.nodes[0].endpoint;
    let sent = (0..20_000).take_while(|n| endpoint.send(now, PeerId(1), &message(*n)).is_ok());
    assert_eq!(sent.count(), 16_384);
    assert_eq!(
        endpoint.send(now, PeerId(1), &message(1)),
        Err(SendError::BufferFull)
    );
    // Behind it the keepalives of the engine have a cap of their own.
    for n in 1..40_000 {
        endpoint.handle_timeout(now.after(ms(n)));
    }
    let queued = std::iter::from_fn(|| endpoint.poll_transmit()).count();
    assert!((16_384..=2 * 16_384).contains(&queued), "{queued}");
}
