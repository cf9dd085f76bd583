//! The receiver's side: what a chunk has to pass before its symbol is taken, cheapest first
//! (`docs/spec/chunk.md#order`).

use bytes::Bytes;
use falconet_crypto::{Now, Purpose, Signature};

use crate::assignment::Assignment;
use crate::discard::Discard;
use crate::engine::Engine;
use crate::events::{Equivocation, Event, Sender, SignedRoot};
use crate::geometry::Geometry;
use crate::header::{AuthorRef, ChunkView, Header, Mode};
use crate::ids::{MessageId, NodeIndex};
use crate::merkle::{Hash, leaf_hash, root_of};
use crate::message::{Admitted, Commitment, Message, Receiving, State};

/// A sender that is a member of the message's set.
#[derive(Clone, Copy, Debug)]
struct Member {
    node: NodeIndex,
    /// Whether a session vouches for it; else it is what a record says of an address.
    is_authenticated: bool,
}

impl Engine {
    pub(crate) fn admit_chunk(&mut self, now: Now, from: Sender, chunk: &Bytes) -> Result<(), Discard> {
        if chunk.len() > self.config.chunk.bytes() {
            return Err(Discard::Oversized);
        }
        let view = ChunkView::parse(chunk)?;
        self.check_windows(now, &view.header)?;
        let id = self.name(&view.header)?;
        let sender = self.sender(from, id)?;
        match self.cache.get(id) {
            None => self.open(now, id, sender, &view)?,
            Some(known) if known.commitment.header != view.header.commitment_bytes() => {
                return self.handle_other_commitment(now, id, sender, &view);
            }
            Some(_) => {}
        }
        self.take_symbol(now, id, sender, &view, chunk)
    }

    fn check_windows(&self, now: Now, header: &Header) -> Result<(), Discard> {
        if header.mode != Mode::Broadcast {
            return Err(Discard::Mode);
        }
        let distance = u128::from(now.unix_ms().abs_diff(header.timestamp_ms));
        if distance > self.config.timestamp_window.as_millis() {
            return Err(Discard::Timestamp);
        }
        let is_far = |local| header.round.distance(local) > self.config.round_window;
        if self.round.is_some_and(is_far) {
            return Err(Discard::Round);
        }
        Ok(())
    }

    /// Which message the header claims to belong to.
    fn name(&self, header: &Header) -> Result<MessageId, Discard> {
        let epoch = self.epochs.get(header.epoch).ok_or(Discard::Epoch)?;
        let author = match &header.author {
            AuthorRef::Index(index) => Some(*index).filter(|index| epoch.set.contains(*index)),
            AuthorRef::Key(key) => epoch.set.index_of(key),
        }
        .ok_or(Discard::Author)?;
        if epoch.own == Some(author) {
            return Err(Discard::OwnMessage);
        }
        Ok(MessageId {
            epoch: header.epoch,
            round: header.round,
            author,
        })
    }

    fn sender(&self, from: Sender, id: MessageId) -> Result<Member, Discard> {
        let (identity, is_authenticated) = match from {
            Sender::Validator(identity) => (identity, true),
            Sender::Hint(identity) => (identity, false),
            Sender::Unknown => return Err(Discard::UnknownSender),
        };
        let epoch = self.epochs.get(id.epoch).ok_or(Discard::Epoch)?;
        let node = epoch.set.index_of(&identity).ok_or(Discard::SenderNotInSet)?;
        Ok(Member {
            node,
            is_authenticated,
        })
    }

    /// Starts a message, once the author's signature is checked: before that, nothing about it is worth the
    /// assignment or any memory.
    fn open(
        &mut self,
        now: Now,
        id: MessageId,
        sender: Member,
        chunk: &ChunkView<'_>,
    ) -> Result<(), Discard> {
        let root = root_of(chunk.header.index, leaf_hash(chunk.symbol), chunk.proof);
        self.verify_signature(now, id, sender, chunk, &root)?;
        let geometry = self.geometry_of(id, &chunk.header);
        let state = match &geometry {
            Some(geometry) => State::Receiving(Box::new(self.receiving(id, root, geometry)?)),
            None => State::Abandoned,
        };
        let epoch = self.epochs.get(id.epoch).ok_or(Discard::Epoch)?;
        let author = epoch.set.get(id.author).ok_or(Discard::Author)?.identity;
        let message = Message {
            id,
            author,
            commitment: Commitment::new(chunk.header.commitment_bytes(), root, *chunk.signature),
            geometry: geometry.unwrap_or_else(|| claimed_geometry(&chunk.header)),
            first_symbol_at: now.instant,
            timestamp_ms: chunk.header.timestamp_ms,
            is_equivocal: false,
            state,
        };
        let evicted = self.cache.insert(now.instant, message);
        self.expire(evicted);
        geometry.map(|_| ()).ok_or(Discard::Geometry)
    }

    /// The geometry that the payload length implies, if it is the one that the header states.
    // docs/spec/chunk.md#geometry
    fn geometry_of(&self, id: MessageId, header: &Header) -> Option<Geometry> {
        let epoch = self.epochs.get(id.epoch)?;
        let derived = Geometry::for_set(
            header.payload_len as usize,
            self.config.chunk,
            header.encoded_len(),
            self.config.redundancy,
            (&epoch.set, id.author),
        );
        derived
            .ok()
            .filter(|derived| derived.symbol_size == header.symbol_size && derived.symbols == header.symbols)
    }

