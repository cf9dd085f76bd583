//! tshark's WireGuard dissector on a capture of our messages: it decodes them by itself, and with the keys
//! of a session made for this test it decrypts what was inside.
//!
//! Needs the program `tshark`; without it the tests say so and do nothing.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use falconet_auth_framing::{OVERHEAD, Sealer};
use falconet_crypto::{Suite, Tai64N, TransportSecret};
use falconet_handshake::{LocalStatic, Message, PeerStatic, PendingInitiation, SessionIndex};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const INITIATOR: [u8; 32] = [1; 32];
const RESPONDER: [u8; 32] = [2; 32];

/// Initiation, response, and three data messages: an ICMP echo request, a keepalive, and a message of ours.
struct Capture {
    datagrams: Vec<Vec<u8>>,
    /// The initiator's ephemeral secret, which only a generator with a known seed gives away.
    ephemeral: [u8; 32],
}

fn capture() -> Capture {
    let mut ephemeral = [0; 32];
    ChaCha20Rng::seed_from_u64(4).fill_bytes(&mut ephemeral);
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let initiator = LocalStatic::new(TransportSecret::from_bytes(INITIATOR));
    let responder = LocalStatic::new(TransportSecret::from_bytes(RESPONDER));
    let to_responder = PeerStatic::new(&initiator, *responder.public(), None).unwrap();
    let to_initiator = PeerStatic::new(&responder, *initiator.public(), None).unwrap();
    let (suite, time) = (
        Suite::ChaCha20Poly1305,
        Tai64N::from_unix(Duration::from_secs(1_700_000_000)),
    );
    let index = SessionIndex::new(0x0102_0304);
    let (pending, initiation) =
        PendingInitiation::new(&initiator, &to_responder, suite, index, time, None, &mut rng).unwrap();
    let Ok(Message::Initiation(message)) = Message::parse(&initiation) else {
        panic!("an initiation");
    };
    let identified = message
        .check_mac1(&responder)
        .unwrap()
        .identify(&responder)
        .unwrap();
    let verified = identified.verify(&to_initiator).unwrap();
    let (_, response) = verified
        .respond(&to_initiator, SessionIndex::new(0x0506_0708), &mut rng)
        .unwrap();
    let Ok(Message::Response(message)) = Message::parse(&response) else {
        panic!("a response");
    };
    let checked = message.check_mac1(&initiator).unwrap();
    let keys = pending
        .open_response(&initiator, &to_responder, &checked)
        .unwrap();
    let mut sealer = Sealer::new(keys.suite, &keys.send, keys.remote_index);
    let mut datagrams = vec![initiation.to_vec(), response.to_vec()];
    for plaintext in [echo_request(), Vec::new(), vec![0x20, 1, 2, 3]] {
        let mut datagram = vec![0; plaintext.len() + OVERHEAD];
        datagram[16..16 + plaintext.len()].copy_from_slice(&plaintext);
        sealer.seal(&mut datagram).unwrap();
        datagrams.push(datagram);
    }
    Capture { datagrams, ephemeral }
}

#[test]
fn tshark_decodes_our_messages_as_wireguard() {
    let Some(rows) = dissect(
        &capture(),
        false,
        &["wg.type", "wg.sender", "wg.receiver", "wg.counter"],
    ) else {
        return;
    };
    assert_eq!(
        rows,
        [
            "1|0x01020304||",
            "2|0x05060708|0x01020304|",
            "4||0x05060708|0",
            "4||0x05060708|1",
            "4||0x05060708|2",
        ]
    );
}

#[test]
fn tshark_decrypts_a_session_whose_keys_it_is_given() {
    let fields = [
        "wg.handshake_ok",
        "wg.timestamp.nanoseconds",
        "icmp.ident",
        "wg.keepalive",
    ];
    let Some(rows) = dissect(&capture(), true, &fields) else {
        return;
    };
    assert_eq!(rows[..4], ["|0||", "1|||", "||30583|", "|||1"]);
    let Some(rows) = dissect(&capture(), false, &fields) else {
        return;
    };
    assert_eq!(rows[2], "|||", "without the keys nothing is seen");
}

/// `fields` of each datagram as tshark sees them, or `None` without tshark.
fn dissect(capture: &Capture, with_keys: bool, fields: &[&str]) -> Option<Vec<String>> {
    let version = Command::new("tshark")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if version.is_err() {
        println!("skipped: no tshark");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture.pcap");
    std::fs::write(&file, pcap(&capture.datagrams)).unwrap();
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(&file)
        .args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    if with_keys {
        let log = folder.path().join("keys.log");
        write_key_log(&log, &capture.ephemeral);
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

/// The format of Wireshark's `wg.keylog_file`.
fn write_key_log(path: &Path, ephemeral: &[u8; 32]) {
    let responder = TransportSecret::from_bytes(RESPONDER).public();
    let lines = [
        ("LOCAL_STATIC_PRIVATE_KEY", &INITIATOR),
        ("REMOTE_STATIC_PUBLIC_KEY", responder.as_bytes()),
        ("LOCAL_EPHEMERAL_PRIVATE_KEY", ephemeral),
    ];
    let lines = lines.map(|(name, key)| format!("{name} = {}\n", base64(key)));
    std::fs::write(path, lines.concat()).unwrap();
}

/// A capture file of raw IPv4 packets, with UDP between two ports around each datagram.
fn pcap(datagrams: &[Vec<u8>]) -> Vec<u8> {
    const LINKTYPE_RAW: u32 = 101;
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2u16, 4].map(u16::to_le_bytes).concat());
    file.extend([0, 0, 65_535, LINKTYPE_RAW].map(u32::to_le_bytes).concat());
    for (second, datagram) in (0u32..).zip(datagrams) {
        // The response alone goes the other way.
        let (from, to) = if datagram[0] == 2 { (2, 1) } else { (1, 2) };
        let udp = u16::try_from(8 + datagram.len()).unwrap();
        let mut packet = vec![0x45, 0];
        packet.extend((20 + udp).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
        for port in [from, to] {
            packet.extend((51_820 + u16::from(port)).to_be_bytes());
        }
        packet.extend(udp.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(datagram);
        let len = u32::try_from(packet.len()).unwrap();
        file.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend(packet);
    }
    file
}

/// An ICMP echo request with the identifier 0x7777 in an IPv4 packet of 28 bytes.
fn echo_request() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
    packet.extend([10, 77, 0, 1, 10, 77, 0, 2]);
    packet.extend([8, 0, 0, 0, 0x77, 0x77, 0, 1]);
    packet
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let chunks = bytes.chunks(3).map(|chunk| {
        let word =
            chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        let mut text: Vec<u8> = (0..4)
            .map(|at| ALPHABET[(word >> (18 - 6 * at)) as usize & 63])
            .collect();
        text[chunk.len() + 1..].fill(b'=');
        String::from_utf8(text).unwrap()
    });
    chunks.collect()
}
