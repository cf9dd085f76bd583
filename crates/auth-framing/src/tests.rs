use super::*;
use falconet_crypto::{SecretBytes, Suite};
use proptest::prelude::*;

mod vectors;

const INDEX: SessionIndex = SessionIndex::new(0x1122_3344);

fn pair(suite: Suite) -> (Sealer, Opener) {
    let key = SecretBytes::new([0x5a; 32]);
    (Sealer::new(suite, &key, INDEX), Opener::new(suite, &key))
}

fn sealed(sealer: &mut Sealer, plaintext: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0xee; plaintext.len() + OVERHEAD];
    datagram[HEADER_LEN..HEADER_LEN + plaintext.len()].copy_from_slice(plaintext);
    sealer.seal(&mut datagram).unwrap();
    datagram
}

fn open(opener: &mut Opener, datagram: &[u8]) -> Result<(Opened, Vec<u8>), Discard> {
    let mut datagram = datagram.to_vec();
    let opened = opener.open(Header::parse(&datagram)?, &mut datagram)?;
    Ok((opened, datagram[HEADER_LEN..HEADER_LEN + opened.len].to_vec()))
}

#[test]
fn every_length_comes_back_as_it_went() {
    for suite in Suite::ALL {
        let (mut sealer, mut opener) = pair(suite);
        for len in 0..=2048usize {
            let plaintext: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
            let datagram = sealed(&mut sealer, &plaintext);
            assert_eq!(datagram.len(), len + 32);
            let (opened, got) = open(&mut opener, &datagram).unwrap();
            assert_eq!(got, plaintext);
            assert_eq!(opened.counter, Counter::new(len as u64));
        }
    }
}

#[test]
fn junk_of_every_length_ends_in_a_named_discard() {
    for suite in Suite::ALL {
        let (_, mut opener) = pair(suite);
        for len in 0..=2048 {
            for fill in [0, 0xff, 4] {
                let mut junk = vec![fill; len];
                let reason = open(&mut opener, &junk).unwrap_err();
                assert_eq!(
                    reason,
                    if len < OVERHEAD {
                        Discard::Truncated
                    } else if fill == 4 {
                        Discard::ReservedBytes
                    } else {
                        Discard::NotData
                    }
                );
                if len >= OVERHEAD {
                    junk[..4].copy_from_slice(&[4, 0, 0, 0]);
                    let limited = suite == Suite::Aes256Gcm && fill != 0 || fill == 0xff;
                    let expected = if limited {
                        Discard::CounterLimit
                    } else {
                        Discard::BadTag
                    };
                    assert_eq!(open(&mut opener, &junk).unwrap_err(), expected);
                }
            }
        }
    }
}

#[test]
fn a_forged_datagram_leaves_the_window_as_it_was() {
    for suite in Suite::ALL {
        let (mut sealer, mut opener) = pair(suite);
        let genuine = sealed(&mut sealer, b"vote");
        let mut forged = genuine.clone();
        forged[8..16].copy_from_slice(&(1u64 << 35).to_le_bytes());
        assert_eq!(open(&mut opener, &forged).unwrap_err(), Discard::BadTag);
        assert!(open(&mut opener, &genuine).unwrap().0.is_highest);
        assert_eq!(open(&mut opener, &genuine).unwrap_err(), Discard::Replayed);
    }
}

#[test]
fn every_flipped_bit_is_noticed_except_in_the_receiver_index() {
    for suite in Suite::ALL {
        let (mut sealer, mut opener) = pair(suite);
        let genuine = sealed(&mut sealer, b"chunk");
        for bit in 0..genuine.len() * 8 {
            let mut flipped = genuine.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match bit / 8 {
                // Finds the session, and so is bound by that session's key instead.
                4..8 => assert_ne!(Header::parse(&flipped).unwrap().receiver, INDEX),
                0 => assert_eq!(open(&mut opener, &flipped).unwrap_err(), Discard::NotData),
                1..4 => assert_eq!(open(&mut opener, &flipped).unwrap_err(), Discard::ReservedBytes),
                _ => {
                    let reason = open(&mut opener, &flipped).unwrap_err();
                    assert!(
                        matches!(reason, Discard::BadTag | Discard::CounterLimit),
                        "bit {bit}: {reason}"
                    );
                }
            }
        }
        assert!(open(&mut opener, &genuine).is_ok());
    }
}

