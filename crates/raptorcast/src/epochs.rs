//! The validator sets that messages are judged by, at most two at a time, and what is budgeted by member.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use falconet_crypto::IdentityKey;

use crate::budget::Budget;
use crate::config::EngineConfig;
use crate::geometry::Geometry;
use crate::ids::{Epoch, NodeIndex, Round};
use crate::limits::{MAX_PAYLOAD_LEN, MAX_SYMBOLS};
use crate::participation::Roll;
use crate::schedule::Schedule;
use crate::set::ValidatorSet;
use crate::versions::Capable;

/// Bad proofs that a bad signature counts as.
const BAD_SIGNATURE: u32 = 10;
/// Epochs known at a time: the current one and its neighbour at the boundary.
const MAX_EPOCHS: usize = 2;

/// One epoch's set and the budgets of its members.
#[derive(Debug)]
pub(crate) struct EpochState {
    pub(crate) set: Arc<ValidatorSet>,
    /// Our own number, if we are in the set.
    pub(crate) own: Option<NodeIndex>,
    /// Who leads, if the embedder has said so.
    pub(crate) schedule: Option<Schedule>,
    /// Whether all other members are known to accept chunks of version 1.
    pub(crate) is_capable: bool,
    /// Signature checks, by sender if they fail, by author if they do not.
    verifications: Vec<Budget>,
    /// Proofs that lead nowhere, and signatures that are none, by sender.
    faults: Vec<Budget>,
    /// Relayed symbols by author.
    relays: Vec<Budget>,
    /// Symbols to answer with, by who asks.
    repairs: Vec<Budget>,
    /// Bytes of payload in attempts to decode, by author.
    attempts: Vec<Budget>,
    pub(crate) roll: Roll,
}

impl EpochState {
    fn new(set: Arc<ValidatorSet>, identity: &IdentityKey, config: &EngineConfig) -> Self {
        let own = set.index_of(identity);
        let symbols = own.map_or(1, |own| largest_share(&set, own, config));
        let relays = symbols.saturating_mul(config.relay_messages_per_second);
        let attempts = (MAX_PAYLOAD_LEN as u32).saturating_mul(config.decode_attempts_per_second);
        Self {
            own,
            schedule: None,
            is_capable: false,
            verifications: vec![Budget::new(config.verifications_per_validator); set.len()],
            faults: vec![Budget::new(config.verifications_per_validator); set.len()],
            relays: vec![Budget::new(relays); set.len()],
            repairs: vec![Budget::new(config.repair_symbols_per_peer); set.len()],
            attempts: vec![Budget::new(attempts); set.len()],
            roll: Roll::new(set.len()),
            set,
        }
    }

    /// Whether this member's session may cost us a check of a signature that claims to be this author's. A good one is
    /// charged to the author, who therefore needs room for it, too.
    // docs/spec/broadcast.md#charge
    pub(crate) fn may_verify(&self, sender: NodeIndex, author: NodeIndex, now: Instant) -> bool {
        let has_room = |node: NodeIndex| {
            let budget = self.verifications.get(node.as_usize());
            budget.is_some_and(|budget| !budget.is_spent(now))
        };
        has_room(sender) && has_room(author)
    }

    /// Charges the sender with a check, if [`EpochState::may_verify`].
    pub(crate) fn spend_verification(&mut self, sender: NodeIndex, author: NodeIndex, now: Instant) -> bool {
        self.may_verify(sender, author, now)
            && self
                .verifications
                .get_mut(sender.as_usize())
                .is_some_and(|budget| budget.spend(now))
    }

    /// The signature was good: who relayed it is not charged, but its author.
    pub(crate) fn charge_author(&mut self, sender: NodeIndex, author: NodeIndex, now: Instant) {
        if let Some(budget) = self.verifications.get_mut(sender.as_usize()) {
            budget.refund();
        }
        if let Some(budget) = self.verifications.get_mut(author.as_usize()) {
            budget.spend(now);
        }
    }

    /// Whether this member's session has brought more of what no honest one does than can be forgiven, so that nothing
    /// of it is worth a hash.
    // docs/spec/broadcast.md#charge
    pub(crate) fn is_in_disgrace(&self, sender: NodeIndex, now: Instant) -> bool {
        let budget = self.faults.get(sender.as_usize());
        budget.is_some_and(|budget| budget.is_spent(now))
    }

    /// Charges this member's session with a bad signature, as far as there is room: it cost us as much as many hashes.
    pub(crate) fn charge_bad_signature(&mut self, sender: NodeIndex, now: Instant) {
        for _ in 0..BAD_SIGNATURE {
            self.charge_bad_proof(sender, now);
        }
    }

