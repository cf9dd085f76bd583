//! The receiver's side: what a chunk has to pass before its symbol is taken, cheapest first
//! (`docs/spec/chunk.md#order`).
//!
//! Chunks come in batches, and what is hashed of a batch is hashed side by side: first everything that costs next to
//! nothing, for all of them; then the symbols and proofs of those that are left; then, one by one, what depends on
//! what was accepted before.

use bytes::Bytes;
use falconet_crypto::Now;

use crate::discard::Discard;
use crate::engine::Engine;
use crate::events::Sender;
use crate::header::{AuthorRef, ChunkView, Header, Mode};
use crate::ids::{MessageId, NodeIndex};
use crate::merkle::{Climb, Hash, climb_together, leaf_hash, leaf_hashes};
use crate::message::Admitted;
use crate::repair::REPAIR_REQUEST;
use crate::shared::SharedWork;
use crate::versions::Version;

mod opening;
mod signatures;

/// Chunks that are checked side by side: some lanes full, and still little memory. A longer batch is split.
const SIDE_BY_SIDE: usize = 128;

/// A sender that is a member of the message's set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) node: NodeIndex,
    /// Whether a session vouches for it; else it is what a record says of an address.
    pub(crate) is_authenticated: bool,
}

/// A chunk that has passed all checks that cost next to nothing.
struct Candidate<'a> {
    /// In the batch.
    place: usize,
    id: MessageId,
    sender: Member,
    view: ChunkView<'a>,
    chunk: &'a Bytes,
}

impl Engine {
    /// Takes chunks as they came, each with who sent it; `outcome` is told of each, by its place, whether it was
    /// accepted or why it was dropped, in no particular order. Larger batches cost less a chunk.
    ///
    /// The reasons are counted in [`Engine::stats`].
    pub fn handle_chunks(
        &mut self,
        now: Now,
        batch: &[(Sender, Bytes)],
        mut outcome: impl FnMut(usize, Result<(), Discard>),
    ) {
        self.now = Some(now.instant);
        self.stats.chunks_received += batch.len() as u64;
        for (part, chunks) in batch.chunks(SIDE_BY_SIDE).enumerate() {
            let start = part * SIDE_BY_SIDE;
            self.handle_side_by_side(now, chunks, |place, result| outcome(start + place, result));
        }
    }

    /// Takes one chunk that `from` sent: a batch of one.
    ///
    /// # Errors
    ///
    /// Why it was dropped; the reason is counted in [`Engine::stats`].
    pub fn handle_chunk(&mut self, now: Now, from: Sender, chunk: Bytes) -> Result<(), Discard> {
        let mut admitted = Ok(());
        self.handle_chunks(now, &[(from, chunk)], |_, outcome| admitted = outcome);
        admitted
    }

    fn handle_side_by_side(
        &mut self,
        now: Now,
        batch: &[(Sender, Bytes)],
        mut outcome: impl FnMut(usize, Result<(), Discard>),
    ) {
        let mut candidates = Vec::with_capacity(batch.len());
        for (place, (from, chunk)) in batch.iter().enumerate() {
            if chunk.first() == Some(&REPAIR_REQUEST) {
                let handled = self.handle_repair_request(now, *from, chunk);
                if let Err(reason) = handled {
                    self.stats.count_discard(reason);
                }
                outcome(place, handled);
                continue;
            }
            match self.screen(now, (place, *from, chunk), &candidates) {
                Ok(candidate) => candidates.push(candidate),
                Err(reason) => {
                    if reason == Discard::Timestamp {
                        self.sample_refused(now, *from, chunk);
                    }
                    self.stats.count_discard(reason);
                    outcome(place, Err(reason));
                }
            }
        }
        let climbs = self.climb(&candidates);
        for (candidate, mut climb) in candidates.iter().zip(climbs) {
            let taken = self.take_candidate(now, candidate, &mut climb);
            if let Err(reason) = taken {
                self.stats.count_discard(reason);
            }
            outcome(candidate.place, taken);
        }
    }

    /// The checks before anything is hashed. Those that depend on the message are repeated when its turn comes: a
    /// chunk before it in the batch may have changed the answer. `earlier` are those that have passed.
    fn screen<'a>(
        &self,
        now: Now,
        (place, from, chunk): (usize, Sender, &'a Bytes),
        earlier: &[Candidate<'_>],
    ) -> Result<Candidate<'a>, Discard> {
        if chunk.len() > self.config.chunk.bytes() {
            return Err(Discard::Oversized);
        }
        let view = ChunkView::parse(chunk)?;
        if !self.config.rollout.accepts(view.header.version) {
            return Err(Discard::Version);
        }
        self.check_windows(now, &view.header)?;
        let id = self.name(&view.header)?;
        let sender = self.sender(from, id)?;
        match self.cache.get(id) {
            None if earlier.iter().any(|other| other.id == id) => {}
            None => {
                self.check_standing(now, id, sender)?;
                self.check_may_open(now, id, sender, &view.header)?;
            }
            Some(known) if known.commitment.header == view.header.commitment_bytes() => {
                known.admit(&view, sender)?;
                self.check_standing(now, id, sender)?;
            }
            Some(known) if known.is_equivocal => return Err(Discard::Equivocation),
            Some(_) => {}
        }
        Ok(Candidate {
            place,
            id,
            sender,
            view,
            chunk,
        })
    }

