//! What must never be printed is never printed.

use std::fmt::Debug;

use falconet_crypto::{
    AeadKey, IdentitySecret, KEY_LEN, SecretBytes, Suite, TransportSecret, backend, keyfile,
};

/// Distinct bytes, so that even a few of them in a row give a leak away.
fn secret() -> [u8; KEY_LEN] {
    std::array::from_fn(|i| 0xc0 ^ (i as u8).wrapping_mul(29))
}

/// The first trace of the secret in `text`: two bytes in a row as numbers, four as hexadecimal.
fn leak(text: &str) -> Option<String> {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let squeezed = squeezed.to_lowercase();
    let numbers = secret();
    let numbers = numbers.windows(2).flat_map(|pair| {
        [
            format!("{},{}", pair[0], pair[1]),
            format!("{:x},{:x}", pair[0], pair[1]),
            format!("0x{:x},0x{:x}", pair[0], pair[1]),
        ]
    });
    let digits = secret();
    let digits = digits.windows(4).map(hex::encode);
    numbers.chain(digits).find(|trace| squeezed.contains(trace))
}

fn assert_silent(value: &impl Debug) {
    for text in [format!("{value:?}"), format!("{value:#?}"), format!("{value:x?}")] {
        assert_eq!(leak(&text), None, "{text}");
    }
}

#[test]
fn debug_prints_no_key_bytes() {
    assert_silent(&SecretBytes::new(secret()));
    assert_silent(&TransportSecret::from_bytes(secret()));
    assert_silent(&IdentitySecret::from_bytes(secret()));
    for suite in Suite::ALL {
        assert_silent(&AeadKey::new(suite, &SecretBytes::new(secret())));
    }
}

#[test]
fn the_search_itself_finds_leaks() {
    for text in [
        format!("{:?}", secret()),
        format!("{:#?}", secret()),
        format!("{:02x?}", secret()),
        hex::encode(secret()),
        hex::encode_upper(secret()),
    ] {
        assert!(leak(&text).is_some(), "{text}");
    }
}

#[test]
fn key_files_and_what_they_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    keyfile::create_transport(&path, &TransportSecret::from_bytes(secret())).unwrap();
    assert_silent(&keyfile::load_transport_file(&path).unwrap());
    assert_silent(&keyfile::load_identity(&path).unwrap_err());
}

/// A key names its public half, so that logs stay useful.
#[test]
fn debug_names_the_public_key() {
    let transport = TransportSecret::from_bytes(secret());
    assert!(format!("{transport:?}").contains(&transport.public().to_string()));
}

/// Compiles only if dropping these clears them.
#[test]
fn dropped_secrets_are_zeroized() {
    fn is_zeroized_on_drop<T: zeroize::ZeroizeOnDrop>() {}
    is_zeroized_on_drop::<SecretBytes>();
    is_zeroized_on_drop::<TransportSecret>();
    is_zeroized_on_drop::<IdentitySecret>();
    is_zeroized_on_drop::<AeadKey>();
    is_zeroized_on_drop::<backend::portable::AeadKey>();
    is_zeroized_on_drop::<backend::portable::X25519Secret>();
}
