//! Key logs: for disposable keys only; `docs/spec/keys.md#key-log`.

use crate::network::{address, secret, secs};
use falconet_crypto::{Now, SecretBytes, TransportSecret, keyfile};
use falconet_transport::{Endpoint, Lane, PeerConfig, PeerId, TransportConfig};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The key of `node`, from a file that says that it is disposable.
fn disposable(node: usize) -> TransportSecret {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    keyfile::create_disposable_transport(&path, &secret(node)).unwrap();
    keyfile::load_transport(&path).unwrap()
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    }
}

/// Nodes 0 and 1, which know each other; `config` is that of node 1.
fn pair(now: Now, config: TransportConfig, secret_of_1: TransportSecret, psk: bool) -> [Endpoint; 2] {
    let own = [secret(0), secret_of_1];
    let configs = [TransportConfig::default(), config];
    let mut nodes = own.into_iter().zip(configs).zip(0u8..).map(|((own, config), n)| {
        let mut node = Endpoint::new(config.with_offload(false), own, now, [n; 32]);
        let other = usize::from(1 - n);
        let mut peer = PeerConfig::new(secret(other).public()).with_address(address(other));
        peer.psk = psk.then(|| Arc::new(SecretBytes::new([8; 32])));
        node.add_peer(now, PeerId(0), &peer).unwrap();
        node
    });
    [nodes.next().unwrap(), nodes.next().unwrap()]
}

/// Has node `from` dial the other.
fn connect(now: Now, nodes: &mut [Endpoint; 2], from: usize) {
    nodes[from].rekey(now, PeerId(0));
    for sender in [from, 1 - from, from] {
        while let Some(transmit) = nodes[sender].poll_transmit() {
            let mut datagram = transmit.datagram.to_vec();
            nodes[1 - sender]
                .handle_datagram(now, address(sender), Lane::Authenticated, &mut datagram)
                .unwrap();
        }
    }
    assert!(nodes[from].sessions().is_connected(now, PeerId(0)));
}

fn names(node: &mut Endpoint) -> Vec<String> {
    std::iter::from_fn(|| node.poll_key_log())
        .map(|line| line.expose().split_once(" = ").unwrap().0.to_owned())
        .collect()
}

#[test]
fn a_key_that_is_not_disposable_is_refused() {
    let refused = TransportConfig::default().with_key_log(&secret(1)).unwrap_err();
    assert_eq!(refused.key, secret(1).public());
    assert!(refused.to_string().contains("keygen --disposable"), "{refused}");
    assert!(TransportConfig::default().with_key_log(&disposable(1)).is_ok());
}

#[test]
fn both_roles_log_what_wireshark_needs() {
    let config = TransportConfig::default().with_key_log(&disposable(1)).unwrap();
    for psk in [false, true] {
        let now = now();
        let mut nodes = pair(now, config.clone(), disposable(1), psk);
        let mut expected = vec![
            "LOCAL_STATIC_PRIVATE_KEY",
            "REMOTE_STATIC_PUBLIC_KEY",
            "LOCAL_EPHEMERAL_PRIVATE_KEY",
        ];
        expected.extend(psk.then_some("PRESHARED_KEY"));
        connect(now, &mut nodes, 1);
        assert_eq!(names(&mut nodes[1]), expected, "as initiator");
        connect(now.after(secs(10)), &mut nodes, 0);
        assert_eq!(names(&mut nodes[1]), expected, "as responder");
        assert_eq!(names(&mut nodes[0]), [""; 0], "who has not asked for it");
    }
}

#[test]
fn nothing_is_kept_unless_it_was_asked_for_with_the_nodes_own_key() {
    let others = TransportConfig::default().with_key_log(&disposable(5)).unwrap();
    let own = TransportConfig::default().with_key_log(&disposable(1)).unwrap();
    let cases = [
        (TransportConfig::default(), disposable(1)),
        (others, disposable(1)),
        // The configuration has seen the file; what the node runs on is the same key from elsewhere.
        (own, secret(1)),
    ];
    for (config, secret) in cases {
        let now = now();
        let mut nodes = pair(now, config, secret, true);
        connect(now, &mut nodes, 1);
        assert_eq!(names(&mut nodes[1]), [""; 0]);
    }
}

#[test]
fn lines_that_nobody_takes_are_bounded() {
    let now = now();
    let config = TransportConfig::default().with_key_log(&disposable(1)).unwrap();
    let mut nodes = pair(now, config, disposable(1), true);
    for round in 0..70 {
        connect(now.after(secs(10 * round)), &mut nodes, 1);
    }
    let stats = nodes[1].stats().0;
    assert_eq!(stats.key_log_left_out, 70 - 64);
    assert_eq!(names(&mut nodes[1]).len(), 256);
}
