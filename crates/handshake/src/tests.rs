#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.

use super::*;
use crate::mac::write_macs;
use falconet_crypto::{SecretBytes, Suite, Tai64N, TransportPublicKey, TransportSecret};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeSet;
use std::time::Duration;

mod cookies;
mod hostile;
mod vectors;

const ALICES_INDEX: SessionIndex = SessionIndex::new(0x0102_0304);
const BOBS_INDEX: SessionIndex = SessionIndex::new(0xa0b0_c0d0);

/// Alice dials Bob. `to_*` are the other side's keys as each of them holds them.
struct World {
    alice: LocalStatic,
    bob: LocalStatic,
    to_bob: PeerStatic,
    to_alice: PeerStatic,
    rng: ChaCha20Rng,
}

fn world() -> World {
    world_with_psks(Some([9; 32]), Some([9; 32]))
}

fn world_with_psks(alices: Option<[u8; 32]>, bobs: Option<[u8; 32]>) -> World {
    let alice = LocalStatic::new(TransportSecret::from_bytes([0xa1; 32]));
    let bob = LocalStatic::new(TransportSecret::from_bytes([0xb0; 32]));
    let to_bob = PeerStatic::new(&alice, *bob.public(), alices.map(SecretBytes::new)).unwrap();
    let to_alice = PeerStatic::new(&bob, *alice.public(), bobs.map(SecretBytes::new)).unwrap();
    World {
        alice,
        bob,
        to_bob,
        to_alice,
        rng: ChaCha20Rng::seed_from_u64(3),
    }
}

fn timestamp() -> Tai64N {
    Tai64N::from_unix(Duration::new(1_700_000_000, 123_456_789))
}

impl World {
    fn initiate(
        &mut self,
        suite: Suite,
        cookie: Option<&Cookie>,
    ) -> (PendingInitiation, [u8; INITIATION_LEN]) {
        let Self {
            alice, to_bob, rng, ..
        } = self;
        PendingInitiation::new(alice, to_bob, suite, ALICES_INDEX, timestamp(), cookie, rng).unwrap()
    }

    fn verify(&self, initiation: &[u8]) -> Result<Verified, Discard> {
        checked_initiation(initiation, &self.bob)?
            .identify(&self.bob)?
            .verify(&self.to_alice)
    }

    fn respond(&mut self, initiation: &[u8]) -> Result<(SessionKeys, [u8; RESPONSE_LEN]), Discard> {
        self.verify(initiation)?
            .respond(&self.to_alice, BOBS_INDEX, &mut self.rng)
    }

    fn open(&self, pending: &PendingInitiation, response: &[u8]) -> Result<SessionKeys, Discard> {
        pending.open_response(
            &self.alice,
            &self.to_bob,
            &checked_response(response, &self.alice)?,
        )
    }
}

fn checked_initiation(datagram: &[u8], at: &LocalStatic) -> Result<Mac1Checked<Initiation>, Discard> {
    match Message::parse(datagram)? {
        Message::Initiation(message) => message.check_mac1(at),
        other => panic!("not an initiation: {other:?}"),
    }
}

fn checked_response(datagram: &[u8], at: &LocalStatic) -> Result<Mac1Checked<Response>, Discard> {
    match Message::parse(datagram)? {
        Message::Response(message) => message.check_mac1(at),
        other => panic!("not a response: {other:?}"),
    }
}

/// Anybody who knows the receiver's public key can put a valid mac1 under what they altered.
fn with_valid_mac1<const N: usize>(mut message: [u8; N], receiver: &LocalStatic) -> [u8; N] {
    write_macs(&mut message, receiver.mac1_key(), None);
    message
}

#[test]
fn both_sides_end_with_the_same_keys() {
    for suite in Suite::ALL {
        for psk in [None, Some([9; 32])] {
            let mut world = world_with_psks(psk, psk);
            let (pending, initiation) = world.initiate(suite, None);
            let (bobs, response) = world.respond(&initiation).unwrap();
            let alices = world.open(&pending, &response).unwrap();
            assert_eq!((alices.suite, bobs.suite), (suite, suite));
            assert_eq!((alices.role, bobs.role), (Role::Initiator, Role::Responder));
            assert_eq!(
                (alices.local_index, alices.remote_index),
                (ALICES_INDEX, BOBS_INDEX)
            );
            assert_eq!((bobs.local_index, bobs.remote_index), (BOBS_INDEX, ALICES_INDEX));
            assert_eq!((&alices.send, &alices.receive), (&bobs.receive, &bobs.send));
            assert_ne!(alices.send, alices.receive);
        }
    }
}

#[test]
fn each_handshake_has_keys_of_its_own() {
    let mut world = world();
    let mut seen = Vec::new();
    for suite in [Suite::ALL, Suite::ALL].concat() {
        let (_, initiation) = world.initiate(suite, None);
        let (keys, _) = world.respond(&initiation).unwrap();
        assert!(!seen.contains(&keys.send) && !seen.contains(&keys.receive));
        seen.extend([keys.send, keys.receive]);
    }
}

#[test]
fn the_responder_learns_who_dials_and_when() {
    let mut world = world();
    let (_, initiation) = world.initiate(Suite::Aes256Gcm, None);
    let checked = checked_initiation(&initiation, &world.bob).unwrap();
    assert_eq!(
        (checked.suite(), checked.sender()),
        (Suite::Aes256Gcm, ALICES_INDEX)
    );
    let identified = checked.identify(&world.bob).unwrap();
    assert_eq!(identified.peer_key(), world.alice.public());
    assert_eq!(
        identified.verify(&world.to_alice).unwrap().timestamp(),
        timestamp()
    );
}

