//! Sixteen messages side by side: gathering their blocks, and padding as FIPS 180-4 section 5.1.1 has it.

use super::sys::Avx512;
use super::{SHA256_LEN, sha256_one};

pub(super) const LANES: usize = 16;
/// The prefix must fit the first block with room to spare.
pub(super) const MAX_PREFIX: usize = 32;

const BLOCK_LEN: usize = 64;
/// Bytes of the length field that ends the padding.
const LENGTH_LEN: usize = 8;

/// Word `w` of the blocks of all lanes.
pub(super) type Words = [u32; LANES];
/// One block of each lane, as sixteen words.
pub(super) type Blocks = [Words; 16];

/// FIPS 180-4, section 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// Runs of sixteen messages of one length go through the lanes, what is left over goes alone.
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
            hash_one_by_one(prefix, &run[..filled], start, &mut each);
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
    hash_one_by_one(prefix, &run[..filled], start, &mut each);
}

fn hash_one_by_one(
    prefix: &[u8],
    run: &[&[u8]],
    start: usize,
    each: &mut impl FnMut(usize, &[u8; SHA256_LEN]),
) {
    for (offset, message) in run.iter().enumerate() {
        each(start + offset, &sha256_one(prefix, message));
    }
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
    let mut gathered: Blocks = [[0; LANES]; 16];
    for block in 0..blocks {
        for (lane, message) in messages.iter().enumerate() {
            gather(prefix, message, block, lane, &mut gathered);
        }
        avx512.compress(&mut state, &gathered);
    }
    for lane in 0..LANES {
        let mut hash = [0; SHA256_LEN];
        for (bytes, words) in hash.chunks_exact_mut(4).zip(&state) {
            bytes.copy_from_slice(&words[lane].to_be_bytes());
        }
        each(start + lane, &hash);
    }
}

/// Puts block number `block` of prefix and message into `lane`.
#[inline]
fn gather(prefix: &[u8], message: &[u8], block: usize, lane: usize, gathered: &mut Blocks) {
    let start = block * BLOCK_LEN;
    let inside = start
        .checked_sub(prefix.len())
        .and_then(|from| message.get(from..from + BLOCK_LEN));
    if let Some(bytes) = inside {
        return spread(bytes, lane, gathered);
    }
    let mut padded = [0; BLOCK_LEN];
    let total = prefix.len() + message.len();
    for (offset, byte) in padded.iter_mut().enumerate() {
        let place = start + offset;
        *byte = match place.checked_sub(prefix.len()) {
            None => prefix[place],
            Some(from) if from < message.len() => message[from],
            Some(from) if from == message.len() => 0x80,
            Some(_) => 0,
        };
    }
    if start + BLOCK_LEN >= total + 1 + LENGTH_LEN {
        padded[BLOCK_LEN - LENGTH_LEN..].copy_from_slice(&(total as u64 * 8).to_be_bytes());
    }
    spread(&padded, lane, gathered);
}

#[inline]
fn spread(bytes: &[u8], lane: usize, gathered: &mut Blocks) {
    for (words, word) in gathered.iter_mut().zip(bytes.chunks_exact(4)) {
        words[lane] = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
    }
}
