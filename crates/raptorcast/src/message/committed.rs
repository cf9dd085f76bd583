//! The root check of a decoded message.

use raptorq::EncodingPacket;

use super::Receiving;
use crate::code::Encoder;
use crate::geometry::Geometry;
use crate::merkle::{leaf_hash, leaf_hashes};
use crate::workshop::Workshop;

/// Whether the author committed to this block: its padding is zero and its symbols have the signed root.
///
/// The leaves of source symbols that came over the wire are known: the decoder hands those through unchanged.
/// Everything else is encoded again and hashed, also where the tree knows a leaf only as somebody's sibling.
// docs/spec/chunk.md#root-check
pub(super) fn is_committed(
    geometry: &Geometry,
    block: &[u8],
    held: &Receiving,
    workshop: &mut Workshop,
) -> bool {
    let Some(zeros) = block.get(geometry.payload_len as usize..) else {
        return false;
    };
    if zeros.iter().any(|&byte| byte != 0) {
        return false;
    }
    let Workshop {
        plans, padding, tree, ..
    } = workshop;
    let symbols = usize::from(geometry.symbols);
    let leaves = tree.leaves_mut(symbols, geometry.depth);
    if geometry.source_symbols == 1 {
        leaves.fill(leaf_hash(block));
        return held.tree.commits_to(tree, symbols);
    }
    let Some(encoder) = Encoder::new(geometry, padding.pad(block, Encoder::block_len(geometry)), plans)
    else {
        return false;
    };
    let mut unseen = Vec::with_capacity(usize::from(geometry.source_symbols));
    encoder.source_symbols(|index, symbol| match held.leaf(index) {
        Some(known) => leaves[index.as_usize()] = known,
        None => unseen.push((index.as_usize(), symbol)),
    });
    leaf_hashes(unseen.iter().map(|(_, symbol)| *symbol), |turn, hash| {
        leaves[unseen[turn].0] = hash
    });
    encoder.repair_batches(|start, batch| {
        let start = start.as_usize();
        leaf_hashes(batch.iter().map(EncodingPacket::data), |place, hash| {
            leaves[start + place] = hash
        });
    });
    held.tree.commits_to(tree, symbols)
}
