//! The first chunk of a message: its signature is checked, its geometry derived, its symbols assigned.

use bytes::Bytes;
use falconet_crypto::{IdentityKey, Now};

use super::Candidate;
use crate::assignment::Assignment;
use crate::discard::Discard;
use crate::engine::Engine;
use crate::events::{Event, Sender};
use crate::geometry::Geometry;
use crate::header::{ChunkView, Header};
use crate::ids::MessageId;
use crate::merkle::{Climb, Hash, leaf_hash};
use crate::message::{Commitment, Message, Receiving, State};
use crate::repair::Askers;

impl Engine {
    /// Starts a message, once the author's signature is checked: before that, nothing about it is worth the
    /// assignment or any memory.
    pub(super) fn open(
        &mut self,
        now: Now,
        candidate: &Candidate<'_>,
        climb: &mut Climb<'_>,
    ) -> Result<(), Discard> {
        let (id, header) = (candidate.id, &candidate.view.header);
        // A message before it in the batch may have made us forget.
        if self.cache.is_forgotten(id, header.timestamp_ms) {
            return Err(Discard::Abandoned);
        }
        let root = climb.root();
        self.verify_signature(now, candidate, &root)?;
        let geometry = self.geometry_of(id, header);
        let state = match &geometry {
            Some(geometry) => State::Receiving(Box::new(self.receiving(id, root, geometry)?)),
            None => State::Abandoned,
        };
        let epoch = self.epochs.get(id.epoch).ok_or(Discard::Epoch)?;
        let author = epoch.set.get(id.author).ok_or(Discard::Author)?.identity;
        let message = Message {
            id,
            author,
            commitment: Commitment::new(header.commitment_bytes(), root, *candidate.view.signature),
            geometry: geometry.unwrap_or_else(|| claimed_geometry(header)),
            first_symbol_at: now.instant,
            timestamp_ms: header.timestamp_ms,
            is_equivocal: false,
            askers: Askers::default(),
            state,
        };
        let evicted = self.cache.insert(now.instant, message);
        self.expire(evicted);
        if geometry.is_some() {
            self.schedule_repair(now.instant, id);
        }
        self.sample_clock(now, author, header.timestamp_ms);
        geometry.map(|_| ()).ok_or(Discard::Geometry)
    }

    /// The geometry that the payload length implies, if it is the one that the header states.
    // docs/spec/chunk.md#geometry
    pub(crate) fn geometry_of(&self, id: MessageId, header: &Header) -> Option<Geometry> {
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
        let mut receiving = Receiving::new(root, geometry, assignment, epoch.own);
        if self.config.trace {
            receiving.start_trace();
        }
        Ok(receiving)
    }

    // docs/spec/broadcast.md#clock
    fn sample_clock(&mut self, now: Now, author: IdentityKey, timestamp_ms: u64) {
        if let Some(skew) = self.clocks.sample(author, now.unix_ms(), timestamp_ms) {
            self.push_event(Event::ClockSkew(skew));
        }
    }

    /// A chunk whose timestamp the window refuses: if its author has signed that, one of the two clocks is wrong.
    // docs/spec/broadcast.md#refused-clock
    pub(super) fn sample_refused(&mut self, now: Now, from: Sender, chunk: &Bytes) {
        let Ok(view) = ChunkView::parse(chunk) else { return };
        let Ok(id) = self.name(&view.header) else { return };
        let Ok(sender) = self.sender(from, id) else { return };
        let member = self
            .epochs
            .get(id.epoch)
            .and_then(|epoch| epoch.set.get(id.author));
        let Some(author) = member.map(|member| member.identity) else {
            return;
        };
        let theirs_ms = view.header.timestamp_ms;
        if !sender.is_authenticated || !self.clocks.wants_refused(author, now.instant, theirs_ms) {
            return;
        }
        let root = Climb::new(view.header.index, leaf_hash(view.symbol), view.proof).root();
        if self.is_signed(&author, &view, &root) {
            let skew = self.clocks.sample_refused(author, now.unix_ms(), theirs_ms);
            skew.into_iter()
                .for_each(|skew| self.push_event(Event::ClockSkew(skew)));
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
