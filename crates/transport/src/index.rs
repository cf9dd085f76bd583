//! Receiver indices that certify themselves.

use crate::timing::{INDEX_QUARANTINE, PENDING_LIFETIME, REJECT_AFTER};
use falconet_crypto::SessionIndex;
use rand_core::Rng;
use std::collections::VecDeque;
use std::time::Instant;

const RANDOM_BITS: u32 = 20;
const CHECK_BITS: u32 = 32 - RANDOM_BITS;
const CHECK_MASK: u32 = (1 << CHECK_BITS) - 1;

/// Indices that are reserved at once, half of all: at the default budgets of admission (600 accepted
/// initiations a second) no more can come up within the time of a reservation.
const MAX_RESERVED: usize = 1 << (RANDOM_BITS - 1);
/// Draws before giving up: at half load 64 failures in a row have a chance of 2^-64.
const MAX_DRAWS: usize = 64;

/// The key of the check bits; `docs/spec/session.md#index-check`.
///
/// The check uses nothing but what a classic-BPF program has (32-bit xor, add, multiply and shift
/// with constants), so a socket filter can drop all but one in 4,096 blind guesses in the kernel. It
/// is a filter and no security boundary: who sees one index learns a valid one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IndexKey {
    xor: u32,
    multiply: u32,
    add: u32,
    fold: u32,
}

impl IndexKey {
    /// A key from a node's randomness.
    pub fn generate(rng: &mut impl Rng) -> Self {
        Self::from_constants([rng.next_u32(), rng.next_u32(), rng.next_u32(), rng.next_u32()])
    }

    /// A key from its constants; multipliers are made odd.
    #[must_use]
    pub const fn from_constants([xor, multiply, add, fold]: [u32; 4]) -> Self {
        Self {
            xor,
            multiply: multiply | 1,
            add,
            fold: fold | 1,
        }
    }

    /// `[xor, multiply, add, fold]`, for the program of a socket filter.
    #[must_use]
    pub const fn constants(&self) -> [u32; 4] {
        [self.xor, self.multiply, self.add, self.fold]
    }

    /// Whether a datagram with this receiver index can be for us; `docs/spec/session.md#index-check`.
    #[must_use]
    #[inline]
    pub const fn check(&self, index: SessionIndex) -> bool {
        let word = index.value().swap_bytes();
        self.check_bits(word >> CHECK_BITS) == word & CHECK_MASK
    }

    /// The check bits of the 20 random bits.
    const fn check_bits(&self, random: u32) -> u32 {
        let mut a = (random ^ self.xor).wrapping_mul(self.multiply);
        a ^= a >> 15;
        a = a.wrapping_add(self.add).wrapping_mul(self.fold);
        a >> RANDOM_BITS
    }

    const fn index(&self, random: u32) -> SessionIndex {
        let word = (random << CHECK_BITS) | self.check_bits(random);
        SessionIndex::new(word.swap_bytes())
    }
}

impl std::fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IndexKey(..)")
    }
}

/// Gives out indices, each at most once in the time a session can live and 10 minutes more;
/// `docs/spec/session.md#index-reuse`.
pub(crate) struct Indices {
    key: IndexKey,
    /// One bit for each of the 2^20 values.
    reserved: Vec<u64>,
    /// What is reserved, in order of time.
    order: VecDeque<(Instant, u32)>,
    cap: usize,
}

impl Indices {
    pub(crate) fn new(key: IndexKey) -> Self {
        Self {
            key,
            reserved: vec![0; (1 << RANDOM_BITS) / 64],
            order: VecDeque::new(),
            cap: MAX_RESERVED,
        }
    }

    pub(crate) const fn key(&self) -> IndexKey {
        self.key
    }

    /// Whether there is one to answer an initiation with. The last sixteenth is left for our own dials, which
    /// others cannot use up then; `docs/spec/session.md#index-reuse`.
    pub(crate) fn has_free_for_others(&mut self, now: Instant) -> bool {
        self.forget_before(now);
        self.order.len() < self.cap - self.cap / 16
    }

    /// A fresh index, or `None` if half of all are reserved.
    pub(crate) fn allocate(&mut self, now: Instant, rng: &mut impl Rng) -> Option<SessionIndex> {
        self.forget_before(now);
        if self.order.len() >= self.cap {
            return None;
        }
        for _ in 0..MAX_DRAWS {
            let random = rng.next_u32() >> CHECK_BITS;
            let (word, bit) = (random as usize / 64, 1u64 << (random % 64));
            if self.reserved[word] & bit == 0 {
                self.reserved[word] |= bit;
                self.order.push_back((now, random));
                return Some(self.key.index(random));
            }
        }
        None
    }

