//! The leader's side: a payload becomes chunks in one buffer, and they leave in a fixed order.

use bytes::Bytes;
use falconet_crypto::{NetworkId, Purpose, SignError, Signature, Signer};

use crate::assignment::Assignment;
use crate::code::Encoder;
use crate::events::{Class, Recipients, Transmit};
use crate::geometry::Geometry;
use crate::header::Header;
use crate::ids::{MessageId, NodeIndex, Round, SymbolIndex};
use crate::limits::SIGNATURE_LEN;
use crate::merkle::{Tree, leaf_hash, leaf_hashes};
use crate::workshop::Workshop;

/// All chunks of one message, in one buffer, ready to leave.
#[derive(Debug)]
pub(crate) struct Outgoing {
    id: MessageId,
    chunks: Bytes,
    chunk_len: usize,
    emission: Emission,
}

impl Outgoing {
    /// Encodes, commits to and signs a payload. `header` is the message's header with any index.
    pub(crate) fn build(
        id: MessageId,
        header: &Header,
        geometry: &Geometry,
        payload: &[u8],
        (signer, network): (&dyn Signer, &NetworkId),
        workshop: &mut Workshop,
        emission: Emission,
    ) -> Result<Self, SignError> {
        let mut slab = workshop.slab(geometry);
        write_symbols(geometry, payload, workshop, slab.bytes_mut());
        let tree = &workshop.tree;
        let signature = signer.sign(
            Purpose::Chunk,
            network,
            &[header.commitment_bytes().as_slice(), &tree.root()],
        )?;
        write_envelopes(header, geometry, &signature, tree, slab.bytes_mut());
        Ok(Self {
            id,
            chunks: slab.freeze(),
            chunk_len: geometry.chunk_len(),
            emission,
        })
    }

    pub(crate) const fn round(&self) -> Round {
        self.id.round
    }

    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.len()
    }

    /// The next run of chunks, all for one first hop.
    pub(crate) fn next_transmit(&mut self) -> Option<Transmit> {
        let (hop, run) = self.emission.next_run()?;
        let chunks = run.iter().map(|index| {
            let start = index.as_usize() * self.chunk_len;
            self.chunks.slice(start..start + self.chunk_len)
        });
        Some(Transmit {
            id: self.id,
            to: Recipients::One(hop),
            class: Class::Proposal,
            chunks: chunks.collect(),
        })
    }
}

/// Writes every symbol to its place in the buffer and builds the tree over them.
fn write_symbols(geometry: &Geometry, payload: &[u8], workshop: &mut Workshop, buffer: &mut [u8]) {
    let Workshop {
        plans, tree, padding, ..
    } = workshop;
    let (chunk_len, offset) = (geometry.chunk_len(), geometry.symbol_offset());
    let mut take = |index: SymbolIndex, symbol: &[u8]| {
        let start = index.as_usize() * chunk_len;
        buffer[start + offset..start + chunk_len].copy_from_slice(symbol);
    };
    let block = padding.pad(payload, Encoder::block_len(geometry));
    if let Some(encoder) = Encoder::new(geometry, block, plans) {
        encoder.source_symbols(&mut take);
        encoder.repair_symbols(&mut take);
    }
    let symbols = buffer.chunks_exact(chunk_len).map(|chunk| &chunk[offset..]);
    let leaves = tree.leaves_mut(symbols.len(), geometry.depth);
    if geometry.source_symbols == 1 {
        leaves.fill(leaf_hash(&buffer[offset..chunk_len]));
    } else {
        leaf_hashes(symbols, |place, hash| leaves[place] = hash);
    }
    tree.grow(usize::from(geometry.symbols));
}

/// Writes header, signature and proof of every chunk.
fn write_envelopes(
    header: &Header,
    geometry: &Geometry,
    signature: &Signature,
    tree: &Tree,
    buffer: &mut [u8],
) {
    let proof_at = geometry.proof_offset();
    for (position, chunk) in buffer.chunks_exact_mut(geometry.chunk_len()).enumerate() {
        let index = SymbolIndex::new(position as u16);
        Header { index, ..*header }.encode(chunk);
        chunk[proof_at - SIGNATURE_LEN..proof_at].copy_from_slice(signature.as_bytes());
        tree.write_proof(index, &mut chunk[proof_at..geometry.symbol_offset()]);
    }
}

/// The order in which symbols leave: source symbols first, round-robin over the first hops in runs
/// (`docs/spec/chunk.md#emission`).
#[derive(Debug)]
pub(crate) struct Emission {
    /// Of every first hop: its symbols, ascending.
    hops: Vec<HopQueue>,
    run_length: usize,
    /// Whose turn it is.
    turn: usize,
    /// First hops that have had their last symbol of this half.
    exhausted: usize,
    half: Half,
}

#[derive(Debug)]
struct HopQueue {
    node: NodeIndex,
    symbols: Vec<SymbolIndex>,
    /// How many of them are source symbols.
    source: usize,
    sent: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Source,
    Repair,
    Done,
}

impl Emission {
    /// `start` says which first hop comes first.
    pub(crate) fn new(assignment: &Assignment, geometry: &Geometry, run_length: usize, start: usize) -> Self {
        let mut hops: Vec<HopQueue> = Vec::new();
        let mut place_of = Vec::new();
        for (index, node) in assignment.iter() {
            if place_of.len() <= node.as_usize() {
                place_of.resize(node.as_usize() + 1, None);
            }
            let place = *place_of[node.as_usize()].get_or_insert_with(|| {
                hops.push(HopQueue {
                    node,
                    symbols: Vec::new(),
                    source: 0,
                    sent: 0,
                });
                hops.len() - 1
            });
            hops[place].symbols.push(index);
            hops[place].source += usize::from(index.number() < geometry.source_symbols);
        }
        hops.sort_unstable_by_key(|hop| hop.node);
        let turn = start % hops.len().max(1);
        Self {
            hops,
            run_length: run_length.max(1),
            turn,
            exhausted: 0,
            half: Half::Source,
        }
    }

    fn next_run(&mut self) -> Option<(NodeIndex, &[SymbolIndex])> {
        while self.half != Half::Done {
            if self.exhausted == self.hops.len() {
                self.half = if self.half == Half::Source {
                    Half::Repair
                } else {
                    Half::Done
                };
                self.exhausted = 0;
                continue;
            }
            let turn = self.turn;
            self.turn = (turn + 1) % self.hops.len();
            let hop = &mut self.hops[turn];
            let end = if self.half == Half::Source {
                hop.source
            } else {
                hop.symbols.len()
            };
            if hop.sent == end {
                // Counted over consecutive turns: only a whole lap without a symbol ends the half.
                self.exhausted += 1;
                continue;
            }
            self.exhausted = 0;
            let start = hop.sent;
            hop.sent = end.min(start + self.run_length);
            let hop = &self.hops[turn];
            return Some((hop.node, &hop.symbols[start..hop.sent]));
        }
        None
    }
}
