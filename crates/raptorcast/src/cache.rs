//! All messages on their way in, within limits: incomplete ones by slots and bytes, everything by entries, and
//! both by author. What gives way first is `docs/spec/chunk.md#cache`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::config::{EngineConfig, message_memory};
use crate::events::{Expiry, ExpiryReason};
use crate::ids::{Epoch, MessageId, NodeIndex, Round};
use crate::message::{Message, State};
use crate::repair::Kept;
use crate::trace::{MessageTrace, Outcome};

/// Delivered messages that are kept for repair requests take at most this part of the memory, and only what incomplete
/// ones leave.
const KEPT_PART: usize = 8;

/// The limits of a [`Cache`]; see the options of the same names.
#[derive(Clone, Copy, Debug)]
struct Limits {
    message_slots: usize,
    message_bytes: usize,
    author_slots: usize,
    remembered_slots: usize,
    remembered_per_author: usize,
    message_timeout: Duration,
    memory_of_finished: Duration,
}

/// Messages by name, and when each is due to be given up or forgotten.
#[derive(Debug)]
pub(crate) struct Cache {
    limits: Limits,
    messages: BTreeMap<MessageId, Message>,
    /// Ordered by time; of incomplete messages the moment to give up, of finished ones the moment to forget.
    deadlines: BTreeSet<(Instant, MessageId)>,
    due_at: BTreeMap<MessageId, Instant>,
    receiving: usize,
    receiving_bytes: usize,
    /// Delivered messages that are kept to answer repair requests, oldest first, and their bytes.
    kept: VecDeque<(MessageId, usize)>,
    kept_bytes: usize,
    /// By author, the greatest timestamp in milliseconds of a message that had to be forgotten before its time: nothing
    /// that is not above it can be told from a replay.
    forgotten_ms: BTreeMap<(Epoch, NodeIndex), u64>,
    /// Of messages that were given up, until the engine takes them.
    traces: Vec<MessageTrace>,
}

impl Cache {
    pub(crate) fn new(config: &EngineConfig) -> Self {
        let limits = Limits {
            message_slots: config.message_slots,
            message_bytes: config.message_bytes,
            author_slots: config.author_slots,
            remembered_slots: config.remembered_slots,
            remembered_per_author: config.remembered_per_author(),
            message_timeout: config.message_timeout,
            memory_of_finished: config.memory_of_finished(),
        };
        Self {
            limits,
            messages: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            due_at: BTreeMap::new(),
            receiving: 0,
            receiving_bytes: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            forgotten_ms: BTreeMap::new(),
            traces: Vec::new(),
        }
    }

    pub(crate) fn get_mut(&mut self, id: MessageId) -> Option<&mut Message> {
        self.messages.get_mut(&id)
    }

    pub(crate) fn get(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(&id)
    }

    /// Incomplete messages, and the bytes counted for them.
    pub(crate) const fn receiving(&self) -> (usize, usize) {
        (self.receiving, self.receiving_bytes)
    }

    /// Whether a message that is not known may be one that had to be forgotten.
    // docs/spec/chunk.md#forgotten
    pub(crate) fn is_forgotten(&self, id: MessageId, timestamp_ms: u64) -> bool {
        let greatest = self.forgotten_ms.get(&(id.epoch, id.author));
        greatest.is_some_and(|greatest| timestamp_ms <= *greatest)
    }

    /// The traces of messages that were given up since the last call.
    pub(crate) fn take_traces(&mut self) -> Vec<MessageTrace> {
        std::mem::take(&mut self.traces)
    }

    /// Bytes of delivered messages that are kept.
    pub(crate) const fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// All messages, finished ones included.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Adds a message that is not there, and returns what had to give way.
    pub(crate) fn insert(&mut self, now: Instant, message: Message) -> Vec<Expiry> {
        let is_receiving = matches!(message.state, State::Receiving(_));
        let evicted = if is_receiving {
            self.make_room(now, &message)
        } else {
            Vec::new()
        };
        self.limit_remembered(message.id);
        let id = message.id;
        if is_receiving {
            self.receiving += 1;
            self.receiving_bytes += message_memory(&message.geometry);
        }
        self.messages.insert(id, message);
        let span = if is_receiving {
            self.limits.message_timeout
        } else {
            self.limits.memory_of_finished
        };
        self.schedule(id, now + span);
        evicted
    }

    /// To be called when a message has left the state of receiving by itself.
    pub(crate) fn finish(&mut self, now: Instant, id: MessageId) {
        if let Some(message) = self.messages.get(&id) {
            self.receiving -= 1;
            self.receiving_bytes -= message_memory(&message.geometry);
            if let State::Delivered { kept: Some(_), .. } = &message.state {
                let bytes = Kept::memory(&message.geometry);
                self.kept.push_back((id, bytes));
                self.kept_bytes += bytes;
                self.limit_kept(self.limits.message_bytes / KEPT_PART);
            }
            self.schedule(id, now + self.limits.memory_of_finished);
        }
    }

    /// Gives up and forgets what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<Expiry> {
        let mut expired = Vec::new();
        while let Some(&(due, id)) = self.deadlines.first() {
            if due > now {
                break;
            }
            match self.abandon(now, id, ExpiryReason::TimedOut) {
                Some(expiry) => expired.push(expiry),
                None => self.forget(id),
            }
        }
        expired
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Gives up incomplete messages of rounds before `oldest`.
    pub(crate) fn drop_rounds_before(&mut self, now: Instant, oldest: Round) -> Vec<Expiry> {
        self.abandon_where(now, ExpiryReason::StaleRound, |id| id.round < oldest)
    }

