//! How a payload is cut into symbols. Leader and receiver derive the same numbers from the same inputs, so a
//! leader has nothing to choose.

use thiserror::Error;

use crate::ids::NodeIndex;
use crate::limits::{
    ChunkSize, HASH_LEN, MAX_PAYLOAD_LEN, MAX_SYMBOLS, Redundancy, SIGNATURE_LEN, SYMBOL_UNIT, merkle_depth,
};
use crate::set::ValidatorSet;

/// The largest symbol that the one byte of the header can state.
const MAX_SYMBOL_SIZE: usize = 255 * SYMBOL_UNIT as usize;

/// The numbers of one message: T, K, N and the depth of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Payload length in bytes.
    pub payload_len: u32,
    /// T: bytes of a symbol.
    pub symbol_size: u16,
    /// K: source symbols.
    pub source_symbols: u16,
    /// N: committed symbols.
    pub symbols: u16,
    /// Levels of the tree over the N symbols.
    pub depth: u8,
    /// Bytes of the header.
    pub header_len: u8,
}

/// Why there is no geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A payload of no bytes.
    #[error("an empty payload has nothing to broadcast")]
    Empty,
    /// A payload above 3 MiB.
    #[error("a payload of {0} bytes: at most {MAX_PAYLOAD_LEN} are allowed")]
    TooLarge(usize),
    /// Nobody but the author has stake.
    #[error("nobody but the author has stake: there is no first hop")]
    NoFirstHop,
    /// More symbols than 2^15.
    #[error("{0} symbols or more are needed: at most {MAX_SYMBOLS} are allowed")]
    TooManySymbols(u32),
    /// No symbol of 64 bytes fits beside header, signature and proof.
    #[error("no symbol fits a chunk of {0} bytes")]
    ChunkTooSmall(usize),
}

impl Geometry {
    /// The geometry of a payload broadcast by `author` to `set` (`docs/spec/chunk.md#geometry`).
    ///
    /// # Errors
    ///
    /// [`GeometryError`], before any work on the payload.
    pub fn for_set(
        payload_len: usize,
        chunk: ChunkSize,
        header_len: usize,
        redundancy: Redundancy,
        (set, author): (&ValidatorSet, NodeIndex),
    ) -> Result<Self, GeometryError> {
        Self::derive(payload_len, chunk, header_len, redundancy, |scaled| {
            set.shares(author, scaled)
                .map(|(_, count)| u64::from(count))
                .sum()
        })
    }

    /// The geometry when `committed` tells N from R.
    ///
    /// T is the largest multiple of 64 with `T + header + 64 + 20 x ceil(log2 N) <= chunk`. N depends on T,
    /// so sizes are tried from the largest down.
    pub(crate) fn derive(
        payload_len: usize,
        chunk: ChunkSize,
        header_len: usize,
        redundancy: Redundancy,
        committed: impl Fn(u32) -> u64,
    ) -> Result<Self, GeometryError> {
        if payload_len == 0 {
            return Err(GeometryError::Empty);
        }
        if payload_len > MAX_PAYLOAD_LEN {
            return Err(GeometryError::TooLarge(payload_len));
        }
        let room = chunk.bytes().saturating_sub(header_len + SIGNATURE_LEN);
        let unit = usize::from(SYMBOL_UNIT);
        let mut symbol_size = (room / unit * unit).min(MAX_SYMBOL_SIZE);
        while symbol_size > 0 {
            let source_symbols = payload_len.div_ceil(symbol_size) as u32;
            let scaled = redundancy.scaled(source_symbols);
            // Smaller symbols would only be more.
            let symbols = count_within_limit(scaled, &committed)?;
            let depth = merkle_depth(symbols);
            if symbol_size + HASH_LEN * usize::from(depth) <= room {
                // A lone source symbol need not be longer than its payload (`docs/spec/chunk.md#lone`).
                let needed = payload_len.next_multiple_of(unit);
                return Ok(Self {
                    payload_len: payload_len as u32,
                    symbol_size: symbol_size.min(needed) as u16,
                    source_symbols: source_symbols as u16,
                    symbols,
                    depth,
                    header_len: header_len as u8,
                });
            }
            symbol_size -= unit;
        }
        Err(GeometryError::ChunkTooSmall(chunk.bytes()))
    }

    /// Bytes of a chunk: header, signature, proof and symbol.
    pub const fn chunk_len(&self) -> usize {
        self.symbol_offset() + self.symbol_size as usize
    }

    /// Bytes of a chunk that are not its symbol; also where the symbol starts.
    pub const fn symbol_offset(&self) -> usize {
        self.proof_offset() + HASH_LEN * self.depth as usize
    }

    /// Where the proof starts.
    pub const fn proof_offset(&self) -> usize {
        self.header_len as usize + SIGNATURE_LEN
    }

    /// Bytes of the source block: `K x T`, the payload and its zero padding.
    pub const fn block_len(&self) -> usize {
        self.source_symbols as usize * self.symbol_size as usize
    }
}

fn count_within_limit(scaled: u32, committed: impl Fn(u32) -> u64) -> Result<u16, GeometryError> {
    if scaled > u32::from(MAX_SYMBOLS) {
        return Err(GeometryError::TooManySymbols(scaled));
    }
    match committed(scaled) {
        0 => Err(GeometryError::NoFirstHop),
        count if count > u64::from(MAX_SYMBOLS) => Err(GeometryError::TooManySymbols(
            u32::try_from(count).unwrap_or(u32::MAX),
        )),
        count => Ok(count as u16),
    }
}

#[cfg(test)]
mod tests;
