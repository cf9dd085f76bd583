//! The tree over the symbols of a message: SHA-256 cut to 20 bytes, leaves and nodes kept apart
//! (`docs/spec/chunk.md#tree`).

use falconet_crypto::sha256_many;
use sha2::{Digest, Sha256};

use crate::ids::SymbolIndex;
use crate::limits::HASH_LEN;

mod verified;

pub use verified::{BadProof, VerifiedTree};
pub(crate) use verified::{Climb, climb_together};

/// A leaf or node of the tree.
pub type Hash = [u8; HASH_LEN];
/// Left child, right child.
type Pair = [u8; 2 * HASH_LEN];

const LEAF: [u8; 1] = [0];
const NODE: [u8; 1] = [1];
/// Stands for the leaves past the last symbol, up to the next power of two.
const EMPTY: Hash = [0; HASH_LEN];

/// The hash of a symbol.
pub fn leaf_hash(symbol: &[u8]) -> Hash {
    cut(Sha256::new().chain_update(LEAF).chain_update(symbol))
}

/// The hashes of many symbols, side by side where the processor can: `take` gets each with its place.
pub(crate) fn leaf_hashes<'a>(
    symbols: impl ExactSizeIterator<Item = &'a [u8]>,
    mut take: impl FnMut(usize, Hash),
) {
    sha256_many(&LEAF, symbols, |place, hash| take(place, first_bytes(hash)));
}

/// The hashes of many pairs of siblings, each laid out left then right.
pub(crate) fn node_hashes<'a>(
    pairs: impl ExactSizeIterator<Item = &'a [u8]>,
    mut take: impl FnMut(usize, Hash),
) {
    sha256_many(&NODE, pairs, |place, hash| take(place, first_bytes(hash)));
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    cut(Sha256::new()
        .chain_update(NODE)
        .chain_update(left)
        .chain_update(right))
}

fn cut(hash: Sha256) -> Hash {
    first_bytes(&hash.finalize().into())
}

fn first_bytes(hash: &[u8; 32]) -> Hash {
    let mut out = EMPTY;
    out.copy_from_slice(&hash[..HASH_LEN]);
    out
}

/// The root that a proof leads to from the leaf of symbol `index`.
pub fn root_of(index: SymbolIndex, leaf: Hash, proof: &[u8]) -> Hash {
    let mut position = index.as_usize();
    proof.chunks_exact(HASH_LEN).fold(leaf, |hash, sibling| {
        let parent = join(position, &hash, &sibling_hash(sibling));
        position /= 2;
        parent
    })
}

/// The parent of a node at `position` of its level, or in the numbering of [`Tree::nodes`].
fn join(position: usize, hash: &Hash, sibling: &Hash) -> Hash {
    let pair = pair(position, hash, sibling);
    cut(Sha256::new().chain_update(NODE).chain_update(pair))
}

fn pair(position: usize, hash: &Hash, sibling: &Hash) -> Pair {
    let (left, right) = if position.is_multiple_of(2) {
        (hash, sibling)
    } else {
        (sibling, hash)
    };
    let mut pair = [0; 2 * HASH_LEN];
    pair[..HASH_LEN].copy_from_slice(left);
    pair[HASH_LEN..].copy_from_slice(right);
    pair
}

fn sibling_hash(bytes: &[u8]) -> Hash {
    let mut hash = EMPTY;
    hash.copy_from_slice(bytes);
    hash
}

/// The whole tree, as the leader builds it.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Node `i` has the children `2i` and `2i + 1`; the root is node 1; leaf `l` is node `width + l`. May be
    /// longer than the tree.
    nodes: Vec<Hash>,
    depth: u8,
}

impl Tree {
    /// Builds the tree over `leaves`, of which there are at most `2^depth`.
    pub fn build(leaves: &[Hash], depth: u8) -> Self {
        let mut tree = Self::default();
        tree.leaves_mut(leaves.len(), depth).copy_from_slice(leaves);
        tree.grow(leaves.len());
        tree
    }

    /// Room for `count` leaves of a new tree in the memory of the last one; [`Tree::grow`] finishes it.
    pub(crate) fn leaves_mut(&mut self, count: usize, depth: u8) -> &mut [Hash] {
        let width = 1 << depth;
        self.depth = depth;
        if self.nodes.len() < 2 * width {
            self.nodes.resize(2 * width, EMPTY);
        }
        self.nodes[width + count..2 * width].fill(EMPTY);
        &mut self.nodes[width..width + count]
    }

    /// Everything above the first `count` leaves, level by level.
    pub(crate) fn grow(&mut self, count: usize) {
        let (mut start, mut filled, mut empty) = (1 << self.depth, count, EMPTY);
        while start > 1 {
            empty = node_hash(&empty, &empty);
            let (above, below) = self.nodes.split_at_mut(start);
            start /= 2;
            filled = filled.div_ceil(2);
            let parents = &mut above[start..];
            let pairs = below.as_flattened().chunks_exact(2 * HASH_LEN);
            node_hashes(pairs.take(filled), |place, hash| parents[place] = hash);
            parents[filled..].fill(empty);
        }
    }

    /// A copy that takes no more memory than it needs.
    pub(crate) fn trimmed(&self) -> Self {
        Self {
            nodes: self.nodes[..2 << self.depth].to_vec(),
            depth: self.depth,
        }
    }

    /// Bytes that a tree of this depth holds.
    pub(crate) const fn memory(depth: u8) -> usize {
        (2 << depth) * HASH_LEN
    }

    /// The root, which the leader signs.
    pub fn root(&self) -> Hash {
        self.nodes[1]
    }

    /// Writes the proof of a symbol, leaf's sibling first, to `out` of `20 x depth` bytes.
    pub fn write_proof(&self, index: SymbolIndex, out: &mut [u8]) {
        let mut node = (1 << self.depth) + index.as_usize();
        for sibling in out.chunks_exact_mut(HASH_LEN) {
            sibling.copy_from_slice(&self.nodes[node ^ 1]);
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests;
