//! Where the time of one message goes, part by part: what docs/adr/0002-solving-twice.md rests on.

use std::hint::black_box;

use falconet_benches::{Contest, Report, Unit};
use falconet_crypto::sha256_many;
use falconet_raptorcast::{
    ChunkSize, Decoder, Encoder, Geometry, HEADER_LEN, NodeIndex, Plans, Redundancy, SymbolIndex, Tree,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::meter::cpu;
use crate::network::{Network, payload, shuffle};

const LENGTH: usize = 2 << 20;

pub(crate) fn run(report: &mut Report) {
    let network = Network::new();
    let set = (&*network.set, NodeIndex::new(0));
    let geometry = Geometry::for_set(LENGTH, ChunkSize::IPV4, HEADER_LEN, Redundancy::DEFAULT, set);
    let geometry = geometry.expect("a geometry");
    let slim = Geometry {
        symbol_size: 64,
        payload_len: 64 * u32::from(geometry.source_symbols),
        ..geometry
    };
    let parts = Parts::new(geometry);
    parts.solve(report, "solve-first/2MiB");
    parts.apply_plan(report, "solve-again-by-plan/2MiB");
    parts.repair(report, "repair/2MiB");
    parts.hash(report);
    // The same K with symbols of one cache line: what is left of each part when there is next to nothing to add up.
    let slim = Parts::new(slim);
    slim.solve(report, "solve-first/64B-symbols");
    slim.apply_plan(report, "solve-again-by-plan/64B-symbols");
    slim.repair(report, "repair/64B-symbols");
}

struct Parts {
    geometry: Geometry,
    block: Vec<u8>,
    symbols: Vec<Vec<u8>>,
}

impl Parts {
    fn new(geometry: Geometry) -> Self {
        let mut block = payload(geometry.payload_len as usize).to_vec();
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

    /// K + 1 random symbols to the block; without taking them in.
    fn solve(&self, report: &mut Report, name: &str) {
        let enough = usize::from(self.geometry.source_symbols) + 1;
        let mut rng = ChaCha20Rng::from_seed([8; 32]);
        let mut order: Vec<_> = (0..self.symbols.len()).collect();
        Contest::with_untimed(format!("part/{name}"), |repeats| {
            (0..repeats)
                .map(|_| {
                    shuffle(&mut order, &mut rng);
                    let mut decoder = Decoder::new(&self.geometry);
                    for &index in &order[..enough] {
                        let added = decoder.add(SymbolIndex::new(index as u16), &self.symbols[index]);
                        added.expect("a new symbol");
                    }
                    cpu(|| {
                        black_box(decoder.attempt());
                    })
                })
                .sum()
        })
        .run(report, Unit::Milliseconds);
    }

    /// The block to the intermediate symbols, which the solve had and did not hand out.
    fn apply_plan(&self, report: &mut Report, name: &str) {
        let mut plans = Plans::new(1);
        plans.prepare(self.geometry.source_symbols);
        Contest::with_untimed(format!("part/{name}"), |repeats| {
            cpu(|| {
                (0..repeats)
                    .for_each(|_| drop(black_box(Encoder::new(&self.geometry, &self.block, &mut plans))))
            })
        })
        .run(report, Unit::Milliseconds);
    }

    /// The intermediate symbols to all repair symbols.
    fn repair(&self, report: &mut Report, name: &str) {
        let encoder = Encoder::new(&self.geometry, &self.block, &mut Plans::new(1)).expect("an encoder");
        Contest::with_untimed(format!("part/{name}"), |repeats| {
            cpu(|| {
                (0..repeats).for_each(|_| {
                    encoder.repair_symbols(|_, symbol| {
                        black_box(symbol);
                    });
                });
            })
        })
        .run(report, Unit::Milliseconds);
    }

    /// All symbols to their leaves, and the leaves to the root.
    fn hash(&self, report: &mut Report) {
        let mut leaves = vec![[0; 20]; self.symbols.len()];
        Contest::with_untimed("part/leaves/2MiB", |repeats| {
            cpu(|| {
                (0..repeats).for_each(|_| {
                    let symbols = self.symbols.iter().map(Vec::as_slice);
                    sha256_many(&[0], symbols, |place, hash| {
                        leaves[place].copy_from_slice(&hash[..20])
                    });
                });
            })
        })
        .run(report, Unit::Milliseconds);
        Contest::with_untimed("part/tree/2MiB", |repeats| {
            cpu(|| (0..repeats).for_each(|_| drop(black_box(Tree::build(&leaves, self.geometry.depth)))))
        })
        .run(report, Unit::Milliseconds);
    }
}