#[test]
fn only_the_greatest_counter_is_highest() {
    let (mut sealer, mut opener) = pair(Suite::ChaCha20Poly1305);
    let datagrams: Vec<_> = (0..4).map(|_| sealed(&mut sealer, b"x")).collect();
    let highest: Vec<bool> = [1, 0, 3, 2]
        .iter()
        .map(|&i| open(&mut opener, &datagrams[i]).unwrap().0.is_highest)
        .collect();
    assert_eq!(highest, [true, false, true, false]);
}

#[test]
fn sealing_stops_at_the_limit_of_the_suite() {
    let expected = [
        (Suite::ChaCha20Poly1305, 1u64 << 60, u64::MAX - 8192),
        (Suite::Aes256Gcm, 1 << 32, 1 << 36),
    ];
    for (suite, rekey, reject) in expected {
        let (mut sealer, mut opener) = pair(suite);
        sealer.skip_to(rekey - 1);
        assert!(!sealer.needs_rekey());
        sealed(&mut sealer, b"");
        assert!(sealer.needs_rekey() && !sealer.exhausted());

        sealer.skip_to(reject - 1);
        let last = sealed(&mut sealer, b"last");
        assert_eq!(open(&mut opener, &last).unwrap().1, b"last");
        assert!(sealer.exhausted());
        let mut unsealed = [0xee; 40];
        assert_eq!(sealer.seal(&mut unsealed), Err(SealError::Exhausted));
        assert_eq!((unsealed, sealer.sealed()), ([0xee; 40], reject));

        let mut beyond = last;
        beyond[8..16].copy_from_slice(&reject.to_le_bytes());
        assert_eq!(open(&mut opener, &beyond).unwrap_err(), Discard::CounterLimit);
    }
}

#[test]
fn a_buffer_without_room_is_refused_and_costs_no_counter() {
    let (mut sealer, _) = pair(Suite::Aes256Gcm);
    for len in 0..OVERHEAD {
        assert_eq!(sealer.seal(&mut vec![0; len]), Err(SealError::NoRoom));
    }
    assert_eq!(sealer.sealed(), 0);
}

#[test]
fn suites_and_keys_do_not_open_each_other() {
    let (mut chacha, _) = pair(Suite::ChaCha20Poly1305);
    let (_, mut aes) = pair(Suite::Aes256Gcm);
    let datagram = sealed(&mut chacha, b"proposal");
    assert_eq!(open(&mut aes, &datagram).unwrap_err(), Discard::BadTag);
    let mut other = Opener::new(Suite::ChaCha20Poly1305, &SecretBytes::new([0x5b; 32]));
    assert_eq!(open(&mut other, &datagram).unwrap_err(), Discard::BadTag);
}

#[test]
fn labels_are_distinct_and_debug_shows_no_key() {
    let labels: std::collections::BTreeSet<_> = Discard::ALL.iter().map(|reason| reason.label()).collect();
    assert_eq!(labels.len(), Discard::ALL.len());
    let (sealer, opener) = pair(Suite::ChaCha20Poly1305);
    let shown = format!("{sealer:?} {opener:?}");
    assert!(
        !shown.contains("90, 90") && !shown.to_lowercase().contains("5a5a"),
        "{shown}"
    );
}

proptest! {
    #[test]
    fn any_bytes_parse_or_are_named(bytes in prop::collection::vec(any::<u8>(), 0..200), typed in any::<bool>()) {
        let mut bytes = bytes;
        if typed && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&[4, 0, 0, 0]);
        }
        match Header::parse(&bytes) {
            Ok(header) => prop_assert_eq!(&header.encode()[..], &bytes[..HEADER_LEN]),
            Err(reason) => prop_assert!(Discard::ALL.contains(&reason)),
        }
        for suite in Suite::ALL {
            prop_assert!(open(&mut pair(suite).1, &bytes).is_err());
        }
    }
}
