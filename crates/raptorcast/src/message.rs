//! One message on its way in: what its author committed to, which symbols are here, whose turn it is.

use std::time::Instant;

use bytes::Bytes;
use falconet_crypto::IdentityKey;
use raptorq::EncodingPacket;

use crate::assignment::Assignment;
use crate::code::{Decoder, Encoder};
use crate::discard::Discard;
use crate::events::{Delivery, SignedRoot};
use crate::geometry::Geometry;
use crate::header::{ChunkView, CommitmentBytes};
use crate::ids::{MessageId, NodeIndex, SymbolIndex};
use crate::limits::SIGNATURE_LEN;
use crate::merkle::{Climb, Hash, VerifiedTree, leaf_hash, leaf_hashes};
use crate::participation::Roll;
use crate::workshop::Workshop;

/// Different valid signatures kept for one commitment. Honest leaders make one.
const MAX_SIGNATURES: usize = 4;

/// What an author signed, and the signatures we have checked.
#[derive(Clone, Debug)]
pub(crate) struct Commitment {
    pub(crate) header: CommitmentBytes,
    pub(crate) root: Hash,
    signatures: Vec<[u8; SIGNATURE_LEN]>,
}

impl Commitment {
    pub(crate) fn new(header: CommitmentBytes, root: Hash, signature: [u8; SIGNATURE_LEN]) -> Self {
        Self {
            header,
            root,
            signatures: vec![signature],
        }
    }

    /// Whether exactly these signature bytes have been checked before.
    pub(crate) fn knows(&self, signature: &[u8; SIGNATURE_LEN]) -> bool {
        self.signatures.contains(signature)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.signatures.len() < MAX_SIGNATURES
    }

    pub(crate) fn learn(&mut self, signature: [u8; SIGNATURE_LEN]) {
        self.signatures.push(signature);
    }

    pub(crate) fn evidence(&self) -> SignedRoot {
        SignedRoot {
            header: self.header.as_slice().to_vec(),
            root: self.root,
            signature: self.signatures[0],
        }
    }
}

/// A message of which a signed commitment is known.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) author: IdentityKey,
    pub(crate) commitment: Commitment,
    pub(crate) geometry: Geometry,
    pub(crate) first_symbol_at: Instant,
    pub(crate) timestamp_ms: u64,
    pub(crate) is_equivocal: bool,
    pub(crate) state: State,
}

/// How far a message has come.
#[derive(Debug)]
pub(crate) enum State {
    /// Symbols are being collected.
    Receiving(Box<Receiving>),
    /// Delivered; these symbols are still ours to relay when they come.
    Delivered {
        /// Ascending.
        still_ours: Vec<SymbolIndex>,
    },
    /// Tainted, expired or evicted: nothing of it is wanted any more.
    Abandoned,
}

/// The working state of an incomplete message.
#[derive(Debug)]
pub(crate) struct Receiving {
    assignment: Assignment,
    own: Option<NodeIndex>,
    tree: VerifiedTree,
    decoder: Decoder,
}

/// A chunk that has passed everything but the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// We are its first hop.
    Ours,
    /// Its first hop relayed it to us.
    Relayed,
}

impl Receiving {
    pub(crate) fn new(
        root: Hash,
        geometry: &Geometry,
        assignment: Assignment,
        own: Option<NodeIndex>,
    ) -> Self {
        let tree = VerifiedTree::new(root, geometry.depth);
        Self {
            assignment,
            own,
            tree,
            decoder: Decoder::new(geometry),
        }
    }

    pub(crate) const fn held(&self) -> u32 {
        self.decoder.held()
    }

    /// Whether to try to decode now.
    pub(crate) fn is_due(&self) -> bool {
        self.decoder.is_due()
    }

    /// A symbol comes from the author only to its first hop, and from its first hop to everybody else.
    // docs/spec/chunk.md#accept
    fn admit(&self, symbol: SymbolIndex, sender: NodeIndex, author: NodeIndex) -> Result<Admitted, Discard> {
        let hop = self.assignment.first_hop(symbol).ok_or(Discard::SymbolIndex)?;
        let (allowed, admitted) = if self.own == Some(hop) {
            (author, Admitted::Ours)
        } else {
            (hop, Admitted::Relayed)
        };
        if sender != allowed {
            return Err(Discard::WrongSender);
        }
        if self.decoder.has(symbol) {
            return Err(Discard::Duplicate);
        }
        Ok(admitted)
    }

    /// The hash of a symbol that is here.
    fn leaf(&self, index: SymbolIndex) -> Option<Hash> {
        self.tree.leaf(index).filter(|_| self.decoder.has(index))
    }

    /// Counts for every other first hop which of its symbols are here.
    fn call(&self, roll: &mut Roll) {
        let others = self.assignment.iter().filter(|(_, hop)| self.own != Some(*hop));
        others.for_each(|(symbol, hop)| roll.count(hop, self.decoder.has(symbol)));
    }

    /// Our symbols that have not come yet.
    fn still_ours(&self) -> Vec<SymbolIndex> {
        let ours =
            |&(symbol, hop): &(SymbolIndex, NodeIndex)| self.own == Some(hop) && !self.decoder.has(symbol);
        self.assignment
            .iter()
            .filter(ours)
            .map(|(symbol, _)| symbol)
            .collect()
    }
}

