//! What the embedder says of epochs and rounds, and what follows from it (`docs/spec/broadcast.md#epochs`).

use std::sync::Arc;

use crate::clock::ClockSkew;
use crate::engine::Engine;
use crate::events::{Event, Joiners};
use crate::ids::{Epoch, Round};
use crate::participation::Participation;
use crate::schedule::{LeaderSchedule, Schedule};
use crate::set::ValidatorSet;

impl Engine {
    /// Gives it the validator set of an epoch, as early as it is known. The two highest epochs are kept, and messages
    /// of each are judged by its own set; those of an epoch that goes are given up.
    ///
    /// Members that the other epoch does not have come out as [`Event::Joiners`], to be dialled before the boundary.
    // docs/spec/broadcast.md#epochs
    pub fn set_epoch(&mut self, epoch: Epoch, set: Arc<ValidatorSet>) {
        let joiners = self.epochs.joiners(epoch, &set, &self.identity);
        for void in self.epochs.insert(epoch, set, &self.identity, &self.config) {
            if let Some(now) = self.now {
                let expired = self.cache.drop_epoch(now, void);
                self.expire(expired);
            }
        }
        let epochs = &self.epochs;
        self.clocks.retain(|author| epochs.has_member(author));
        self.capable.retain(|member| epochs.has_member(member));
        self.epochs.update_capable(&self.capable, &self.identity);
        if !joiners.is_empty() && self.epochs.get(epoch).is_some() {
            self.push_event(Event::Joiners(Joiners {
                epoch,
                members: joiners,
            }));
        }
    }

    /// Says who leads which round of an epoch: messages of others are refused from now on, and our own in rounds that
    /// are not ours. False if the epoch is not known; a new set for it comes without a schedule.
    // docs/spec/broadcast.md#schedule
    pub fn set_schedule(&mut self, epoch: Epoch, schedule: Arc<dyn LeaderSchedule>) -> bool {
        let known = self.epochs.get_mut(epoch);
        known
            .map(|known| known.schedule = Some(Schedule(schedule)))
            .is_some()
    }

    /// Tells it the local round: messages further from it than the round window are refused, incomplete ones
    /// that have fallen behind the window are given up.
    pub fn set_round(&mut self, round: Round) {
        self.round = Some(round);
        let oldest = round.number().saturating_sub(self.config.round_window);
        if let Some(oldest) = Round::new(oldest) {
            self.give_up_before(oldest);
        }
    }

    /// Drops what rounds before this one have left: incomplete messages are given up, our own broadcasts that have not
    /// left do not leave, and chunks that still come are refused.
    // docs/spec/broadcast.md#stale
    pub fn drop_rounds_before(&mut self, oldest: Round) {
        self.oldest = self.oldest.max(Some(oldest));
        self.outgoing.retain(|outgoing| outgoing.round() >= oldest);
        self.relays.drop_rounds_before(oldest);
        self.give_up_before(oldest);
    }

    fn give_up_before(&mut self, oldest: Round) {
        if let Some(now) = self.now {
            let expired = self.cache.drop_rounds_before(now, oldest);
            self.expire(expired);
        }
    }

    /// How far the clocks of others are from ours, as far as their messages tell.
    pub fn clock_offsets(&self) -> impl Iterator<Item = ClockSkew> {
        self.clocks.iter()
    }

    /// What every member of an epoch's set has done as a first hop, in the order of their numbers; `None` if the epoch
    /// is not known, or not any more: read it before the next but one epoch is set.
    pub fn participation(&self, epoch: Epoch) -> Option<&[Participation]> {
        self.epochs.get(epoch).map(|epoch| epoch.roll.members())
    }
}

#[cfg(test)]
mod tests;
