//! Sums and products of stakes, which outgrow 128 bits: stakes go up to `2^128 - 1`, sets up to 65,535
//! members.

/// An unsigned number of 256 bits, high half first, so that the derived order is the numeric one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    pub(crate) const fn new(low: u128) -> Self {
        Self { high: 0, low }
    }

    pub(crate) const fn plus(self, addend: u128) -> Self {
        let (low, carry) = self.low.overflowing_add(addend);
        Self {
            high: self.high + carry as u128,
            low,
        }
    }

    /// `self - subtrahend`, which must not be larger than `self`.
    pub(crate) const fn minus(self, subtrahend: u128) -> Self {
        let (low, borrow) = self.low.overflowing_sub(subtrahend);
        Self {
            high: self.high - borrow as u128,
            low,
        }
    }

    /// `self x factor`. Sums stay below `2^144` and factors below `2^17`, so 256 bits hold the product.
    pub(crate) const fn times(self, factor: u32) -> Self {
        let factor = factor as u128;
        let lower = (self.low & u64::MAX as u128) * factor;
        let upper = (self.low >> 64) * factor + (lower >> 64);
        Self {
            high: self.high * factor + (upper >> 64),
            low: (upper << 64) | (lower & u64::MAX as u128),
        }
    }
}

/// `floor(scaled x stake / total)`, exact. `total` is at least `stake`, so the result is at most `scaled`.
pub(crate) fn share(scaled: u32, stake: u128, total: Wide) -> u32 {
    if total.high == 0 && stake.leading_zeros() >= u32::BITS {
        return (u128::from(scaled) * stake / total.low) as u32;
    }
    // Too wide for one division: the quotient has at most 17 bits, so search for it.
    let product = Wide::new(stake).times(scaled);
    let (mut fits, mut too_large) = (0, scaled + 1);
    while too_large - fits > 1 {
        let middle = fits + (too_large - fits) / 2;
        if total.times(middle) <= product {
            fits = middle
        } else {
            too_large = middle
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Wide, share};

    /// `floor(scaled x stake / total)` by long division, one bit at a time.
    fn long_division(scaled: u32, stake: u128, total: Wide) -> u32 {
        let mut quotient = 0;
        for bit in (0..18).rev() {
            let candidate = quotient | (1 << bit);
            if total.times(candidate) <= Wide::new(stake).times(scaled) {
                quotient = candidate;
            }
        }
        quotient
    }

    proptest! {
        #[test]
        fn shares_agree_with_long_division(scaled in 1_u32..=1 << 15, stake: u128, others: u128, shift in 0_u32..128) {
            let (stake, others) = (stake >> shift, others >> shift);
            let total = Wide::new(stake).plus(others);
            prop_assume!(total != Wide::default());
            prop_assert_eq!(share(scaled, stake, total), long_division(scaled, stake, total));
        }

        #[test]
        fn subtraction_undoes_addition(a: u128, b: u128) {
            prop_assert_eq!(Wide::new(a).plus(b).minus(b), Wide::new(a));
        }
    }

    #[test]
    fn products_carry_into_the_high_half() {
        let product = Wide::new(u128::MAX).times(3);
        assert_eq!(
            product,
            Wide {
                high: 2,
                low: u128::MAX - 2
            }
        );
        assert_eq!(product, Wide::new(u128::MAX).plus(u128::MAX).plus(u128::MAX));
    }

    #[test]
    fn the_whole_stake_gets_everything() {
        for stake in [1, u128::from(u64::MAX), u128::MAX] {
            assert_eq!(share(1 << 15, stake, Wide::new(stake)), 1 << 15);
        }
    }
}
