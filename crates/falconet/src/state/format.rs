//! The one encoding of a node's memory (docs/spec/state.md#layout).

use falconet_crypto::{HASH_LEN, IdentityKey, NetworkId, TAI64N_LEN, Tai64N, TransportPublicKey, blake2s};
use falconet_raptorcast::{Epoch, Round};
use falconet_transport::{MAX_RECORD_LEN, PeerRecord};
use thiserror::Error;

use super::memory::{MAX_PEERS, MAX_TIMESTAMPS, Memory, PeerMemory};

/// What the file starts with; the digit is the version.
const MAGIC: &[u8; 16] = b"falconet-state/1";
const KEY_LEN: usize = 32;
/// Flags of the header.
const HAS_MARK: u8 = 1;
const HAS_ROUND: u8 = 2;
const HAS_RECORD: u8 = 4;
/// Flags of a peer.
const HAD_SESSION: u8 = 1;
const HAS_SEQUENCE: u8 = 2;
/// Everything up to the first list.
const HEADER_LEN: usize = MAGIC.len() + 2 * KEY_LEN + 1 + TAI64N_LEN + 4 + 8 + 8;
const TIMESTAMP_LEN: usize = KEY_LEN + TAI64N_LEN;
/// A peer without its record.
const PEER_LEN: usize = KEY_LEN + 1 + 8 + 2;
/// Longest encoding, in bytes: some 5 MB.
pub(super) const MAX_LEN: usize =
    HEADER_LEN + 2 * 4 + MAX_TIMESTAMPS * TIMESTAMP_LEN + MAX_PEERS * (PEER_LEN + MAX_RECORD_LEN) + HASH_LEN;

/// Why bytes are no memory of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StateFormatError {
    /// It does not begin as a state file does.
    #[error("it is no state file")]
    NotAState,
    /// A version that this program does not know.
    #[error("it is of a version that this program does not know")]
    Version,
    /// Too short, or altered since it was written.
    #[error("it is truncated or damaged: its checksum does not match")]
    Checksum,
    /// The checksum matches and yet the content is not what any node writes.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// It was written by a node of another identity.
    #[error("it belongs to another node, {0}")]
    ForeignIdentity(IdentityKey),
    /// It was written in another network.
    #[error("it belongs to another network, {0}")]
    ForeignNetwork(NetworkId),
}

/// The encoding of `memory`.
pub(super) fn encode(memory: &Memory) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend(MAGIC);
    out.extend(memory.identity.as_bytes());
    out.extend(memory.network.as_bytes());
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(
        flag(memory.mark.is_some(), HAS_MARK)
            | flag(memory.round.is_some(), HAS_ROUND)
            | flag(memory.record_sequence.is_some(), HAS_RECORD),
    );
    out.extend(memory.mark.map_or([0; TAI64N_LEN], |mark| *mark.as_bytes()));
    let (epoch, round) = memory
        .round
        .map_or((0, 0), |(epoch, round)| (epoch.number(), round.number()));
    out.extend(epoch.to_le_bytes());
    out.extend(round.to_le_bytes());
    out.extend(memory.record_sequence.unwrap_or(0).to_le_bytes());
    out.extend((memory.timestamps.len() as u32).to_le_bytes());
    for (key, timestamp) in &memory.timestamps {
        out.extend(key.as_bytes());
        out.extend(timestamp.as_bytes());
    }
    out.extend((memory.peers.len() as u32).to_le_bytes());
    for (identity, peer) in &memory.peers {
        let record = peer.record.as_deref().unwrap_or_default();
        out.extend(identity.as_bytes());
        out.push(flag(peer.had_session, HAD_SESSION) | flag(peer.sequence.is_some(), HAS_SEQUENCE));
        out.extend(peer.sequence.unwrap_or(0).to_le_bytes());
        out.extend((record.len() as u16).to_le_bytes());
        out.extend(record);
    }
    let checksum = blake2s(&[&out]);
    out.extend(checksum);
    out
}

