//! Which symbol goes to which first hop. Seeded by what names the message, so neither leader nor relay can
//! choose positions.

use falconet_crypto::{IdentityKey, NetworkId};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::geometry::Geometry;
use crate::ids::{Epoch, MessageId, NodeIndex, Round, SymbolIndex};
use crate::limits::Redundancy;
use crate::set::ValidatorSet;

/// Separates this use of SHA-256 from all others.
const LABEL: &[u8] = b"falconet/assignment/1";

/// The first hop of every symbol of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    hops: Vec<NodeIndex>,
}

impl Assignment {
    /// Lays the shares of the first hops out in the order of their numbers and permutes the positions by a
    /// stream that the message's name seeds (`docs/spec/chunk.md#assignment`).
    pub fn derive(
        network: &NetworkId,
        id: MessageId,
        set: &ValidatorSet,
        geometry: &Geometry,
        redundancy: Redundancy,
    ) -> Self {
        let scaled = redundancy.scaled(u32::from(geometry.source_symbols));
        let mut hops = Vec::with_capacity(usize::from(geometry.symbols));
        for (node, count) in set.shares(id.author, scaled) {
            hops.extend(std::iter::repeat_n(node, count as usize));
        }
        if let Some(author) = set.get(id.author) {
            permute(&mut hops, seed(network, id.epoch, id.round, &author.identity));
        }
        Self { hops }
    }

    /// The only validator that may relay this symbol; `None` if there is no such symbol.
    pub fn first_hop(&self, symbol: SymbolIndex) -> Option<NodeIndex> {
        self.hops.get(symbol.as_usize()).copied()
    }

    /// Symbols and their first hops, in the order of symbols.
    pub fn iter(&self) -> impl Iterator<Item = (SymbolIndex, NodeIndex)> {
        self.hops
            .iter()
            .enumerate()
            .map(|(position, &node)| (SymbolIndex::new(position as u16), node))
    }

    /// Number of symbols.
    #[expect(clippy::len_without_is_empty, reason = "a geometry never has no symbols")]
    pub fn len(&self) -> usize {
        self.hops.len()
    }
}

fn seed(network: &NetworkId, epoch: Epoch, round: Round, author: &IdentityKey) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(LABEL);
    hash.update(network.as_bytes());
    hash.update(epoch.number().to_be_bytes());
    hash.update(&round.number().to_be_bytes()[2..]);
    hash.update(author.as_bytes());
    hash.finalize().into()
}

/// Fisher-Yates from the last position down, drawing from the ChaCha20 key stream of `seed`.
fn permute(hops: &mut [NodeIndex], seed: [u8; 32]) {
    let mut stream = ChaCha20Rng::from_seed(seed);
    for last in (1..hops.len()).rev() {
        let other = draw_below(&mut stream, last as u32 + 1);
        hops.swap(last, other as usize);
    }
}

/// An unbiased number below `bound`: Lemire, "Fast Random Integer Generation in an Interval" (2019).
fn draw_below(stream: &mut ChaCha20Rng, bound: u32) -> u32 {
    let rejected_below = bound.wrapping_neg() % bound;
    loop {
        let product = u64::from(stream.next_u32()) * u64::from(bound);
        if product as u32 >= rejected_below {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests;
