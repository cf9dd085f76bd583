//! The long digests come from an implementation that shares nothing with ours: Python's `hashlib`
//! and `hmac`, with `data(n) = bytes(i % 251 for i in range(n))` and `key(n) = bytes(range(n))`, all
//! outputs joined and hashed with SHA-256.

use sha2::Sha256;

use super::*;

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn key(len: u8) -> Vec<u8> {
    (0..len).collect()
}

#[test]
fn rfc7693_abc() {
    assert_eq!(
        hex::encode(blake2s(&[b"abc"])),
        "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"
    );
}

/// `hashlib.blake2s(data(n)).digest()` for n below 300.
#[test]
fn hash_as_hashlib() {
    let mut all = Vec::new();
    for len in 0..300 {
        all.extend(blake2s(&[&data(len)]));
    }
    assert_eq!(
        hex::encode(Sha256::digest(all)),
        "45250548dab1c24be8e8b51782d6e4d0998a1ac8f19d347b3e3985d1554c23f2"
    );
}

/// `hashlib.blake2s(data(n), key=key(k), digest_size=16).digest()` for k up to 32, n below 200.
#[test]
fn mac_as_hashlib() {
    let mut all = Vec::new();
    for key_len in 0..=32 {
        for len in 0..200 {
            all.extend(blake2s_mac(&key(key_len), &[&data(len)]));
        }
    }
    assert_eq!(
        hex::encode(Sha256::digest(all)),
        "8913fed8b817754f0ad27abefe81f79927857bcb22f0588da2102480e38ffa9f"
    );
}

#[test]
fn long_mac_keys_are_hashed_first() {
    assert_eq!(
        hex::encode(blake2s_mac(&key(40), &[b"abc"])),
        "6d302b6c4815d5050ea461dfdd1a5692"
    );
}

/// `hmac.new(key(k), data(n), hashlib.blake2s).digest()` for k below 100, n below 200 in steps of 7.
#[test]
fn hmac_as_python() {
    let mut all = Vec::new();
    for key_len in 0..100 {
        for len in (0..200).step_by(7) {
            all.extend(hmac_blake2s(&key(key_len), &[&data(len)]));
        }
    }
    assert_eq!(
        hex::encode(Sha256::digest(all)),
        "83ff5b0252fb25564bb6990d12cc1d362d8949070dd6b206bb7b3150f3d4ec94"
    );
}

/// HKDF written with `hmac.new(.., hashlib.blake2s)`.
#[test]
fn kdf_as_python() {
    let mut chaining = [0; 32];
    chaining.copy_from_slice(&key(32));
    let outputs = [
        "93e2a65883e34ac95485f5d0aa4b09163a4e944dab8cf9406d3a138e362851c6",
        "dd6fae42afdb2a41170f44dc5b885ec4cfd17c8dd324d38b390c548630dd0a83",
        "4125e0adfa9b7e736615e99dde6f3f0b64b949d8b480e82cab2e685dc286e45d",
    ];
    let (first, second, third) = kdf3(&chaining, b"input key material");
    for (found, expected) in [&first, &second, &third].into_iter().zip(outputs) {
        assert_eq!(hex::encode(found.expose()), expected);
    }
    // Shorter derivations are prefixes of longer ones.
    let (one, two) = kdf2(&chaining, b"input key material");
    assert!(one == first && two == second);
    assert_eq!(kdf1(&chaining, b"input key material"), first);
}

/// The psk-less last step of the handshake derives from an empty input.
#[test]
fn kdf_of_nothing() {
    let (first, second, _) = kdf3(&[0; 32], b"");
    assert_eq!(
        hex::encode(first.expose()),
        "8387b46bf43eccfcf349552a095d8315c4055beb90208fb1be23b894bc2ed5d0"
    );
    assert_eq!(
        hex::encode(second.expose()),
        "58a0e5f6faefccf4807bff1f05fa8a9217945762040bcec2f4b4a62bdfe0e86e"
    );
}

/// The chaining key that WireGuard's handshake starts with (its white paper, section 5.4).
#[test]
fn wireguard_construction() {
    assert_eq!(
        hex::encode(blake2s(&[b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"])),
        "60e26daef327efc02ec335e2a025d2d016eb4206f87277f52d38d1988b78cd36"
    );
}

#[test]
fn parts_are_joined() {
    let all = data(150);
    for cut in [0, 1, 63, 64, 65, 128, 150] {
        let parts: [&[u8]; 3] = [&all[..cut], b"", &all[cut..]];
        assert_eq!(blake2s(&parts), blake2s(&[&all]));
        assert_eq!(blake2s_mac(b"key", &parts), blake2s_mac(b"key", &[&all]));
        assert_eq!(hmac_blake2s(b"key", &parts), hmac_blake2s(b"key", &[&all]));
    }
}
