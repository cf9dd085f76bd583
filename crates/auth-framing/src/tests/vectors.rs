//! The frame byte for byte, as published in `docs/spec/vectors/framing.json`.
//!
//! `FALCONET_BLESS=1 cargo test -p falconet-auth-framing` writes the file anew.

use super::*;
use serde_json::{Value, json};

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/spec/vectors/framing.json"
);
const PLAINTEXTS: [(u64, &[u8]); 5] = [
    (0, b""),
    (1, b"\x01"),
    (2, b"\x01a validator's vote"),
    (256, b"\x02counter of two bytes"),
    (258, &[0x3f; 64]),
];

fn vectors(suite: Suite) -> Value {
    let key: [u8; 32] = std::array::from_fn(|i| i as u8 + 0x80);
    let mut sealer = Sealer::new(suite, &SecretBytes::new(key), INDEX);
    let datagrams = PLAINTEXTS.map(|(counter, plaintext)| {
        sealer.skip_to(counter);
        let datagram = hex::encode(sealed(&mut sealer, plaintext));
        json!({ "counter": counter, "plaintext": hex::encode(plaintext), "datagram": datagram })
    });
    json!({ "suite": suite.id(), "key": hex::encode(key), "receiver_index": INDEX.value(), "datagrams": datagrams })
}

#[test]
fn the_frame_is_as_published() {
    let document = json!({
        "spec": "docs/spec/framing.md",
        "note": "Hexadecimal bytes in wire order; numbers are values.",
        "cases": Suite::ALL.map(vectors),
    });
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    if std::env::var_os("FALCONET_BLESS").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PATH).unwrap(), text);
}
