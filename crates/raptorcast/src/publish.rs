//! The leader's side of the engine: the checks of a broadcast, and what is written down before it.

use bytes::Bytes;
use falconet_crypto::{Now, SignError};
use rand_core::Rng;
use thiserror::Error;

use crate::assignment::Assignment;
use crate::engine::Engine;
use crate::events::BroadcastReport;
use crate::geometry::{Geometry, GeometryError};
use crate::header::{AuthorRef, Header, Mode};
use crate::ids::{Epoch, MessageId, NodeIndex, Round, SymbolIndex};
use crate::outgoing::{Emission, Outgoing};
use crate::versions::{Rollout, Version};

/// Makes durable that a round of an epoch is about to be used.
pub(crate) type RoundLog = Box<dyn FnMut(Epoch, Round) -> std::io::Result<()> + Send>;

/// Why a payload was not broadcast. Nothing was signed or sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BroadcastError {
    /// The payload, the set and the configuration give no message.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// No set was given for this epoch, or it is over.
    #[error("no validator set is known for epoch {0}")]
    UnknownEpoch(Epoch),
    /// We are not a member of the set.
    #[error("this node is not in the validator set of epoch {0}")]
    NotInSet(Epoch),
    /// We published in this round before. Doing it again with another payload would be equivocation.
    #[error("round {1} of epoch {0} was published before")]
    DuplicateRound(Epoch, Round),
    /// We published in a later round before.
    #[error("round {0} is not after round {1}, the last that was published")]
    OldRound(Round, Round),
    /// The schedule says that somebody else leads.
    #[error("another validator leads round {1} of epoch {0}")]
    NotLeader(Epoch, Round),
    /// As many broadcasts as the configuration allows have not left yet.
    #[error("{0} broadcasts have not left yet")]
    Backlog(usize),
    /// The round could not be made durable.
    #[error("the round could not be made durable: {0}")]
    NotDurable(std::io::ErrorKind),
    /// The signer refused, or could not be asked.
    #[error("no signature: {0}")]
    Sign(SignError),
}

impl Engine {
    /// Publishes nothing at or before this round, as if it had been published: for a node that restarts and
    /// knows from its disk what it published last.
    pub fn resume_after(&mut self, epoch: Epoch, round: Round) {
        self.last_published = self.last_published.max(Some((epoch, round)));
    }

    /// Hands it what makes a round durable: called with the round of every broadcast before anything is signed, so that
    /// a node that restarts can be told by [`Engine::resume_after`] and cannot equivocate
    /// (`docs/spec/broadcast.md#durable-round`).
    ///
    /// It runs on the caller's thread, before the payload is encoded: a log that writes rounds ahead of time, some at
    /// once, makes most calls cost nothing.
    pub fn set_round_log(&mut self, log: impl FnMut(Epoch, Round) -> std::io::Result<()> + Send + 'static) {
        self.round_log = Some(Box::new(log));
    }

    /// Encodes, commits to and signs a payload. The chunks come out of [`Engine::poll_transmit`].
    ///
    /// # Errors
    ///
    /// [`BroadcastError`], before any work on the payload.
    pub fn broadcast(
        &mut self,
        now: Now,
        epoch: Epoch,
        round: Round,
        payload: Bytes,
    ) -> Result<BroadcastReport, BroadcastError> {
        self.now = Some(now.instant);
        let (own, geometry) = self.plan_broadcast(epoch, round, payload.len())?;
        let id = MessageId {
            epoch,
            round,
            author: own,
        };
        let header = Header {
            version: self.version_for(epoch),
            mode: Mode::Broadcast,
            epoch,
            round,
            timestamp_ms: now.unix_ms(),
            payload_len: geometry.payload_len,
            symbol_size: geometry.symbol_size,
            symbols: geometry.symbols,
            index: SymbolIndex::new(0),
            author: if self.config.author_by_key {
                AuthorRef::Key(self.identity)
            } else {
                AuthorRef::Index(own)
            },
        };
        let emission = self.emission(id, &geometry)?;
        if let Some(log) = &mut self.round_log {
            log(epoch, round).map_err(|error| BroadcastError::NotDurable(error.kind()))?;
        }
        let signing = (&*self.signer, &self.config.network);
        let outgoing = Outgoing::build(
            id,
            &header,
            &geometry,
            &payload,
            signing,
            &mut self.workshop,
            emission,
        )
        .map_err(BroadcastError::Sign)?;
        self.last_published = Some((epoch, round));
        self.stats.broadcasts += 1;
        let report = self.report(id, &geometry, outgoing.bytes());
        self.outgoing.push_back(outgoing);
        Ok(report)
    }

    // docs/spec/chunk.md#rollout
    fn version_for(&self, epoch: Epoch) -> Version {
        let all_accept = self.epochs.get(epoch).is_some_and(|known| known.is_capable);
        if self.config.rollout == Rollout::PublishNew && all_accept {
            Version::V1
        } else {
            Version::V0
        }
    }

    /// The checks of a broadcast, and its geometry.
    fn plan_broadcast(
        &self,
        epoch: Epoch,
        round: Round,
        payload_len: usize,
    ) -> Result<(NodeIndex, Geometry), BroadcastError> {
        let known = self
            .epochs
            .get(epoch)
            .ok_or(BroadcastError::UnknownEpoch(epoch))?;
        let own = known.own.ok_or(BroadcastError::NotInSet(epoch))?;
        match self.last_published {
            Some(last) if last == (epoch, round) => return Err(BroadcastError::DuplicateRound(epoch, round)),
            Some(last) if (epoch, round) < last => return Err(BroadcastError::OldRound(round, last.1)),
            _ => {}
        }
        if !known.may_lead(own, round) {
            return Err(BroadcastError::NotLeader(epoch, round));
        }
        if self.outgoing.len() >= self.config.outgoing_slots {
            return Err(BroadcastError::Backlog(self.outgoing.len()));
        }
        let (chunk, redundancy) = (self.config.chunk, self.config.redundancy);
        let geometry = Geometry::for_set(
            payload_len,
            chunk,
            self.config.header_len(),
            redundancy,
            (&known.set, own),
        )?;
        Ok((own, geometry))
    }

    fn emission(&mut self, id: MessageId, geometry: &Geometry) -> Result<Emission, BroadcastError> {
        let known = self
            .epochs
            .get(id.epoch)
            .ok_or(BroadcastError::UnknownEpoch(id.epoch))?;
        let (network, redundancy) = (&self.config.network, self.config.redundancy);
        let assignment = Assignment::derive(network, id, &known.set, geometry, redundancy);
        let start = self.emission_starts.next_u32() as usize;
        Ok(Emission::new(
            &assignment,
            geometry,
            self.config.run_length,
            start,
        ))
    }

    fn report(&self, id: MessageId, geometry: &Geometry, chunk_bytes: usize) -> BroadcastReport {
        let symbols = usize::from(geometry.symbols);
        BroadcastReport {
            id,
            payload_len: geometry.payload_len as usize,
            source_symbols: geometry.source_symbols,
            symbols: geometry.symbols,
            symbol_size: geometry.symbol_size,
            chunk_len: geometry.chunk_len(),
            chunk_bytes,
            wire_bytes: chunk_bytes + symbols * self.config.datagram_overhead,
            redundancy: f64::from(geometry.symbols) / f64::from(geometry.source_symbols),
        }
    }
}

#[cfg(test)]
mod tests;
