//! tshark's WireGuard dissector on a capture of our messages: it decodes them by itself, and with the keys
//! of a session made for this test it decrypts what was inside.
//!
//! Needs the program `tshark`; without it the tests say so and do nothing.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

mod tshark;

use falconet_auth_framing::{OVERHEAD, Sealer};
use falconet_crypto::{Suite, Tai64N, TransportSecret};
use falconet_handshake::{LocalStatic, Message, PeerStatic, PendingInitiation, SessionIndex};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::path::Path;
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
    for plaintext in [tshark::echo_request(0x7777), Vec::new(), vec![0x20, 1, 2, 3]] {
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
    let folder = tempfile::tempdir().unwrap();
    let (file, log) = (folder.path().join("capture.pcap"), folder.path().join("keys.log"));
    // The response alone goes the other way.
    let hosts = capture
        .datagrams
        .iter()
        .map(|datagram| if datagram[0] == 2 { 2 } else { 1 });
    let datagrams = hosts.zip(capture.datagrams.iter().map(Vec::as_slice));
    std::fs::write(&file, tshark::pcap(datagrams)).unwrap();
    write_key_log(&log, &capture.ephemeral);
    tshark::dissect(&file, with_keys.then_some(&log), fields)
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
