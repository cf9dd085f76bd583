//! Asking others for symbols that did not come, and answering (`docs/spec/chunk.md#repair-request`).

use crate::discard::Discard;
use crate::ids::{Epoch, MessageId, NodeIndex, Round, SymbolIndex};
use crate::limits::HASH_LEN;
use crate::merkle::Hash;

mod answering;
mod asking;
mod outstanding;

pub(crate) use answering::{Askers, Kept};
pub(crate) use outstanding::Outstanding;

/// The first byte of a repair request: a chunk's, with the mode that no chunk has.
pub const REPAIR_REQUEST: u8 = 0x16;
/// The most symbols that a request may ask for.
pub const MAX_REPAIR_SYMBOLS: u8 = 64;
/// Requests that one peer may send for one message.
pub const MAX_REPAIR_REQUESTS: u8 = 2;
/// Symbols that a request can choose from: one bit each.
const WINDOW: usize = 1024;
const WINDOW_LEN: usize = WINDOW / 8;
/// Bytes of a repair request.
pub const REPAIR_REQUEST_LEN: usize = 1 + 4 + 6 + 2 + HASH_LEN + 1 + 2 + WINDOW_LEN;

/// A request for symbols of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairRequest {
    /// The message.
    pub id: MessageId,
    /// The root of the commitment whose symbols are wanted.
    pub root: Hash,
    /// At most so many symbols, 1 to [`MAX_REPAIR_SYMBOLS`].
    pub count: u8,
    /// What is wanted.
    pub wanted: Wanted,
}

/// Up to 1,024 symbols from some symbol on, past the last one going on with the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    start: SymbolIndex,
    bits: [u8; WINDOW_LEN],
}

impl Wanted {
    /// The symbols from `start` on, of `symbols` in all, for which `is_wanted` holds.
    pub fn from(start: SymbolIndex, symbols: u16, is_wanted: impl Fn(SymbolIndex) -> bool) -> Self {
        let mut bits = [0; WINDOW_LEN];
        for place in 0..WINDOW.min(usize::from(symbols)) {
            if is_wanted(at(start, place, symbols)) {
                bits[place / 8] |= 1 << (place % 8);
            }
        }
        Self { start, bits }
    }

    /// The wanted symbols in the order of the window.
    pub fn iter(&self, symbols: u16) -> impl Iterator<Item = SymbolIndex> {
        (0..WINDOW.min(usize::from(symbols)))
            .filter(|place| self.bits[place / 8] & (1 << (place % 8)) != 0)
            .map(move |place| at(self.start, place, symbols))
    }

    fn contains(&self, symbol: SymbolIndex, symbols: u16) -> bool {
        let (start, symbol, all) = (self.start.as_usize(), symbol.as_usize(), usize::from(symbols));
        let place = (symbol + all - start % all) % all;
        place < WINDOW && self.bits[place / 8] & (1 << (place % 8)) != 0
    }
}

fn at(start: SymbolIndex, place: usize, symbols: u16) -> SymbolIndex {
    SymbolIndex::new(((start.as_usize() + place) % usize::from(symbols)) as u16)
}

impl RepairRequest {
    /// The datagram that carries it, [`REPAIR_REQUEST_LEN`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(REPAIR_REQUEST_LEN);
        out.push(REPAIR_REQUEST);
        out.extend(self.id.epoch.number().to_be_bytes());
        out.extend(&self.id.round.number().to_be_bytes()[2..]);
        out.extend(self.id.author.number().to_be_bytes());
        out.extend(self.root);
        out.push(self.count);
        out.extend(self.wanted.start.number().to_be_bytes());
        out.extend(self.wanted.bits);
        out
    }

    /// Reads a datagram whose first byte is [`REPAIR_REQUEST`].
    ///
    /// # Errors
    ///
    /// The reason why it is no request.
    // docs/spec/chunk.md#repair-request
    pub fn parse(datagram: &[u8]) -> Result<Self, Discard> {
        let fixed: &[u8; REPAIR_REQUEST_LEN] = match datagram.len() {
            len if len < REPAIR_REQUEST_LEN => return Err(Discard::Truncated),
            _ => datagram.try_into().map_err(|_| Discard::TrailingBytes)?,
        };
        if fixed[0] != REPAIR_REQUEST {
            return Err(Discard::NotAChunk);
        }
        let number = |from: usize, to: usize| {
            fixed[from..to]
                .iter()
                .fold(0, |number, &byte| (number << 8) | u64::from(byte))
        };
        let mut root = [0; HASH_LEN];
        root.copy_from_slice(&fixed[13..33]);
        let mut bits = [0; WINDOW_LEN];
        bits.copy_from_slice(&fixed[36..]);
        let count = fixed[33];
        if count == 0 || count > MAX_REPAIR_SYMBOLS {
            return Err(Discard::RepairCount);
        }
        Ok(Self {
            id: MessageId {
                epoch: Epoch::new(number(1, 5) as u32),
                round: Round::new(number(5, 11)).ok_or(Discard::Round)?,
                author: NodeIndex::new(number(11, 13) as u16),
            },
            root,
            count,
            wanted: Wanted {
                start: SymbolIndex::new(number(34, 36) as u16),
                bits,
            },
        })
    }
}

#[cfg(test)]
mod tests;
