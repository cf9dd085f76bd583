use bech32::{ByteIterExt, Fe32, Fe32IterExt};
use proptest::prelude::*;

use super::*;

const IDENTITY: IdentityKey = IdentityKey::from_bytes([0x5a; 32]);
const TRANSPORT: TransportPublicKey = TransportPublicKey::from_bytes([0x5a; 32]);

#[test]
fn stable_text() {
    assert_eq!(
        IDENTITY.to_string(),
        "fid1tfd95kj6tfd95kj6tfd95kj6tfd95kj6tfd95kj6tfd95kj6tfdqjhwudy"
    );
    assert_eq!(
        TRANSPORT.to_string(),
        "ftk1tfd95kj6tfd95kj6tfd95kj6tfd95kj6tfd95kj6tfd95kj6tfdqwplsg6"
    );
}

#[test]
fn every_substitution_of_one_character_is_refused() {
    let text = IDENTITY.to_string();
    for position in 0..text.len() {
        for other in (0x20..0x7fu8).map(char::from) {
            let mut typo = text.clone();
            typo.replace_range(position..=position, other.encode_utf8(&mut [0; 4]));
            if typo != text {
                assert!(typo.parse::<IdentityKey>().is_err(), "{typo}");
                assert!(typo.parse::<TransportPublicKey>().is_err(), "{typo}");
            }
        }
    }
}

#[test]
fn every_swap_deletion_and_repetition_is_refused() {
    let text = TransportPublicKey::from_bytes(std::array::from_fn(|i| i as u8 * 7)).to_string();
    for position in 0..text.len() {
        let mut shorter = text.clone();
        shorter.remove(position);
        assert!(shorter.parse::<TransportPublicKey>().is_err(), "{shorter}");
        let mut longer = text.clone();
        longer.insert(position, char::from(text.as_bytes()[position]));
        assert!(longer.parse::<TransportPublicKey>().is_err(), "{longer}");
        let mut swapped = text.clone().into_bytes();
        swapped.swap(position, (position + 1) % text.len());
        let swapped = String::from_utf8(swapped).unwrap();
        assert!(
            swapped == text || swapped.parse::<TransportPublicKey>().is_err(),
            "{swapped}"
        );
    }
}

#[test]
fn kinds_are_told_apart() {
    assert_eq!(
        TRANSPORT.to_string().parse::<IdentityKey>(),
        Err(KeyTextError::WrongKind {
            expected: "fid",
            found: "ftk".into()
        })
    );
    assert_eq!(
        IDENTITY.to_string().parse::<TransportPublicKey>(),
        Err(KeyTextError::WrongKind {
            expected: "ftk",
            found: "fid".into()
        })
    );
}

#[test]
fn one_text_for_a_key() {
    let text = IDENTITY.to_string();
    let not_canonical = Err(KeyTextError::NotCanonical {
        canonical: text.clone(),
    });
    assert_eq!(text.to_uppercase().parse::<IdentityKey>(), not_canonical);

    // 32 bytes leave four bits of padding in 52 characters; they must be zero.
    let prefix = Hrp::parse("fid").unwrap();
    let symbols: Vec<Fe32> = IDENTITY.as_bytes().iter().copied().bytes_to_fes().collect();
    for padding in [Fe32::P, Fe32::Z, Fe32::Y, Fe32::G, Fe32::_0] {
        let padded: String = symbols[..51]
            .iter()
            .copied()
            .chain([symbols[51] + padding])
            .with_checksum::<Bech32m>(&prefix)
            .chars()
            .collect();
        assert_eq!(padded.parse::<IdentityKey>(), not_canonical, "{padded}");
    }
}

#[test]
fn other_texts() {
    let malformed = Err(KeyTextError::Malformed { expected: "fid" });
    for text in ["", "fid", "fid1", "1", "hello", "fid1 tfd", "fid1tfd\u{e9}", "\0"] {
        assert!(text.parse::<IdentityKey>().is_err(), "{text}");
    }
    assert_eq!("hello".parse::<IdentityKey>(), malformed);
    for len in [0, 31, 33, 64] {
        let text = bech32::encode::<Bech32m>(Hrp::parse("fid").unwrap(), &vec![1; len]).unwrap();
        assert_eq!(text.parse::<IdentityKey>(), Err(KeyTextError::Length), "{len}");
    }
    // The checksum of the older bech32 does not protect against inserted characters.
    let older = bech32::encode::<bech32::Bech32>(Hrp::parse("fid").unwrap(), &[1; 32]).unwrap();
    assert_eq!(older.parse::<IdentityKey>(), Err(KeyTextError::Checksum));
    let enormous = "fid1".to_owned() + &"q".repeat(100_000);
    assert!(enormous.parse::<IdentityKey>().is_err());
}

proptest! {
    #[test]
    fn round_trip(bytes: [u8; 32]) {
        let (identity, transport) =
            (IdentityKey::from_bytes(bytes), TransportPublicKey::from_bytes(bytes));
        prop_assert_eq!(identity.to_string().parse(), Ok(identity));
        prop_assert_eq!(transport.to_string().parse(), Ok(transport));
        prop_assert_eq!(identity.to_string().len(), 62);
    }

    #[test]
    fn any_text_parses_or_is_refused(text in "\\PC{0,80}|f(id|tk)1[a-z0-9]{0,70}") {
        if let Ok(key) = text.parse::<IdentityKey>() {
            prop_assert_eq!(key.to_string(), text);
        }
    }
}
