//! The Noise transcript against `snow`: both suites, both roles, and transport messages.
//!
//! WireGuard's message 1 is type, suite, reserved and sender index (8 bytes), then exactly the first
//! Noise message with the timestamp as its payload, then mac1 and mac2; message 2 likewise from byte 12
//! with an empty payload. The preshared key sits in snow's slot 2.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use falconet_auth_framing::{HEADER_LEN, Header, OVERHEAD, Opener, Sealer};
use falconet_crypto::{SecretBytes, Suite, Tai64N, TransportSecret};
use falconet_handshake::{LocalStatic, Message, PeerStatic, PendingInitiation, SessionIndex, SessionKeys};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::ops::Range;
use std::time::Duration;

const PROLOGUE: &[u8] = b"WireGuard v1 zx2c4 Jason@zx2c4.com";
const INITIATOR: [u8; 32] = [0x11; 32];
const RESPONDER: [u8; 32] = [0x22; 32];
const PSK: [u8; 32] = [0x33; 32];
const NOISE_IN_INITIATION: Range<usize> = 8..116;
const NOISE_IN_RESPONSE: Range<usize> = 12..60;

struct Ours {
    initiator: LocalStatic,
    responder: LocalStatic,
    to_responder: PeerStatic,
    to_initiator: PeerStatic,
}

fn ours() -> Ours {
    let initiator = LocalStatic::new(TransportSecret::from_bytes(INITIATOR));
    let responder = LocalStatic::new(TransportSecret::from_bytes(RESPONDER));
    let psk = || Some(SecretBytes::new(PSK));
    let to_responder = PeerStatic::new(&initiator, *responder.public(), psk()).unwrap();
    let to_initiator = PeerStatic::new(&responder, *initiator.public(), psk()).unwrap();
    Ours {
        initiator,
        responder,
        to_responder,
        to_initiator,
    }
}

/// A generator, and the ephemeral secret that it will hand out first.
fn rng_and_ephemeral(seed: u64) -> (ChaCha20Rng, [u8; 32]) {
    let mut ephemeral = [0; 32];
    ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut ephemeral);
    (ChaCha20Rng::seed_from_u64(seed), ephemeral)
}

fn snow_builder<'a>(suite: Suite, private: &'a [u8; 32], ephemeral: &'a [u8; 32]) -> Builder<'a> {
    let name = match suite {
        Suite::ChaCha20Poly1305 => "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s",
        Suite::Aes256Gcm => "Noise_IKpsk2_25519_AESGCM_BLAKE2s",
    };
    Builder::new(name.parse().unwrap())
        .prologue(PROLOGUE)
        .and_then(|builder| builder.local_private_key(private))
        .and_then(|builder| builder.psk(2, &PSK))
        .unwrap()
        .fixed_ephemeral_key_for_testing_only(ephemeral)
}

fn timestamp() -> Tai64N {
    Tai64N::from_unix(Duration::new(1_700_000_000, 42))
}

/// Our keys of both sides and snow's transport state of both sides, after one identical handshake.
fn handshake(
    suite: Suite,
) -> (
    SessionKeys,
    SessionKeys,
    StatelessTransportState,
    StatelessTransportState,
) {
    let ours = ours();
    let (mut rng, ephemeral) = rng_and_ephemeral(7);
    let (pending, initiation) = PendingInitiation::new(
        &ours.initiator,
        &ours.to_responder,
        suite,
        SessionIndex::new(1),
        timestamp(),
        None,
        &mut rng,
    )
    .unwrap();
    let responder_public = *ours.responder.public().as_bytes();
    let mut snow_initiator = snow_builder(suite, &INITIATOR, &ephemeral)
        .remote_public_key(&responder_public)
        .and_then(Builder::build_initiator)
        .unwrap();
    let written = snow_write(&mut snow_initiator, timestamp().as_bytes());
    assert_eq!(written, initiation[NOISE_IN_INITIATION], "message 1 of {suite:?}");

    let (mut rng, ephemeral) = rng_and_ephemeral(8);
    let mut snow_responder = snow_builder(suite, &RESPONDER, &ephemeral)
        .build_responder()
        .unwrap();
    assert_eq!(
        snow_read(&mut snow_responder, &initiation[NOISE_IN_INITIATION]),
        timestamp().as_bytes()
    );
    assert_eq!(
        snow_responder.get_remote_static(),
        Some(ours.initiator.public().as_bytes().as_slice())
    );

    let Message::Initiation(message) = Message::parse(&initiation).unwrap() else {
        panic!("not an initiation")
    };
    let identified = message
        .check_mac1(&ours.responder)
        .unwrap()
        .identify(&ours.responder)
        .unwrap();
    assert_eq!(identified.peer_key(), ours.initiator.public());
    let verified = identified.verify(&ours.to_initiator).unwrap();
    assert_eq!(verified.timestamp(), timestamp());
    let (responders, response) = verified
        .respond(&ours.to_initiator, SessionIndex::new(2), &mut rng)
        .unwrap();
    assert_eq!(
        snow_write(&mut snow_responder, &[]),
        response[NOISE_IN_RESPONSE],
        "message 2 of {suite:?}"
    );

    assert_eq!(snow_read(&mut snow_initiator, &response[NOISE_IN_RESPONSE]), b"");
    let Message::Response(message) = Message::parse(&response).unwrap() else {
        panic!("not a response")
    };
    let checked = message.check_mac1(&ours.initiator).unwrap();
    let initiators = pending
        .open_response(&ours.initiator, &ours.to_responder, &checked)
        .unwrap();
    let transport = |state: HandshakeState| state.into_stateless_transport_mode().unwrap();
    (
        initiators,
        responders,
        transport(snow_initiator),
        transport(snow_responder),
    )
}

