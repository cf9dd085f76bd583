//! The erasure code alone, beside Reed-Solomon with the same K and redundancy, and how many symbols it needs.

use std::hint::black_box;

use falconet_benches::{Contest, Report, Unit};
use falconet_raptorcast::{
    ChunkSize, Decoder, Encoder, Geometry, HEADER_LEN, NodeIndex, Plans, Redundancy, SymbolIndex,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::meter::cpu;
use crate::network::{Network, payload, shuffle};

const LENGTH: usize = 2 << 20;
/// Messages of a full run and of a quick one whose symbols are counted.
const ARRIVALS: (usize, usize) = (1000, 100);

pub(crate) fn run(report: &mut Report) {
    let code = Code::new();
    code.encode(report);
    code.decode(report);
    code.count_symbols(report);
}

/// One block of 2 MiB and all its symbols.
struct Code {
    geometry: Geometry,
    /// The payload and zeros up to K'.
    block: Vec<u8>,
    symbols: Vec<Vec<u8>>,
}

impl Code {
    fn new() -> Self {
        let network = Network::new();
        let set = (&*network.set, NodeIndex::new(0));
        let geometry = Geometry::for_set(LENGTH, ChunkSize::IPV4, HEADER_LEN, Redundancy::DEFAULT, set);
        let geometry = geometry.expect("a geometry");
        let mut block = payload(LENGTH).to_vec();
        block.resize(Encoder::block_len(&geometry), 0);
        let mut symbols = Vec::new();
        let encoder = Encoder::new(&geometry, &block, &mut Plans::new(1)).expect("an encoder");
        encoder.source_symbols(|_, symbol| symbols.push(symbol.to_vec()));
        encoder.repair_symbols(|_, symbol| symbols.push(symbol.to_vec()));
        Self {
            geometry,
            block,
            symbols,
        }
    }

    fn source(&self) -> usize {
        usize::from(self.geometry.source_symbols)
    }

    /// All repair symbols of a block.
    fn encode(&self, report: &mut Report) {
        let mut plans = Plans::new(1);
        let (original, recovery) = (self.source(), self.symbols.len() - self.source());
        Contest::with_untimed("encode/2MiB/2.5", |repeats| {
            let once = || {
                let encoder = Encoder::new(&self.geometry, &self.block, &mut plans).expect("an encoder");
                encoder.repair_symbols(|_, symbol| {
                    black_box(symbol);
                });
            };
            cpu_times(repeats, once)
        })
        .against_with_untimed("reed-solomon-simd", |repeats| {
            cpu_times(repeats, || {
                let shards = self.symbols[..original].iter();
                let encoded = reed_solomon_simd::encode(original, recovery, shards);
                black_box(encoded).expect("shards");
            })
        })
        .run(report, Unit::Milliseconds);
    }

    /// The block from K + 1 random symbols; Reed-Solomon needs K of them.
    fn decode(&self, report: &mut Report) {
        let (original, recovery) = (self.source(), self.symbols.len() - self.source());
        let mut rng = ChaCha20Rng::from_seed([6; 32]);
        let mut order: Vec<_> = (0..self.symbols.len()).collect();
        let mut other_rng = ChaCha20Rng::from_seed([6; 32]);
        let mut other_order = order.clone();
        Contest::with_untimed("decode/2MiB/K+1", |repeats| {
            cpu_times(repeats, || {
                shuffle(&mut order, &mut rng);
                black_box(self.symbols_needed(&order, 1));
            })
        })
        .against_with_untimed("reed-solomon-simd", |repeats| {
            cpu_times(repeats, || {
                shuffle(&mut other_order, &mut other_rng);
                let held = || {
                    other_order[..original]
                        .iter()
                        .map(|&index| (index, &self.symbols[index]))
                };
                let source = held().filter(|(index, _)| *index < original);
                let repair = held().filter(|(index, _)| *index >= original);
                let repair = repair.map(|(index, symbol)| (index - original, symbol));
                let decoded = reed_solomon_simd::decode(original, recovery, source, repair);
                black_box(decoded).expect("enough shards");
            })
        })
        .run(report, Unit::Milliseconds);
    }

    /// Symbols past K that random arrivals need.
    fn count_symbols(&self, report: &mut Report) {
        if !report.wants("symbols-past-K/2MiB/mean") && !report.wants("symbols-past-K/2MiB/p99") {
            return;
        }
        let arrivals = if report.is_quick() { ARRIVALS.1 } else { ARRIVALS.0 };
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        let mut order: Vec<_> = (0..self.symbols.len()).collect();
        let mut past: Vec<_> = (0..arrivals)
            .map(|_| {
                shuffle(&mut order, &mut rng);
                self.symbols_needed(&order, 0) - self.source()
            })
            .collect();
        past.sort_unstable();
        let mean = past.iter().sum::<usize>() as f64 / past.len() as f64;
        report.figure("symbols-past-K/2MiB/mean", mean, Unit::Count);
        report.figure(
            "symbols-past-K/2MiB/p99",
            past[past.len() * 99 / 100] as f64,
            Unit::Count,
        );
    }

    /// How many symbols in this order it takes to decode, when it is first tried with `spare` more than K.
    fn symbols_needed(&self, order: &[usize], spare: usize) -> usize {
        let mut decoder = Decoder::new(&self.geometry);
        for (held, &index) in order.iter().enumerate() {
            decoder
                .add(SymbolIndex::new(index as u16), &self.symbols[index])
                .expect("a new symbol");
            if held + 1 >= self.source() + spare && decoder.attempt().is_some() {
                return held + 1;
            }
        }
        unreachable!("all symbols decode")
    }
}

fn cpu_times(repeats: u32, mut once: impl FnMut()) -> std::time::Duration {
    cpu(|| (0..repeats).for_each(|_| once()))
}
