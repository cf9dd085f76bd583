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

/// A tree of which the proofs of some leaves were seen, as a receiver has it.
fn seen(leaves: &[Hash], seen: &[prop::sample::Index]) -> (Tree, VerifiedTree) {
    let tree = Tree::build(leaves, merkle_depth(leaves.len() as u16));
    let mut verified = VerifiedTree::new(tree.root(), tree.depth);
    for index in seen.iter().map(|index| index.index(leaves.len())) {
        let proof = proof(&tree, index as u16);
        verified
            .verify(SymbolIndex::new(index as u16), leaves[index], &proof)
            .unwrap();
    }
    (tree, verified)
}

proptest! {
    #[test]
    fn climbing_together_is_climbing_alone(
        count in 1_u16..200,
        warm in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        batch in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..40),
    ) {
        let leaves = leaves(count);
        let (tree, mut verified) = seen(&leaves, &warm);
        let mut alone = verified.clone();
        let proofs: Vec<_> = (0..count).map(|index| proof(&tree, index)).collect();
        let batch = batch.iter().map(|(index, is_good)| (index.index(leaves.len()), *is_good));
        let mut climbs: Vec<_> = batch
            .clone()
            .map(|(index, is_good)| {
                let leaf = if is_good { leaves[index] } else { [7; HASH_LEN] };
                Climb::new(SymbolIndex::new(index as u16), leaf, &proofs[index])
            })
            .collect();
        climb_together(&mut climbs, |place| (place % 2 == 0).then_some(&verified));
        for ((index, is_good), climb) in batch.zip(&mut climbs) {
            let leaf = if is_good { leaves[index] } else { [7; HASH_LEN] };
            let symbol = SymbolIndex::new(index as u16);
            prop_assert_eq!(verified.verify_climb(climb), alone.verify(symbol, leaf, &proofs[index]));
            prop_assert_eq!(climb.root(), root_of(symbol, leaf, &proofs[index]));
        }
        prop_assert_eq!(verified.nodes(), alone.nodes());
    }

    #[test]
    fn a_checked_tree_commits_to_its_own_leaves_only(
        count in 1_u16..200,
        warm in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        at: prop::sample::Index,
        room: u8,
    ) {
        let leaves = leaves(count);
        let (tree, verified) = seen(&leaves, &warm);
        // Memory of a larger tree before: nothing of it may be taken for an empty leaf.
        let mut again = Tree::build(&vec![[5; HASH_LEN]; 1 << (room % 9)], room % 9);
        again.leaves_mut(leaves.len(), tree.depth).copy_from_slice(&leaves);
        prop_assert!(verified.commits_to(&mut again, leaves.len()));
        prop_assert_eq!(again.root(), tree.root());
        again.leaves_mut(leaves.len(), tree.depth)[at.index(leaves.len())][0] ^= 1;
        prop_assert!(!verified.commits_to(&mut again, leaves.len()));
        // One leaf more than there are: a leader that hides a symbol behind the last one.
        if leaves.len() < 1 << tree.depth {
            let more = again.leaves_mut(leaves.len() + 1, tree.depth);
            more[..leaves.len()].copy_from_slice(&leaves);
            more[leaves.len()] = [9; HASH_LEN];
            prop_assert!(!verified.commits_to(&mut again, leaves.len() + 1));
        }
    }
}
