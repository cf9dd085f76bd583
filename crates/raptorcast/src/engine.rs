//! The engine: no socket, thread, clock or entropy of its own.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use falconet_crypto::{IdentityKey, Now, Signer};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::budget::Budget;
use crate::cache::Cache;
use crate::clock::Clocks;
use crate::config::{ConfigError, EngineConfig};
use crate::epochs::Epochs;
use crate::events::{Event, Expiry, Taint, Transmit};
use crate::geometry::Geometry;
use crate::ids::{Epoch, MessageId, NodeIndex, Round};
use crate::outgoing::Outgoing;
use crate::publish::RoundLog;
use crate::relay::RelayQueue;
use crate::shared::SharedWork;
use crate::stats::Stats;
use crate::trace::Outcome;
use crate::versions::Capable;
use crate::workshop::Workshop;

/// Events that wait to be polled; past them the oldest is dropped and counted.
const MAX_EVENTS: usize = 1024;

/// Broadcasts payloads to a validator set and receives those of others. See the
/// [crate documentation](crate) for how to drive it.
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) epochs: Epochs,
    pub(crate) round: Option<Round>,
    /// Rounds before it are over, says the embedder.
    pub(crate) oldest: Option<Round>,
    pub(crate) clocks: Clocks,
    pub(crate) capable: Capable,
    pub(crate) cache: Cache,
    pub(crate) relays: RelayQueue,
    pub(crate) plain_verifications: Budget,
    /// Symbols that all peers together may be answered with.
    pub(crate) repairs: Budget,
    /// Messages to look at again, by when.
    pub(crate) repairs_due: BTreeSet<(Instant, MessageId)>,
    /// Messages with enough symbols for the next attempt to decode.
    pub(crate) decodable: VecDeque<MessageId>,
    pub(crate) stats: Stats,
    /// Messages whose author has no attempt left until time has passed.
    postponed: VecDeque<MessageId>,
    pub(crate) signer: Arc<dyn Signer>,
    pub(crate) identity: IdentityKey,
    pub(crate) last_published: Option<(Epoch, Round)>,
    pub(crate) round_log: Option<RoundLog>,
    pub(crate) outgoing: VecDeque<Outgoing>,
    pub(crate) workshop: Workshop,
    pub(crate) shared: Option<SharedWork>,
    events: VecDeque<Event>,
    /// The last reading we were driven with; `None` before the first.
    pub(crate) now: Option<Instant>,
    /// Draws which first hop a broadcast starts with.
    pub(crate) emission_starts: ChaCha20Rng,
}

