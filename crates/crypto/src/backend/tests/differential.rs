//! Whatever one backend does, the other does too.
#![cfg(feature = "aws-lc-rs")]

use proptest::prelude::*;

use super::{aws_lc::AwsLc, *};

type Fast = <AwsLc as Backend>::Aead;
type Plain = <Portable as Backend>::Aead;

fn seal(key: &impl Aead, nonce: [u8; NONCE_LEN], aad: &[u8], text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let mut data = text.to_vec();
    let tag = key.seal(nonce, aad, &mut data);
    (data, tag)
}

fn agree_on(suite: Suite, key: &[u8; 32], nonce: [u8; NONCE_LEN], aad: &[u8], text: &[u8]) {
    let (fast, plain) = (Fast::new(suite, key), Plain::new(suite, key));
    let (mut data, tag) = seal(&fast, nonce, aad, text);
    let (mut other_data, other_tag) = seal(&plain, nonce, aad, text);
    assert_eq!(
        (&data, tag),
        (&other_data, other_tag),
        "{suite:?}, {} bytes",
        text.len()
    );
    assert_eq!(fast.open(nonce, aad, &mut other_data, &other_tag), Ok(()));
    assert_eq!(plain.open(nonce, aad, &mut data, &tag), Ok(()));
    assert!(data == text && other_data == text);
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 131 + 17) as u8).collect()
}

#[test]
fn every_length_up_to_2048() {
    for suite in Suite::ALL {
        let mut nonce = NONCE;
        for len in 0..=2048 {
            nonce[..2].copy_from_slice(&(len as u16).to_le_bytes());
            agree_on(suite, &KEY, nonce, b"", &pattern(len));
        }
    }
}

#[test]
fn every_length_of_additional_data_up_to_256() {
    for suite in Suite::ALL {
        for len in 0..=256 {
            agree_on(suite, &KEY, NONCE, &pattern(len), &pattern(33));
        }
    }
}

#[test]
fn jumbo_lengths() {
    for suite in Suite::ALL {
        for len in [8_972, 65_507, 65_535, 1 << 20] {
            agree_on(suite, &KEY, NONCE, b"", &pattern(len));
        }
    }
}

#[test]
fn failures_leave_the_same_bytes() {
    for suite in Suite::ALL {
        let (fast, plain) = (Fast::new(suite, &KEY), Plain::new(suite, &KEY));
        for len in 0..=2048 {
            let mut data = pattern(len);
            let mut other = data.clone();
            assert!(fast.open(NONCE, b"", &mut data, &[1; 16]).is_err());
            assert!(plain.open(NONCE, b"", &mut other, &[1; 16]).is_err());
            assert_eq!(data, other, "{suite:?}, {len} bytes");
        }
    }
}

proptest! {
    #[test]
    fn any_key_nonce_and_data(
        key: [u8; 32],
        nonce: [u8; NONCE_LEN],
        aad in prop::collection::vec(any::<u8>(), 0..80),
        text in prop::collection::vec(any::<u8>(), 0..600),
        aes: bool,
    ) {
        agree_on(Suite::ALL[usize::from(aes)], &key, nonce, &aad, &text);
    }

    #[test]
    fn any_secret_with_any_point(secret: [u8; 32], point: [u8; 32]) {
        let fast = <AwsLc as Backend>::Agreement::from_bytes(&secret);
        let plain = <Portable as Backend>::Agreement::from_bytes(&secret);
        prop_assert_eq!(fast.public(), plain.public());
        prop_assert_eq!(fast.agree(&point), plain.agree(&point));
    }
}

#[test]
fn points_at_the_edges_of_the_field() {
    let mut points = low_order_points();
    for base in low_order_points() {
        for step in 0..=20 {
            let mut near = base;
            near[0] = near[0].wrapping_add(step);
            points.push(near);
            near[0] = base[0].wrapping_sub(step);
            points.push(near);
        }
    }
    points.push([0xff; 32]);
    for secret in [[0; 32], [0xff; 32], KEY] {
        let fast = <AwsLc as Backend>::Agreement::from_bytes(&secret);
        let plain = <Portable as Backend>::Agreement::from_bytes(&secret);
        for point in &points {
            assert_eq!(fast.agree(point), plain.agree(point), "{}", hex::encode(point));
        }
    }
}
