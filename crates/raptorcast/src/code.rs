//! RaptorQ (RFC 6330) behind a wall: the `raptorq` crate panics or works without limit on input that a
//! stranger can choose, so nothing outside this module talks to it. The rules are
//! `docs/spec/chunk.md#decoding`.

use std::collections::VecDeque;
use std::sync::Arc;

use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder,
    SourceBlockEncodingPlan, extended_source_block_symbols,
};
use thiserror::Error;

use crate::bits::BitSet;
use crate::geometry::Geometry;
use crate::ids::SymbolIndex;

/// Repair symbols made at a time: few enough to stay in the cache until they are copied or hashed.
const REPAIR_BATCH: u16 = 128;
/// The symbols past K at which decoding is tried; after the last, at twice as many each time. At K it fails
/// once in 225 messages, at K+1 once in 25,000, and from K+11 on a cheaper path exists.
const ATTEMPTS: [u32; 4] = [0, 1, 2, 16];
/// What a held symbol costs beside its bytes: a packet, an allocation's header, a slot in `raptorq`'s set.
const SYMBOL_BOOKKEEPING: usize = 80;
/// One source block, and no sub-blocks: then a symbol is a slice of the payload.
const BLOCK: u8 = 0;
/// Symbols are whole multiples of this, in bytes; RFC 6330 calls it Al.
const ALIGNMENT: u8 = 8;

/// How to encode, by K', the next larger number of symbols that RFC 6330 has constants for. A plan costs more than
/// an encoding, so the last few are kept: payloads of about one size share one, whatever their exact K.
#[derive(Debug)]
pub struct Plans {
    capacity: usize,
    /// By K', most recently used last.
    plans: VecDeque<(u16, Arc<SourceBlockEncodingPlan>)>,
}

impl Plans {
    /// Keeps at most `capacity` plans (at least 1).
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            plans: VecDeque::new(),
        }
    }

    /// Makes the plan for messages of K source symbols, unless it is there.
    pub fn prepare(&mut self, source_symbols: u16) {
        if source_symbols > 1 {
            self.plan(extended(source_symbols));
        }
    }

    /// The plan for K' source symbols, made if need be.
    fn plan(&mut self, source_symbols: u16) -> Arc<SourceBlockEncodingPlan> {
        let known = self.plans.iter().position(|(k, _)| *k == source_symbols);
        let plan = match known.and_then(|place| self.plans.remove(place)) {
            Some((_, plan)) => plan,
            None => Arc::new(SourceBlockEncodingPlan::generate(source_symbols)),
        };
        if self.plans.len() >= self.capacity {
            self.plans.pop_front();
        }
        self.plans.push_back((source_symbols, Arc::clone(&plan)));
        plan
    }

    /// Plans kept now.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.plans.len()
    }
}

/// K' of RFC 6330, section 5.3.1. Encoding K' symbols of which the last are zero makes the same repair symbols as
/// encoding K.
fn extended(source_symbols: u16) -> u16 {
    extended_source_block_symbols(u32::from(source_symbols)) as u16
}

/// Makes the symbols of one payload.
#[derive(Debug)]
pub struct Encoder<'a> {
    geometry: Geometry,
    block: &'a [u8],
    /// `None` for a lone symbol, which is repeated (`docs/spec/chunk.md#lone`).
    inner: Option<SourceBlockEncoder>,
}

impl<'a> Encoder<'a> {
    /// Bytes of the block that [`Encoder::new`] wants for this geometry: the source block and the zeros up to K'
    /// symbols.
    pub fn block_len(geometry: &Geometry) -> usize {
        match geometry.source_symbols {
            1 => geometry.block_len(),
            more => usize::from(extended(more)) * usize::from(geometry.symbol_size),
        }
    }

    /// An encoder for the payload, padded with zeros to [`Encoder::block_len`]. `None` if it has another length.
    pub fn new(geometry: &Geometry, block: &'a [u8], plans: &mut Plans) -> Option<Self> {
        if block.len() != Self::block_len(geometry) {
            return None;
        }
        let inner = (geometry.source_symbols > 1).then(|| {
            let plan = plans.plan(extended(geometry.source_symbols));
            let config = transmission(block.len(), geometry.symbol_size);
            SourceBlockEncoder::with_encoding_plan(BLOCK, &config, block, &plan)
        });
        Some(Self {
            geometry: *geometry,
            block: &block[..geometry.block_len()],
            inner,
        })
    }

    /// Hands every source symbol to `take`, in order.
    pub fn source_symbols<'b>(&'b self, mut take: impl FnMut(SymbolIndex, &'b [u8])) {
        let symbols = self.block.chunks_exact(usize::from(self.geometry.symbol_size));
        for (index, symbol) in symbols.enumerate() {
            take(SymbolIndex::new(index as u16), symbol);
        }
    }

    /// Hands every repair symbol to `take`, in order.
    pub fn repair_symbols(&self, mut take: impl FnMut(SymbolIndex, &[u8])) {
        if self.inner.is_none() {
            let copies = self.geometry.source_symbols..self.geometry.symbols;
            copies.for_each(|index| take(SymbolIndex::new(index), self.block));
        }
        self.repair_batches(|start, batch| {
            for (place, packet) in batch.iter().enumerate() {
                take(SymbolIndex::new(start.number() + place as u16), packet.data());
            }
        });
    }

