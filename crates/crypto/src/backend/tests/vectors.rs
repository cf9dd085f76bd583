use super::*;

mod every_backend {
    use super::*;

    for_each_backend!(rfc8439_chacha20_poly1305);
    for_each_backend!(gcm_specification_aes_256);
    for_each_backend!(rfc7748_scalar_multiplication);
    for_each_backend!(rfc7748_iterated);
    for_each_backend!(rfc7748_diffie_hellman);
    for_each_backend!(rfc7748_high_bit_is_ignored);
    for_each_backend!(low_order_points_are_refused);
}

fn bytes<const N: usize>(digits: &str) -> [u8; N] {
    let mut bytes = [0; N];
    hex::decode_to_slice(digits, &mut bytes).unwrap();
    bytes
}

fn check_aead<B: Backend>(suite: Suite, key: &str, nonce: &str, aad: &str, text: &str, sealed: &str) {
    let key = B::Aead::new(suite, &bytes(key));
    let (nonce, aad) = (bytes(nonce), hex::decode(aad).unwrap());
    let text = hex::decode(text).unwrap();
    let mut data = text.clone();
    let tag = key.seal(nonce, &aad, &mut data);
    assert_eq!(hex::encode([&data[..], &tag].concat()), sealed, "{}", B::NAME);
    assert_eq!(key.open(nonce, &aad, &mut data, &tag), Ok(()));
    assert_eq!(data, text);
}

/// RFC 8439, section 2.8.2.
fn rfc8439_chacha20_poly1305<B: Backend>() {
    let text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for \
                 the future, sunscreen would be it.";
    check_aead::<B>(
        Suite::ChaCha20Poly1305,
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "070000004041424344454647",
        "50515253c0c1c2c3c4c5c6c7",
        &hex::encode(text),
        concat!(
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6",
            "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36",
            "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc",
            "3ff4def08e4b7a9de576d26586cec64b6116",
            "1ae10b594f09e26a7e902ecbd0600691"
        ),
    );
}

/// Test cases 13 to 16 of the GCM specification (McGrew and Viega, 2005), as NIST has them.
fn gcm_specification_aes_256<B: Backend>() {
    let zeros = "00".repeat(32);
    let iv = "00".repeat(12);
    let suite = Suite::Aes256Gcm;
    check_aead::<B>(suite, &zeros, &iv, "", "", "530f8afbc74536b9a963b4f1c4cb738b");
    check_aead::<B>(
        suite,
        &zeros,
        &iv,
        "",
        &zeros[..32],
        "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
    );

    let key = "feffe9928665731c6d6a8f9467308308".repeat(2);
    let iv = "cafebabefacedbaddecaf888";
    let text = concat!(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72",
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
    );
    let sealed = concat!(
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa",
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
    );
    let tag = "b094dac5d93471bdec1a502270e3cc6c";
    check_aead::<B>(suite, &key, iv, "", text, &format!("{sealed}{tag}"));
    check_aead::<B>(
        suite,
        &key,
        iv,
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        &text[..120],
        &format!("{}76fc6ece0f4e1768cddf8853bb2d551b", &sealed[..120]),
    );
}

fn multiply<B: Backend>(scalar: &[u8; 32], point: &[u8; 32]) -> [u8; 32] {
    *B::Agreement::from_bytes(scalar).agree(point).unwrap().expose()
}

/// RFC 7748, section 5.2.
fn rfc7748_scalar_multiplication<B: Backend>() {
    for (scalar, point, product) in [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ] {
        let found = multiply::<B>(&bytes(scalar), &bytes(point));
        assert_eq!(hex::encode(found), product, "{}", B::NAME);
    }
}

/// RFC 7748, section 5.2, the iterated test after 1 and 1,000 rounds.
fn rfc7748_iterated<B: Backend>() {
    let mut scalar = [0; 32];
    scalar[0] = 9;
    let mut point = scalar;
    for round in 1..=1000 {
        (scalar, point) = (multiply::<B>(&scalar, &point), scalar);
        if round == 1 {
            assert_eq!(
                hex::encode(scalar),
                "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
            );
        }
    }
    assert_eq!(
        hex::encode(scalar),
        "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"
    );
}

/// RFC 7748, section 6.1.
fn rfc7748_diffie_hellman<B: Backend>() {
    let alice = B::Agreement::from_bytes(&bytes(
        "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
    ));
    let bob = B::Agreement::from_bytes(&bytes(
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
    ));
    assert_eq!(
        hex::encode(alice.public()),
        "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    );
    assert_eq!(
        hex::encode(bob.public()),
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    );
    let shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
    assert_eq!(hex::encode(alice.agree(&bob.public()).unwrap().expose()), shared);
    assert_eq!(hex::encode(bob.agree(&alice.public()).unwrap().expose()), shared);
}

fn rfc7748_high_bit_is_ignored<B: Backend>() {
    let secret = B::Agreement::from_bytes(&KEY);
    let point = B::Agreement::from_bytes(&[5; 32]).public();
    let mut marked = point;
    marked[31] |= 0x80;
    assert_eq!(secret.agree(&point).unwrap(), secret.agree(&marked).unwrap());
}

fn low_order_points_are_refused<B: Backend>() {
    for secret in [[0; 32], [1; 32], [0xff; 32], KEY] {
        let secret = B::Agreement::from_bytes(&secret);
        for point in low_order_points() {
            assert_eq!(
                secret.agree(&point).unwrap_err(),
                LowOrderPoint,
                "{}: {}",
                B::NAME,
                hex::encode(point)
            );
        }
    }
}
