//! Handshake messages: the parser, and the whole walk of each message through its types.
//!
//! Genuine messages are altered, with mac1 repaired or not. Nothing but the genuine bytes may end in keys, and a
//! forged answer may not spoil a pending handshake.

use std::ops::Range;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use falconet_crypto::{Now, Suite, Tai64N, TransportSecret, blake2s, blake2s_mac};
use falconet_handshake::{
    COOKIE_REPLY_LEN, CookieJar, INITIATION_LEN, LocalStatic, Message, PeerStatic, PendingInitiation,
    RESPONSE_LEN, SessionIndex, SessionKeys, Verified,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::Script;

const ALICES_INDEX: SessionIndex = SessionIndex::new(0x0a11_ce00);
const BOBS_INDEX: SessionIndex = SessionIndex::new(0x00b0_b000);
/// The parts that the keys depend on. The sender's index is under mac1 only, as in WireGuard.
const INITIATION_BOUND: Range<usize> = 8..116;
const RESPONSE_BOUND: Range<usize> = 8..60;

static CAST: LazyLock<Cast> = LazyLock::new(Cast::new);

/// Two nodes that know each other.
struct Cast {
    alice: LocalStatic,
    bob: LocalStatic,
    alices_bob: PeerStatic,
    bobs_alice: PeerStatic,
    handshakes: [Handshake; 2],
}

/// One genuine handshake from Alice to Bob.
struct Handshake {
    pending: PendingInitiation,
    initiation: [u8; INITIATION_LEN],
    response: [u8; RESPONSE_LEN],
    cookie_reply: [u8; COOKIE_REPLY_LEN],
}

impl Cast {
    fn new() -> Self {
        let [alice, bob] = [3, 4].map(|byte| LocalStatic::new(TransportSecret::from_bytes([byte; 32])));
        let alices_bob = PeerStatic::new(&alice, *bob.public(), None).expect("a key of full order");
        let bobs_alice = PeerStatic::new(&bob, *alice.public(), None).expect("a key of full order");
        let handshakes = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm]
            .map(|suite| Handshake::new((&alice, &alices_bob), (&bob, &bobs_alice), suite));
        Self {
            alice,
            bob,
            alices_bob,
            bobs_alice,
            handshakes,
        }
    }

    /// The walk of a datagram at Bob, up to the point where it is known to be Alice's.
    fn verify(&self, datagram: &[u8]) -> Option<Verified> {
        let Ok(Message::Initiation(message)) = Message::parse(datagram) else {
            return None;
        };
        message
            .check_mac1(&self.bob)
            .ok()?
            .identify(&self.bob)
            .ok()?
            .verify(&self.bobs_alice)
            .ok()
    }

    /// The walk of a datagram at Alice, who waits for the answer to `pending`.
    fn open(&self, pending: &PendingInitiation, datagram: &[u8]) -> Option<SessionKeys> {
        let Ok(Message::Response(message)) = Message::parse(datagram) else {
            return None;
        };
        let checked = message.check_mac1(&self.alice).ok()?;
        pending
            .open_response(&self.alice, &self.alices_bob, &checked)
            .ok()
    }
}

impl Handshake {
    fn new(alice: (&LocalStatic, &PeerStatic), bob: (&LocalStatic, &PeerStatic), suite: Suite) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let time = Tai64N::from_unix(Duration::from_secs(1_700_000_000));
        let (pending, initiation) =
            PendingInitiation::new(alice.0, alice.1, suite, ALICES_INDEX, time, None, &mut rng)
                .expect("a message");
        let checked = || {
            let Ok(Message::Initiation(message)) = Message::parse(&initiation) else {
                panic!("it is well formed")
            };
            message.check_mac1(bob.0).expect("its own mac1")
        };
        let verified = checked()
            .identify(bob.0)
            .and_then(|claim| claim.verify(bob.1))
            .expect("it is genuine");
        let (_, response) = verified
            .respond(bob.1, BOBS_INDEX, &mut rng)
            .expect("keys of full order");
        let now = Now {
            instant: Instant::now(),
            unix: Duration::from_secs(1_700_000_000),
        };
        let from = ([192, 0, 2, 1], 7000).into();
        let cookie_reply = CookieJar::new(now, &mut rng).reply(bob.0, &checked(), from, &mut rng);
        Self {
            pending,
            initiation,
            response,
            cookie_reply,
        }
    }
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let kind = script.byte();
    let handshake = &CAST.handshakes[usize::from(kind >> 2 & 1)];
    match kind % 4 {
        0 => handle_anything(script.rest()),
        1 => tamper_with_initiation(handshake, &mut script),
        2 => tamper_with_response(handshake, &mut script),
        _ => tamper_with_cookie_reply(handshake, &mut script),
    }
}

