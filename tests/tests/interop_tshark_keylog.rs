//! tshark decrypts what two endpoints with disposable keys sent to each other, given the key log of either one.
//!
//! Needs the program `tshark`; without it the test says so and does nothing.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

mod tshark;

use bytes::Bytes;
use falconet_crypto::key_log::KeyLogFile;
use falconet_crypto::{Now, SecretBytes, TransportSecret, keyfile};
use falconet_transport::{Endpoint, Lane, PeerConfig, PeerId, TransportConfig};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PEER: PeerId = PeerId(0);
/// What shows that both initiations, both responses and all packets were decrypted.
const FIELDS: [&str; 3] = ["wg.timestamp.nanoseconds", "wg.handshake_ok", "icmp.ident"];

/// A datagram on the wire, and which of the two sent it.
type Sent = (usize, Bytes);

/// A new disposable key, as `falconet keygen --disposable` makes it.
fn key(folder: &Path, node: u8) -> TransportSecret {
    let path = folder.join(format!("{node}.key"));
    let secret = TransportSecret::from_bytes([node + 1; 32]);
    keyfile::create_disposable_transport(&path, &secret).unwrap();
    keyfile::load_transport(&path).unwrap()
}

fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + node as u8], 51_820))
}

struct Pair {
    nodes: [Endpoint; 2],
    logs: [KeyLogFile; 2],
    now: Now,
    wire: Vec<Sent>,
}

impl Pair {
    fn new(folder: &Path, psk: Option<[u8; 32]>) -> Self {
        let now = Now {
            instant: Instant::now(),
            unix: Duration::from_secs(1_700_000_000),
        };
        let public = [0, 1].map(|node| TransportSecret::from_bytes([node + 1; 32]).public());
        let nodes = [0, 1].map(|node: u8| {
            let secret = key(folder, node);
            let config = TransportConfig::default().with_key_log(&secret).unwrap();
            let mut endpoint = Endpoint::new(config, secret, now, [40 + node; 32]);
            let other = usize::from(1 - node);
            let mut peer = PeerConfig::new(public[other])
                .with_address(address(other))
                .with_wireguard(true);
            peer.psk = psk.map(|psk| Arc::new(SecretBytes::new(psk)));
            endpoint.add_peer(now, PEER, &peer).unwrap();
            endpoint
        });
        let logs = [0, 1].map(|node| KeyLogFile::open(&folder.join(format!("{node}.log"))).unwrap());
        Self {
            nodes,
            logs,
            now,
            wire: Vec::new(),
        }
    }

    /// Delivers until nothing more is under way, and writes down what there is to log.
    fn run(&mut self) {
        loop {
            let mut is_quiet = true;
            for node in 0..2 {
                while let Some(transmit) = self.nodes[node].poll_transmit() {
                    is_quiet = false;
                    let mut datagram = transmit.datagram.to_vec();
                    self.wire.push((node, transmit.datagram));
                    self.nodes[1 - node]
                        .handle_datagram(self.now, address(node), Lane::Authenticated, &mut datagram)
                        .unwrap();
                }
                while let Some(line) = self.nodes[node].poll_key_log() {
                    self.logs[node].append(&line).unwrap();
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn ping(&mut self, from: usize, identifier: u16) {
        let packet = Bytes::from(tshark::echo_request(identifier));
        self.nodes[from].send(self.now, PEER, &packet).unwrap();
        self.run();
    }
}

#[test]
fn tshark_decrypts_a_session_with_the_key_log_of_either_side() {
    for psk in [None, Some([9; 32])] {
        let folder = tempfile::tempdir().unwrap();
        let mut pair = Pair::new(folder.path(), psk);
        pair.ping(0, 0x1111);
        pair.ping(1, 0x2222);
        // The other side dials the next session.
        pair.now = pair.now.after(Duration::from_secs(10));
        pair.nodes[1].rekey(pair.now, PEER);
        pair.run();
        pair.ping(1, 0x3333);
        pair.ping(0, 0x4444);
        let capture = folder.path().join("capture.pcap");
        let wire = pair
            .wire
            .iter()
            .map(|(from, datagram)| (1 + *from as u8, &datagram[..]));
        std::fs::write(&capture, tshark::pcap(wire)).unwrap();
        for node in 0..2 {
            let log = folder.path().join(format!("{node}.log"));
            let Some(rows) = tshark::dissect(&capture, Some(&log), &FIELDS) else {
                return;
            };
            let column = |at: usize| -> Vec<String> {
                let fields = rows.iter().map(|row| row.split('|').nth(at).unwrap().to_owned());
                fields.filter(|field| !field.is_empty()).collect()
            };
            // Both initiations, both responses, all four packets.
            assert_eq!(column(0).len(), 2, "{rows:?}");
            assert_eq!(column(1), ["1", "1"], "{rows:?}");
            let identifiers = [0x1111, 0x2222, 0x3333, 0x4444].map(|ident: u16| ident.to_string());
            assert_eq!(column(2), identifiers, "with the log of {node}: {rows:?}");
        }
        let blind = tshark::dissect(&capture, None, &FIELDS).unwrap();
        assert!(blind.iter().all(|row| row == "||"), "{blind:?}");
    }
}
