use proptest::prelude::*;

use super::*;
use crate::limits::merkle_depth;

fn leaves(count: u16) -> Vec<Hash> {
    (0..count).map(|index| leaf_hash(&index.to_be_bytes())).collect()
}

fn proof(tree: &Tree, index: u16) -> Vec<u8> {
    let mut proof = vec![0; HASH_LEN * usize::from(tree.depth)];
    tree.write_proof(SymbolIndex::new(index), &mut proof);
    proof
}

#[test]
fn leaves_and_nodes_are_kept_apart() {
    let (left, right) = (leaf_hash(b"l"), leaf_hash(b"r"));
    let both = [left, right].concat();
    assert_ne!(leaf_hash(&both), node_hash(&left, &right));
}

#[test]
fn every_leaf_has_a_proof_at_every_width() {
    for count in (1..40).chain([63, 64, 65, 1000]) {
        let leaves = leaves(count);
        let depth = merkle_depth(count);
        assert!(1 << depth >= count && (depth == 0 || 1 << (depth - 1) < count));
        let tree = Tree::build(&leaves, depth);
        let mut verified = VerifiedTree::new(tree.root(), depth);
        for index in 0..count {
            let (symbol, leaf) = (SymbolIndex::new(index), leaves[usize::from(index)]);
            assert_eq!(root_of(symbol, leaf, &proof(&tree, index)), tree.root());
            assert_eq!(verified.verify(symbol, leaf, &proof(&tree, index)), Ok(()));
            assert_eq!(verified.leaf(symbol), Some(leaf));
        }
    }
}

proptest! {
    #[test]
    fn no_flipped_bit_passes_whatever_is_remembered(
        count in 2_u16..200,
        warm in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        at: prop::sample::Index,
        bit: prop::sample::Index,
    ) {
        let leaves = leaves(count);
        let tree = Tree::build(&leaves, merkle_depth(count));
        let mut verified = VerifiedTree::new(tree.root(), merkle_depth(count));
        for index in warm.iter().map(|index| index.index(leaves.len())) {
            let proof = proof(&tree, index as u16);
            verified.verify(SymbolIndex::new(index as u16), leaves[index], &proof).unwrap();
        }
        let index = at.index(leaves.len());
        let mut bytes = [&leaves[index][..], &proof(&tree, index as u16)].concat();
        let flipped = bit.index(bytes.len() * 8);
        bytes[flipped / 8] ^= 1 << (flipped % 8);
        let leaf = bytes[..HASH_LEN].try_into().unwrap();
        let symbol = SymbolIndex::new(index as u16);
        prop_assert_eq!(verified.verify(symbol, leaf, &bytes[HASH_LEN..]), Err(BadProof));
        let intact = proof(&tree, index as u16);
        prop_assert_eq!(verified.verify(symbol, leaves[index], &intact), Ok(()));
    }
}