impl Engine {
    /// An engine that knows no validators yet. `seed` decides all that is random in it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the options do not fit together.
    pub fn new(config: EngineConfig, signer: Arc<dyn Signer>, seed: [u8; 32]) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            epochs: Epochs::default(),
            round: None,
            oldest: None,
            capable: Capable::default(),
            clocks: Clocks::new(config.timestamp_window),
            cache: Cache::new(&config),
            relays: RelayQueue::new(config.relay_queue, config.relay_run, config.relay_quantum),
            plain_verifications: Budget::smooth(config.verifications_plain),
            repairs: Budget::new(config.repair_symbols_per_second),
            repairs_due: BTreeSet::new(),
            decodable: VecDeque::new(),
            postponed: VecDeque::new(),
            stats: Stats::default(),
            identity: signer.identity(),
            signer,
            last_published: None,
            round_log: None,
            outgoing: VecDeque::new(),
            workshop: Workshop::new(config.plan_slots, config.outgoing_slots)
                .map_err(|_| ConfigError::Zero("outgoing_slots"))?,
            shared: None,
            events: VecDeque::new(),
            now: None,
            emission_starts: ChaCha20Rng::from_seed(seed),
            config,
        })
    }

    /// The options it was made with.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Takes from the system what messages of this many bytes need, and plans their encoding, before the first one
    /// comes: to be called after [`Engine::set_epoch`], off the hot path. Costs milliseconds, and about 5 bytes of
    /// memory a byte of payload. Without it the first message pays.
    pub fn warm_up(&mut self, payload_len: usize) {
        let Some(known) = self.epochs.latest() else { return };
        let author = known.own.unwrap_or(NodeIndex::new(0));
        let (chunk, redundancy) = (self.config.chunk, self.config.redundancy);
        let header_len = self.config.header_len();
        if let Ok(geometry) =
            Geometry::for_set(payload_len, chunk, header_len, redundancy, (&known.set, author))
        {
            self.workshop.warm_up(&geometry);
        }
    }

    /// Has it share what it computes with other engines of this process; see [`SharedWork`].
    pub fn share_work(&mut self, shared: SharedWork) {
        self.shared = Some(shared);
    }

    /// The next run of chunks to send: relayed ones first, for they are few and others wait for them.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        if let Some(transmit) = self.poll_relay() {
            return Some(transmit);
        }
        loop {
            match self.outgoing.front_mut()?.next_transmit() {
                Some(transmit) => return Some(transmit),
                None => self.outgoing.pop_front(),
            };
        }
    }

    /// The next run to relay, leaving our own broadcasts where they are.
    pub(crate) fn poll_relay(&mut self) -> Option<Transmit> {
        self.relays.poll_transmit()
    }

    /// The next event. Messages that have enough symbols are decoded here, one a call, so a caller that polls
    /// transmits first sends what it relays before it decodes.
    pub fn poll_event(&mut self) -> Option<Event> {
        while self.events.is_empty() {
            let id = self.decodable.pop_front()?;
            self.decode(id);
        }
        self.events.pop_front()
    }

    /// When to call [`Engine::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let retry = self.now.filter(|_| !self.postponed.is_empty());
        let retry = retry.map(|now| now + self.config.decode_retry());
        let repair = self.repairs_due.first().map(|(due, _)| *due);
        [
            self.relays.poll_timeout(),
            self.cache.poll_timeout(),
            retry,
            repair,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Lets time pass: relayed symbols leave, incomplete messages are given up, finished ones forgotten.
    pub fn handle_timeout(&mut self, now: Now) {
        self.now = Some(now.instant);
        self.relays.handle_timeout(now.instant);
        self.decodable.append(&mut self.postponed);
        let expired = self.cache.handle_timeout(now.instant);
        self.expire(expired);
        self.ask_for_repairs(now.instant);
    }

    /// What it has done so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Incomplete messages, the bytes counted for them, and all messages that are remembered.
    pub fn occupancy(&self) -> Occupancy {
        let (incomplete, bytes) = self.cache.receiving();
        Occupancy {
            incomplete,
            bytes,
            remembered: self.cache.len() - incomplete,
            kept_bytes: self.cache.kept_bytes(),
        }
    }

    fn decode(&mut self, id: MessageId) {
        let Some(now) = self.now else { return };
        let Some(message) = self.cache.get_mut(id).filter(|message| message.is_due()) else {
            return;
        };
        // docs/spec/broadcast.md#decode-budget
        let Some(epoch) = self.epochs.get_mut(id.epoch) else {
            return;
        };
        if !epoch.spend_attempt(id.author, message.geometry.payload_len, now) {
            self.stats.decodes_postponed += 1;
            return self.postponed.push_back(id);
        }
        self.stats.decode_attempts += 1;
        let mut trace = message.trace(Outcome::Delivered, now);
        let Some(outcome) = message.decode(&mut self.workshop, &mut epoch.roll, now) else {
            return;
        };
        let event = match outcome {
            Ok(delivery) => {
                self.stats.delivered += 1;
                Event::Delivered(delivery)
            }
            Err(tainted) => {
                self.stats.tainted += 1;
                trace
                    .iter_mut()
                    .for_each(|trace| trace.outcome = Outcome::Tainted);
                Event::Tainted(Taint {
                    author: message.author,
                    id,
                    evidence: message.commitment.evidence(),
                    first_symbol_at: message.first_symbol_at,
                    found_at: now,
                    sources: tainted.sources,
                })
            }
        };
        self.cache.finish(now, id);
        self.push_event(event);
        trace
            .into_iter()
            .for_each(|trace| self.push_event(Event::Trace(Box::new(trace))));
    }

    pub(crate) fn is_waiting_to_decode(&self, id: MessageId) -> bool {
        self.decodable.contains(&id) || self.postponed.contains(&id)
    }

    pub(crate) fn expire(&mut self, expired: Vec<Expiry>) {
        self.stats.expired += expired.len() as u64;
        for expiry in expired {
            self.push_event(Event::Expired(expiry));
        }
        for trace in self.cache.take_traces() {
            self.push_event(Event::Trace(Box::new(trace)));
        }
    }

    pub(crate) fn push_event(&mut self, event: Event) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
            self.stats.events_dropped += 1;
        }
        self.events.push_back(event);
    }
}

/// How full an engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Incomplete messages.
    pub incomplete: usize,
    /// Bytes counted for them in advance.
    pub bytes: usize,
    /// Finished messages that are remembered.
    pub remembered: usize,
    /// Bytes of delivered messages that are kept to answer repair requests.
    pub kept_bytes: usize,
}

#[cfg(test)]
mod tests;