    /// Charges this member's session with a bad proof.
    pub(crate) fn charge_bad_proof(&mut self, sender: NodeIndex, now: Instant) {
        if let Some(budget) = self.faults.get_mut(sender.as_usize()) {
            budget.spend(now);
        }
    }

    /// Whether this author may make us relay another symbol.
    pub(crate) fn spend_relay(&mut self, author: NodeIndex, now: Instant) -> bool {
        self.relays
            .get_mut(author.as_usize())
            .is_some_and(|budget| budget.spend(now))
    }

    /// Whether this peer may ask for so many symbols more.
    pub(crate) fn spend_repair(&mut self, peer: NodeIndex, symbols: u32, now: Instant) -> bool {
        self.repairs
            .get_mut(peer.as_usize())
            .is_some_and(|budget| budget.spend_many(now, symbols))
    }

    /// Whether this author may make us try once more to decode a payload of so many bytes.
    pub(crate) fn spend_attempt(&mut self, author: NodeIndex, payload_len: u32, now: Instant) -> bool {
        self.attempts
            .get_mut(author.as_usize())
            .is_some_and(|budget| budget.spend_many(now, payload_len))
    }

    /// Whether this member may broadcast in this round.
    pub(crate) fn may_lead(&self, author: NodeIndex, round: Round) -> bool {
        let (Some(schedule), Some(author)) = (&self.schedule, self.set.get(author)) else {
            return true;
        };
        schedule.allows(&author.identity, round)
    }

    /// Whether there is anybody to relay to: a member that is neither the author nor ourselves.
    pub(crate) fn has_audience(&self) -> bool {
        self.set.len() > 2
    }
}

/// Our symbols of a largest message, whoever else writes it.
fn largest_share(set: &ValidatorSet, own: NodeIndex, config: &EngineConfig) -> u32 {
    let author = NodeIndex::new(u16::from(own.number() == 0));
    let geometry = Geometry::for_set(
        MAX_PAYLOAD_LEN,
        config.chunk,
        config.header_len(),
        config.redundancy,
        (set, author),
    );
    let Ok(geometry) = geometry else {
        return u32::from(MAX_SYMBOLS);
    };
    let scaled = config.redundancy.scaled(u32::from(geometry.source_symbols));
    set.shares(author, scaled)
        .find(|(node, _)| *node == own)
        .map_or(1, |(_, count)| count)
}

/// The known epochs.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    by_number: BTreeMap<Epoch, EpochState>,
}

impl Epochs {
    pub(crate) fn get(&self, epoch: Epoch) -> Option<&EpochState> {
        self.by_number.get(&epoch)
    }

    pub(crate) fn latest(&self) -> Option<&EpochState> {
        self.by_number.values().next_back()
    }

    pub(crate) fn get_mut(&mut self, epoch: Epoch) -> Option<&mut EpochState> {
        self.by_number.get_mut(&epoch)
    }

    /// Whether any known set has this member.
    pub(crate) fn has_member(&self, identity: &IdentityKey) -> bool {
        let mut sets = self.by_number.values().map(|epoch| &epoch.set);
        sets.any(|set| set.index_of(identity).is_some())
    }

    /// Which sets accept version 1 as a whole.
    pub(crate) fn update_capable(&mut self, capable: &Capable, own: &IdentityKey) {
        for epoch in self.by_number.values_mut() {
            epoch.is_capable = capable.covers(&epoch.set, own);
        }
    }

    /// Members of a new set that the sets known so far do not have; none before there is another to compare with.
    pub(crate) fn joiners(&self, epoch: Epoch, set: &ValidatorSet, own: &IdentityKey) -> Vec<IdentityKey> {
        let is_first = self.by_number.keys().all(|known| *known == epoch);
        if is_first {
            return Vec::new();
        }
        set.iter()
            .map(|(_, member)| member.identity)
            .filter(|identity| identity != own && !self.has_member(identity))
            .collect()
    }

    /// Learns the set of an epoch; returns the epochs whose messages are void now: the oldest past two, and
    /// this one if it had another set.
    pub(crate) fn insert(
        &mut self,
        epoch: Epoch,
        set: Arc<ValidatorSet>,
        identity: &IdentityKey,
        config: &EngineConfig,
    ) -> Vec<Epoch> {
        if self.get(epoch).is_some_and(|known| known.set == set) {
            return Vec::new();
        }
        let mut void = Vec::new();
        if self
            .by_number
            .insert(epoch, EpochState::new(set, identity, config))
            .is_some()
        {
            void.push(epoch);
        }
        if self.by_number.len() > MAX_EPOCHS {
            void.extend(self.by_number.pop_first().map(|(oldest, _)| oldest));
        }
        void
    }
}