    fn forget_before(&mut self, now: Instant) {
        // Whatever becomes of an index, its last use is a session that was agreed on at the end of
        // the initiation's lifetime. So nobody has to say when a session has ended.
        let reservation = PENDING_LIFETIME + REJECT_AFTER + INDEX_QUARANTINE;
        while let Some(&(at, random)) = self.order.front()
            && now.saturating_duration_since(at) >= reservation
        {
            self.order.pop_front();
            self.reserved[random as usize / 64] &= !(1 << (random % 64));
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use std::collections::HashSet;
    use std::time::Duration;

    fn indices(seed: u8) -> (Indices, ChaCha20Rng) {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        (Indices::new(IndexKey::generate(&mut rng)), rng)
    }

    #[test]
    fn own_indices_pass_and_one_in_4096_guesses() {
        for seed in 0..8 {
            let (mut indices, mut rng) = indices(seed);
            let key = indices.key();
            for _ in 0..1000 {
                let index = indices.allocate(Instant::now(), &mut rng).unwrap();
                assert!(key.check(index));
            }
            let guesses = 1 << 18;
            let hits = (0..guesses)
                .filter(|_| key.check(SessionIndex::new(rng.next_u32())))
                .count();
            // 64 expected, eight standard deviations around it.
            assert!((1..=128).contains(&hits), "{hits} of {guesses}");
        }
    }

    #[test]
    fn counting_guesses_are_no_better_than_random_ones() {
        let (indices, _) = indices(9);
        let hits = (0..1u32 << 20)
            .filter(|&guess| indices.key().check(SessionIndex::new(guess)))
            .count();
        assert!((64..=1024).contains(&hits), "{hits}");
    }

    #[test]
    fn the_check_is_what_the_page_says() {
        // Worked out by hand from docs/spec/session.md#index-check.
        let key = IndexKey::from_constants([0, 1, 0, 1]);
        // random = 0xABCDE: a = 0xABCDE ^ (0xABCDE >> 15) = 0xABCDE ^ 0x15 = 0xABCCB, check = a >> 20 = 0.
        assert!(key.check(SessionIndex::from_le_bytes([0xab, 0xcd, 0xe0, 0x00])));
        assert!(!key.check(SessionIndex::from_le_bytes([0xab, 0xcd, 0xe0, 0x01])));
    }

    #[test]
    fn an_index_rests_ten_minutes_past_its_last_use() {
        let (mut indices, mut rng) = indices(1);
        let start = Instant::now();
        let first: HashSet<_> = (0..50_000)
            .map(|_| indices.allocate(start, &mut rng).unwrap())
            .collect();
        assert_eq!(first.len(), 50_000);
        let later = start + REJECT_AFTER + INDEX_QUARANTINE;
        for _ in 0..50_000 {
            assert!(!first.contains(&indices.allocate(later, &mut rng).unwrap()));
        }
        let after = later + PENDING_LIFETIME;
        indices.allocate(after, &mut rng);
        assert_eq!(indices.order.len(), 50_001);
    }

    #[test]
    fn the_table_is_bounded_and_recovers() {
        let (mut indices, mut rng) = indices(2);
        indices.cap = 100;
        let start = Instant::now();
        for _ in 0..100 {
            assert!(indices.allocate(start, &mut rng).is_some());
        }
        assert!(indices.allocate(start, &mut rng).is_none());
        assert!(!indices.has_free_for_others(start));
        let later = start + Duration::from_secs(795);
        assert!(indices.has_free_for_others(later));
        assert!(indices.allocate(later, &mut rng).is_some());
    }

    #[test]
    fn answers_leave_a_sixteenth_for_our_own_dials() {
        let (mut indices, mut rng) = indices(3);
        indices.cap = 80;
        let start = Instant::now();
        let mut answered = 0;
        while indices.has_free_for_others(start) {
            indices.allocate(start, &mut rng).unwrap();
            answered += 1;
        }
        assert_eq!(answered, 75);
        let dials = (0..20).filter(|_| indices.allocate(start, &mut rng).is_some());
        assert_eq!(dials.count(), 5);
    }
}
