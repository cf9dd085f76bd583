//! What the tests across crates share.
//!
//! [`fuzz_targets`] holds what `fuzz/` runs for hours and `tests/fuzz_corpus.rs` replays in seconds: the same code, so
//! that an input which once broke something stays tested where nobody fuzzes. [`hostile`] holds what no honest node would send.

pub mod fuzz_targets;
pub mod hostile;