    fn receiving(&self, id: MessageId, root: Hash, geometry: &Geometry) -> Result<Receiving, Discard> {
        let epoch = self.epochs.get(id.epoch).ok_or(Discard::Epoch)?;
        let assignment = Assignment::derive(
            &self.config.network,
            id,
            &epoch.set,
            geometry,
            self.config.redundancy,
        );
        Ok(Receiving::new(root, geometry, assignment, epoch.own))
    }

    /// A chunk of a known message.
    fn take_symbol(
        &mut self,
        now: Now,
        id: MessageId,
        sender: Member,
        view: &ChunkView<'_>,
        chunk: &Bytes,
    ) -> Result<(), Discard> {
        let message = self.cache.get_mut(id).ok_or(Discard::Abandoned)?;
        let admitted = message.admit(view, sender.node)?;
        let knows_signature = message.commitment.knows(view.signature);
        let leads_to_root = message.verify(view, leaf_hash(view.symbol));
        if leads_to_root.is_err() && !knows_signature {
            return self.handle_other_commitment(now, id, sender, view);
        }
        leads_to_root?;
        if !knows_signature {
            self.learn_signature(now, id, sender, view)?;
        }
        self.stats.chunks_accepted += 1;
        self.stats.bytes_accepted += chunk.len() as u64;
        if admitted == Admitted::Ours {
            self.relay(now, id, chunk);
        }
        if self.cache.get_mut(id).is_some_and(|message| message.take(view)) && !self.decodable.contains(&id) {
            self.decodable.push_back(id);
        }
        Ok(())
    }

    /// The same commitment under signature bytes that we have not seen.
    fn learn_signature(
        &mut self,
        now: Now,
        id: MessageId,
        sender: Member,
        chunk: &ChunkView<'_>,
    ) -> Result<(), Discard> {
        let known = &self.cache.get(id).ok_or(Discard::Abandoned)?.commitment;
        if !known.has_room() {
            return Err(Discard::TooManySignatures);
        }
        let root = known.root;
        self.verify_signature(now, id, sender, chunk, &root)?;
        if let Some(message) = self.cache.get_mut(id) {
            message.commitment.learn(*chunk.signature);
        }
        Ok(())
    }

    /// A chunk whose header or root differs from what its author committed to before. If the signature is
    /// good, that is evidence; the chunk is dropped in any case.
    // docs/spec/chunk.md#equivocation
    fn handle_other_commitment(
        &mut self,
        now: Now,
        id: MessageId,
        sender: Member,
        chunk: &ChunkView<'_>,
    ) -> Result<(), Discard> {
        if self.cache.get(id).is_none_or(|known| known.is_equivocal) {
            return Err(Discard::Equivocation);
        }
        let root = root_of(chunk.header.index, leaf_hash(chunk.symbol), chunk.proof);
        self.verify_signature(now, id, sender, chunk, &root)?;
        if let Some(message) = self.cache.get_mut(id) {
            message.is_equivocal = true;
            let second = SignedRoot {
                header: chunk.header.commitment_bytes().as_slice().to_vec(),
                root,
                signature: *chunk.signature,
            };
            let first = message.commitment.evidence();
            let evidence = Equivocation {
                author: message.author,
                id,
                first,
                second,
            };
            self.stats.equivocations += 1;
            self.push_event(Event::Equivocation(Box::new(evidence)));
        }
        Err(Discard::Equivocation)
    }

    // docs/spec/chunk.md#signature
    fn verify_signature(
        &mut self,
        now: Now,
        id: MessageId,
        sender: Member,
        chunk: &ChunkView<'_>,
        root: &Hash,
    ) -> Result<(), Discard> {
        let epoch = self.epochs.get_mut(id.epoch).ok_or(Discard::Epoch)?;
        let has_budget = if sender.is_authenticated {
            epoch.spend_verification(sender.node, now.instant)
        } else {
            self.plain_verifications.spend(now.instant)
        };
        if !has_budget {
            return Err(Discard::VerificationBudget);
        }
        self.stats.signatures_checked += 1;
        let author = epoch.set.get(id.author).ok_or(Discard::Author)?;
        let commitment = chunk.header.commitment_bytes();
        author
            .identity
            .verify(
                Purpose::Chunk,
                &self.config.network,
                &[commitment.as_slice(), root],
                &Signature::from_bytes(*chunk.signature),
            )
            .map_err(|_| Discard::Signature)
    }

    fn relay(&mut self, now: Now, id: MessageId, chunk: &Bytes) {
        let Some(epoch) = self.epochs.get_mut(id.epoch).filter(|epoch| epoch.has_audience()) else {
            return;
        };
        if !epoch.spend_relay(id.author, now.instant) {
            self.stats.relays_over_budget += 1;
        } else if self.relays.push(now.instant, id, chunk.clone()) {
            self.stats.chunks_relayed += 1;
        } else {
            self.stats.relays_dropped += 1;
        }
    }
}

/// What a header claims, for the record of a message that is abandoned from the start.
fn claimed_geometry(header: &Header) -> Geometry {
    Geometry {
        payload_len: header.payload_len,
        symbol_size: header.symbol_size,
        source_symbols: header.source_symbols() as u16,
        symbols: header.symbols,
        depth: crate::limits::merkle_depth(header.symbols),
        header_len: header.encoded_len() as u8,
    }
}

#[cfg(test)]
mod tests;
