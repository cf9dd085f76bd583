//! The counter of a datagram, and how far each suite lets it go.

use falconet_crypto::Suite;
use std::fmt;

/// Position of a datagram in its session's direction, and its AEAD nonce; starts at 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Counter(u64);

impl Counter {
    /// The first counter of every session.
    pub const ZERO: Self = Self(0);

    /// Wraps a raw value.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The raw value.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many messages one key may carry in one direction.
///
/// Suite 0 has WireGuard's constants (whitepaper, section 6.1). Suite 1 stays far below the bounds on
/// AES-GCM: 2^36 messages of 1.5 kB leave a distinguishing advantage under 2^-40.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After this many messages the session should be renewed.
    pub rekey_after: u64,
    /// This many messages exist at most: counters from here on are neither sent nor accepted.
    pub reject_after: u64,
}

impl Limits {
    /// The limits of `suite`; `docs/spec/framing.md#limits`.
    pub const fn of(suite: Suite) -> Self {
        match suite {
            Suite::ChaCha20Poly1305 => Self {
                rekey_after: 1 << 60,
                reject_after: u64::MAX - (1 << 13),
            },
            Suite::Aes256Gcm => Self {
                rekey_after: 1 << 32,
                reject_after: 1 << 36,
            },
        }
    }
}
