//! The numbers every node must agree on, and the two option types that carry such a number. Each is
//! stated in `docs/spec/chunk.md#limits`.

use std::fmt;

/// The largest payload: 3 MiB.
pub const MAX_PAYLOAD_LEN: usize = 3 << 20;
/// The most symbols a message may commit to, 2^15.
pub const MAX_SYMBOLS: u16 = 1 << 15;
/// Symbol sizes are multiples of this many bytes: field arithmetic on whole cache lines is 1.5 times
/// faster than on odd lengths.
pub const SYMBOL_UNIT: u16 = 64;
/// Bytes of an Ed25519 signature.
pub const SIGNATURE_LEN: usize = 64;
/// Bytes of a tree hash: SHA-256 cut to 20.
pub const HASH_LEN: usize = 20;
/// Header bytes when the author is named by its place in the set.
pub const HEADER_LEN: usize = 27;
/// Header bytes when the author is named by its identity key.
pub const KEY_HEADER_LEN: usize = 57;

/// Levels of the tree over `symbols` leaves: `ceil(log2 N)`, at most 15.
pub const fn merkle_depth(symbols: u16) -> u8 {
    (u16::BITS - symbols.saturating_sub(1).leading_zeros()) as u8
}

/// The size that no chunk of a network exceeds, in bytes, without the datagram frame.
///
/// One number for the whole network: 1,440 when every member speaks IPv4 at MTU 1,500 (20 + 8 bytes of IP
/// and UDP and 32 of the frame go off), 1,420 when any speaks IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize(u16);

impl ChunkSize {
    /// Every member at IPv4 with MTU 1,500.
    pub const IPV4: Self = Self(1440);
    /// Any member at IPv6 with MTU 1,500.
    pub const IPV6: Self = Self(1420);
    /// The smallest size that still leaves a symbol of 64 bytes beside the longest proof.
    pub const MIN: u16 = 512;
    /// The largest size: jumbo frames.
    pub const MAX: u16 = 9000;

    /// A size in bytes, or `None` outside [`ChunkSize::MIN`]`..=`[`ChunkSize::MAX`].
    pub const fn new(bytes: u16) -> Option<Self> {
        if bytes >= Self::MIN && bytes <= Self::MAX {
            Some(Self(bytes))
        } else {
            None
        }
    }

    /// The size in bytes.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }
}

/// How many symbols are sent for each source symbol. One number for the whole network, so that a leader
/// cannot choose how much everybody relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redundancy(u16);

impl Redundancy {
    /// 2.5: a third of the stake silent or hostile, and loss on top.
    pub const DEFAULT: Self = Self(250);

    /// A redundancy in hundredths (250 is 2.5), or `None` outside 1.00 to 8.00.
    pub const fn from_hundredths(hundredths: u16) -> Option<Self> {
        if hundredths >= 100 && hundredths <= 800 {
            Some(Self(hundredths))
        } else {
            None
        }
    }

    /// The redundancy in hundredths.
    pub const fn hundredths(self) -> u16 {
        self.0
    }

    /// `R = ceil(K x redundancy)` (`docs/spec/chunk.md#shares`).
    pub const fn scaled(self, source_symbols: u32) -> u32 {
        (source_symbols * self.0 as u32).div_ceil(100)
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}
