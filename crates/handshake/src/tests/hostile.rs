//! Messages made or altered by somebody who knows every public key and no secret one.

use super::*;
use crate::message::{TYPE_COOKIE_REPLY, TYPE_INITIATION, TYPE_RESPONSE};
use proptest::prelude::*;

/// The u-coordinates of low order on Curve25519 and its twist, canonical and not.
fn low_order_points() -> [[u8; 32]; 7] {
    [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ]
    .map(|point| {
        let mut bytes = [0; 32];
        hex::decode_to_slice(point, &mut bytes).unwrap();
        bytes
    })
}

#[test]
fn low_order_points_are_refused_wherever_they_stand() {
    let mut world = world();
    let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (_, response) = world.respond(&initiation).unwrap();
    for point in low_order_points() {
        assert!(PeerStatic::new(&world.alice, TransportPublicKey::from_bytes(point), None).is_err());

        let mut altered = initiation;
        altered[Initiation::EPHEMERAL..Initiation::STATIC].copy_from_slice(&point);
        let altered = with_valid_mac1(altered, &world.bob);
        let checked = checked_initiation(&altered, &world.bob).unwrap();
        assert_eq!(checked.identify(&world.bob).unwrap_err(), Discard::LowOrderPoint);

        let mut altered = response;
        altered[Response::EPHEMERAL..Response::EMPTY_TAG].copy_from_slice(&point);
        let altered = with_valid_mac1(altered, &world.alice);
        assert_eq!(
            world.open(&pending, &altered).unwrap_err(),
            Discard::LowOrderPoint
        );
    }
    assert!(world.open(&pending, &response).is_ok());
}

#[test]
fn every_flipped_bit_of_an_initiation_has_its_reason() {
    let mut world = world();
    let (_, genuine) = world.initiate(Suite::ChaCha20Poly1305, None);
    for bit in 0..INITIATION_LEN * 8 {
        let (at, mut altered) = (bit / 8, genuine);
        altered[at] ^= 1 << (bit % 8);
        let expected = match at {
            // Bit 0 alone makes it the other suite, whose mac1 fails.
            1 if bit == 8 => Discard::Mac1,
            0..=3 => parse_error(&altered).unwrap(),
            132.. => continue, // mac2 means nothing while no cookie is demanded.
            _ => Discard::Mac1,
        };
        assert_eq!(world.verify(&altered).unwrap_err(), expected, "bit {bit}");
    }
}

#[test]
fn every_flipped_bit_under_a_forged_mac1_has_its_reason() {
    let mut world = world();
    let (_, genuine) = world.initiate(Suite::ChaCha20Poly1305, None);
    for bit in 8..116 * 8 {
        let (at, mut altered) = (bit / 8, genuine);
        altered[at] ^= 1 << (bit % 8);
        let altered = with_valid_mac1(altered, &world.bob);
        let expected = match at {
            1 if bit == 8 => Some(Discard::BadStatic),
            1 => Some(Discard::UnknownSuite),
            2..4 => Some(Discard::ReservedBytes),
            // Noise does not cover the sender index: the answer goes to an index nobody waits for.
            4..8 => None,
            8..88 => Some(Discard::BadStatic),
            _ => Some(Discard::BadTimestamp),
        };
        assert_eq!(world.verify(&altered).err(), expected, "bit {bit}");
    }
}

#[test]
fn no_forged_response_spoils_the_pending_handshake() {
    let mut world = world();
    let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (_, genuine) = world.respond(&initiation).unwrap();
    for bit in 8..60 * 8 {
        let (at, mut altered) = (bit / 8, genuine);
        altered[at] ^= 1 << (bit % 8);
        assert!(
            world.open(&pending, &altered).is_err(),
            "bit {bit} without a new mac1"
        );
        let altered = with_valid_mac1(altered, &world.alice);
        let expected = match at {
            1 if bit == 8 => Some(Discard::SuiteMismatch),
            1 => Some(Discard::UnknownSuite),
            2..4 => Some(Discard::ReservedBytes),
            4..8 => None, // Our datagrams would carry an index that the responder never chose.
            8..12 => Some(Discard::WrongIndex),
            _ => Some(Discard::BadResponse),
        };
        assert_eq!(world.open(&pending, &altered).err(), expected, "bit {bit}");
    }
    assert!(world.open(&pending, &genuine).is_ok());
}

