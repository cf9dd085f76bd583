//! The network that a signature is meant for.

use std::fmt;

use sha2::{Digest, Sha256};

/// Names a network, so that nothing signed for one network is accepted in another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetworkId([u8; 32]);

impl NetworkId {
    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// SHA-256 of `falconet/network/1`, a zero byte and the name
    /// (`docs/spec/keys.md#network-id`).
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let hash = Sha256::new_with_prefix(b"falconet/network/1\0").chain_update(name);
        Self(hash.finalize().into())
    }

    /// The 32 bytes that signatures cover.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for NetworkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NetworkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetworkId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_hashed_under_its_label() {
        // printf 'falconet/network/1\0devnet' | sha256sum
        assert_eq!(
            NetworkId::from_name("devnet").to_string(),
            "067089213c76bd4ffa02ffcedddc2ec4f408f6e399e3d501d68cdbd9e4a1c529"
        );
    }

    #[test]
    fn names_do_not_collide() {
        assert_ne!(NetworkId::from_name("a"), NetworkId::from_name("b"));
        assert_ne!(NetworkId::from_name(""), NetworkId::from_bytes([0; 32]));
    }
}