impl Message {
    /// The checks that cost next to nothing: may this sender send this symbol, and is it new?
    pub(crate) fn admit(&self, chunk: &ChunkView<'_>, sender: NodeIndex) -> Result<Admitted, Discard> {
        let symbol = chunk.header.index;
        match &self.state {
            State::Receiving(receiving) => receiving.admit(symbol, sender, self.id.author),
            State::Delivered { still_ours } if still_ours.binary_search(&symbol).is_err() => {
                Err(Discard::AlreadyDecoded)
            }
            State::Delivered { .. } if sender != self.id.author => Err(Discard::WrongSender),
            State::Delivered { .. } => Ok(Admitted::Ours),
            State::Abandoned => Err(Discard::Abandoned),
        }
    }

    /// What is known of the tree that a chunk with this header claims to belong to.
    pub(crate) fn verified_tree(&self, chunk: &ChunkView<'_>) -> Option<&VerifiedTree> {
        match &self.state {
            State::Receiving(receiving) if self.commitment.header == chunk.header.commitment_bytes() => {
                Some(&receiving.tree)
            }
            _ => None,
        }
    }

    /// Checks the proof against the signed root. `&mut` only because valid nodes are remembered.
    pub(crate) fn verify(&mut self, climb: &mut Climb<'_>) -> Result<(), Discard> {
        let leads_to_root = match &mut self.state {
            State::Receiving(receiving) => receiving.tree.verify_climb(climb).is_ok(),
            _ => climb.root() == self.commitment.root,
        };
        if leads_to_root {
            Ok(())
        } else {
            Err(Discard::Proof)
        }
    }

    /// Takes a verified symbol; true if decoding should be tried.
    pub(crate) fn take(&mut self, chunk: &ChunkView<'_>) -> bool {
        let index = chunk.header.index;
        match &mut self.state {
            State::Receiving(receiving) => {
                receiving.decoder.add(index, chunk.symbol).is_ok() && receiving.is_due()
            }
            State::Delivered { still_ours } => {
                still_ours.retain(|symbol| *symbol != index);
                false
            }
            State::Abandoned => false,
        }
    }

    /// Whether there are enough symbols for the next attempt to decode.
    pub(crate) fn is_due(&self) -> bool {
        matches!(&self.state, State::Receiving(receiving) if receiving.is_due())
    }

    /// Tries to decode. `None` while there are too few symbols; then whether the payload is what the author
    /// committed to.
    pub(crate) fn decode(
        &mut self,
        workshop: &mut Workshop,
        roll: &mut Roll,
        now: Instant,
    ) -> Option<Result<Delivery, Tainted>> {
        let State::Receiving(receiving) = &mut self.state else {
            return None;
        };
        let block = receiving.decoder.attempt()?;
        let symbols_received = receiving.decoder.held();
        if !is_committed(&self.geometry, &block, receiving, workshop) {
            self.state = State::Abandoned;
            return Some(Err(Tainted));
        }
        receiving.call(roll);
        self.state = State::Delivered {
            still_ours: receiving.still_ours(),
        };
        Some(Ok(self.delivery(block, symbols_received, now)))
    }

    fn delivery(&self, mut block: Vec<u8>, symbols_received: u32, decoded_at: Instant) -> Delivery {
        block.truncate(self.geometry.payload_len as usize);
        Delivery {
            author: self.author,
            author_index: self.id.author,
            epoch: self.id.epoch,
            round: self.id.round,
            payload: Bytes::from(block),
            first_symbol_at: self.first_symbol_at,
            decoded_at,
            leader_timestamp: std::time::Duration::from_millis(self.timestamp_ms),
            symbols_received,
            source_symbols: self.geometry.source_symbols,
            symbols: self.geometry.symbols,
        }
    }
}

/// A decoded message whose re-encoding has another root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tainted;

/// Whether the author committed to this block: its padding is zero and its symbols have the signed root.
///
/// The leaves of source symbols that came over the wire are known: the decoder hands those through unchanged.
/// Everything else is encoded again and hashed, also where the tree knows a leaf only as somebody's sibling.
// docs/spec/chunk.md#root-check
fn is_committed(geometry: &Geometry, block: &[u8], held: &Receiving, workshop: &mut Workshop) -> bool {
    let Some(zeros) = block.get(geometry.payload_len as usize..) else {
        return false;
    };
    if zeros.iter().any(|&byte| byte != 0) {
        return false;
    }
    let Workshop {
        plans, padding, tree, ..
    } = workshop;
    let symbols = usize::from(geometry.symbols);
    let leaves = tree.leaves_mut(symbols, geometry.depth);
    if geometry.source_symbols == 1 {
        leaves.fill(leaf_hash(block));
        return held.tree.commits_to(tree, symbols);
    }
    let Some(encoder) = Encoder::new(geometry, padding.pad(block, Encoder::block_len(geometry)), plans)
    else {
        return false;
    };
    let mut unseen = Vec::with_capacity(usize::from(geometry.source_symbols));
    encoder.source_symbols(|index, symbol| match held.leaf(index) {
        Some(known) => leaves[index.as_usize()] = known,
        None => unseen.push((index.as_usize(), symbol)),
    });
    leaf_hashes(unseen.iter().map(|(_, symbol)| *symbol), |turn, hash| {
        leaves[unseen[turn].0] = hash
    });
    encoder.repair_batches(|start, batch| {
        let start = start.as_usize();
        leaf_hashes(batch.iter().map(EncodingPacket::data), |place, hash| {
            leaves[start + place] = hash
        });
    });
    held.tree.commits_to(tree, symbols)
}