/// Answers to one initiation do not answer another, even between the same two nodes.
#[test]
fn a_response_answers_one_initiation_only() {
    let mut world = world();
    let (first, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (second, _) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (_, response) = world.respond(&initiation).unwrap();
    assert_eq!(world.open(&second, &response).unwrap_err(), Discard::BadResponse);
    assert!(world.open(&first, &response).is_ok());
}

#[test]
fn junk_of_every_length_is_named() {
    for len in 0..=2048usize {
        for fill in [0u8, 1, 2, 3, 4, 0xff] {
            let junk = vec![fill; len];
            let expected = match fill {
                _ if len == 0 => Discard::Length,
                1 if len == INITIATION_LEN => Discard::ReservedBytes,
                2 if len == RESPONSE_LEN => Discard::ReservedBytes,
                3 if len == COOKIE_REPLY_LEN => Discard::ReservedBytes,
                1..=3 => Discard::Length,
                _ => Discard::Type,
            };
            assert_eq!(parse_error(&junk), Some(expected), "{len} bytes of {fill}");
        }
    }
}

#[test]
fn cut_or_lengthened_messages_are_refused() {
    let mut world = world();
    let (_, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (_, response) = world.respond(&initiation).unwrap();
    for message in [&initiation[..], &response[..]] {
        for len in (0..message.len()).chain([message.len() + 1]) {
            let mut resized = message.to_vec();
            resized.resize(len, 0);
            assert_eq!(parse_error(&resized), Some(Discard::Length));
        }
    }
}

fn parse_error(datagram: &[u8]) -> Option<Discard> {
    Message::parse(datagram).err()
}

proptest! {
    #[test]
    fn any_bytes_parse_or_are_named(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(reason) = Message::parse(&bytes) {
            prop_assert!(Discard::ALL.contains(&reason));
        }
    }

    /// Random bodies behind a valid header and mac1 reach every later step, and none gets through.
    #[test]
    fn well_formed_noise_is_discarded(
        body in prop::array::uniform32(any::<[u8; 5]>()),
        suite in 0u8..2,
    ) {
        let mut world = world();
        let random: Vec<u8> = body.concat();
        let mut initiation = [0; INITIATION_LEN];
        initiation[4..].copy_from_slice(&random[..INITIATION_LEN - 4]);
        (initiation[0], initiation[1]) = (TYPE_INITIATION, suite);
        let initiation = with_valid_mac1(initiation, &world.bob);
        prop_assert_eq!(world.verify(&initiation).err(), Some(Discard::BadStatic));

        let (pending, genuine) = world.initiate(Suite::ALL[suite as usize], None);
        let mut response = [0; RESPONSE_LEN];
        response[4..].copy_from_slice(&random[..RESPONSE_LEN - 4]);
        (response[0], response[1]) = (TYPE_RESPONSE, suite);
        response[8..12].copy_from_slice(&ALICES_INDEX.to_le_bytes());
        let response = with_valid_mac1(response, &world.alice);
        prop_assert_eq!(world.open(&pending, &response).err(), Some(Discard::BadResponse));

        let mut reply = [0; COOKIE_REPLY_LEN];
        reply[8..].copy_from_slice(&random[..COOKIE_REPLY_LEN - 8]);
        reply[0] = TYPE_COOKIE_REPLY;
        reply[4..8].copy_from_slice(&ALICES_INDEX.to_le_bytes());
        let Ok(Message::CookieReply(reply)) = Message::parse(&reply) else { panic!("a cookie reply") };
        prop_assert_eq!(pending.open_cookie_reply(&world.to_bob, &reply).err(), Some(Discard::BadCookie));
        prop_assert!(world.respond(&genuine).is_ok());
    }
}
