//! Files that are not what was written.

use proptest::prelude::*;

use super::*;

fn text() -> Vec<u8> {
    format::encode_transport(&transport(), true).as_bytes().to_vec()
}

fn corruption(bytes: &[u8]) -> Corruption {
    format::parse(bytes).err().expect("this must not load")
}

/// Replaces the last line by a right checksum, so that only what the test altered is wrong.
fn with_checksum(lines: &str) -> Vec<u8> {
    let checksum = crate::blake2s(&[lines.as_bytes()]);
    format!("{lines}checksum: {}\n", hex::encode(&checksum[..8])).into_bytes()
}

fn lines() -> String {
    let text = String::from_utf8(text()).unwrap();
    text[..text.find("checksum").unwrap()].to_owned()
}

#[test]
fn every_truncation() {
    let text = text();
    for len in 0..text.len() {
        assert_eq!(corruption(&text[..len]), Corruption::Truncated, "{len} bytes");
    }
}

#[test]
fn every_trailing_byte() {
    for extra in 0..=0x7f {
        let mut longer = text();
        longer.push(extra);
        assert_eq!(corruption(&longer), Corruption::TrailingData);
    }
    let mut twice = text();
    twice.extend(text());
    assert_eq!(corruption(&twice), Corruption::TrailingData);
}

#[test]
fn every_altered_bit() {
    for bit in 0..text().len() * 8 {
        let mut altered = text();
        altered[bit / 8] ^= 1 << (bit % 8);
        let _ = corruption(&altered);
    }
}

#[test]
fn altered_digits_fail_the_checksum() {
    let text = String::from_utf8(text()).unwrap();
    let altered = text.replace("secret: 22", "secret: 23");
    assert_eq!(corruption(altered.as_bytes()), Corruption::Checksum);
    let altered = text.replace("disposable: yes", "disposable: no");
    assert_eq!(corruption(altered.as_bytes()), Corruption::Checksum);
}

#[test]
fn each_line_is_checked_by_itself() {
    let malformed = |line, field| Corruption::Malformed { line, field };
    for (from, to, expected) in [
        ("version 1", "version 2", Corruption::UnknownVersion),
        ("version 1", "version 01", Corruption::UnknownVersion),
        ("falconet key", "falconet cat", Corruption::NotAKeyFile),
        ("purpose: transport", "purpose: signing", malformed(2, "purpose")),
        ("purpose: transport", "purpose:transport", malformed(2, "purpose")),
        ("purpose: transport", "purpose: identity", malformed(3, "public")),
        (
            "disposable: yes",
            "disposable: perhaps",
            malformed(3, "disposable"),
        ),
        ("disposable: yes\n", "", malformed(3, "disposable")),
        ("public: ", "Public: ", malformed(4, "public")),
        ("secret: 22", "secret: 2", malformed(5, "secret")),
        ("secret: 22", "secret: 2g", malformed(5, "secret")),
        ("secret: 22", "secret: 0x22", malformed(5, "secret")),
        // Not 23: X25519 ignores the lowest three bits.
        ("secret: 22", "secret: 2a", Corruption::PublicKey),
        ("\n", "\r\n", Corruption::UnknownVersion),
    ] {
        let altered = lines().replace(from, to);
        assert_ne!(altered, lines());
        assert_eq!(
            corruption(&with_checksum(&altered)),
            expected,
            "{from:?} -> {to:?}"
        );
    }
    assert_eq!(corruption(&with_checksum("")), Corruption::NotAKeyFile);
    assert!(format::parse(&with_checksum(&lines())).is_ok());
}

#[test]
fn a_long_file_is_not_read_to_its_end() {
    let (_folder, path) = scratch();
    create_transport(&path, &transport()).unwrap();
    let mut text = fs::read(&path).unwrap();
    text.resize(10_000_000, b'\n');
    fs::write(&path, text).unwrap();
    match load_transport(&path) {
        Err(KeyFileError::Corrupt {
            reason: Corruption::TrailingData,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_say_nothing_of_the_secret() {
    let (_folder, path) = scratch();
    create_transport(&path, &transport()).unwrap();
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("secret: 2222", "secret: 222");
    fs::write(&path, text).unwrap();
    let error = load_transport(&path).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("222"), "{error}");
    assert!(
        error.to_string().contains("line 5 is not a valid `secret` line"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(format::parse(&bytes).is_err());
    }

    #[test]
    fn any_secret_round_trips(secret: [u8; KEY_LEN]) {
        let text = format::encode_transport(&TransportSecret::from_bytes(secret), false);
        match format::parse(text.as_bytes()) {
            Ok(format::Content::Transport(found)) if found.disposable().is_none() => {
                prop_assert_eq!(found.expose(), &secret);
            }
            _ => prop_assert!(false, "not what was written"),
        }
    }
}
