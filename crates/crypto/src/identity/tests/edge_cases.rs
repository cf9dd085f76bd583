//! The edge cases that implementations of Ed25519 disagree about.

use curve25519_dalek::{
    EdwardsPoint, Scalar,
    constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION},
};
use sha2::{Digest, Sha512};

use super::*;

struct Case {
    why: &'static str,
    valid: bool,
    message: &'static str,
    key: &'static str,
    r: &'static str,
    s: &'static str,
}

/// The twelve vectors of Chalkias, Garillot and Nikolaenko, "Taming the many EdDSAs" (2020), in
/// their order (<https://github.com/novifinancial/ed25519-speccheck>, `cases.txt`).
const CASES: [Case; 12] = [
    Case {
        why: "S = 0, A and R of small order",
        valid: false,
        message: "8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6",
        key: "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        r: "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        s: "0000000000000000000000000000000000000000000000000000000000000000",
    },
    Case {
        why: "A of small order, R of mixed order",
        valid: false,
        message: "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
        key: "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        r: "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        s: "a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
    },
    Case {
        why: "A of mixed order, R of small order",
        valid: false,
        message: "aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab",
        key: "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        r: "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        s: "8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e",
    },
    Case {
        why: "A and R of mixed order: what a cofactorless equation accepts, so do we",
        valid: true,
        message: "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
        key: "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
        r: "9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f",
        s: "87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009",
    },
    Case {
        why: "valid only with the cofactor",
        valid: false,
        message: "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
        key: "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
        r: "160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed512",
        s: "5ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09",
    },
    Case {
        why: "valid only with the cofactor, if 8h is not reduced first",
        valid: false,
        message: "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
        key: "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
        r: "21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7",
        s: "e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405",
    },
    Case {
        why: "S > L",
        valid: false,
        message: "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
        key: "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
        r: "e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e",
        s: "547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514",
    },
    Case {
        why: "S far above L",
        valid: false,
        message: "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
        key: "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
        r: "8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa1942",
        s: "7e71f98a473474f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e89a8c22",
    },
    Case {
        why: "non-canonical R, valid if it is reduced before hashing",
        valid: false,
        message: "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",
        key: "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        r: "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        s: "03be9678ac102edcd92b0210bb34d7428d12ffc5df5f37e359941266a4e35f0f",
    },
    Case {
        why: "non-canonical R, valid if it is hashed as it is",
        valid: false,
        message: "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",
        key: "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        r: "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        s: "ca8c5b64cd208982aa38d4936621a4775aa233aa0505711d8fdcfdaa943d4908",
    },
    Case {
        why: "non-canonical A, valid if it is reduced before hashing",
        valid: false,
        message: "e96b7021eb39c1a163b6da4e3093dcd3f21387da4cc4572be588fafae23c155b",
        key: "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        r: "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dc",
        s: "a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
    },
    Case {
        why: "non-canonical A, valid if it is hashed as it is",
        valid: false,
        message: "39a591f5321bbe07fd5a23dc2f39d025d74526615746727ceefd6e82ae65c06f",
        key: "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        r: "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dc",
        s: "a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
    },
];

fn bytes(digits: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    hex::decode_to_slice(digits, &mut bytes).unwrap();
    bytes
}

fn signature(r: &[u8; 32], s: &[u8; 32]) -> Signature {
    let mut joined = [0; SIGNATURE_LEN];
    joined[..32].copy_from_slice(r);
    joined[32..].copy_from_slice(s);
    Signature(joined)
}

fn is_valid(key: &[u8; 32], message: &[u8], r: &[u8; 32], s: &[u8; 32]) -> bool {
    IdentityKey(*key).verify_bytes(message, &signature(r, s)).is_ok()
}