    /// Hashes the symbols of all candidates, and their proofs up to what is known.
    fn climb<'a>(&self, candidates: &[Candidate<'a>]) -> Vec<Climb<'a>> {
        let mut climbs = match &self.shared {
            Some(shared) => shared_leaves(candidates, shared),
            None => leaves(candidates),
        };
        let trees: Vec<_> = candidates
            .iter()
            .map(|candidate| self.cache.get(candidate.id)?.verified_tree(&candidate.view))
            .collect();
        climb_together(&mut climbs, |place| trees[place]);
        climbs
    }

    fn take_candidate(
        &mut self,
        now: Now,
        candidate: &Candidate<'_>,
        climb: &mut Climb<'_>,
    ) -> Result<(), Discard> {
        match self.cache.get(candidate.id) {
            None => self.open(now, candidate, climb)?,
            Some(known) if known.commitment.header != candidate.view.header.commitment_bytes() => {
                return self.handle_other_commitment(now, candidate, climb);
            }
            Some(_) => {}
        }
        self.take_symbol(now, candidate, climb)
    }

    /// Whether a message that is not known may be opened: an open that cannot be paid for is not worth a hash.
    fn check_may_open(
        &self,
        now: Now,
        id: MessageId,
        sender: Member,
        header: &Header,
    ) -> Result<(), Discard> {
        if self.cache.is_forgotten(id, header.timestamp_ms) {
            return Err(Discard::Abandoned);
        }
        let epoch = self.epochs.get(id.epoch).ok_or(Discard::Epoch)?;
        let has_budget = if sender.is_authenticated {
            epoch.may_verify(sender.node, id.author, now.instant)
        } else {
            !self.plain_verifications.is_spent(now.instant)
        };
        has_budget.then_some(()).ok_or(Discard::VerificationBudget)
    }

    // docs/spec/broadcast.md#charge
    fn check_standing(&self, now: Now, id: MessageId, sender: Member) -> Result<(), Discard> {
        let epoch = self.epochs.get(id.epoch).ok_or(Discard::Epoch)?;
        if sender.is_authenticated && epoch.is_in_disgrace(sender.node, now.instant) {
            return Err(Discard::BadSender);
        }
        Ok(())
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
        if self.round.is_some_and(is_far) || self.oldest.is_some_and(|oldest| header.round < oldest) {
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
        if !epoch.may_lead(author, header.round) {
            return Err(Discard::NotLeader);
        }
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

    /// A chunk of a known message.
    fn take_symbol(
        &mut self,
        now: Now,
        candidate: &Candidate<'_>,
        climb: &mut Climb<'_>,
    ) -> Result<(), Discard> {
        let (id, view) = (candidate.id, &candidate.view);
        self.cache
            .get(id)
            .ok_or(Discard::Abandoned)?
            .admit(view, candidate.sender)?;
        self.check_standing(now, id, candidate.sender)?;
        let message = self.cache.get_mut(id).ok_or(Discard::Abandoned)?;
        let admitted = message.admit(view, candidate.sender)?;
        let knows_signature = message.commitment.knows(view.signature);
        let leads_to_root = message.verify(climb);
        if leads_to_root.is_err() && !knows_signature {
            return self.handle_other_commitment(now, candidate, climb);
        }
        if leads_to_root.is_err() && candidate.sender.is_authenticated {
            let epoch = self.epochs.get_mut(id.epoch).ok_or(Discard::Epoch)?;
            epoch.charge_bad_proof(candidate.sender.node, now.instant);
        }
        leads_to_root?;
        if !knows_signature {
            self.learn_signature(now, candidate)?;
        }
        self.stats.chunks_accepted += 1;
        self.stats.bytes_accepted += candidate.chunk.len() as u64;
        if admitted == Admitted::Ours {
            self.relay(now, id, view.header.version, candidate.chunk);
        }
        self.stats.repairs_taken += u64::from(admitted == Admitted::Repaired);
        let (message, sender) = (self.cache.get_mut(id), candidate.sender.node);
        let is_due = message.is_some_and(|message| message.take(view, sender, admitted, now.instant));
        if is_due && !self.is_waiting_to_decode(id) {
            self.decodable.push_back(id);
        }
        Ok(())
    }

    fn relay(&mut self, now: Now, id: MessageId, version: Version, chunk: &Bytes) {
        let Some(epoch) = self.epochs.get_mut(id.epoch).filter(|epoch| epoch.has_audience()) else {
            return;
        };
        // docs/spec/chunk.md#rollout
        if version == Version::V1 && !epoch.is_capable {
            self.stats.relays_unknown_version += 1;
        } else if !epoch.spend_relay(id.author, now.instant) {
            self.stats.relays_over_budget += 1;
        } else if self.relays.push(now.instant, id, chunk.clone()) {
            self.stats.chunks_relayed += 1;
        } else {
            self.stats.relays_dropped += 1;
        }
    }
}

/// Climbs that stand at their leaves.
fn leaves<'a>(candidates: &[Candidate<'a>]) -> Vec<Climb<'a>> {
    let mut climbs = Vec::with_capacity(candidates.len());
    leaf_hashes(
        candidates.iter().map(|candidate| candidate.view.symbol),
        |place, leaf| climbs.push(candidates[place].climb_from(leaf)),
    );
    climbs
}

/// As [`leaves`], but for symbols that some engine has hashed before.
fn shared_leaves<'a>(candidates: &[Candidate<'a>], shared: &SharedWork) -> Vec<Climb<'a>> {
    let climb = |candidate: &Candidate<'a>| {
        let leaf = shared.leaf(candidate.chunk).unwrap_or_else(|| {
            let leaf = leaf_hash(candidate.view.symbol);
            shared.remember_leaf(candidate.chunk, leaf);
            leaf
        });
        candidate.climb_from(leaf)
    };
    candidates.iter().map(climb).collect()
}

impl<'a> Candidate<'a> {
    fn climb_from(&self, leaf: Hash) -> Climb<'a> {
        Climb::new(self.view.header.index, leaf, self.view.proof)
    }
}

#[cfg(test)]
mod tests;
