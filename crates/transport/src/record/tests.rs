#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.

use super::*;
use falconet_crypto::IdentitySecret;
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn content() -> RecordContent {
    RecordContent {
        identity: IdentitySecret::from_bytes([1; 32]).identity(),
        transport_key: TransportPublicKey::from_bytes([2; 32]),
        sequence: 7,
        expiry_ms: 1_800_000_000_000,
        authenticated: LaneAddresses {
            v4: "192.0.2.1:7000".parse().ok(),
            v6: "[2001:db8::1]:7000".parse().ok(),
        },
        plain: LaneAddresses {
            v4: "192.0.2.1:8000".parse().ok(),
            v6: None,
        },
        capabilities: Capabilities::from_bits(0x8000_0001),
        suites: 0x8003,
        max_datagram: 1472,
        max_chunk: 1440,
    }
}

fn network() -> NetworkId {
    NetworkId::from_bytes([9; 32])
}

fn signed() -> PeerRecord {
    PeerRecord::sign(content(), &network(), &IdentitySecret::from_bytes([1; 32])).unwrap()
}

fn at(unix_ms: u64) -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_millis(unix_ms),
    }
}

/// The published vector, byte for byte: `docs/spec/vectors/record.json`.
#[test]
fn vectors() {
    let json = include_str!("../../../../docs/spec/vectors/record.json");
    let expected = json
        .split("\"encoded\": \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    assert_eq!(Some(hex::encode(signed().encode()).as_str()), expected);
}

#[test]
fn comes_back_as_it_was_with_unknown_bits() {
    let decoded = PeerRecord::decode(&signed().encode()).unwrap();
    assert_eq!(decoded.claims(), &content());
    assert_eq!(decoded.verify(&network(), at(0)).unwrap(), signed());
}

#[test]
fn another_network_or_time_is_refused() {
    let decoded = || PeerRecord::decode(&signed().encode()).unwrap();
    let other = NetworkId::from_bytes([8; 32]);
    assert_eq!(decoded().verify(&other, at(0)), Err(RecordError::BadSignature));
    assert!(decoded().verify(&network(), at(1_799_999_999_999)).is_ok());
    assert_eq!(
        decoded().verify(&network(), at(1_800_000_000_000)),
        Err(RecordError::Expired)
    );
}

#[test]
fn nobody_signs_for_another() {
    let signer = IdentitySecret::from_bytes([3; 32]);
    assert_eq!(
        PeerRecord::sign(content(), &network(), &signer),
        Err(RecordError::WrongIdentity)
    );
}

#[test]
fn the_higher_sequence_wins() {
    let mut newer = content();
    newer.sequence += 1;
    let newer = PeerRecord::sign(newer, &network(), &IdentitySecret::from_bytes([1; 32])).unwrap();
    assert!(newer.supersedes(&signed()));
    assert!(!signed().supersedes(&newer) && !signed().supersedes(&signed()));
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let bytes = signed().encode();
    assert!(bytes.len() <= MAX_RECORD_LEN);
    for len in 0..bytes.len() {
        assert_eq!(PeerRecord::decode(&bytes[..len]), Err(RecordError::Length));
    }
    for extra in 1..600 {
        let longer = [&bytes[..], &vec![0; extra]].concat();
        assert_eq!(PeerRecord::decode(&longer), Err(RecordError::Length));
    }
}

#[test]
fn malformed_fields_are_named() {
    let with = |at: usize, byte: u8| {
        let mut bytes = signed().encode();
        bytes[at] = byte;
        PeerRecord::decode(&bytes)
    };
    assert_eq!(with(0, 2), Err(RecordError::Version));
    assert_eq!(with(1, 5), Err(RecordError::TooManyAddresses));
    assert_eq!(with(2, 2), Err(RecordError::Suites));
    // First address: kind at 92. Second kind at 99: made a second IPv4 address, a duplicate.
    assert_eq!(with(92, 5), Err(RecordError::AddressOrder));
    assert_eq!(with(99, 4), Err(RecordError::AddressOrder));
    assert_eq!(with(93, 224), Err(RecordError::BadAddress));
}

#[test]
fn describes_a_peer() {
    let peer = signed().peer_config();
    assert_eq!(peer.address, "192.0.2.1:7000".parse().ok());
    assert_eq!(peer.plain_address, "192.0.2.1:8000".parse().ok());
    assert_eq!(peer.suites, [Suite::Aes256Gcm]);
    // A rollback: the newer record no longer has the authenticated lane.
    let mut plain_only = content();
    plain_only.capabilities = Capabilities::default();
    let plain_only = PeerRecord::sign(plain_only, &network(), &IdentitySecret::from_bytes([1; 32])).unwrap();
    assert_eq!(plain_only.peer_config().transport_key, None);
}

proptest! {
    /// Whatever decodes encodes to the same bytes, and no flipped bit verifies.
    #[test]
    fn one_encoding_and_no_forgery(at in 0usize..208, bit in 0u8..8) {
        let mut bytes = signed().encode();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(decoded) = PeerRecord::decode(&bytes) {
            prop_assert_eq!(decoded.0.encode(), bytes);
            prop_assert!(decoded.verify(&network(), self::at(0)).is_err());
        }
    }

    #[test]
    fn junk_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = PeerRecord::decode(&bytes);
    }
}
