use falconet_crypto::IdentityKey;
use proptest::prelude::*;

use super::*;

fn header(author: AuthorRef) -> Header {
    Header {
        version: Version::V0,
        mode: Mode::Broadcast,
        epoch: Epoch::new(0x0102_0304),
        round: Round::new(0x0a0b_0c0d_0e0f).unwrap(),
        timestamp_ms: 0x0112_2334_4556,
        payload_len: 1000,
        symbol_size: 128,
        symbols: 20,
        index: SymbolIndex::new(19),
        author,
    }
}

fn chunk(header: &Header) -> Vec<u8> {
    let proof = 20 * usize::from(merkle_depth(header.symbols));
    let mut bytes = vec![0xee; header.encoded_len() + 64 + proof + usize::from(header.symbol_size)];
    header.encode(&mut bytes);
    bytes
}

#[test]
fn the_layout_is_the_specified_one() {
    let bytes = chunk(&header(AuthorRef::Index(NodeIndex::new(0x0506))));
    let expected = "10010203040a0b0c0d0e0f0112233445560003e802001400130506";
    assert_eq!(hex::encode(&bytes[..27]), expected);
    let key = AuthorRef::Key(IdentityKey::from_bytes([7; 32]));
    let bytes = chunk(&header(key));
    assert_eq!(bytes[0], 0x11);
    assert_eq!(bytes[25..57], [7; 32]);
}

#[test]
fn every_prefix_is_truncated_and_every_extension_is_refused() {
    for author in [
        AuthorRef::Index(NodeIndex::new(3)),
        AuthorRef::Key(IdentityKey::from_bytes([7; 32])),
    ] {
        let header = header(author);
        let mut bytes = chunk(&header);
        assert_eq!(ChunkView::parse(&bytes).unwrap().header, header);
        for len in 0..bytes.len() {
            assert_eq!(ChunkView::parse(&bytes[..len]).unwrap_err(), Discard::Truncated);
        }
        bytes.push(0);
        assert_eq!(ChunkView::parse(&bytes).unwrap_err(), Discard::TrailingBytes);
    }
}

#[test]
fn fields_out_of_limits_have_their_own_reasons() {
    let valid = header(AuthorRef::Index(NodeIndex::new(3)));
    let reason = |change: fn(&mut Header)| {
        let mut header = valid;
        change(&mut header);
        ChunkView::parse(&chunk(&header)).unwrap_err()
    };
    assert_eq!(reason(|h| h.payload_len = 0), Discard::PayloadLength);
    assert_eq!(reason(|h| h.payload_len = (3 << 20) + 1), Discard::PayloadLength);
    assert_eq!(reason(|h| h.symbol_size = 0), Discard::SymbolSize);
    assert_eq!(reason(|h| h.symbols = 7), Discard::SymbolCount);
    assert_eq!(reason(|h| h.symbols = 0), Discard::SymbolCount);
    assert_eq!(reason(|h| h.symbols = MAX_SYMBOLS + 1), Discard::SymbolCount);
    assert_eq!(reason(|h| h.index = SymbolIndex::new(20)), Discard::SymbolIndex);
}

#[test]
fn first_bytes_of_others_are_not_chunks() {
    let mut bytes = chunk(&header(AuthorRef::Index(NodeIndex::new(3))));
    for first in 0..=255 {
        bytes[0] = first;
        let expected = match first {
            0x10 | 0x12 | 0x14 | 0x18 | 0x1a | 0x1c => None,
            0x11 | 0x13 | 0x15 | 0x19 | 0x1b | 0x1d => Some(Discard::Truncated),
            0x16 | 0x17 | 0x1e | 0x1f => Some(Discard::Mode),
            _ => Some(Discard::NotAChunk),
        };
        assert_eq!(ChunkView::parse(&bytes).err(), expected, "{first:#x}");
    }
}

proptest! {
    #[test]
    fn headers_survive_the_round_trip(
        mode in prop_oneof![Just(Mode::Broadcast), Just(Mode::Group), Just(Mode::PointToPoint)],
        epoch: u32,
        round in 0_u64..1 << 48,
        timestamp_ms in 0_u64..1 << 48,
        units in 1_u16..=255,
        symbols in 1_u16..=MAX_SYMBOLS,
        place: prop::sample::Index,
        author: u16,
        is_new: bool,
    ) {
        let symbol_size = units * SYMBOL_UNIT;
        let header = Header {
            version: if is_new { Version::V1 } else { Version::V0 },
            mode,
            epoch: Epoch::new(epoch),
            round: Round::new(round).unwrap(),
            timestamp_ms,
            payload_len: (u32::from(symbol_size) * u32::from(symbols)).min(3 << 20),
            symbol_size,
            symbols,
            index: SymbolIndex::new(place.index(usize::from(symbols)) as u16),
            author: AuthorRef::Index(NodeIndex::new(author)),
        };
        prop_assert_eq!(ChunkView::parse(&chunk(&header)).unwrap().header, header);
    }

    #[test]
    fn any_bytes_parse_or_are_discarded(mut bytes in prop::collection::vec(any::<u8>(), 0..2048), force: bool) {
        if force && !bytes.is_empty() {
            bytes[0] = 0x10;
        }
        if let Ok(view) = ChunkView::parse(&bytes) {
            prop_assert_eq!(view.symbol.len(), usize::from(view.header.symbol_size));
        }
    }
}
