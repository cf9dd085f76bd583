//! Answering: with symbols that are verified, within budgets (`docs/spec/broadcast.md#repair-limits`).

use bytes::Bytes;
use falconet_crypto::Now;

use super::{MAX_REPAIR_REQUESTS, RepairRequest};
use crate::discard::Discard;
use crate::engine::Engine;
use crate::events::{Class, Recipients, Sender, Transmit};
use crate::geometry::Geometry;
use crate::ids::{NodeIndex, SymbolIndex};
use crate::merkle::Tree;
use crate::message::{Message, State};

/// A delivered payload and its whole tree, kept to answer with.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) payload: Bytes,
    pub(crate) tree: Tree,
}

impl Kept {
    /// Bytes counted for it.
    pub(crate) const fn memory(geometry: &Geometry) -> usize {
        geometry.block_len() + Tree::memory(geometry.depth)
    }
}

impl Engine {
    /// Takes a request of a peer.
    pub(crate) fn handle_repair_request(
        &mut self,
        now: Now,
        from: Sender,
        datagram: &[u8],
    ) -> Result<(), Discard> {
        let request = RepairRequest::parse(datagram)?;
        // A plain sender may have made its address up: answers would hit somebody else.
        let identity = match from {
            Sender::Validator(identity) => identity,
            Sender::Hint(_) => return Err(Discard::RepairLane),
            Sender::Unknown => return Err(Discard::UnknownSender),
        };
        let epoch = self.epochs.get_mut(request.id.epoch).ok_or(Discard::Epoch)?;
        let peer = epoch.set.index_of(&identity).ok_or(Discard::SenderNotInSet)?;
        let message = self.cache.get_mut(request.id);
        let message = message.filter(|known| known.commitment.root == request.root);
        let message = message.ok_or(Discard::RepairUnknown)?;
        let count = u32::from(request.count);
        // docs/spec/broadcast.md#repair-limits
        if !message.askers.admit(peer)
            || !epoch.spend_repair(peer, count, now.instant)
            || !self.repairs.spend_many(now.instant, count)
        {
            return Err(Discard::RepairBudget);
        }
        let wanted = request.wanted.iter(message.geometry.symbols);
        let chunks = wanted.filter_map(|symbol| message.answer(symbol));
        let chunks: Vec<_> = chunks.take(usize::from(request.count)).collect();
        self.stats.repairs_answered += chunks.len() as u64;
        if !chunks.is_empty() {
            self.relays.push_lone(Transmit {
                id: request.id,
                to: Recipients::One(peer),
                class: Class::Relay,
                chunks,
            });
        }
        Ok(())
    }
}

impl Message {
    /// The chunk of a symbol, if it is here and verified.
    fn answer(&self, symbol: SymbolIndex) -> Option<Bytes> {
        let geometry = &self.geometry;
        let mut chunk = vec![0; geometry.chunk_len()];
        let (proof, bytes) =
            chunk[geometry.proof_offset()..].split_at_mut(geometry.symbol_offset() - geometry.proof_offset());
        match &self.state {
            State::Receiving(receiving) => {
                bytes.copy_from_slice(receiving.waiting(symbol)?);
                receiving.write_proof(symbol, proof)?;
            }
            State::Delivered { kept: Some(kept), .. } if symbol.number() < geometry.source_symbols => {
                let start = symbol.as_usize() * bytes.len();
                let end = kept.payload.len().min(start + bytes.len());
                let known = kept.payload.get(start..end)?;
                bytes[..known.len()].copy_from_slice(known);
                kept.tree.write_proof(symbol, proof);
            }
            _ => return None,
        }
        self.commitment.write_envelope(symbol, &mut chunk);
        Some(chunk.into())
    }
}

/// Who has asked for a message, and how often.
#[derive(Debug, Default)]
pub(crate) struct Askers {
    /// Ascending.
    peers: Vec<(NodeIndex, u8)>,
}

/// Peers that may ask for one message: as many as would find nobody else, and few enough to count.
const MAX_ASKERS: usize = 1024;

impl Askers {
    fn admit(&mut self, peer: NodeIndex) -> bool {
        match self.peers.binary_search_by_key(&peer, |(known, _)| *known) {
            Ok(place) => {
                let requests = &mut self.peers[place].1;
                *requests = requests.saturating_add(1);
                *requests <= MAX_REPAIR_REQUESTS
            }
            Err(_) if self.peers.len() >= MAX_ASKERS => false,
            Err(place) => {
                self.peers.insert(place, (peer, 1));
                true
            }
        }
    }

    /// Bytes it takes at most.
    pub(crate) const fn memory() -> usize {
        MAX_ASKERS * size_of::<(NodeIndex, u8)>()
    }
}
