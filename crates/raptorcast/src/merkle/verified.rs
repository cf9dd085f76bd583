//! A receiver's side of the tree: symbols climb towards the signed root, and the way they took is remembered.

use super::{EMPTY, Hash, Pair, Tree, join, node_hash, node_hashes, pair, sibling_hash};
use crate::ids::SymbolIndex;
use crate::limits::{HASH_LEN, MAX_SYMBOLS, merkle_depth};

/// Nodes on the longest way, leaf and root included.
const MAX_WAY: usize = merkle_depth(MAX_SYMBOLS) as usize + 1;

/// The way from the leaf of one symbol to the root, as its proof claims it, hashed as far as anybody asked.
#[derive(Clone, Debug)]
pub(crate) struct Climb<'a> {
    index: SymbolIndex,
    proof: &'a [u8],
    /// The leaf first.
    hashes: [Hash; MAX_WAY],
    hashed: usize,
}

impl<'a> Climb<'a> {
    /// A climb from `leaf`; a proof longer than any tree is cut.
    pub(crate) fn new(index: SymbolIndex, leaf: Hash, proof: &'a [u8]) -> Self {
        let mut hashes = [EMPTY; MAX_WAY];
        hashes[0] = leaf;
        Self {
            index,
            proof: &proof[..proof.len().min(HASH_LEN * (MAX_WAY - 1))],
            hashes,
            hashed: 1,
        }
    }

    /// The root that the proof leads to.
    pub(crate) fn root(&mut self) -> Hash {
        self.at(self.levels())
    }

    fn levels(&self) -> usize {
        self.proof.len() / HASH_LEN
    }

    /// The number of the node at `level` above the leaf, in the numbering of [`Tree::nodes`].
    fn node(&self, level: usize) -> usize {
        ((1 << self.levels()) + self.index.as_usize()) >> level
    }

    fn sibling(&self, level: usize) -> Hash {
        sibling_hash(&self.proof[level * HASH_LEN..(level + 1) * HASH_LEN])
    }

    fn at(&mut self, level: usize) -> Hash {
        while self.hashed <= level {
            let below = self.hashed - 1;
            self.push(join(self.node(below), &self.hashes[below], &self.sibling(below)));
        }
        self.hashes[level]
    }

    fn pair(&self, level: usize) -> Pair {
        pair(self.node(level), &self.hashes[level], &self.sibling(level))
    }

    fn push(&mut self, hash: Hash) {
        self.hashes[self.hashed] = hash;
        self.hashed += 1;
    }
}

/// Hashes climbs side by side, each up to the first node that its tree knows; without a tree, up to the root.
pub(crate) fn climb_together<'t>(
    climbs: &mut [Climb<'_>],
    tree_of: impl Fn(usize) -> Option<&'t VerifiedTree>,
) {
    let mut climbing: Vec<usize> = (0..climbs.len()).collect();
    let mut pairs: Vec<Pair> = Vec::with_capacity(climbs.len());
    for level in 0..MAX_WAY {
        climbing.retain(|&place| {
            let climb = &climbs[place];
            level < climb.levels() && !tree_of(place).is_some_and(|tree| tree.knows(climb.node(level)))
        });
        if climbing.is_empty() {
            return;
        }
        pairs.clear();
        pairs.extend(climbing.iter().map(|&place| climbs[place].pair(level)));
        node_hashes(pairs.iter().map(Pair::as_slice), |turn, hash| {
            climbs[climbing[turn]].push(hash)
        });
    }
}

/// The proof of a symbol does not lead to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadProof;

/// What is known of a tree whose root is signed: every node that some valid proof has passed through. It
/// makes the next proof as cheap as its first meeting with a known node.
#[derive(Clone, Debug)]
pub struct VerifiedTree {
    /// Numbered as in [`Tree::nodes`]. A node is known only together with its sibling and all nodes above.
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
        if proof.len() != HASH_LEN * usize::from(self.depth) {
            return Err(BadProof);
        }
        self.verify_climb(&mut Climb::new(index, leaf, proof))
    }

    /// As [`VerifiedTree::verify`], with what the climb has hashed already.
    pub(crate) fn verify_climb(&mut self, climb: &mut Climb<'_>) -> Result<(), BadProof> {
        let depth = usize::from(self.depth);
        if climb.levels() != depth || climb.index.as_usize() >= 1 << depth {
            return Err(BadProof);
        }
        let mut met = 0;
        // The root is known.
        while !self.knows(climb.node(met)) {
            met += 1;
        }
        let agrees = |level| self.nodes[climb.node(level) ^ 1] == Some(climb.sibling(level));
        let agrees_above = (met..depth).all(agrees);
        if !agrees_above || self.nodes[climb.node(met)] != Some(climb.at(met)) {
            return Err(BadProof);
        }
        for level in 0..met {
            let node = climb.node(level);
            self.nodes[node] = Some(climb.at(level));
            self.nodes[node ^ 1] = Some(climb.sibling(level));
        }
        Ok(())
    }

    /// The hash of a symbol, once a valid proof has shown it, be it as a sibling.
    pub fn leaf(&self, index: SymbolIndex) -> Option<Hash> {
        self.nodes
            .get((1 << self.depth) + index.as_usize())
            .copied()
            .flatten()
    }

    /// Writes the proof of a symbol that some valid proof has shown, to `out` of `20 x depth` bytes; `None` if none has.
    pub(crate) fn write_proof(&self, index: SymbolIndex, out: &mut [u8]) -> Option<()> {
        let mut node = (1 << self.depth) + index.as_usize();
        for sibling in out.chunks_exact_mut(HASH_LEN) {
            sibling.copy_from_slice(self.nodes.get(node ^ 1)?.as_ref()?);
            node /= 2;
        }
        Some(())
    }

    /// Whether the first `count` leaves in `tree`, and empty ones behind them, are the leaves of this tree. Hashes
    /// only what no proof has shown, and leaves `tree` complete.
    pub(crate) fn commits_to(&self, tree: &mut Tree, count: usize) -> bool {
        let (mut start, mut filled, mut empty) = (1 << self.depth, count, EMPTY);
        let mut unknown: Vec<usize> = Vec::with_capacity(count.div_ceil(2));
        loop {
            let (above, below) = tree.nodes.split_at_mut(start);
            let known = self.nodes[start..2 * start].iter().zip(&*below);
            if known
                .filter_map(|(known, hash)| known.map(|known| known == *hash))
                .any(|equal| !equal)
            {
                return false;
            }
            if start == 1 {
                return true;
            }
            empty = node_hash(&empty, &empty);
            start /= 2;
            filled = filled.div_ceil(2);
            let parents = &mut above[start..];
            unknown.clear();
            for (place, parent) in parents[..filled].iter_mut().enumerate() {
                // Both children are known or neither is; if they are, they have just been found right.
                match self.nodes[start + place] {
                    Some(known) if self.knows(2 * (start + place)) => *parent = known,
                    _ => unknown.push(place),
                }
            }
            let children = below.as_flattened();
            let pairs = unknown
                .iter()
                .map(|place| &children[2 * HASH_LEN * place..][..2 * HASH_LEN]);
            node_hashes(pairs, |turn, hash| parents[unknown[turn]] = hash);
            parents[filled..].fill(empty);
        }
    }

    /// Bytes that this tree holds.
    pub const fn memory(depth: u8) -> usize {
        (2 << depth) * size_of::<Option<Hash>>()
    }

    #[cfg(test)]
    pub(super) fn nodes(&self) -> &[Option<Hash>] {
        &self.nodes
    }

    fn knows(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(Option::is_some)
    }
}
