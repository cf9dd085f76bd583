//! No `Debug` of a public type shows a key byte.

use crate::network::{Network, ms, secret};
use falconet_crypto::SecretBytes;
use falconet_handshake::{LocalStatic, PeerStatic};
use falconet_transport::{PeerConfig, PeerId, TransportConfig, split};
use std::sync::Arc;

/// Neither as numbers nor as hexadecimal digits.
fn shows(text: &str, byte: u8) -> bool {
    let (decimal, hex) = (format!("{byte}, {byte}"), format!("{byte:02x}{byte:02x}"));
    text.contains(&decimal) || text.to_lowercase().contains(&hex)
}

#[test]
fn debug_output_shows_no_secret() {
    let psk = Arc::new(SecretBytes::new([0xab; 32]));
    let config = PeerConfig::new(secret(1).public()).with_psk(psk);
    assert!(!shows(&format!("{config:?}"), 0xab));
    let secret_of_2 = secret(2);
    assert!(!shows(&format!("{secret_of_2:?}"), 3));
    let local = LocalStatic::new(secret(2));
    assert!(!shows(&format!("{local:?}"), 3));
    let peer = PeerStatic::new(&local, secret(1).public(), Some(SecretBytes::new([0xab; 32]))).unwrap();
    assert!(!shows(&format!("{peer:?}"), 0xab));
}

#[test]
fn messages_between_the_halves_say_nothing_at_all() {
    let mut network = Network::new(2, |_, _, peer| peer);
    network.connect(0, 1);
    let initiation = network.intercept().remove(0);
    let now = network.now.after(ms(1));
    let (mut handshakes, mut sessions) = split(Default::default(), secret(1), now, [7; 32]);
    let config = PeerConfig::new(secret(0).public()).with_address(initiation.from);
    handshakes.add_peer(now, PeerId(0), &config).unwrap();
    sessions.add_peer(now, PeerId(0), &config).unwrap();
    handshakes
        .handle_datagram(now, initiation.from, &initiation.datagram)
        .unwrap();
    let message = handshakes.poll_message().unwrap();
    assert_eq!(format!("{message:?}"), "ToSessions(..)");
    sessions.connect(now, PeerId(0));
    let message = sessions.poll_message().unwrap();
    assert_eq!(format!("{message:?}"), "ToHandshakes(..)");
}

#[test]
fn work_says_nothing_at_all() {
    let mut network = Network::new(2, |_, _, peer| peer);
    network.connect(0, 1);
    let initiation = network.intercept().remove(0);
    let now = network.now.after(ms(1));
    let config = TransportConfig::default().with_offload(true);
    let (mut handshakes, _) = split(config, secret(1), now, [7; 32]);
    let config = PeerConfig::new(secret(0).public()).with_address(initiation.from);
    handshakes.add_peer(now, PeerId(0), &config).unwrap();
    handshakes
        .handle_datagram(now, initiation.from, &initiation.datagram)
        .unwrap();
    let mut steps = 0;
    while let Some(work) = handshakes.poll_work() {
        assert_eq!(format!("{work:?}"), "Work(..)");
        let finished = work.run();
        assert_eq!(format!("{finished:?}"), "Finished(..)");
        handshakes.handle_finished(now, finished).unwrap();
        steps += 1;
    }
    assert_eq!(steps, 2);
}
