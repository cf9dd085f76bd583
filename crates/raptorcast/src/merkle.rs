//! The tree over the symbols of a message: SHA-256 cut to 20 bytes, leaves and nodes kept apart
//! (`docs/spec/chunk.md#tree`).

use sha2::{Digest, Sha256};

use crate::ids::SymbolIndex;
use crate::limits::HASH_LEN;

/// A leaf or node of the tree.
pub type Hash = [u8; HASH_LEN];

const LEAF: [u8; 1] = [0];
const NODE: [u8; 1] = [1];
/// Stands for the leaves past the last symbol, up to the next power of two.
const EMPTY: Hash = [0; HASH_LEN];

/// The hash of a symbol.
pub fn leaf_hash(symbol: &[u8]) -> Hash {
    cut(Sha256::new().chain_update(LEAF).chain_update(symbol))
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut input = [0; 1 + 2 * HASH_LEN];
    input[0] = NODE[0];
    input[1..=HASH_LEN].copy_from_slice(left);
    input[1 + HASH_LEN..].copy_from_slice(right);
    cut(Sha256::new().chain_update(input))
}

fn cut(hash: Sha256) -> Hash {
    let mut out = [0; HASH_LEN];
    out.copy_from_slice(&hash.finalize()[..HASH_LEN]);
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

fn join(position: usize, hash: &Hash, sibling: &Hash) -> Hash {
    if position.is_multiple_of(2) {
        node_hash(hash, sibling)
    } else {
        node_hash(sibling, hash)
    }
}

fn sibling_hash(bytes: &[u8]) -> Hash {
    let mut hash = EMPTY;
    hash.copy_from_slice(bytes);
    hash
}

/// The whole tree, as the leader and a checking receiver build it.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Node `i` has the children `2i` and `2i + 1`; the root is node 1; leaf `l` is node `width + l`.
    nodes: Vec<Hash>,
    depth: u8,
}

impl Tree {
    /// Builds the tree over `leaves`, of which there are at most `2^depth`.
    pub fn build(leaves: &[Hash], depth: u8) -> Self {
        let width = 1 << depth;
        let mut nodes = vec![EMPTY; 2 * width];
        nodes[width..width + leaves.len()].copy_from_slice(leaves);
        let (mut start, mut filled, mut empty) = (width, leaves.len(), EMPTY);
        while start > 1 {
            empty = node_hash(&empty, &empty);
            start /= 2;
            filled = filled.div_ceil(2);
            for place in 0..filled {
                let child = 2 * (start + place);
                nodes[start + place] = node_hash(&nodes[child], &nodes[child + 1]);
            }
            nodes[start + filled..2 * start].fill(empty);
        }
        Self { nodes, depth }
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

/// The proof of a symbol does not lead to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadProof;

/// What is known of a tree whose root is signed: every node that some valid proof has passed through. It
/// makes the next proof as cheap as its first meeting with a known node.
#[derive(Clone, Debug)]
pub struct VerifiedTree {
    nodes: Vec<Option<Hash>>,
    depth: u8,
}

impl VerifiedTree {
    /// A tree of which only the root is known.
    pub fn new(root: Hash, depth: u8) -> Self {
        let mut nodes = vec![None; 2 << depth];
        nodes[1] = Some(root);
        Self { nodes, depth }
    }

    /// Checks that `leaf` belongs to symbol `index`, and remembers the way.
    ///
    /// Every byte of the proof is compared, also above the first known node: a chunk that passes here passes
    /// at any receiver, so it can be relayed.
    ///
    /// # Errors
    ///
    /// [`BadProof`]; nothing is remembered then.
    pub fn verify(&mut self, index: SymbolIndex, leaf: Hash, proof: &[u8]) -> Result<(), BadProof> {
        let mut path = [(0, EMPTY); 16];
        let mut climbed = 0;
        let (mut node, mut hash) = ((1 << self.depth) + index.as_usize(), leaf);
        let mut siblings = proof.chunks_exact(HASH_LEN);
        let known = loop {
            if let Some(known) = self.nodes[node] {
                break known;
            }
            let sibling = sibling_hash(siblings.next().ok_or(BadProof)?);
            path[climbed] = (node, hash);
            climbed += 1;
            hash = join(node, &hash, &sibling);
            node /= 2;
        };
        if known != hash || !self.agrees_above(node, siblings) {
            return Err(BadProof);
        }
        for (&(node, hash), sibling) in path[..climbed].iter().zip(proof.chunks_exact(HASH_LEN)) {
            self.nodes[node] = Some(hash);
            self.nodes[node ^ 1] = Some(sibling_hash(sibling));
        }
        Ok(())
    }

    /// The hash of a symbol, once a valid proof has shown it.
    pub fn leaf(&self, index: SymbolIndex) -> Option<Hash> {
        self.nodes
            .get((1 << self.depth) + index.as_usize())
            .copied()
            .flatten()
    }

    /// Bytes that this tree holds.
    pub const fn memory(depth: u8) -> usize {
        (2 << depth) * size_of::<Option<Hash>>()
    }

    /// Whether the rest of a proof says what is known. Siblings are learnt in pairs, so above a known node all
    /// of them are.
    fn agrees_above<'a>(&self, mut node: usize, siblings: impl Iterator<Item = &'a [u8]>) -> bool {
        for sibling in siblings {
            if node <= 1 || self.nodes[node ^ 1].is_none_or(|known| known != *sibling) {
                return false;
            }
            node /= 2;
        }
        node == 1
    }
}

#[cfg(test)]
mod tests;
