//! Limits by source, for sources that proved their address.

use crate::admission::limiter::{HandedClock, Limiter, limiter};
use falconet_crypto::{SecretBytes, blake2s_mac};
use rand_core::CryptoRng;
use std::net::IpAddr;
use std::num::NonZeroU32;
use zeroize::Zeroize;

/// Entries in a set. A source has one set, chosen by a keyed hash, and any place in it.
pub(crate) const WAYS: usize = 4;

/// What one limit is counted by: a whole IPv4 address, or the /64 that one IPv6 host can use up freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    V4([u8; 4]),
    V6Prefix([u8; 8]),
}

impl Source {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.octets()),
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, h, ..] = ip.octets();
                Self::V6Prefix([a, b, c, d, e, f, g, h])
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6Prefix(bytes) => bytes,
        }
    }
}

struct Entry {
    source: Source,
    last_seen: u64,
    limiter: Limiter,
}

/// A fixed number of sources in sets of [`WAYS`]; `docs/spec/handshake.md#source-limit`.
///
/// A newcomer to a full set takes the place of the source that was seen longest ago, which then starts
/// afresh when it returns. The budget of its class still holds then, and the hash is keyed, so nobody
/// can aim at somebody else's set.
pub(crate) struct SourceTable {
    key: SecretBytes,
    sets: Box<[[Option<Entry>; WAYS]]>,
    per_source: NonZeroU32,
    evicted: u64,
}

impl SourceTable {
    #[cfg(test)]
    pub(crate) const ENTRY_BYTES: usize = size_of::<Option<Entry>>();

    /// Room for `sources`, rounded up to whole sets.
    pub(crate) fn new(sources: usize, per_source: NonZeroU32, rng: &mut impl CryptoRng) -> Self {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let sets = sources.div_ceil(WAYS).max(1);
        let table = Self {
            key: SecretBytes::new(key),
            sets: (0..sets).map(|_| [const { None }; WAYS]).collect(),
            per_source,
            evicted: 0,
        };
        key.zeroize();
        table
    }

    /// Whether `ip` may send one more, which it thereby has.
    pub(crate) fn admits(&mut self, ip: IpAddr, clock: &HandedClock) -> bool {
        let source = Source::of(ip);
        let at = self.set_of(&source);
        let set = &mut self.sets[at];
        let known = set
            .iter()
            .position(|entry| entry.as_ref().is_some_and(|entry| entry.source == source));
        let place = known.unwrap_or_else(|| oldest(set));
        let newcomer = known.is_none();
        self.evicted += u64::from(newcomer && set[place].is_some());
        if newcomer {
            set[place] = None;
        }
        let entry = set[place].get_or_insert_with(|| Entry {
            source,
            last_seen: 0,
            limiter: limiter(self.per_source, self.per_source, clock),
        });
        entry.last_seen = clock.nanos();
        entry.limiter.check().is_ok()
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.sets.iter().flatten().flatten().count()
    }

    fn set_of(&self, source: &Source) -> usize {
        let [a, b, c, d, e, f, g, h, ..] = blake2s_mac(self.key.expose(), &[source.bytes()]);
        (u64::from_le_bytes([a, b, c, d, e, f, g, h]) % self.sets.len() as u64) as usize
    }
}

/// An empty place, or that of the source seen longest ago.
fn oldest(set: &[Option<Entry>; WAYS]) -> usize {
    let age = |place: &usize| set[*place].as_ref().map(|entry| entry.last_seen);
    (0..WAYS).min_by_key(age).unwrap_or(0)
}
