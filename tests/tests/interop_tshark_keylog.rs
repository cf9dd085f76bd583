//! tshark decrypts what two endpoints with disposable keys sent to each other, given the key log of either one.
//!
//! Needs the program `tshark`; without it the test says so and does nothing.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use bytes::Bytes;
use falconet_crypto::key_log::KeyLogFile;
use falconet_crypto::{Now, SecretBytes, TransportSecret, keyfile};
use falconet_transport::{Endpoint, Lane, PeerConfig, PeerId, TransportConfig};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PEER: PeerId = PeerId(0);

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
        let packet = Bytes::from(echo_request(identifier));
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
        std::fs::write(&capture, pcap(&pair.wire)).unwrap();
        for node in 0..2 {
            let log = folder.path().join(format!("{node}.log"));
            let Some(rows) = dissect(&capture, Some(&log)) else {
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
        let blind = dissect(&capture, None).unwrap();
        assert!(blind.iter().all(|row| row == "||"), "{blind:?}");
    }
}

/// `wg.timestamp.nanoseconds`, `wg.handshake_ok` and `icmp.ident` of each datagram, or `None` without tshark.
fn dissect(capture: &Path, key_log: Option<&Path>) -> Option<Vec<String>> {
    let version = Command::new("tshark")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if version.is_err() {
        println!("skipped: no tshark");
        return None;
    }
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(capture)
        .args(["-T", "fields", "-E", "separator=|"]);
    for field in ["wg.timestamp.nanoseconds", "wg.handshake_ok", "icmp.ident"] {
        tshark.args(["-e", field]);
    }
    if let Some(log) = key_log {
        tshark.arg("-o").arg(format!("wg.keylog_file:{}", log.display()));
    }
    let output = tshark.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// A capture file of raw IPv4 packets with UDP around each datagram.
fn pcap(wire: &[Sent]) -> Vec<u8> {
    const LINKTYPE_RAW: u32 = 101;
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2u16, 4].map(u16::to_le_bytes).concat());
    file.extend([0, 0, 65_535, LINKTYPE_RAW].map(u32::to_le_bytes).concat());
    for (second, (from, datagram)) in (0u32..).zip(wire) {
        let udp = u16::try_from(8 + datagram.len()).unwrap();
        let (from, to) = (1 + *from as u8, 2 - *from as u8);
        let mut packet = vec![0x45, 0];
        packet.extend((20 + udp).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
        packet.extend([51_820u16; 2].map(u16::to_be_bytes).concat());
        packet.extend(udp.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(datagram);
        let len = u32::try_from(packet.len()).unwrap();
        file.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend(packet);
    }
    file
}

/// An ICMP echo request in an IPv4 packet of 28 bytes.
fn echo_request(identifier: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
    packet.extend([10, 77, 0, 1, 10, 77, 0, 2]);
    packet.extend([8, 0, 0, 0]);
    packet.extend(identifier.to_be_bytes());
    packet.extend([0, 1]);
    packet
}
