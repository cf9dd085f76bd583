//! The chunk header and how a chunk splits into its parts. Every number is big-endian; the layout is
//! `docs/spec/chunk.md#layout`.

use falconet_crypto::IdentityKey;

use crate::discard::Discard;
use crate::ids::{Epoch, NodeIndex, Round, SymbolIndex};
use crate::limits::{
    HASH_LEN, KEY_HEADER_LEN, MAX_PAYLOAD_LEN, MAX_SYMBOLS, SIGNATURE_LEN, SYMBOL_UNIT, merkle_depth,
};
use crate::versions::Version;

const INDEX_OFFSET: usize = 23;
const AUTHOR_OFFSET: usize = 25;
/// The longest encoded header: the one that names its author by key.
const MAX_LEN: usize = KEY_HEADER_LEN;

/// The high nibble of a chunk's first byte; see `docs/spec/chunk.md#first-byte`.
const FIRST_BYTE: u8 = 0x10;

/// Whom a message is for; bits 1 and 2 of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Mode {
    /// To a validator set, in two hops, by stake.
    Broadcast = 0,
    /// To a group of full nodes. Carried by the codec; the engine refuses it for now.
    Group = 1,
    /// The whole symbol set to one peer. Carried by the codec; the engine refuses it for now.
    PointToPoint = 2,
}

/// How a header names the author.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthorRef {
    /// By the place in the set of the epoch: 2 bytes.
    Index(NodeIndex),
    /// By the identity key, for receivers that may not know the set: 32 bytes.
    Key(IdentityKey),
}

impl AuthorRef {
    const fn encoded_len(&self) -> usize {
        match self {
            Self::Index(_) => 2,
            Self::Key(_) => 32,
        }
    }
}

/// A parsed chunk header. What it claims is not yet verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Of the format.
    pub version: Version,
    /// Whom the message is for.
    pub mode: Mode,
    /// The epoch whose set judges the message.
    pub epoch: Epoch,
    /// The round it was published in.
    pub round: Round,
    /// When the leader made it, in milliseconds since the Unix epoch (48 bits).
    pub timestamp_ms: u64,
    /// Payload length in bytes: 1 to 3 MiB.
    pub payload_len: u32,
    /// Symbol size T in bytes, a multiple of 64.
    pub symbol_size: u16,
    /// Committed symbols N, at most 2^15.
    pub symbols: u16,
    /// Which of them this chunk carries.
    pub index: SymbolIndex,
    /// Who wrote the message.
    pub author: AuthorRef,
}

impl Header {
    /// Encoded length in bytes: 27, or 57 with an author key.
    pub const fn encoded_len(&self) -> usize {
        AUTHOR_OFFSET + self.author.encoded_len()
    }

    /// Writes the header to the front of `out`, which must hold [`Header::encoded_len`] bytes.
    pub fn encode(&self, out: &mut [u8]) {
        let encoded = self.encoded();
        out[..self.encoded_len()].copy_from_slice(&encoded[..self.encoded_len()]);
    }

    /// The bytes that the leader signs and that are equal in all chunks of a message: the encoded
    /// header without the index (`docs/spec/chunk.md#signature`).
    pub fn commitment_bytes(&self) -> CommitmentBytes {
        let encoded = self.encoded();
        let mut bytes = [0; MAX_LEN - 2];
        bytes[..INDEX_OFFSET].copy_from_slice(&encoded[..INDEX_OFFSET]);
        bytes[INDEX_OFFSET..].copy_from_slice(&encoded[AUTHOR_OFFSET..]);
        CommitmentBytes {
            bytes,
            len: self.encoded_len() - 2,
        }
    }

    /// Source symbols K that the lengths in the header imply.
    pub fn source_symbols(&self) -> u32 {
        self.payload_len.div_ceil(u32::from(self.symbol_size))
    }

    fn encoded(&self) -> [u8; MAX_LEN] {
        let mut out = [0; MAX_LEN];
        let by_key = matches!(self.author, AuthorRef::Key(_));
        out[0] = FIRST_BYTE | ((self.version as u8) << 3) | ((self.mode as u8) << 1) | u8::from(by_key);
        out[1..5].copy_from_slice(&self.epoch.number().to_be_bytes());
        out[5..11].copy_from_slice(&self.round.number().to_be_bytes()[2..]);
        out[11..17].copy_from_slice(&self.timestamp_ms.to_be_bytes()[2..]);
        out[17..20].copy_from_slice(&self.payload_len.to_be_bytes()[1..]);
        out[20] = (self.symbol_size / SYMBOL_UNIT) as u8;
        out[21..23].copy_from_slice(&self.symbols.to_be_bytes());
        out[INDEX_OFFSET..AUTHOR_OFFSET].copy_from_slice(&self.index.number().to_be_bytes());
        match &self.author {
            AuthorRef::Index(index) => {
                out[AUTHOR_OFFSET..AUTHOR_OFFSET + 2].copy_from_slice(&index.number().to_be_bytes());
            }
            AuthorRef::Key(key) => out[AUTHOR_OFFSET..].copy_from_slice(key.as_bytes()),
        }
        out
    }
}

