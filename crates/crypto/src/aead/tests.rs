use super::*;

#[test]
fn ids_round_trip() {
    for suite in Suite::ALL {
        assert_eq!(Suite::from_id(suite.id()), Some(suite));
    }
    for id in 2..=u8::MAX {
        assert_eq!(Suite::from_id(id), None);
    }
}

#[test]
fn nonces_follow_the_noise_specification() {
    let counter = 0x0102_0304_0506_0708;
    assert_eq!(
        hex::encode(Suite::ChaCha20Poly1305.nonce(counter)),
        "000000000807060504030201"
    );
    assert_eq!(
        hex::encode(Suite::Aes256Gcm.nonce(counter)),
        "000000000102030405060708"
    );
}
