//! A set of small numbers, one bit each.

/// Numbers below a bound that is fixed when the set is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BitSet {
    words: Box<[u64]>,
}

impl BitSet {
    /// An empty set for numbers below `bound`.
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            words: vec![0; bound.div_ceil(64)].into_boxed_slice(),
        }
    }

    /// Adds a number below the bound; false if it was there.
    pub(crate) fn insert(&mut self, number: usize) -> bool {
        let (word, bit) = (&mut self.words[number / 64], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.words
            .get(number / 64)
            .is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    pub(crate) const fn memory(bound: usize) -> usize {
        bound.div_ceil(64) * 8
    }
}
