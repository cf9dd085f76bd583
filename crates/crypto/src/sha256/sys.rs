//! The AVX-512 instructions behind `lanes`: the only unsafe code of this crate.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_ror_epi32, _mm512_set1_epi32, _mm512_set4_epi32,
    _mm512_shuffle_epi8, _mm512_shuffle_i32x4, _mm512_srli_epi32, _mm512_storeu_si512,
    _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
    _mm512_unpacklo_epi64,
};

use super::lanes::{BLOCK_LEN, LANES, Words};

/// FIPS 180-4, section 4.2.2.
#[rustfmt::skip]
const ROUND_CONSTANTS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// `a ^ b ^ c`, choice and majority as truth tables of `vpternlogd`.
const XOR: i32 = 0x96;
const CHOICE: i32 = 0xca;
const MAJORITY: i32 = 0xe8;
/// Quarters 0 and 2, or 1 and 3, of both operands of `vshufi32x4`.
const EVEN: i32 = 0x88;
const ODD: i32 = 0xdd;

/// Proof that this host has AVX-512; only [`Avx512::detect`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Asks the processor; the standard library caches the answer.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        let is_there = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw");
        is_there.then_some(Self(()))
    }

    /// The compression function on sixteen independent states, with a block for each.
    #[inline]
    pub(super) fn compress(self, state: &mut [Words; 8], blocks: &[&[u8; BLOCK_LEN]; LANES]) {
        // SAFETY: `self` proves that the instructions exist.
        unsafe { compress(state, blocks) }
    }
}

// No closure below: a closure does not inherit the target feature, and would not be inlined.

#[target_feature(enable = "avx512f,avx512bw")]
fn compress(state: &mut [Words; 8], blocks: &[&[u8; BLOCK_LEN]; LANES]) {
    let mut schedule = words_by_place(blocks);
    let [a0, b0, c0, d0, e0, f0, g0, h0] = load_state(state);
    let [mut a, mut b, mut c, mut d] = [a0, b0, c0, d0];
    let [mut e, mut f, mut g, mut h] = [e0, f0, g0, h0];
    for (round, constant) in ROUND_CONSTANTS.into_iter().enumerate() {
        if round >= 16 {
            extend(&mut schedule, round);
        }
        let word = add(schedule[round % 16], _mm512_set1_epi32(constant.cast_signed()));
        let choice = _mm512_ternarylogic_epi32::<CHOICE>(e, f, g);
        let sum_1 = xor(
            _mm512_ror_epi32::<6>(e),
            _mm512_ror_epi32::<11>(e),
            _mm512_ror_epi32::<25>(e),
        );
        let first = add(add(h, word), add(choice, sum_1));
        let sum_0 = xor(
            _mm512_ror_epi32::<2>(a),
            _mm512_ror_epi32::<13>(a),
            _mm512_ror_epi32::<22>(a),
        );
        let second = add(sum_0, _mm512_ternarylogic_epi32::<MAJORITY>(a, b, c));
        (h, g, f, e, d, c, b, a) = (g, f, e, add(d, first), c, b, a, add(first, second));
    }
    let before = [a0, b0, c0, d0, e0, f0, g0, h0];
    let after = [a, b, c, d, e, f, g, h];
    for word in 0..8 {
        store(&mut state[word], add(before[word], after[word]));
    }
}

/// Word `round` of the message schedule, kept in a ring of sixteen.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn extend(schedule: &mut [__m512i; 16], round: usize) {
    let (w15, w2) = (schedule[(round - 15) % 16], schedule[(round - 2) % 16]);
    let sigma_0 = xor(
        _mm512_ror_epi32::<7>(w15),
        _mm512_ror_epi32::<18>(w15),
        _mm512_srli_epi32::<3>(w15),
    );
    let sigma_1 = xor(
        _mm512_ror_epi32::<17>(w2),
        _mm512_ror_epi32::<19>(w2),
        _mm512_srli_epi32::<10>(w2),
    );
    let older = add(schedule[round % 16], schedule[(round - 7) % 16]);
    schedule[round % 16] = add(older, add(sigma_0, sigma_1));
}

/// Sixteen blocks of sixteen words become sixteen vectors, each with one word of every block: a transposition in
/// three steps of interleaving, of words, of pairs of words, and of quarters.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn words_by_place(blocks: &[&[u8; BLOCK_LEN]; LANES]) -> [__m512i; 16] {
    let mut rows = [load_words(blocks[0]); 16];
    for lane in 1..LANES {
        rows[lane] = load_words(blocks[lane]);
    }
    let mut quads = rows;
    for group in [0, 4, 8, 12] {
        let low_01 = _mm512_unpacklo_epi32(rows[group], rows[group + 1]);
        let high_01 = _mm512_unpackhi_epi32(rows[group], rows[group + 1]);
        let low_23 = _mm512_unpacklo_epi32(rows[group + 2], rows[group + 3]);
        let high_23 = _mm512_unpackhi_epi32(rows[group + 2], rows[group + 3]);
        quads[group] = _mm512_unpacklo_epi64(low_01, low_23);
        quads[group + 1] = _mm512_unpackhi_epi64(low_01, low_23);
        quads[group + 2] = _mm512_unpacklo_epi64(high_01, high_23);
        quads[group + 3] = _mm512_unpackhi_epi64(high_01, high_23);
    }
    let mut words = quads;
    for column in 0..4 {
        let even_low = _mm512_shuffle_i32x4::<EVEN>(quads[column], quads[column + 4]);
        let odd_low = _mm512_shuffle_i32x4::<ODD>(quads[column], quads[column + 4]);
        let even_high = _mm512_shuffle_i32x4::<EVEN>(quads[column + 8], quads[column + 12]);
        let odd_high = _mm512_shuffle_i32x4::<ODD>(quads[column + 8], quads[column + 12]);
        words[column] = _mm512_shuffle_i32x4::<EVEN>(even_low, even_high);
        words[column + 4] = _mm512_shuffle_i32x4::<EVEN>(odd_low, odd_high);
        words[column + 8] = _mm512_shuffle_i32x4::<ODD>(even_low, even_high);
        words[column + 12] = _mm512_shuffle_i32x4::<ODD>(odd_low, odd_high);
    }
    words
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_state(state: &[Words; 8]) -> [__m512i; 8] {
    let mut loaded = [load(&state[0]); 8];
    for word in 1..8 {
        loaded[word] = load(&state[word]);
    }
    loaded
}

/// One block as sixteen words, which are big-endian in SHA-256.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_words(block: &[u8; BLOCK_LEN]) -> __m512i {
    let swap = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    // SAFETY: a reference to 64 bytes; the instruction needs no alignment.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    _mm512_shuffle_epi8(bytes, swap)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(words: &Words) -> __m512i {
    // SAFETY: a reference to 64 bytes; the instruction needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store(words: &mut Words, value: __m512i) {
    // SAFETY: a unique reference to 64 bytes; the instruction needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<XOR>(a, b, c)
}
