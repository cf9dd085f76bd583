//! The fuzz targets, each a function of bytes that panics if something that must hold does not.
//!
//! ```text
//!   fuzz/fuzz_targets/NAME.rs  (libFuzzer) ---\
//!                                              +--> NAME::run(bytes)
//!   tests/fuzz_corpus.rs       (cargo test) --/
//! ```
//!
//! Bytes alone would never get past a MAC, a tag or a signature, so most targets read them as a [`Script`]: what to
//! take from genuine messages, which bytes to alter, and whether to repair the MAC afterwards as an attacker would who
//! knows the public keys.

pub mod chunk;
pub mod endpoint;
pub mod engine;
pub mod frame;
pub mod handshake;
pub mod keys;
pub mod record;

mod script;

pub use script::Script;

/// One fuzz target.
pub struct Target {
    /// Its name: that of the file in `fuzz/fuzz_targets/` and of the folder in `fuzz/corpus/`.
    pub name: &'static str,
    /// Runs one input.
    pub run: fn(&[u8]),
    /// Inputs that reach every part of the target; the corpus starts from them.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 7] = [
    Target {
        name: "handshake",
        run: handshake::run,
        seeds: handshake::seeds,
    },
    Target {
        name: "frame",
        run: frame::run,
        seeds: frame::seeds,
    },
    Target {
        name: "chunk",
        run: chunk::run,
        seeds: chunk::seeds,
    },
    Target {
        name: "record",
        run: record::run,
        seeds: record::seeds,
    },
    Target {
        name: "keys",
        run: keys::run,
        seeds: keys::seeds,
    },
    Target {
        name: "endpoint",
        run: endpoint::run,
        seeds: endpoint::seeds,
    },
    Target {
        name: "engine",
        run: engine::run,
        seeds: engine::seeds,
    },
];