fn snow_write(state: &mut HandshakeState, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 256];
    let len = state.write_message(payload, &mut message).unwrap();
    message.truncate(len);
    message
}

fn snow_read(state: &mut HandshakeState, message: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; 256];
    let len = state.read_message(message, &mut payload).unwrap();
    payload.truncate(len);
    payload
}

/// Seals 300 datagrams, so that the counter needs a second byte: a nonce of the wrong endianness agrees
/// on counter 0 only.
fn transport_messages_agree(suite: Suite) {
    let (initiators, responders, snow_initiator, snow_responder) = handshake(suite);
    let directions = [
        (&initiators, &responders, &snow_initiator, &snow_responder),
        (&responders, &initiators, &snow_responder, &snow_initiator),
    ];
    for (sender, receiver, snow_sender, snow_receiver) in directions {
        let mut sealer = Sealer::new(suite, &sender.send, sender.remote_index);
        let mut opener = Opener::new(suite, &receiver.receive);
        for counter in 0..300u64 {
            let plaintext = vec![counter as u8; counter as usize];
            let mut datagram = vec![0; plaintext.len() + OVERHEAD];
            datagram[HEADER_LEN..HEADER_LEN + plaintext.len()].copy_from_slice(&plaintext);
            assert_eq!(sealer.seal(&mut datagram).unwrap().value(), counter);

            let mut expected = vec![0; plaintext.len() + 16];
            let len = snow_sender
                .write_message(counter, &plaintext, &mut expected)
                .unwrap();
            assert_eq!(
                datagram[HEADER_LEN..],
                expected[..len],
                "{suite:?}, counter {counter}"
            );
            let mut theirs = vec![0; plaintext.len() + 16];
            let len = snow_receiver
                .read_message(counter, &datagram[HEADER_LEN..], &mut theirs)
                .unwrap();
            assert_eq!(theirs[..len], plaintext);

            let header = Header::parse(&datagram).unwrap();
            let opened = opener.open(header, &mut datagram).unwrap();
            assert_eq!(datagram[HEADER_LEN..HEADER_LEN + opened.len], plaintext);
        }
    }
}

#[test]
fn snow_writes_the_same_chacha_transcript_and_transport_messages() {
    transport_messages_agree(Suite::ChaCha20Poly1305);
}

#[test]
fn snow_writes_the_same_aes_transcript_and_transport_messages() {
    transport_messages_agree(Suite::Aes256Gcm);
}

/// The suites differ in the name that is hashed, so one side's suite 1 is noise to the other's suite 0.
#[test]
fn snow_of_one_suite_refuses_the_other() {
    let ours = ours();
    let (mut rng, ephemeral) = rng_and_ephemeral(7);
    let (_, initiation) = PendingInitiation::new(
        &ours.initiator,
        &ours.to_responder,
        Suite::Aes256Gcm,
        SessionIndex::new(1),
        timestamp(),
        None,
        &mut rng,
    )
    .unwrap();
    let mut snow = snow_builder(Suite::ChaCha20Poly1305, &RESPONDER, &ephemeral)
        .build_responder()
        .unwrap();
    assert!(
        snow.read_message(&initiation[NOISE_IN_INITIATION], &mut [0; 256])
            .is_err()
    );
}
