//! One message on its way in: what its author committed to, which symbols are here, whose turn it is.

use std::time::Instant;

use bytes::Bytes;
use falconet_crypto::IdentityKey;

use crate::discard::Discard;
use crate::events::Delivery;
use crate::geometry::Geometry;
use crate::header::ChunkView;
use crate::ids::{MessageId, NodeIndex, SymbolIndex};
use crate::incoming::Member;
use crate::merkle::{Climb, VerifiedTree};
use crate::participation::Roll;
use crate::repair::{Askers, Kept};
use crate::trace::{MessageTrace, Outcome};
use crate::workshop::Workshop;
pub(crate) use commitment::Commitment;
use committed::is_committed;
pub(crate) use receiving::{Admitted, Receiving};

mod commitment;
mod committed;
mod receiving;

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
    pub(crate) askers: Askers,
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
        /// What repair requests are answered with, while there is room for it.
        kept: Option<Box<Kept>>,
    },
    /// Tainted, expired or evicted: nothing of it is wanted any more.
    Abandoned,
}

impl Message {
    /// The checks that cost next to nothing: may this sender send this symbol, and is it new?
    pub(crate) fn admit(&self, chunk: &ChunkView<'_>, sender: Member) -> Result<Admitted, Discard> {
        let symbol = chunk.header.index;
        match &self.state {
            State::Receiving(receiving) => receiving.admit(symbol, sender, self.id.author),
            State::Delivered { still_ours, .. } if still_ours.binary_search(&symbol).is_err() => {
                Err(Discard::AlreadyDecoded)
            }
            State::Delivered { .. } if sender.node != self.id.author => Err(Discard::WrongSender),
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
    pub(crate) fn take(
        &mut self,
        chunk: &ChunkView<'_>,
        sender: NodeIndex,
        admitted: Admitted,
        now: Instant,
    ) -> bool {
        let after = now.saturating_duration_since(self.first_symbol_at);
        let index = chunk.header.index;
        match &mut self.state {
            State::Receiving(receiving) => {
                receiving.count_source(index, sender, admitted, after);
                receiving.decoder.add(index, chunk.symbol).is_ok() && receiving.is_due()
            }
            State::Delivered { still_ours, .. } => {
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
        let sources = receiving.sources();
        if !is_committed(&self.geometry, &block, receiving, workshop) {
            self.state = State::Abandoned;
            return Some(Err(Tainted { sources }));
        }
        receiving.call(roll);
        let still_ours = receiving.still_ours();
        let delivery = self.delivery(block, symbols_received, sources, now);
        let kept = Kept {
            payload: delivery.payload.clone(),
            tree: workshop.tree.trimmed(),
        };
        self.state = State::Delivered {
            still_ours,
            kept: (self.geometry.source_symbols > 1).then(|| Box::new(kept)),
        };
        Some(Ok(delivery))
    }

    /// What is remembered of its arrivals, if that was asked for.
    pub(crate) fn trace(&self, outcome: Outcome, ended_at: Instant) -> Option<MessageTrace> {
        let State::Receiving(receiving) = &self.state else {
            return None;
        };
        let (arrivals, late) = receiving.trace()?;
        Some(MessageTrace {
            id: self.id,
            author: self.author,
            outcome,
            first_symbol_at: self.first_symbol_at,
            took: ended_at.saturating_duration_since(self.first_symbol_at),
            source_symbols: self.geometry.source_symbols,
            symbols: self.geometry.symbols,
            arrivals,
            late,
        })
    }

    fn delivery(
        &self,
        mut block: Vec<u8>,
        symbols_received: u32,
        sources: Vec<(NodeIndex, u32)>,
        decoded_at: Instant,
    ) -> Delivery {
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
            sources,
            source_symbols: self.geometry.source_symbols,
            symbols: self.geometry.symbols,
        }
    }
}

/// A decoded message whose re-encoding has another root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tainted {
    /// Who sent how many of its symbols.
    pub(crate) sources: Vec<(NodeIndex, u32)>,
}