    /// Hands the repair symbols to `take` by batches that stay in the processor's cache, each with the index of its
    /// first symbol. There are none to make for a lone symbol.
    pub(crate) fn repair_batches(&self, mut take: impl FnMut(SymbolIndex, &[EncodingPacket])) {
        let Some(inner) = &self.inner else { return };
        let source = self.geometry.source_symbols;
        let repair = self.geometry.symbols - source;
        for start in (0..repair).step_by(usize::from(REPAIR_BATCH)) {
            let count = REPAIR_BATCH.min(repair - start);
            // Repair symbols are numbered from K' on, which is where the encoder's own source symbols end.
            let batch = inner.repair_packets(u32::from(start), u32::from(count));
            take(SymbolIndex::new(source + start), &batch);
        }
    }
}

/// Why a symbol was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// Not exactly T bytes: `raptorq` would take it and panic at the solve.
    #[error("a symbol of {got} bytes where {expected} are needed")]
    Length {
        /// T.
        expected: u16,
        /// What came.
        got: usize,
    },
    /// An index that is not committed to: `raptorq` would keep any number of them.
    #[error("symbol {0} is past the committed count")]
    OutOfRange(u16),
    /// Here before: `raptorq` would solve again for each.
    #[error("symbol {0} is here already")]
    Duplicate(u16),
}

/// Collects symbols of one message and tries to decode them a bounded number of times.
#[derive(Debug)]
pub struct Decoder {
    geometry: Geometry,
    inner: SourceBlockDecoder,
    seen: BitSet,
    /// Taken, but not yet handed to `raptorq`, which would start to solve.
    waiting: Vec<EncodingPacket>,
    held: u32,
    attempts: u32,
}

impl Decoder {
    /// A decoder with no symbols.
    pub fn new(geometry: &Geometry) -> Self {
        let block_len = geometry.block_len() as u64;
        Self {
            geometry: *geometry,
            inner: SourceBlockDecoder::new(
                BLOCK,
                &transmission(geometry.block_len(), geometry.symbol_size),
                block_len,
            ),
            seen: BitSet::new(usize::from(geometry.symbols)),
            waiting: Vec::with_capacity(usize::from(geometry.source_symbols)),
            held: 0,
            attempts: 0,
        }
    }

    /// Takes a symbol.
    ///
    /// # Errors
    ///
    /// [`SymbolError`]; the decoder is as before then.
    pub fn add(&mut self, index: SymbolIndex, symbol: &[u8]) -> Result<(), SymbolError> {
        if symbol.len() != usize::from(self.geometry.symbol_size) {
            return Err(SymbolError::Length {
                expected: self.geometry.symbol_size,
                got: symbol.len(),
            });
        }
        if index.number() >= self.geometry.symbols {
            return Err(SymbolError::OutOfRange(index.number()));
        }
        if !self.seen.insert(index.as_usize()) {
            return Err(SymbolError::Duplicate(index.number()));
        }
        let id = PayloadId::new(BLOCK, u32::from(index.number()));
        self.waiting.push(EncodingPacket::new(id, symbol.to_vec()));
        self.held += 1;
        Ok(())
    }

    /// Whether a symbol is here already.
    pub(crate) fn has(&self, index: SymbolIndex) -> bool {
        self.seen.contains(index.as_usize())
    }

    /// A symbol that has not been handed to `raptorq` yet.
    pub(crate) fn waiting(&self, index: SymbolIndex) -> Option<&[u8]> {
        let esi = u32::from(index.number());
        let mut waiting = self.waiting.iter();
        let packet = waiting.find(|packet| packet.payload_id().encoding_symbol_id() == esi)?;
        Some(packet.data())
    }

    /// Bytes a decoder holds at most: all N symbols, their bookkeeping, and the slots of the source symbols.
    pub(crate) fn memory(geometry: &Geometry) -> usize {
        let symbols = usize::from(geometry.symbols);
        symbols * (usize::from(geometry.symbol_size) + SYMBOL_BOOKKEEPING) + BitSet::memory(symbols)
    }

    /// Symbols held.
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Whether there are enough new symbols for the next attempt.
    pub fn is_due(&self) -> bool {
        let all_here = self.held == u32::from(self.geometry.symbols) && !self.waiting.is_empty();
        self.held >= self.next_attempt() || all_here
    }

    /// Tries to decode; on success the whole source block comes back, padding included. Does nothing when no
    /// attempt [is due](Decoder::is_due).
    pub fn attempt(&mut self) -> Option<Vec<u8>> {
        if !self.is_due() {
            return None;
        }
        while self.next_attempt() <= self.held {
            self.attempts += 1;
        }
        if self.geometry.source_symbols == 1 {
            return self.waiting.pop().map(|packet| packet.split().1);
        }
        self.inner.decode(self.waiting.drain(..))
    }

    /// The number of symbols at which the next attempt is due.
    fn next_attempt(&self) -> u32 {
        let last = ATTEMPTS.len() as u32 - 1;
        let overhead = match ATTEMPTS.get(self.attempts as usize) {
            Some(overhead) => *overhead,
            None => ATTEMPTS[last as usize] << (self.attempts - last),
        };
        u32::from(self.geometry.source_symbols) + overhead
    }
}

fn transmission(block_len: usize, symbol_size: u16) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(block_len as u64, symbol_size, 1, 1, ALIGNMENT)
}

#[cfg(test)]
mod tests;