/// The memory that `bytes` encode, if a node of this identity and network wrote them.
pub(super) fn decode(
    bytes: &[u8],
    identity: IdentityKey,
    network: NetworkId,
) -> Result<Memory, StateFormatError> {
    let magic = bytes.first_chunk::<16>().ok_or(StateFormatError::NotAState)?;
    if magic != MAGIC {
        let is_ours = magic.starts_with(b"falconet-state/");
        return Err(if is_ours {
            StateFormatError::Version
        } else {
            StateFormatError::NotAState
        });
    }
    let (content, checksum) = bytes
        .split_last_chunk::<HASH_LEN>()
        .ok_or(StateFormatError::Checksum)?;
    if blake2s(&[content]) != *checksum {
        return Err(StateFormatError::Checksum);
    }
    let mut reader = Reader(content.get(MAGIC.len()..).unwrap_or_default());
    let found = IdentityKey::from_bytes(reader.array()?);
    if found != identity {
        return Err(StateFormatError::ForeignIdentity(found));
    }
    let found = NetworkId::from_bytes(reader.array()?);
    if found != network {
        return Err(StateFormatError::ForeignNetwork(found));
    }
    let memory = decode_content(reader, Memory::new(identity, network))?;
    // One encoding only: what is ignored or ordered otherwise does not come back as it was.
    if encode(&memory) == bytes {
        Ok(memory)
    } else {
        Err(StateFormatError::Malformed("not canonical"))
    }
}

fn decode_content(mut reader: Reader<'_>, mut memory: Memory) -> Result<Memory, StateFormatError> {
    let flags = reader.byte()?;
    let mark = Tai64N::from_bytes(reader.array()?);
    let epoch = Epoch::new(u32::from_le_bytes(reader.array()?));
    let round = Round::new(u64::from_le_bytes(reader.array()?));
    let round = round.ok_or(StateFormatError::Malformed("a round above 2^48 - 1"))?;
    let sequence = u64::from_le_bytes(reader.array()?);
    memory.mark = (flags & HAS_MARK != 0).then_some(mark);
    memory.round = (flags & HAS_ROUND != 0).then_some((epoch, round));
    memory.record_sequence = (flags & HAS_RECORD != 0).then_some(sequence);
    for _ in 0..reader.count(MAX_TIMESTAMPS)? {
        let key = TransportPublicKey::from_bytes(reader.array()?);
        memory.timestamps.insert(key, Tai64N::from_bytes(reader.array()?));
    }
    for _ in 0..reader.count(MAX_PEERS)? {
        let identity = IdentityKey::from_bytes(reader.array()?);
        let peer = decode_peer(&mut reader, &identity)?;
        memory.peers.insert(identity, peer);
    }
    Ok(memory)
}

fn decode_peer(reader: &mut Reader<'_>, identity: &IdentityKey) -> Result<PeerMemory, StateFormatError> {
    let flags = reader.byte()?;
    let sequence = u64::from_le_bytes(reader.array()?);
    let sequence = (flags & HAS_SEQUENCE != 0).then_some(sequence);
    let len = u16::from_le_bytes(reader.array()?);
    let encoding = reader.bytes(usize::from(len))?;
    if !encoding.is_empty() {
        // Its signature is verified when it is used.
        let record = PeerRecord::decode(encoding).map_err(|_| StateFormatError::Malformed("a record"))?;
        let claims = record.claims();
        if claims.identity != *identity || Some(claims.sequence) != sequence {
            return Err(StateFormatError::Malformed(
                "a record of another peer or sequence",
            ));
        }
    }
    Ok(PeerMemory {
        had_session: flags & HAD_SESSION != 0,
        sequence,
        record: (!encoding.is_empty()).then(|| encoding.to_vec()),
    })
}

/// Takes fields off the front; running out is an error.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], StateFormatError> {
        let (taken, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(StateFormatError::Malformed("shorter than it says"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StateFormatError> {
        let taken = self.bytes(N)?;
        taken
            .try_into()
            .map_err(|_| StateFormatError::Malformed("shorter than it says"))
    }

    fn byte(&mut self) -> Result<u8, StateFormatError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn count(&mut self, most: usize) -> Result<usize, StateFormatError> {
        let count = u32::from_le_bytes(self.array()?) as usize;
        if count <= most {
            Ok(count)
        } else {
            Err(StateFormatError::Malformed("more entries than there may be"))
        }
    }
}
