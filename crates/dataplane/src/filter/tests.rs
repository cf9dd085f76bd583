use std::net::UdpSocket;
use std::time::Duration;

use falconet_crypto::SessionIndex;

use super::*;
use crate::sys;

/// Sends `datagrams` through `program`; says of each whether it was kept.
fn keeps(program: &[sock_filter], datagrams: &[Vec<u8>]) -> Vec<bool> {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    sys::attach_filter(&receiver, program).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let mut kept = Vec::new();
    for datagram in datagrams {
        let before = sys::kernel_drops(&receiver).unwrap();
        sender.send(datagram).unwrap();
        // On the loopback interface a datagram is judged before the call that sends it returns.
        let dropped = sys::kernel_drops(&receiver).unwrap().wrapping_sub(before);
        if dropped == 0 {
            let length = receiver.recv(&mut [0; 70_000]).unwrap();
            assert_eq!(length, datagram.len(), "kept whole");
        }
        kept.push(dropped == 0);
    }
    kept
}

fn key() -> IndexKey {
    IndexKey::from_constants([0x1234_5678, 0x9e37_79b9, 0xdead_beef, 0x85eb_ca6b])
}

/// A word that certifies itself, as it stands on the wire.
fn good_index() -> [u8; 4] {
    let good = (7 << 12..8 << 12).find(|word: &u32| key().check(SessionIndex::new(word.swap_bytes())));
    good.unwrap().to_be_bytes()
}

fn message(kind: u8, length: usize, index_at: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[0] = kind;
    if let Some(place) = bytes.get_mut(index_at..index_at + 4) {
        place.copy_from_slice(&good_index());
    }
    bytes
}

fn with(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] ^= value;
    bytes
}

#[test]
fn data_is_kept_by_type_length_and_index() {
    let datagrams = [
        message(4, 32, 4),
        message(4, 1_472, 4),
        message(4, 65_507, 4),
        message(4, 31, 4),
        with(message(4, 32, 4), 1, 1),
        with(message(4, 32, 4), 7, 1),
        with(message(4, 32, 4), 4, 0x80),
        message(3, 64, 4),
        message(0, 1_000, 4),
        Vec::new(),
    ];
    let expected = [true, true, true, false, false, false, false, false, false, false];
    assert_eq!(keeps(&data(key()), &datagrams), expected);
}

#[test]
fn handshake_messages_are_kept_by_exact_length_and_index() {
    let datagrams = [
        message(1, 148, 148),
        with(message(1, 148, 148), 1, 1),
        message(2, 92, 8),
        message(3, 64, 4),
        message(1, 147, 147),
        message(1, 149, 149),
        with(message(1, 148, 148), 3, 1),
        message(2, 92, 4),
        message(2, 64, 8),
        message(3, 64, 8),
        message(3, 92, 4),
        message(4, 148, 4),
        vec![1],
        Vec::new(),
    ];
    let kept = keeps(&handshakes(key()), &datagrams);
    assert_eq!(kept[..4], [true; 4]);
    assert_eq!(kept[4..], [false; 10]);
}

#[test]
fn the_plain_lane_keeps_its_kinds() {
    let datagrams: Vec<_> = (0..=255).map(|kind| vec![kind, 1, 2]).collect();
    let kept = keeps(&plain(), &datagrams);
    for (kind, kept) in kept.into_iter().enumerate() {
        assert_eq!(kept, (0x10..=0x20).contains(&kind), "{kind:#x}");
    }
}

#[test]
fn the_kernel_and_the_transport_agree_on_every_index() {
    // One in 4,096 random words passes; both must pass the same ones.
    let mut word = 1_u32;
    let words: Vec<u32> = std::iter::repeat_with(|| {
        word = word.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        word
    })
    .take(20_000)
    .collect();
    let datagrams: Vec<_> = words
        .iter()
        .map(|word| {
            let mut bytes = message(4, 32, 32);
            bytes[4..8].copy_from_slice(&word.to_be_bytes());
            bytes
        })
        .collect();
    let expected: Vec<_> = words
        .iter()
        .map(|word| key().check(SessionIndex::new(word.swap_bytes())))
        .collect();
    let passed = expected.iter().filter(|ok| **ok).count();
    assert!((1..40).contains(&passed), "{passed} of 20,000");
    assert_eq!(keeps(&data(key()), &datagrams), expected);
}
