//! The AVX-512 instructions behind `lanes`: the only unsafe code of this crate.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_ror_epi32, _mm512_set1_epi32, _mm512_srli_epi32,
    _mm512_storeu_si512, _mm512_ternarylogic_epi32,
};

use super::lanes::{Blocks, Words};

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

/// Proof that this host has AVX-512; only [`Avx512::detect`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Asks the processor; the standard library caches the answer.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        std::is_x86_feature_detected!("avx512f").then_some(Self(()))
    }

    /// The compression function on sixteen independent states, with a block for each.
    #[inline]
    pub(super) fn compress(self, state: &mut [Words; 8], blocks: &Blocks) {
        // SAFETY: `self` proves that the instructions exist.
        unsafe { compress(state, blocks) }
    }
}

#[target_feature(enable = "avx512f")]
fn compress(state: &mut [Words; 8], blocks: &Blocks) {
    let mut schedule = blocks.map(|words| load(&words));
    let start = state.map(|words| load(&words));
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = start;
    for (round, constant) in ROUND_CONSTANTS.into_iter().enumerate() {
        let word = if round < 16 {
            schedule[round]
        } else {
            extend(&mut schedule, round)
        };
        let constant = _mm512_set1_epi32(constant.cast_signed());
        let choice = _mm512_ternarylogic_epi32::<CHOICE>(e, f, g);
        let sum_1 = xor(
            _mm512_ror_epi32::<6>(e),
            _mm512_ror_epi32::<11>(e),
            _mm512_ror_epi32::<25>(e),
        );
        let first = add(add(add(h, sum_1), add(choice, constant)), word);
        let sum_0 = xor(
            _mm512_ror_epi32::<2>(a),
            _mm512_ror_epi32::<13>(a),
            _mm512_ror_epi32::<22>(a),
        );
        let second = add(sum_0, _mm512_ternarylogic_epi32::<MAJORITY>(a, b, c));
        (h, g, f, e, d, c, b, a) = (g, f, e, add(d, first), c, b, a, add(first, second));
    }
    for ((out, before), after) in state.iter_mut().zip(start).zip([a, b, c, d, e, f, g, h]) {
        store(out, add(before, after));
    }
}

/// Word `round` of the message schedule, kept in a ring of sixteen.
#[target_feature(enable = "avx512f")]
fn extend(schedule: &mut [__m512i; 16], round: usize) -> __m512i {
    let back = |distance: usize| schedule[(round - distance) % 16];
    let (w15, w2) = (back(15), back(2));
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
    let word = add(add(back(16), sigma_0), add(back(7), sigma_1));
    schedule[round % 16] = word;
    word
}

#[target_feature(enable = "avx512f")]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

#[target_feature(enable = "avx512f")]
fn xor(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<XOR>(a, b, c)
}

#[target_feature(enable = "avx512f")]
fn load(words: &Words) -> __m512i {
    // SAFETY: a reference to 64 bytes; the instruction needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(words: &mut Words, value: __m512i) {
    // SAFETY: a unique reference to 64 bytes; the instruction needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
}
