//! Against the one-by-one hash of the `sha2` crate, on every length around the block borders.

use super::{sha256_many, sha256_one};

fn hash_all(prefix: &[u8], messages: &[Vec<u8>]) -> Vec<[u8; 32]> {
    let mut hashes = vec![[0; 32]; messages.len()];
    sha256_many(prefix, messages.iter().map(Vec::as_slice), |place, hash| {
        hashes[place] = *hash
    });
    hashes
}

fn message(lane: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| (place * 31 + lane * 7 + length) as u8)
        .collect()
}

#[test]
fn equals_one_by_one_on_every_length_and_prefix() {
    for prefix in [&[][..], &[0], &[1; 8], &[2; 32], &[3; 33]] {
        for length in (0..300).chain([1_088, 1_439, 4_096]) {
            let messages: Vec<_> = (0..16).map(|lane| message(lane, length)).collect();
            let expected: Vec<_> = messages
                .iter()
                .map(|message| sha256_one(prefix, message))
                .collect();
            assert_eq!(
                hash_all(prefix, &messages),
                expected,
                "prefix {prefix:?}, length {length}"
            );
        }
    }
}

#[test]
fn equals_one_by_one_for_every_count_and_for_mixed_lengths() {
    for count in 0..70 {
        let equal: Vec<_> = (0..count).map(|lane| message(lane, 100)).collect();
        let mixed: Vec<_> = (0..count)
            .map(|lane| message(lane, if lane % 20 == 3 { 99 } else { 100 }))
            .collect();
        for messages in [equal, mixed] {
            let expected: Vec<_> = messages.iter().map(|message| sha256_one(&[0], message)).collect();
            assert_eq!(hash_all(&[0], &messages), expected, "{count} messages");
        }
    }
}

#[test]
fn knows_the_published_hash_of_abc() {
    let messages = vec![b"abc".to_vec(); 17];
    let published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for hash in hash_all(&[], &messages) {
        assert_eq!(hex::encode(hash), published);
    }
}
