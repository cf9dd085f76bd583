//! The validators of an epoch: who they are, what their stake is, and which number the wire names them by.

use falconet_crypto::IdentityKey;
use thiserror::Error;

use crate::ids::NodeIndex;
use crate::wide::{Wide, share};

/// Voting weight, in the smallest unit of the chain: any `u128`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stake(u128);

impl Stake {
    /// A stake of this many units.
    pub const fn new(units: u128) -> Self {
        Self(units)
    }

    /// The units.
    pub const fn units(self) -> u128 {
        self.0
    }
}

/// One member of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Validator {
    /// The key that names it and signs for it.
    pub identity: IdentityKey,
    /// Its stake; with none it receives, but is never a first hop.
    pub stake: Stake,
}

/// Why a list of validators is no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetError {
    /// No member.
    #[error("a validator set needs at least one member")]
    Empty,
    /// More than [`ValidatorSet::MAX_LEN`] members.
    #[error("{0} validators: at most {max} fit a set", max = ValidatorSet::MAX_LEN)]
    TooMany(usize),
    /// The same identity twice.
    #[error("the validator {0} is listed twice")]
    Duplicate(IdentityKey),
}

/// The validators of one epoch, in the order that every node derives alike: by identity key
/// (`docs/spec/chunk.md#set`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatorSet {
    members: Vec<Validator>,
    total: Wide,
}

impl ValidatorSet {
    /// The most members a set can have: each needs its own 2-byte number.
    pub const MAX_LEN: usize = u16::MAX as usize;

    /// A set of these validators; their order does not matter.
    ///
    /// # Errors
    ///
    /// [`SetError`] if there are none, too many, or one twice.
    pub fn new(mut members: Vec<Validator>) -> Result<Self, SetError> {
        if members.is_empty() {
            return Err(SetError::Empty);
        }
        if members.len() > Self::MAX_LEN {
            return Err(SetError::TooMany(members.len()));
        }
        members.sort_unstable_by_key(|member| member.identity);
        if let Some(pair) = members
            .windows(2)
            .find(|pair| pair[0].identity == pair[1].identity)
        {
            return Err(SetError::Duplicate(pair[0].identity));
        }
        let total = members
            .iter()
            .fold(Wide::default(), |sum, member| sum.plus(member.stake.units()));
        Ok(Self { members, total })
    }

    /// Number of members.
    #[expect(clippy::len_without_is_empty, reason = "a set is never empty")]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether the set has a member with this number.
    pub fn contains(&self, node: NodeIndex) -> bool {
        node.as_usize() < self.members.len()
    }

    /// The member with this number.
    pub fn get(&self, node: NodeIndex) -> Option<&Validator> {
        self.members.get(node.as_usize())
    }

    /// The number of the member with this identity.
    pub fn index_of(&self, identity: &IdentityKey) -> Option<NodeIndex> {
        let place = self
            .members
            .binary_search_by_key(identity, |member| member.identity)
            .ok()?;
        Some(NodeIndex::new(place as u16))
    }

    /// The members in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (NodeIndex, &Validator)> {
        self.members
            .iter()
            .enumerate()
            .map(|(place, member)| (NodeIndex::new(place as u16), member))
    }

    /// How many symbols each first hop gets when `author` broadcasts and `scaled` is `R`: every member with
    /// stake `s > 0`, in the order of numbers, with `floor(R x s / S) + 1`. `S` is the stake of all but the
    /// author (`docs/spec/chunk.md#shares`).
    pub(crate) fn shares(&self, author: NodeIndex, scaled: u32) -> impl Iterator<Item = (NodeIndex, u32)> {
        let own = self.get(author).map_or(0, |member| member.stake.units());
        let total = self.total.minus(own);
        self.iter()
            .filter(move |(node, member)| *node != author && member.stake.units() > 0)
            .map(move |(node, member)| (node, share(scaled, member.stake.units(), total) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::{SetError, Stake, Validator, ValidatorSet};
    use crate::ids::NodeIndex;
    use falconet_crypto::IdentityKey;

    fn validator(id: u8, stake: u128) -> Validator {
        Validator {
            identity: IdentityKey::from_bytes([id; 32]),
            stake: Stake::new(stake),
        }
    }

    #[test]
    fn numbers_do_not_depend_on_the_order_of_the_list() {
        let forward = ValidatorSet::new((0..9).map(|id| validator(id, 5)).collect());
        let backward = ValidatorSet::new((0..9).rev().map(|id| validator(id, 5)).collect());
        assert_eq!(forward, backward);
    }

    #[test]
    fn members_are_found_by_identity_and_by_number() {
        let set = ValidatorSet::new(vec![validator(7, 1), validator(3, 2)]).unwrap();
        let index = set.index_of(&IdentityKey::from_bytes([7; 32])).unwrap();
        assert_eq!(index, NodeIndex::new(1));
        assert_eq!(set.get(index).unwrap().stake, Stake::new(1));
        assert_eq!(set.index_of(&IdentityKey::from_bytes([4; 32])), None);
        assert!(!set.contains(NodeIndex::new(2)));
    }

    #[test]
    fn lists_that_are_no_set_are_refused() {
        assert_eq!(ValidatorSet::new(vec![]), Err(SetError::Empty));
        let twice = ValidatorSet::new(vec![validator(1, 1), validator(2, 1), validator(1, 2)]);
        assert_eq!(twice, Err(SetError::Duplicate(IdentityKey::from_bytes([1; 32]))));
    }

    #[test]
    fn shares_add_up_at_the_largest_stakes() {
        let set = ValidatorSet::new((0..4).map(|id| validator(id, u128::MAX)).collect()).unwrap();
        let shares: Vec<_> = set.shares(NodeIndex::new(1), 300).collect();
        let expected = [0, 2, 3].map(|node| (NodeIndex::new(node), 101));
        assert_eq!(shares, expected);
    }
}
