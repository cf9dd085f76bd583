use proptest::prelude::*;

use super::*;
use crate::limits::{HEADER_LEN, KEY_HEADER_LEN};
use crate::test_support::unsigned_set;

const AUTHOR: NodeIndex = NodeIndex::new(0);

fn hundred_validators(len: usize) -> Geometry {
    let set = unsigned_set(&[1000; 100]);
    Geometry::for_set(
        len,
        ChunkSize::IPV4,
        HEADER_LEN,
        Redundancy::DEFAULT,
        (&set, AUTHOR),
    )
    .unwrap()
}

#[test]
fn two_mebibytes_at_a_hundred_validators_are_what_the_design_says() {
    let geometry = hundred_validators(2 << 20);
    assert_eq!(
        (geometry.symbol_size, geometry.source_symbols, geometry.depth),
        (1088, 1928, 13)
    );
    assert_eq!(geometry.chunk_len(), 1439);
}

#[test]
fn overhead_stays_below_the_target() {
    for len in [2_000_000, MAX_PAYLOAD_LEN] {
        let geometry = hundred_validators(len);
        assert!(
            geometry.chunk_len() - usize::from(geometry.symbol_size) <= 352,
            "{geometry:?}"
        );
    }
}

#[test]
fn what_has_no_geometry_is_named() {
    let set = unsigned_set(&[5, 5]);
    let derive = |len| {
        Geometry::for_set(
            len,
            ChunkSize::IPV4,
            HEADER_LEN,
            Redundancy::DEFAULT,
            (&set, AUTHOR),
        )
    };
    assert_eq!(derive(0), Err(GeometryError::Empty));
    assert_eq!(
        derive(MAX_PAYLOAD_LEN + 1),
        Err(GeometryError::TooLarge(MAX_PAYLOAD_LEN + 1))
    );
    for stakes in [&[5][..], &[5, 0, 0]] {
        let alone = unsigned_set(stakes);
        let rich = alone
            .iter()
            .find(|(_, member)| member.stake.units() > 0)
            .unwrap()
            .0;
        let outcome = Geometry::for_set(
            1,
            ChunkSize::IPV4,
            HEADER_LEN,
            Redundancy::DEFAULT,
            (&alone, rich),
        );
        assert_eq!(outcome, Err(GeometryError::NoFirstHop));
    }
    let small = ChunkSize::new(ChunkSize::MIN).unwrap();
    let most = Redundancy::from_hundredths(800).unwrap();
    let outcome = Geometry::for_set(MAX_PAYLOAD_LEN, small, HEADER_LEN, most, (&set, AUTHOR));
    assert!(
        matches!(outcome, Err(GeometryError::TooManySymbols(_))),
        "{outcome:?}"
    );
}

/// T, N and depth by the definition: every multiple of 64, the largest first, and nothing clever.
fn by_definition(len: usize, room: usize, redundancy: Redundancy, set: &ValidatorSet) -> (usize, u32, u8) {
    let fits = |size: &usize| {
        let scaled = redundancy.scaled(len.div_ceil(*size) as u32);
        let symbols: u32 = set.shares(AUTHOR, scaled).map(|(_, count)| count).sum();
        let depth = (0..16).find(|depth| 1 << depth >= symbols)?;
        (size + 20 * depth as usize <= room).then_some((*size, symbols, depth as u8))
    };
    (1..=room / 64)
        .rev()
        .map(|units| 64 * units)
        .find_map(|size| fits(&size))
        .unwrap()
}

#[test]
fn sizes_are_right_for_payloads_of_every_length() {
    let set = unsigned_set(&(1..=20).map(|stake| stake << 90).collect::<Vec<_>>());
    for (chunk, hundredths) in [(1200, 300), (1420, 200), (1440, 250), (1472, 110), (8900, 250)] {
        let (chunk, redundancy) = (
            ChunkSize::new(chunk).unwrap(),
            Redundancy::from_hundredths(hundredths).unwrap(),
        );
        let lengths = (1..=MAX_PAYLOAD_LEN)
            .step_by(1499)
            .chain(MAX_PAYLOAD_LEN - 2_000..=MAX_PAYLOAD_LEN)
            .chain(1..3_000);
        for len in lengths {
            let geometry = Geometry::for_set(len, chunk, HEADER_LEN, redundancy, (&set, AUTHOR)).unwrap();
            let room = chunk.bytes() - HEADER_LEN - SIGNATURE_LEN;
            let (size, symbols, depth) = by_definition(len, room, redundancy, &set);
            let size = size.min(len.next_multiple_of(64));
            assert_eq!(
                (
                    usize::from(geometry.symbol_size),
                    u32::from(geometry.symbols),
                    geometry.depth
                ),
                (size, symbols, depth),
                "{len} bytes, chunks of {}, redundancy {redundancy}",
                chunk.bytes()
            );
        }
    }
}

proptest! {
    /// The definition, checked from outside: T fits, and no larger multiple of 64 does.
    #[test]
    fn the_symbol_is_the_largest_that_fits(
        len in 1_usize..=MAX_PAYLOAD_LEN,
        chunk in 1200_u16..=8900,
        hundredths in 110_u16..=300,
        stakes in prop::collection::vec(prop_oneof![Just(0_u128), any::<u128>()], 2..1000),
        by_key: bool,
    ) {
        prop_assume!(stakes[1..].iter().any(|stake| *stake > 0));
        let set = unsigned_set(&stakes);
        let header_len = if by_key { KEY_HEADER_LEN } else { HEADER_LEN };
        let redundancy = Redundancy::from_hundredths(hundredths).unwrap();
        let chunk = ChunkSize::new(chunk).unwrap();
        let geometry = Geometry::for_set(len, chunk, header_len, redundancy, (&set, AUTHOR)).unwrap();
        prop_assert_eq!(geometry.symbol_size % 64, 0);
        prop_assert!(geometry.chunk_len() <= chunk.bytes());
        prop_assert_eq!(usize::from(geometry.source_symbols), len.div_ceil(usize::from(geometry.symbol_size)));
        let symbols = |source: u32| -> u32 { set.shares(AUTHOR, redundancy.scaled(source)).map(|(_, n)| n).sum() };
        prop_assert_eq!(u32::from(geometry.symbols), symbols(u32::from(geometry.source_symbols)));
        prop_assert!(1 << geometry.depth >= u32::from(geometry.symbols));
        let larger = usize::from(geometry.symbol_size) + 64;
        let depth = usize::from(merkle_depth(symbols(len.div_ceil(larger) as u32) as u16));
        let is_lone = geometry.source_symbols == 1 && usize::from(geometry.symbol_size) == len.next_multiple_of(64);
        prop_assert!(is_lone || larger + header_len + 64 + 20 * depth > chunk.bytes());
    }
}