    /// Gives up incomplete messages of an epoch and forgets the finished ones.
    pub(crate) fn drop_epoch(&mut self, now: Instant, epoch: Epoch) -> Vec<Expiry> {
        let expired = self.abandon_where(now, ExpiryReason::StaleEpoch, |id| id.epoch == epoch);
        let gone: Vec<_> = self
            .messages
            .keys()
            .filter(|id| id.epoch == epoch)
            .copied()
            .collect();
        gone.into_iter().for_each(|id| self.forget(id));
        self.forgotten_ms.retain(|(known, _), _| *known != epoch);
        expired
    }

    fn abandon_where(
        &mut self,
        now: Instant,
        reason: ExpiryReason,
        matches: impl Fn(MessageId) -> bool,
    ) -> Vec<Expiry> {
        let ids: Vec<_> = self
            .receiving_ids()
            .map(|(_, id)| id)
            .filter(|id| matches(*id))
            .collect();
        ids.into_iter()
            .filter_map(|id| self.abandon(now, id, reason))
            .collect()
    }

    /// Stops answering for the messages delivered first until the rest takes no more than this.
    // docs/spec/chunk.md#cache
    fn limit_kept(&mut self, bytes: usize) {
        while self.kept_bytes > bytes {
            let Some((id, freed)) = self.kept.pop_front() else {
                return;
            };
            self.kept_bytes -= freed;
            if let Some(Message {
                state: State::Delivered { kept, .. },
                ..
            }) = self.messages.get_mut(&id)
            {
                *kept = None;
            }
        }
    }

    /// Makes room for an incomplete message: first its author's own oldest goes, then the oldest of all.
    fn make_room(&mut self, now: Instant, message: &Message) -> Vec<Expiry> {
        let mut evicted = Vec::new();
        let author = message.id.author;
        let needed = message_memory(&message.geometry);
        let taken = self.receiving_bytes + needed;
        self.limit_kept(self.limits.message_bytes.saturating_sub(taken));
        loop {
            let of_author = self.receiving_ids().filter(|(_, id)| id.author == author).count();
            let is_full = self.receiving >= self.limits.message_slots
                || self.receiving_bytes + needed > self.limits.message_bytes;
            let victim = if of_author >= self.limits.author_slots {
                self.receiving_ids().filter(|(_, id)| id.author == author).min()
            } else if is_full {
                self.receiving_ids().min()
            } else {
                return evicted;
            };
            let Some((_, id)) = victim else { return evicted };
            evicted.extend(self.abandon(now, id, ExpiryReason::Evicted));
        }
    }

    /// Keeps the number of entries within its limits: the finished message of this author that was finished
    /// first is forgotten, or that of anybody. Incomplete messages have slots of their own.
    fn limit_remembered(&mut self, id: MessageId) {
        let per_author = self
            .finished_ids()
            .filter(|other| other.author == id.author)
            .count();
        if per_author >= self.limits.remembered_per_author {
            let oldest = self.finished_ids().find(|other| other.author == id.author);
            oldest.into_iter().for_each(|id| self.forget_early(id));
        } else if self.messages.len() - self.receiving >= self.limits.remembered_slots {
            let oldest = self.finished_ids().next();
            oldest.into_iter().for_each(|id| self.forget_early(id));
        }
    }

    /// Incomplete messages with the moment of their first symbol.
    fn receiving_ids(&self) -> impl Iterator<Item = (Instant, MessageId)> {
        let incomplete = |message: &&Message| matches!(message.state, State::Receiving(_));
        self.messages
            .values()
            .filter(incomplete)
            .map(|message| (message.first_symbol_at, message.id))
    }

    /// Finished messages, the first finished first.
    fn finished_ids(&self) -> impl Iterator<Item = MessageId> {
        self.deadlines.iter().map(|(_, id)| *id).filter(|id| {
            self.messages
                .get(id)
                .is_some_and(|message| !matches!(message.state, State::Receiving(_)))
        })
    }

    /// Ends an incomplete message; `None` if it is not one.
    fn abandon(&mut self, now: Instant, id: MessageId, reason: ExpiryReason) -> Option<Expiry> {
        let message = self.messages.get_mut(&id)?;
        let State::Receiving(receiving) = &message.state else {
            return None;
        };
        let expiry = Expiry {
            author: message.author,
            id,
            reason,
            first_symbol_at: message.first_symbol_at,
            given_up_at: now,
            symbols_received: receiving.held(),
            sources: receiving.sources(),
            source_symbols: message.geometry.source_symbols,
        };
        self.traces.extend(message.trace(Outcome::GivenUp, now));
        message.state = State::Abandoned;
        self.finish(now, id);
        Some(expiry)
    }

    /// Forgets a message that could still come again.
    fn forget_early(&mut self, id: MessageId) {
        if let Some(message) = self.messages.get(&id) {
            let greatest = self.forgotten_ms.entry((id.epoch, id.author)).or_default();
            *greatest = message.timestamp_ms.max(*greatest);
        }
        self.forget(id);
    }

    fn forget(&mut self, id: MessageId) {
        self.messages.remove(&id);
        let kept_bytes = &mut self.kept_bytes;
        self.kept.retain(|(kept, bytes)| {
            let stays = *kept != id;
            *kept_bytes -= if stays { 0 } else { *bytes };
            stays
        });
        if let Some(due) = self.due_at.remove(&id) {
            self.deadlines.remove(&(due, id));
        }
    }

    fn schedule(&mut self, id: MessageId, due: Instant) {
        if let Some(before) = self.due_at.insert(id, due) {
            self.deadlines.remove(&(before, id));
        }
        self.deadlines.insert((due, id));
    }

    /// Incomplete messages of one author.
    #[cfg(test)]
    pub(crate) fn receiving_of(&self, author: crate::ids::NodeIndex) -> usize {
        self.receiving_ids().filter(|(_, id)| id.author == author).count()
    }
}
