//! Everything random in a run comes from one number.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};

/// 32 bytes for one purpose: equal inputs give equal bytes, and no two purposes share any.
pub(crate) fn derive(seed: u64, purpose: &str, numbers: &[u64]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"falconet/sim/seed/1");
    hash.update(seed.to_le_bytes());
    hash.update((purpose.len() as u64).to_le_bytes());
    hash.update(purpose.as_bytes());
    for number in numbers {
        hash.update(number.to_le_bytes());
    }
    hash.finalize().into()
}

/// A generator for one purpose.
pub(crate) fn generator(seed: u64, purpose: &str, numbers: &[u64]) -> ChaCha20Rng {
    ChaCha20Rng::from_seed(derive(seed, purpose, numbers))
}
