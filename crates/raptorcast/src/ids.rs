//! The small numbers that name things on the wire. None of them is a bare integer across a module
//! border.

use std::fmt;

/// An epoch: the span of rounds judged by one validator set. Four bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(u32);

impl Epoch {
    /// The epoch with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A round of consensus: an author broadcasts at most one message in each. Six bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Round(u64);

impl Round {
    /// The largest round that the six bytes of the header can carry, `2^48 - 1`.
    pub const MAX: Self = Self((1 << 48) - 1);

    /// The round with this number, or `None` above [`Round::MAX`].
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// How many rounds lie between the two.
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}

impl From<u32> for Round {
    fn from(number: u32) -> Self {
        Self(u64::from(number))
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The place of a validator in the [`ValidatorSet`](crate::ValidatorSet) of an epoch. Two bytes on
/// the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIndex(u16);

impl NodeIndex {
    /// The validator at this place.
    pub const fn new(place: u16) -> Self {
        Self(place)
    }

    /// The place as the wire carries it.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The place, to index a slice with.
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of a symbol among the committed symbols of its message; also its encoding symbol id
/// (ESI): the first K are source symbols, the rest repair symbols. Two bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolIndex(u16);

impl SymbolIndex {
    /// The symbol at this position.
    pub const fn new(position: u16) -> Self {
        Self(position)
    }

    /// The position as the wire carries it.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The position, to index a slice with.
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// What names one broadcast: its author may publish one message in a round of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId {
    /// The epoch whose set judges the message.
    pub epoch: Epoch,
    /// The round it was published in.
    pub round: Round,
    /// The leader that wrote it, by its place in the set of the epoch.
    pub author: NodeIndex,
}