/// Any bytes: only the genuine ones get anywhere.
fn handle_anything(datagram: &[u8]) {
    if CAST.verify(datagram).is_some() {
        let is_genuine = |h: &Handshake| h.initiation[INITIATION_BOUND] == datagram[INITIATION_BOUND];
        assert!(CAST.handshakes.iter().any(is_genuine), "a stranger was verified");
    }
    for handshake in &CAST.handshakes {
        if CAST.open(&handshake.pending, datagram).is_some() {
            assert_eq!(
                handshake.response[RESPONSE_BOUND], datagram[RESPONSE_BOUND],
                "a stranger answered"
            );
        }
        if let Ok(Message::CookieReply(reply)) = Message::parse(datagram)
            && handshake
                .pending
                .open_cookie_reply(&CAST.alices_bob, &reply)
                .is_ok()
        {
            assert_eq!(handshake.cookie_reply, datagram, "a stranger's cookie was taken");
        }
    }
}

fn tamper_with_initiation(handshake: &Handshake, script: &mut Script<'_>) {
    let mut message = handshake.initiation;
    let has_good_mac = alter(script, &mut message, &CAST.bob);
    let is_genuine = has_good_mac
        && message[INITIATION_BOUND] == handshake.initiation[INITIATION_BOUND]
        && message[..4] == handshake.initiation[..4];
    let verified = CAST.verify(&message);
    assert_eq!(verified.is_some(), is_genuine, "verified if and only if genuine");
    if let Some(verified) = verified {
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let (bobs, response) = verified
            .respond(&CAST.bobs_alice, BOBS_INDEX, &mut rng)
            .expect("keys of full order");
        let alices = CAST.open(&handshake.pending, &response);
        // An altered sender index makes the response name another handshake.
        assert_eq!(alices.is_some(), message[4..8] == handshake.initiation[4..8]);
        if let Some(alices) = alices {
            assert!(
                alices.send == bobs.receive && alices.receive == bobs.send,
                "different keys"
            );
        }
    }
}

fn tamper_with_response(handshake: &Handshake, script: &mut Script<'_>) {
    let mut message = handshake.response;
    let has_good_mac = alter(script, &mut message, &CAST.alice);
    let is_genuine = has_good_mac
        && message[RESPONSE_BOUND] == handshake.response[RESPONSE_BOUND]
        && message[..4] == handshake.response[..4];
    let opened = CAST.open(&handshake.pending, &message);
    assert_eq!(opened.is_some(), is_genuine, "opened if and only if genuine");
    let spoilt = CAST.open(&handshake.pending, &handshake.response).is_none();
    assert!(!spoilt, "a forged response spoilt the pending handshake");
}

fn tamper_with_cookie_reply(handshake: &Handshake, script: &mut Script<'_>) {
    let mut message = handshake.cookie_reply;
    script.patch(&mut message);
    let opened = match Message::parse(&message) {
        Ok(Message::CookieReply(reply)) => handshake
            .pending
            .open_cookie_reply(&CAST.alices_bob, &reply)
            .is_ok(),
        _ => false,
    };
    assert_eq!(
        opened,
        message == handshake.cookie_reply,
        "taken if and only if genuine"
    );
}

/// Alters a message to `receiver`, repairs mac1 if the script says so, and tells whether it is right now.
fn alter(script: &mut Script<'_>, message: &mut [u8], receiver: &LocalStatic) -> bool {
    let repairs_mac = script.byte() % 2 == 1;
    script.patch(message);
    let (body, macs) = message.split_at_mut(message.len() - 32);
    let key = blake2s(&[b"mac1----", receiver.public().as_bytes()]);
    let mac1 = blake2s_mac(&key, &[body]);
    if repairs_mac {
        macs[..16].copy_from_slice(&mac1);
    }
    macs[..16] == mac1
}

/// Every kind of message, genuine and altered in each field.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for handshake in &CAST.handshakes {
        let genuine: [&[u8]; 3] = [
            &handshake.initiation,
            &handshake.response,
            &handshake.cookie_reply,
        ];
        seeds.extend(genuine.map(|message| [&[0], message].concat()));
    }
    for kind in 1..8u8 {
        for (field, repairs_mac) in [0u8, 1, 2, 4, 8, 40, 59, 88, 116, 132]
            .into_iter()
            .zip([1, 1, 1, 1, 1, 1, 0, 1].iter().cycle())
        {
            seeds.push(vec![kind, *repairs_mac, 1, field, 1]);
        }
        seeds.push(vec![kind, 1, 0]);
    }
    seeds
}
