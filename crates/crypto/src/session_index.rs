//! The receiver index.

use std::fmt;

/// Receiver index that names one end of a session.
///
/// Chosen by the receiver of the datagrams that carry it, so it means something only to the node
/// that chose it. On the wire it is a 32-bit little-endian integer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionIndex(u32);

impl SessionIndex {
    /// The index with this numeric value.
    #[must_use]
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// Its numeric value.
    #[must_use]
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The four bytes of the wire.
    #[must_use]
    #[inline]
    pub const fn to_le_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// The index that these four bytes of the wire mean.
    #[must_use]
    #[inline]
    pub const fn from_le_bytes(bytes: [u8; 4]) -> Self {
        Self(u32::from_le_bytes(bytes))
    }
}

impl fmt::Debug for SessionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionIndex({:#010x})", self.0)
    }
}

impl fmt::Display for SessionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_is_little_endian() {
        let index = SessionIndex::new(0x0102_0304);
        assert_eq!(index.to_le_bytes(), [4, 3, 2, 1]);
        assert_eq!(SessionIndex::from_le_bytes([4, 3, 2, 1]), index);
        assert_eq!(index.to_string(), "0x01020304");
    }
}
