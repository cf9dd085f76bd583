//! What an author signed: checked within budgets, remembered, and compared with what it signed before.

use falconet_crypto::{IdentityKey, Now, Purpose, Signature};

use super::Candidate;
use crate::discard::Discard;
use crate::engine::Engine;
use crate::events::{Equivocation, Event, SignedRoot};
use crate::header::ChunkView;
use crate::merkle::{Climb, Hash};

impl Engine {
    /// The same commitment under signature bytes that we have not seen.
    pub(super) fn learn_signature(&mut self, now: Now, candidate: &Candidate<'_>) -> Result<(), Discard> {
        let known = &self.cache.get(candidate.id).ok_or(Discard::Abandoned)?.commitment;
        if !known.has_room() {
            return Err(Discard::TooManySignatures);
        }
        let root = known.root;
        self.verify_signature(now, candidate, &root)?;
        if let Some(message) = self.cache.get_mut(candidate.id) {
            message.commitment.learn(*candidate.view.signature);
        }
        Ok(())
    }

    /// A chunk whose header or root differs from what its author committed to before. If the signature is
    /// good, that is evidence; the chunk is dropped in any case.
    // docs/spec/chunk.md#equivocation
    pub(super) fn handle_other_commitment(
        &mut self,
        now: Now,
        candidate: &Candidate<'_>,
        climb: &mut Climb<'_>,
    ) -> Result<(), Discard> {
        let id = candidate.id;
        if self.cache.get(id).is_none_or(|known| known.is_equivocal) {
            return Err(Discard::Equivocation);
        }
        let root = climb.root();
        self.verify_signature(now, candidate, &root)?;
        if let Some(message) = self.cache.get_mut(id) {
            message.is_equivocal = true;
            let second = SignedRoot {
                header: candidate.view.header.commitment_bytes().as_slice().to_vec(),
                root,
                signature: *candidate.view.signature,
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
    pub(super) fn verify_signature(
        &mut self,
        now: Now,
        candidate: &Candidate<'_>,
        root: &Hash,
    ) -> Result<(), Discard> {
        let (id, sender) = (candidate.id, candidate.sender);
        self.check_standing(now, id, sender)?;
        let epoch = self.epochs.get_mut(id.epoch).ok_or(Discard::Epoch)?;
        let has_budget = if sender.is_authenticated {
            epoch.spend_verification(sender.node, id.author, now.instant)
        } else {
            self.plain_verifications.spend(now.instant)
        };
        if !has_budget {
            return Err(Discard::VerificationBudget);
        }
        self.stats.signatures_checked += 1;
        let author = epoch.set.get(id.author).ok_or(Discard::Author)?.identity;
        if !self.is_signed(&author, &candidate.view, root) {
            if let Some(epoch) = self.epochs.get_mut(id.epoch).filter(|_| sender.is_authenticated) {
                epoch.charge_bad_signature(sender.node, now.instant);
            }
            return Err(Discard::Signature);
        }
        if let Some(epoch) = self.epochs.get_mut(id.epoch).filter(|_| sender.is_authenticated) {
            epoch.charge_author(sender.node, id.author, now.instant);
        }
        Ok(())
    }

    /// Whether the author has signed this header and root. Spends no budget.
    pub(super) fn is_signed(&self, author: &IdentityKey, view: &ChunkView<'_>, root: &Hash) -> bool {
        let commitment = view.header.commitment_bytes();
        let (commitment, network) = (commitment.as_slice(), &self.config.network);
        let signed: [&[u8]; 5] = [
            network.as_bytes(),
            author.as_bytes(),
            commitment,
            root,
            view.signature,
        ];
        if self.shared.as_ref().is_some_and(|shared| shared.is_good(&signed)) {
            return true;
        }
        let signature = Signature::from_bytes(*view.signature);
        let verified = author.verify(Purpose::Chunk, network, &[commitment, root], &signature);
        if let Some(shared) = self.shared.as_ref().filter(|_| verified.is_ok()) {
            shared.remember_good(&signed);
        }
        verified.is_ok()
    }
}
