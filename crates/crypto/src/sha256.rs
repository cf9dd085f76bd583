//! SHA-256 of many messages of one length at once, one message a SIMD lane.
//!
//! A Merkle tree over thousands of symbols is thousands of independent hashes. Hosts with AVX-512 do sixteen of them
//! for little more than the price of one; elsewhere they are done one after the other, with the SHA instructions where
//! the processor has them (`docs/adr/0001-sha256-lanes.md`).

use sha2::{Digest, Sha256};

#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod sys;

#[cfg(test)]
mod tests;

/// Bytes of a SHA-256 hash.
pub const SHA256_LEN: usize = 32;

/// How [`sha256_many`] works on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sha256Method {
    /// Sixteen messages at once, with AVX-512.
    SixteenLanes,
    /// One message after the other, with the SHA instructions where the processor has them.
    OneByOne,
}

impl Sha256Method {
    /// What this host does.
    pub fn of_this_host() -> Self {
        #[cfg(target_arch = "x86_64")]
        if sys::Avx512::detect().is_some() {
            return Self::SixteenLanes;
        }
        Self::OneByOne
    }
}

/// Calls `each(i, hash)` with the SHA-256 of `prefix` followed by message `i`, for every message.
///
/// Messages of the same length are hashed side by side, so order them such that equal lengths stand together.
pub fn sha256_many<'a>(
    prefix: &[u8],
    messages: impl ExactSizeIterator<Item = &'a [u8]>,
    mut each: impl FnMut(usize, &[u8; SHA256_LEN]),
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx512) = sys::Avx512::detect().filter(|_| prefix.len() <= lanes::MAX_PREFIX) {
        return lanes::hash_in_lanes(avx512, prefix, messages, each);
    }
    for (place, message) in messages.enumerate() {
        each(place, &sha256_one(prefix, message));
    }
}

fn sha256_one(prefix: &[u8], message: &[u8]) -> [u8; SHA256_LEN] {
    Sha256::new()
        .chain_update(prefix)
        .chain_update(message)
        .finalize()
        .into()
}
