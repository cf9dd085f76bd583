//! What several engines of one process compute only once between them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::merkle::Hash;

/// Chunks whose leaf is remembered, in each of two generations: more than the symbols of a message of 2 MB.
const LEAVES: usize = 4_096;
/// Good signatures that are remembered, in each of two generations.
const SIGNATURES: usize = 1_024;

/// Hashes of symbols and good signatures that engines in one process need not compute each for itself.
///
/// For simulations, in which the same chunk reaches many engines: its bytes are then one piece of memory, by which it
/// is known again. An engine decides with it exactly what it decides without. A node has one engine and no use for it.
///
/// Holds at most 8,192 chunks and 2,048 signatures.
#[derive(Clone, Debug, Default)]
pub struct SharedWork(Arc<Mutex<Work>>);

/// The younger generation first: once it is full, the older one is forgotten.
#[derive(Debug, Default)]
struct Work {
    leaves: [HashMap<(usize, usize), Leaf>; 2],
    signatures: [HashSet<Vec<u8>>; 2],
}

#[derive(Debug)]
struct Leaf {
    /// Held so that its memory does not become another chunk's.
    _chunk: Bytes,
    hash: Hash,
}

impl SharedWork {
    /// The leaf of the symbol in `chunk`, if some engine has hashed it.
    pub(crate) fn leaf(&self, chunk: &Bytes) -> Option<Hash> {
        let work = self.lock();
        work.leaves
            .iter()
            .find_map(|leaves| leaves.get(&place(chunk)))
            .map(|leaf| leaf.hash)
    }

    pub(crate) fn remember_leaf(&self, chunk: &Bytes, hash: Hash) {
        let mut work = self.lock();
        if work.leaves[0].len() >= LEAVES {
            work.leaves.swap(0, 1);
            work.leaves[0].clear();
        }
        let leaf = Leaf {
            _chunk: chunk.clone(),
            hash,
        };
        work.leaves[0].insert(place(chunk), leaf);
    }

    /// Whether a signature was found good: `signed` is its author, what was signed, and its bytes.
    pub(crate) fn is_good(&self, signed: &[&[u8]]) -> bool {
        let signed = signed.concat();
        self.lock()
            .signatures
            .iter()
            .any(|signatures| signatures.contains(&signed))
    }

    pub(crate) fn remember_good(&self, signed: &[&[u8]]) {
        let mut work = self.lock();
        if work.signatures[0].len() >= SIGNATURES {
            work.signatures.swap(0, 1);
            work.signatures[0].clear();
        }
        work.signatures[0].insert(signed.concat());
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the bytes lie: as long as they are held, no others lie there.
fn place(chunk: &Bytes) -> (usize, usize) {
    (chunk.as_ptr() as usize, chunk.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_memory_is_known_again_and_equal_bytes_elsewhere_are_not() {
        let shared = SharedWork::default();
        let chunk = Bytes::from(vec![1, 2, 3]);
        shared.remember_leaf(&chunk, [7; 20]);
        assert_eq!(shared.leaf(&chunk.clone()), Some([7; 20]));
        assert_eq!(shared.leaf(&Bytes::from(vec![1, 2, 3])), None);
        assert_eq!(shared.leaf(&chunk.slice(..2)), None);
    }

    #[test]
    fn at_most_two_generations_are_held() {
        let shared = SharedWork::default();
        let chunks: Vec<_> = (0..3 * LEAVES)
            .map(|n| Bytes::from(n.to_le_bytes().to_vec()))
            .collect();
        for (number, chunk) in chunks.iter().enumerate() {
            shared.remember_leaf(chunk, [0; 20]);
            shared.remember_good(&[&number.to_le_bytes()]);
        }
        let work = shared.lock();
        assert_eq!(work.leaves.each_ref().map(HashMap::len), [LEAVES; 2]);
        assert_eq!(work.signatures.each_ref().map(HashSet::len), [SIGNATURES; 2]);
    }

    #[test]
    fn only_the_very_signature_that_was_good_is_good() {
        let shared = SharedWork::default();
        shared.remember_good(&[b"author", b"root", b"signature"]);
        assert!(shared.is_good(&[b"author", b"root", b"signature"]));
        assert!(!shared.is_good(&[b"author", b"tree", b"signature"]));
    }
}