#[test]
fn another_psk_on_either_side_opens_no_response() {
    for (alices, bobs) in [
        (Some([1; 32]), Some([2; 32])),
        (None, Some([2; 32])),
        (Some([1; 32]), None),
    ] {
        let mut world = world_with_psks(alices, bobs);
        let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
        let (_, response) = world.respond(&initiation).unwrap();
        assert_eq!(world.open(&pending, &response).unwrap_err(), Discard::BadResponse);
    }
}

/// No psk and a psk of zeros are the same handshake, as in WireGuard.
#[test]
fn no_psk_is_a_psk_of_zeros() {
    let mut world = world_with_psks(None, Some([0; 32]));
    let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (_, response) = world.respond(&initiation).unwrap();
    assert!(world.open(&pending, &response).is_ok());
}

#[test]
fn a_message_meant_for_another_node_fails_at_mac1() {
    let mut world = world();
    let carol = LocalStatic::new(TransportSecret::from_bytes([0xc0; 32]));
    let (_, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    assert_eq!(
        checked_initiation(&initiation, &carol).unwrap_err(),
        Discard::Mac1
    );
    let (_, response) = world.respond(&initiation).unwrap();
    assert_eq!(checked_response(&response, &carol).unwrap_err(), Discard::Mac1);
}

#[test]
fn a_wrong_static_key_is_noticed_on_both_sides() {
    let mut world = world();
    let carol = LocalStatic::new(TransportSecret::from_bytes([0xc0; 32]));
    let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    // Carol knows Bob's public key, so she can forge mac1, but cannot read what is for Bob.
    let forwarded = with_valid_mac1(initiation, &carol);
    let checked = checked_initiation(&forwarded, &carol).unwrap();
    assert_eq!(checked.identify(&carol).unwrap_err(), Discard::BadStatic);

    let (_, response) = world.respond(&initiation).unwrap();
    let forwarded = checked_response(&with_valid_mac1(response, &carol), &carol).unwrap();
    assert_eq!(
        pending
            .open_response(&carol, &world.to_bob, &forwarded)
            .unwrap_err(),
        Discard::BadResponse
    );
}

/// The claim in message 1 is worth nothing until the static-static secret opened the timestamp.
#[test]
fn claiming_anothers_static_key_fails_at_the_timestamp() {
    let mut world = world();
    let mallory = LocalStatic::new(TransportSecret::from_bytes([0xee; 32]));
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let to_bob = PeerStatic::new(&mallory, *world.bob.public(), None).unwrap();
    let posing = mallory.posing_as(*world.alice.public());
    let suite = Suite::ChaCha20Poly1305;
    let (_, forged) =
        PendingInitiation::new(&posing, &to_bob, suite, ALICES_INDEX, timestamp(), None, &mut rng).unwrap();
    let identified = checked_initiation(&forged, &world.bob)
        .unwrap()
        .identify(&world.bob)
        .unwrap();
    assert_eq!(identified.peer_key(), world.alice.public());
    assert_eq!(
        identified.verify(&world.to_alice).unwrap_err(),
        Discard::BadTimestamp
    );
    let (_, genuine) = world.initiate(suite, None);
    assert!(world.respond(&genuine).is_ok());
}

#[test]
fn a_message_is_only_paired_with_the_peer_it_names() {
    let mut world = world();
    let carol = TransportSecret::from_bytes([0xc0; 32]).public();
    let to_carol = PeerStatic::new(&world.bob, carol, None).unwrap();
    let (_, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let identified = checked_initiation(&initiation, &world.bob)
        .unwrap()
        .identify(&world.bob)
        .unwrap();
    assert_eq!(identified.verify(&to_carol).unwrap_err(), Discard::WrongPeer);
    let verified = world.verify(&initiation).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    assert_eq!(
        verified.respond(&to_carol, BOBS_INDEX, &mut rng).unwrap_err(),
        Discard::WrongPeer
    );
}

#[test]
fn labels_are_distinct() {
    let labels: BTreeSet<_> = Discard::ALL.iter().map(|reason| reason.label()).collect();
    assert_eq!(labels.len(), Discard::ALL.len());
}

#[test]
fn debug_shows_no_secret() {
    let mut world = world();
    let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let identified = checked_initiation(&initiation, &world.bob)
        .unwrap()
        .identify(&world.bob)
        .unwrap();
    let mut shown = format!("{pending:?} {identified:?} {:?} {:?}", world.alice, world.to_bob);
    let verified = identified.verify(&world.to_alice).unwrap();
    shown += &format!("{verified:?}");
    let (keys, _) = verified
        .respond(&world.to_alice, BOBS_INDEX, &mut world.rng)
        .unwrap();
    shown += &format!("{keys:?}");
    for secret in [[0xa1; 32], [9; 32], *keys.send.expose(), *keys.receive.expose()] {
        let decimal = format!("{:?}", &secret[..4]);
        assert!(!shown.contains(decimal.trim_matches(['[', ']'])), "{shown}");
        assert!(
            !shown.to_lowercase().contains(&hex::encode(&secret[..4])),
            "{shown}"
        );
    }
}
