//! The handshake byte for byte, as published in `docs/spec/vectors/handshake.json`.
//!
//! `FALCONET_BLESS=1 cargo test -p falconet-handshake` writes the file anew.

use super::*;
use falconet_crypto::Now;
use rand_core::{TryCryptoRng, TryRng};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Instant;

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/spec/vectors/handshake.json"
);
const SOURCE: &str = "192.0.2.1:51820";

/// "Random" bytes that the vectors can state: `first`, `first + 1`, ...
struct Counting(u8);

impl TryRng for Counting {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.0;
            self.0 = self.0.wrapping_add(1);
        }
        Ok(())
    }
}

impl TryCryptoRng for Counting {}

fn counting<const N: usize>(first: u8) -> String {
    hex::encode(std::array::from_fn::<u8, N, _>(|i| first.wrapping_add(i as u8)))
}

fn vectors(suite: Suite, psk: Option<[u8; 32]>) -> Value {
    let world = world_with_psks(psk, psk);
    let World {
        alice,
        bob,
        to_bob,
        to_alice,
        ..
    } = &world;
    let initiate = |cookie: Option<&Cookie>| {
        PendingInitiation::new(
            alice,
            to_bob,
            suite,
            ALICES_INDEX,
            timestamp(),
            cookie,
            &mut Counting(0x40),
        )
        .unwrap()
    };
    let (pending, initiation) = initiate(None);
    let verified = world.verify(&initiation).unwrap();
    let (bobs, response) = verified
        .respond(to_alice, BOBS_INDEX, &mut Counting(0x80))
        .unwrap();
    world.open(&pending, &response).unwrap();

    let now = Now {
        instant: Instant::now(),
        unix: Duration::ZERO,
    };
    let jar = CookieJar::new(now, &mut Counting(0xc0));
    let checked = checked_initiation(&initiation, bob).unwrap();
    let reply = jar.reply(bob, &checked, SOURCE.parse().unwrap(), &mut Counting(0xe0));
    let Message::CookieReply(parsed) = Message::parse(&reply).unwrap() else {
        panic!("a cookie reply")
    };
    let cookie = pending.open_cookie_reply(to_bob, &parsed).unwrap();
    let (_, with_cookie) = initiate(Some(&cookie));
    json!({
        "suite": suite.id(),
        "initiator_static_secret": hex::encode([0xa1; 32]),
        "initiator_static_public": hex::encode(alice.public().as_bytes()),
        "responder_static_secret": hex::encode([0xb0; 32]),
        "responder_static_public": hex::encode(bob.public().as_bytes()),
        "psk": psk.map(hex::encode),
        "initiator_ephemeral_secret": counting::<32>(0x40),
        "responder_ephemeral_secret": counting::<32>(0x80),
        "initiator_index": ALICES_INDEX.value(),
        "responder_index": BOBS_INDEX.value(),
        "timestamp": hex::encode(timestamp().as_bytes()),
        "message_1": hex::encode(initiation),
        "message_2": hex::encode(response),
        "initiator_to_responder_key": hex::encode(bobs.receive.expose()),
        "responder_to_initiator_key": hex::encode(bobs.send.expose()),
        "cookie_reply_to_message_1": {
            "source": SOURCE,
            "cookie_secret": counting::<32>(0xc0),
            "nonce": counting::<24>(0xe0),
            "cookie": hex::encode(cookie.as_bytes()),
            "message_3": hex::encode(reply),
            "message_1_with_cookie": hex::encode(with_cookie),
        },
    })
}

#[test]
fn the_handshake_is_as_published() {
    let psk = Some([9; 32]);
    let cases = Suite::ALL.map(|suite| [vectors(suite, None), vectors(suite, psk)]);
    let document = json!({
        "spec": "docs/spec/handshake.md",
        "note": "Hexadecimal bytes in wire order; indices are values; psk null is 32 zero bytes. Message 4 is in framing.json.",
        "cases": cases.concat(),
    });
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    if std::env::var_os("FALCONET_BLESS").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PATH).unwrap(), text);
}