#[test]
fn taming_the_many_eddsas() {
    for (number, case) in CASES.iter().enumerate() {
        let message = bytes(case.message);
        let valid = is_valid(&bytes(case.key), &message, &bytes(case.r), &bytes(case.s));
        assert_eq!(valid, case.valid, "case {number}: {}", case.why);
    }
}

/// All encodings of the points of small order: the eight points, and what is not canonical of them.
fn small_order_encodings() -> Vec<[u8; 32]> {
    let mut encodings: Vec<_> = EIGHT_TORSION.iter().map(|point| point.compress().0).collect();
    for digits in [
        // y = 1 and y = -1 with the sign of x set, though x = 0.
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        // y = p and y = p + 1, either sign.
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ] {
        encodings.push(bytes(digits));
    }
    encodings
}

/// The 196 signatures of de Valence, "It's 255:19AM" (2020), built from the same points: all pass the
/// equation with the cofactor, and none is valid here.
#[test]
fn nothing_of_small_order() {
    for key in small_order_encodings() {
        for r in small_order_encodings() {
            assert!(!is_valid(&key, b"Zcash", &r, &[0; 32]));
        }
    }
}

fn challenge(r: &EdwardsPoint, key: &EdwardsPoint, message: &[u8]) -> Scalar {
    let hash = Sha512::new()
        .chain_update(r.compress().0)
        .chain_update(key.compress().0)
        .chain_update(message)
        .finalize();
    Scalar::from_bytes_mod_order_wide(&hash.into())
}

/// A signer who adds torsion to R or to the key satisfies the equation with the cofactor only.
#[test]
fn torsion_in_the_nonce_or_the_key() {
    let (secret, nonce) = (Scalar::from(11u64), Scalar::from(22u64));
    for torsion in &EIGHT_TORSION[1..] {
        for message in [b"one", b"two"] {
            let key = ED25519_BASEPOINT_POINT * secret;
            let r = ED25519_BASEPOINT_POINT * nonce + torsion;
            let s = nonce + challenge(&r, &key, message) * secret;
            assert!(!is_valid(
                &key.compress().0,
                message,
                &r.compress().0,
                s.as_bytes()
            ));

            // In the key, it cancels out where the challenge is a multiple of its order.
            let key = key + torsion;
            let r = ED25519_BASEPOINT_POINT * nonce;
            let h = challenge(&r, &key, message);
            let s = nonce + h * secret;
            let cancels = torsion * h == EdwardsPoint::default();
            let valid = is_valid(&key.compress().0, message, &r.compress().0, s.as_bytes());
            assert_eq!(valid, cancels);
        }
    }
}

/// Adding L to S gives a second signature of the same message, unless S must be reduced.
#[test]
fn signatures_are_not_malleable() {
    let order = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let secret = IdentitySecret::from_bytes([1; 32]);
    let (r, s) = {
        let signed = secret.key.sign(b"message").to_bytes();
        let (r, s) = signed.split_at(32);
        (<[u8; 32]>::try_from(r).unwrap(), <[u8; 32]>::try_from(s).unwrap())
    };
    assert!(is_valid(&secret.identity().0, b"message", &r, &s));
    let mut sum = [0; 32];
    let mut carry = 0;
    for i in 0..32 {
        carry += u16::from(s[i]) + u16::from(order[i]);
        sum[i] = carry as u8;
        carry >>= 8;
    }
    assert!(!is_valid(&secret.identity().0, b"message", &r, &sum));
}

/// Two encodings of one point would be two names of one validator.
#[test]
fn keys_are_canonical() {
    for low in 0xed..=0xff {
        for high in [0x7f, 0xff] {
            let mut encoding = [0xff; 32];
            (encoding[0], encoding[31]) = (low, high);
            assert!(!is_canonical(&encoding));
        }
    }
    let mut largest = bytes("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f");
    assert!(is_canonical(&largest));
    largest[17] = 0xfe;
    largest[0] = 0xff;
    assert!(is_canonical(&largest));
    assert!(is_canonical(&[0; 32]));
}
