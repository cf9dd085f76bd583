//! Every cap, filled.

use crate::network::{Network, message, secret, secs};
use bytes::Bytes;
use falconet_crypto::TransportPublicKey;
use falconet_transport::{AddPeerError, Event, PeerConfig, PeerId, Policy, SendError, TransportConfig, kind};

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