/// What all chunks of one message share: the header without its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitmentBytes {
    bytes: [u8; MAX_LEN - 2],
    len: usize,
}

impl CommitmentBytes {
    /// The signed bytes: 25, or 55 with an author key.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Writes the whole header of one symbol to the front of `out`; returns its length.
    pub(crate) fn write_header(&self, index: SymbolIndex, out: &mut [u8]) -> usize {
        out[..INDEX_OFFSET].copy_from_slice(&self.bytes[..INDEX_OFFSET]);
        out[INDEX_OFFSET..AUTHOR_OFFSET].copy_from_slice(&index.number().to_be_bytes());
        out[AUTHOR_OFFSET..self.len + 2].copy_from_slice(&self.bytes[INDEX_OFFSET..self.len]);
        self.len + 2
    }
}

/// A chunk whose shape is right: every part has its exact length, every field is within its limit.
/// Nothing is verified yet.
#[derive(Clone, Copy, Debug)]
pub struct ChunkView<'a> {
    /// The parsed header.
    pub header: Header,
    /// The leader's signature over the commitment.
    pub signature: &'a [u8; SIGNATURE_LEN],
    /// The siblings on the way from the symbol's leaf to the root, leaf first.
    pub proof: &'a [u8],
    /// The symbol, exactly T bytes.
    pub symbol: &'a [u8],
}

impl<'a> ChunkView<'a> {
    /// Splits a chunk (`docs/spec/chunk.md#limits`).
    ///
    /// # Errors
    ///
    /// The reason why the bytes cannot be a chunk of the version we speak.
    pub fn parse(chunk: &'a [u8]) -> Result<Self, Discard> {
        let (header, rest) = parse_header(chunk)?;
        let (signature, rest) = rest.split_first_chunk().ok_or(Discard::Truncated)?;
        let proof_len = HASH_LEN * usize::from(merkle_depth(header.symbols));
        let expected = proof_len + usize::from(header.symbol_size);
        match rest.len() {
            len if len < expected => return Err(Discard::Truncated),
            len if len > expected => return Err(Discard::TrailingBytes),
            _ => {}
        }
        let (proof, symbol) = rest.split_at(proof_len);
        Ok(Self {
            header,
            signature,
            proof,
            symbol,
        })
    }
}

fn parse_header(chunk: &[u8]) -> Result<(Header, &[u8]), Discard> {
    let (fixed, rest) = chunk
        .split_first_chunk::<AUTHOR_OFFSET>()
        .ok_or(Discard::Truncated)?;
    let (version, mode, by_key) = parse_first_byte(fixed[0])?;
    let (author, rest) = if by_key {
        let (key, rest) = rest.split_first_chunk::<32>().ok_or(Discard::Truncated)?;
        (AuthorRef::Key(IdentityKey::from_bytes(*key)), rest)
    } else {
        let (index, rest) = rest.split_first_chunk::<2>().ok_or(Discard::Truncated)?;
        (AuthorRef::Index(NodeIndex::new(u16::from_be_bytes(*index))), rest)
    };
    let header = Header {
        version,
        mode,
        epoch: Epoch::new(big_endian(&fixed[1..5]) as u32),
        round: Round::new(big_endian(&fixed[5..11])).ok_or(Discard::Round)?,
        timestamp_ms: big_endian(&fixed[11..17]),
        payload_len: big_endian(&fixed[17..20]) as u32,
        symbol_size: u16::from(fixed[20]) * SYMBOL_UNIT,
        symbols: big_endian(&fixed[21..23]) as u16,
        index: SymbolIndex::new(big_endian(&fixed[INDEX_OFFSET..AUTHOR_OFFSET]) as u16),
        author,
    };
    check_limits(&header)?;
    Ok((header, rest))
}

// docs/spec/chunk.md#first-byte
fn parse_first_byte(byte: u8) -> Result<(Version, Mode, bool), Discard> {
    if byte & 0xf0 != FIRST_BYTE {
        return Err(Discard::NotAChunk);
    }
    let version = if (byte >> 3) & 1 == 0 {
        Version::V0
    } else {
        Version::V1
    };
    let mode = match (byte >> 1) & 3 {
        0 => Mode::Broadcast,
        1 => Mode::Group,
        2 => Mode::PointToPoint,
        _ => return Err(Discard::Mode),
    };
    Ok((version, mode, byte & 1 == 1))
}

fn check_limits(header: &Header) -> Result<(), Discard> {
    if header.payload_len == 0 || header.payload_len as usize > MAX_PAYLOAD_LEN {
        return Err(Discard::PayloadLength);
    }
    if header.symbol_size == 0 {
        return Err(Discard::SymbolSize);
    }
    if header.symbols > MAX_SYMBOLS || header.source_symbols() > u32::from(header.symbols) {
        return Err(Discard::SymbolCount);
    }
    if header.index.number() >= header.symbols {
        return Err(Discard::SymbolIndex);
    }
    Ok(())
}

/// At most 8 bytes as one number.
fn big_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

#[cfg(test)]
mod tests;
