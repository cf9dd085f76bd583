//! Sixteen messages side by side: gathering their blocks, and padding as FIPS 180-4 section 5.1.1 has it.

use super::sys::Avx512;
use super::{SHA256_LEN, sha256_one};

pub(super) const LANES: usize = 16;
/// The prefix must fit the first block with room to spare.
pub(super) const MAX_PREFIX: usize = 32;

pub(super) const BLOCK_LEN: usize = 64;
/// So many messages one by one, even with the SHA extensions, cost as much as sixteen side by side.
const WORTH_LANES: usize = 6;
/// Bytes of the length field that ends the padding.
const LENGTH_LEN: usize = 8;

/// One word of the state, in all lanes.
pub(super) type Words = [u32; LANES];

/// FIPS 180-4, section 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// Runs of sixteen messages of one length go through the lanes together.
pub(super) fn hash_in_lanes<'a>(
    avx512: Avx512,
    prefix: &[u8],
    messages: impl ExactSizeIterator<Item = &'a [u8]>,
    mut each: impl FnMut(usize, &[u8; SHA256_LEN]),
) {
    let mut run: [&[u8]; LANES] = [&[]; LANES];
    let (mut filled, mut start) = (0, 0);
    for (place, message) in messages.enumerate() {
        if filled > 0 && run[0].len() != message.len() {
            hash_rest(avx512, prefix, &run[..filled], start, &mut each);
            filled = 0;
        }
        if filled == 0 {
            start = place;
        }
        run[filled] = message;
        filled += 1;
        if filled == LANES {
            hash_sixteen(avx512, prefix, &run, start, &mut each);
            filled = 0;
        }
    }
    hash_rest(avx512, prefix, &run[..filled], start, &mut each);
}

/// Fewer than sixteen: a few go one by one, more go through the lanes beside copies of the first.
fn hash_rest(
    avx512: Avx512,
    prefix: &[u8],
    rest: &[&[u8]],
    start: usize,
    each: &mut impl FnMut(usize, &[u8; SHA256_LEN]),
) {
    if rest.len() < WORTH_LANES {
        for (offset, message) in rest.iter().enumerate() {
            each(start + offset, &sha256_one(prefix, message));
        }
        return;
    }
    let mut run = [rest[0]; LANES];
    run[..rest.len()].copy_from_slice(rest);
    hash_sixteen(avx512, prefix, &run, start, &mut |place, hash| {
        if place < start + rest.len() {
            each(place, hash);
        }
    });
}

fn hash_sixteen(
    avx512: Avx512,
    prefix: &[u8],
    messages: &[&[u8]; LANES],
    start: usize,
    each: &mut impl FnMut(usize, &[u8; SHA256_LEN]),
) {
    let mut state = INITIAL.map(|word| [word; LANES]);
    let total = prefix.len() + messages[0].len();
    let blocks = (total + 1 + LENGTH_LEN).div_ceil(BLOCK_LEN);
    let mut edges = [[0; BLOCK_LEN]; LANES];
    for block in 0..blocks {
        // Blocks inside the messages are hashed where they lie; those with prefix or padding are put together first.
        let inside = messages.map(|message| inner_block(prefix, message, block));
        let inside = if inside.contains(&None) {
            for (edge, message) in edges.iter_mut().zip(messages) {
                *edge = edge_block(prefix, message, block);
            }
            edges.each_ref()
        } else {
            inside.map(|block| block.unwrap_or(&[0; BLOCK_LEN]))
        };
        avx512.compress(&mut state, &inside);
    }
    for lane in 0..LANES {
        let mut hash = [0; SHA256_LEN];
        for (bytes, words) in hash.chunks_exact_mut(4).zip(&state) {
            bytes.copy_from_slice(&words[lane].to_be_bytes());
        }
        each(start + lane, &hash);
    }
}

/// Block number `block` of prefix and message, if it lies within the message.
#[inline]
fn inner_block<'a>(prefix: &[u8], message: &'a [u8], block: usize) -> Option<&'a [u8; BLOCK_LEN]> {
    let from = (block * BLOCK_LEN).checked_sub(prefix.len())?;
    message.get(from..)?.first_chunk()
}

/// Block number `block` of prefix, message and padding.
fn edge_block(prefix: &[u8], message: &[u8], block: usize) -> [u8; BLOCK_LEN] {
    let start = block * BLOCK_LEN;
    let total = prefix.len() + message.len();
    let mut padded = [0; BLOCK_LEN];
    let mut filled = 0;
    for part in [
        prefix.get(start..),
        message.get(start.saturating_sub(prefix.len())..),
    ]
    .into_iter()
    .flatten()
    {
        let taken = part.len().min(BLOCK_LEN - filled);
        padded[filled..filled + taken].copy_from_slice(&part[..taken]);
        filled += taken;
    }
    if filled < BLOCK_LEN && start + filled == total {
        padded[filled] = 0x80;
    }
    if start + BLOCK_LEN >= total + 1 + LENGTH_LEN {
        padded[BLOCK_LEN - LENGTH_LEN..].copy_from_slice(&(total as u64 * 8).to_be_bytes());
    }
    padded
}
