//! The one place that asks the system for randomness: each engine of a node gets a seed of its own from here.

use thiserror::Error;

/// The system gave no entropy.
#[derive(Debug, Error)]
#[error("the system gives no entropy: {0}")]
pub struct EntropyError(getrandom::Error);

/// 32 fresh bytes.
pub(crate) fn seed() -> Result<[u8; 32], EntropyError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(EntropyError)?;
    Ok(seed)
}
