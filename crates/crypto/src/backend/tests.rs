//! Published vectors for each backend, then one backend against the other.

use super::{portable::Portable, *};

/// Runs a generic check on every backend of this build.
macro_rules! for_each_backend {
    ($check:ident) => {
        #[test]
        fn $check() {
            super::$check::<Portable>();
            #[cfg(feature = "aws-lc-rs")]
            super::$check::<aws_lc::AwsLc>();
        }
    };
}

mod differential;
mod vectors;

mod every_backend {
    use super::*;

    for_each_backend!(what_is_altered_does_not_open);
    for_each_backend!(failure_clears_the_data);
    for_each_backend!(keys_work_across_threads);
}

const KEY: [u8; 32] = [0x42; 32];
const NONCE: [u8; NONCE_LEN] = [7; NONCE_LEN];

fn sealed<B: Backend>(suite: Suite, data: &[u8]) -> (B::Aead, Vec<u8>, [u8; 16]) {
    let key = B::Aead::new(suite, &KEY);
    let mut data = data.to_vec();
    let tag = key.seal(NONCE, b"aad", &mut data);
    (key, data, tag)
}

fn what_is_altered_does_not_open<B: Backend>() {
    for suite in Suite::ALL {
        let (key, data, tag) = sealed::<B>(suite, b"thirty-three bytes of some plaintext");
        let opens = |key: &B::Aead, nonce, aad: &[u8], data: &[u8], tag: [u8; 16]| {
            key.open(nonce, aad, &mut data.to_vec(), &tag).is_ok()
        };
        assert!(opens(&key, NONCE, b"aad", &data, tag));
        for bit in 0..data.len() * 8 {
            let mut altered = data.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(&key, NONCE, b"aad", &altered, tag), "{suite:?}, bit {bit}");
        }
        for bit in 0..128 {
            let mut altered = tag;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !opens(&key, NONCE, b"aad", &data, altered),
                "{suite:?}, tag bit {bit}"
            );
        }
        for bit in 0..NONCE_LEN * 8 {
            let mut altered = NONCE;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !opens(&key, altered, b"aad", &data, tag),
                "{suite:?}, nonce bit {bit}"
            );
        }
        assert!(!opens(&key, NONCE, b"aae", &data, tag));
        assert!(!opens(&key, NONCE, b"", &data, tag));
        assert!(!opens(&key, NONCE, b"aad", &data[1..], tag));
        assert!(!opens(
            &B::Aead::new(suite, &[0x43; 32]),
            NONCE,
            b"aad",
            &data,
            tag
        ));
    }
}

fn failure_clears_the_data<B: Backend>() {
    for suite in Suite::ALL {
        for len in [0, 1, 15, 16, 17, 64, 255, 256, 1440, 2048] {
            let (key, mut data, mut tag) = sealed::<B>(suite, &vec![0xa5; len]);
            tag[15] ^= 0x80;
            assert_eq!(key.open(NONCE, b"aad", &mut data, &tag), Err(OpenError));
            assert_eq!(data, vec![0; len], "{suite:?}, {len} bytes");
        }
    }
}

fn keys_work_across_threads<B: Backend>() {
    for suite in Suite::ALL {
        let (key, data, tag) = sealed::<B>(suite, b"shared");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut data = data.clone();
                    assert_eq!(key.open(NONCE, b"aad", &mut data, &tag), Ok(()));
                    assert_eq!(data, b"shared");
                });
            }
        });
    }
}

/// Every u-coordinate of low order (1, 2, 4 or 8), in every encoding that fits 32 bytes: canonical,
/// plus p where that fits, and each with the high bit, which RFC 7748 says to ignore.
pub(crate) fn low_order_points() -> Vec<[u8; 32]> {
    let mut points = Vec::new();
    for point in [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ] {
        let mut bytes = [0; 32];
        hex::decode_to_slice(point, &mut bytes).unwrap();
        points.push(bytes);
        bytes[31] |= 0x80;
        points.push(bytes);
    }
    points
}
