//! Every way in which `raptorq` panics or works without limit, tried through the wrapper.

use crate::code::{Decoder, Encoder, Plans, SymbolError};
use crate::geometry::Geometry;
use crate::ids::SymbolIndex;
use crate::limits::{ChunkSize, HEADER_LEN, Redundancy};
use crate::test_support::payload;

fn geometry(len: usize) -> Geometry {
    let hops = |scaled: u32| u64::from(scaled) + 3;
    Geometry::derive(len, ChunkSize::IPV4, HEADER_LEN, Redundancy::DEFAULT, hops).unwrap()
}

fn symbols(geometry: &Geometry, block: &[u8]) -> Vec<Vec<u8>> {
    let mut plans = Plans::new(1);
    let mut block = block.to_vec();
    block.resize(Encoder::block_len(geometry), 0);
    let encoder = Encoder::new(geometry, &block, &mut plans).unwrap();
    let mut symbols = Vec::new();
    encoder.source_symbols(|index, symbol| {
        assert_eq!(index.as_usize(), symbols.len());
        symbols.push(symbol.to_vec());
    });
    encoder.repair_symbols(|index, symbol| {
        assert_eq!(index.as_usize(), symbols.len());
        symbols.push(symbol.to_vec());
    });
    assert_eq!(symbols.len(), usize::from(geometry.symbols));
    symbols
}

#[test]
fn any_symbols_give_the_block_back() {
    for source in [1, 2, 3, 10, 11, 50, 300] {
        let mut geometry = geometry(source * 1088);
        geometry.payload_len = geometry.block_len() as u32;
        let block = payload(geometry.block_len(), source as u8);
        let symbols = symbols(&geometry, &block);
        let mut decoder = Decoder::new(&geometry);
        let decoded = symbols.iter().enumerate().rev().find_map(|(index, symbol)| {
            decoder.add(SymbolIndex::new(index as u16), symbol).unwrap();
            decoder.attempt()
        });
        assert_eq!(decoded.unwrap(), block, "K = {}", geometry.source_symbols);
        assert!(decoder.held() <= u32::from(geometry.source_symbols) + 2);
    }
}

#[test]
fn a_symbol_of_another_length_is_refused() {
    let geometry = geometry(10_000);
    let mut decoder = Decoder::new(&geometry);
    let expected = geometry.symbol_size;
    for got in [
        0,
        1,
        usize::from(expected) - 1,
        usize::from(expected) + 1,
        1 << 16,
    ] {
        let outcome = decoder.add(SymbolIndex::new(0), &vec![0; got]);
        assert_eq!(outcome, Err(SymbolError::Length { expected, got }));
    }
    assert_eq!(decoder.held(), 0);
}

#[test]
fn an_index_past_the_count_is_refused() {
    let geometry = geometry(10_000);
    let mut decoder = Decoder::new(&geometry);
    let symbol = vec![0; usize::from(geometry.symbol_size)];
    for index in [geometry.symbols, geometry.symbols + 1, u16::MAX] {
        assert_eq!(
            decoder.add(SymbolIndex::new(index), &symbol),
            Err(SymbolError::OutOfRange(index))
        );
    }
}

#[test]
fn duplicates_neither_count_nor_start_a_solve() {
    let geometry = geometry(10_000);
    let mut decoder = Decoder::new(&geometry);
    let symbol = vec![1; usize::from(geometry.symbol_size)];
    decoder.add(SymbolIndex::new(4), &symbol).unwrap();
    for _ in 0..100 {
        assert_eq!(
            decoder.add(SymbolIndex::new(4), &symbol),
            Err(SymbolError::Duplicate(4))
        );
    }
    assert_eq!((decoder.held(), decoder.is_due()), (1, false));
    assert_eq!(decoder.attempt(), None);
}

#[test]
fn attempts_are_few_however_many_symbols_come() {
    let geometry = geometry(100_000);
    let mut decoder = Decoder::new(&geometry);
    let symbol = vec![0; usize::from(geometry.symbol_size)];
    let mut due_at = Vec::new();
    for index in 0..geometry.symbols {
        decoder.add(SymbolIndex::new(index), &symbol).unwrap();
        if decoder.is_due() {
            due_at.push(index + 1 - geometry.source_symbols);
            // What an attempt does to the schedule, without a decoder that succeeds.
            while decoder.next_attempt() <= decoder.held() {
                decoder.attempts += 1;
            }
            decoder.waiting.clear();
        }
    }
    assert_eq!(due_at[..6], [0, 1, 2, 16, 32, 64]);
    assert!(due_at.len() <= 8, "{due_at:?}");
}

#[test]
fn inconsistent_symbols_end_without_a_panic() {
    let geometry = geometry(30_000);
    let mut decoder = Decoder::new(&geometry);
    for index in (0..geometry.symbols).rev() {
        let symbol = payload(usize::from(geometry.symbol_size), index as u8);
        decoder.add(SymbolIndex::new(index), &symbol).unwrap();
        if let Some(block) = decoder.attempt() {
            assert_eq!(block.len(), geometry.block_len());
            return;
        }
    }
}

#[test]
fn a_block_of_another_length_has_no_encoder() {
    let geometry = geometry(10_000);
    let mut plans = Plans::new(1);
    for len in [0, 10_000, geometry.block_len() - 1, geometry.block_len() + 1] {
        assert!(
            Encoder::new(&geometry, &vec![0; len], &mut plans).is_none(),
            "{len}"
        );
    }
}

#[test]
fn the_least_recently_used_plan_goes() {
    let mut plans = Plans::new(2);
    let first = plans.plan(10);
    plans.plan(11);
    assert!(std::sync::Arc::ptr_eq(&first, &plans.plan(10)));
    plans.plan(12);
    assert_eq!(plans.len(), 2);
    assert!(
        std::sync::Arc::ptr_eq(&first, &plans.plan(10)),
        "it was used after 11"
    );
}

#[test]
fn a_message_has_at_most_a_dozen_attempts_whatever_its_symbols() {
    // The solver is not asked: this counts how often it would be, if it never succeeded.
    for source_symbols in [2_u16, 3, 10, 48, 500, 1_928, 2_892, 10_000] {
        let geometry = Geometry {
            source_symbols,
            symbols: (u32::from(source_symbols) * 8).min(1 << 15) as u16,
            ..geometry(100_000)
        };
        let mut decoder = Decoder::new(&geometry);
        // At the usual redundancy, and at any.
        let mut attempts = (0, 0);
        for held in 1..=u32::from(geometry.symbols) {
            decoder.held = held;
            if decoder.is_due() {
                attempts.0 += u32::from(2 * held <= 5 * u32::from(source_symbols));
                attempts.1 += 1;
                while decoder.next_attempt() <= held {
                    decoder.attempts += 1;
                }
            }
        }
        // 3 MiB in chunks of 1,440 bytes are 2,892 symbols.
        let usual = if source_symbols < 3_000 { 12 } else { 13 };
        assert!(
            attempts.0 <= usual && attempts.1 <= 14,
            "K = {source_symbols}: {attempts:?}"
        );
    }
}
