//! A turn of a raptorcast thread: checks chunks, lets relays and broadcasts leave, then takes one event.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use falconet_crypto::Now;
use falconet_raptorcast::{
    ChunkView, Class, Delivery, Epoch, Event, Header, MessageId, Recipients, Round, Sender,
};

use super::{Report, World};
use crate::egress::Run;
use crate::node::CastInput;
use crate::stages::{Stages, Stamp};
use crate::thread::Role;
use crate::time::Time;

/// Chunks that are checked together.
const BATCH: usize = 512;
/// What the digest calls a delivery and another event.
const DELIVERY: u8 = 2;
const EVENT: u8 = 3;

impl World {
    pub(super) fn cast_turn(&mut self, number: u16) {
        let index = usize::from(number);
        let now = self.read(number, self.now);
        let mut chunks = Vec::new();
        let mut stamps = Vec::new();
        while chunks.len() < BATCH {
            match self.nodes[index].cast.pop(self.now) {
                Some((_, CastInput::Chunk(sender, chunk, stamp))) => {
                    chunks.push((sender, chunk));
                    stamps.push(stamp);
                }
                Some((_, CastInput::Broadcast(epoch, round, payload))) => {
                    self.start_broadcast(number, now, epoch, round, payload);
                }
                None => break,
            }
        }
        let mut done = self.check_chunks(number, now, &chunks, &stamps);
        let engine = &mut self.nodes[index].engine;
        engine.handle_timeout(now);
        self.queue_transmits(number, done);
        let event = self.nodes[index].engine.poll_event();
        let has_more = event.is_some();
        if let Some(event) = event {
            done = self.handle_event(number, event, done);
        }
        self.plan_cast(number, done, has_more);
    }

    fn plan_cast(&mut self, number: u16, done: Time, has_more: bool) {
        let node = &self.nodes[usize::from(number)];
        let inbox = node.cast.next_ready();
        let timer = node.engine.poll_timeout().map(|at| self.clock.time_of(at));
        let soon = has_more.then_some(done);
        if let Some(next) = inbox.into_iter().chain(timer).chain(soon).min() {
            self.plan(
                number,
                Role::Cast,
                next.max(done).max(self.now + Duration::from_nanos(1)),
            );
        }
    }

    fn start_broadcast(&mut self, number: u16, now: Now, epoch: Epoch, round: Round, payload: Bytes) {
        let node = usize::from(number);
        match self.nodes[node].engine.broadcast(now, epoch, round, payload) {
            Ok(report) => {
                self.nodes[node].disk.last_round = Some((epoch, round));
                let bytes = usize::from(report.symbols) * usize::from(report.symbol_size);
                let cost = self.config.costs.encode.of(bytes);
                let encoded = self.charge(number, Role::Cast, cost);
                self.led.insert(report.id, (self.now, encoded));
                self.reports.push_back(Report::Broadcast { node, id: report.id });
            }
            Err(error) => self.reports.push_back(Report::Refused { node, round, error }),
        }
    }

    /// Returns when all are checked.
    fn check_chunks(&mut self, number: u16, now: Now, chunks: &[(Sender, Bytes)], stamps: &[Stamp]) -> Time {
        let node = &mut self.nodes[usize::from(number)];
        let (verify, discard) = (self.config.costs.verify, self.config.costs.discard);
        let mut cost = Duration::ZERO;
        let mut accepted = Vec::new();
        node.engine.handle_chunks(now, chunks, |place, outcome| {
            // What fails at its proof or signature is rare in an honest network, and costs no more.
            cost += match outcome {
                Ok(()) => verify.of(chunks[place].1.len()),
                Err(_) => discard.of(chunks[place].1.len()),
            };
            if outcome.is_ok() {
                accepted.push(place);
            }
        });
        let done = self.charge(number, Role::Cast, cost);
        let own = self.common.identities[usize::from(number)];
        for place in accepted {
            let Some(header) = header(&chunks[place].1) else {
                continue;
            };
            let Some(id) = self.message_id(&header) else {
                continue;
            };
            let node = &mut self.nodes[usize::from(number)];
            let stamp = stamps[place];
            node.last_symbol.insert(id, (stamp, done));
            let from_author = matches!(chunks[place].0, Sender::Validator(identity) | Sender::Hint(identity)
                if self.common.set.index_of(&identity) == Some(id.author));
            if from_author && self.common.set.index_of(&own).is_some() {
                node.remember(id, header.index, stamp);
            }
        }
        done
    }

    /// Moves what the engine wants to send to the way out.
    fn queue_transmits(&mut self, number: u16, ready: Time) {
        let index = usize::from(number);
        while let Some(transmit) = self.nodes[index].engine.poll_transmit() {
            let ready = ready.max(self.cores.free_at(self.nodes[index].cast.core));
            let recipients = self.recipients(number, &transmit.to);
            let node = &mut self.nodes[index];
            let id = transmit.id;
            let chunks = transmit.chunks.into_iter().map(|chunk| {
                let known = header(&chunk).and_then(|header| node.stamps.remove(&(id, header.index)));
                let stamp = known.map(|stamp| Stamp {
                    queued: ready,
                    ..stamp
                });
                (chunk, stamp.unwrap_or_default())
            });
            let run = Run::new(recipients, chunks.collect(), ready);
            match transmit.class {
                Class::Proposal => node.egress.push_proposal(run),
                Class::Relay => node.egress.push_relay(run),
            }
        }
        if let Some(departure) = self.nodes[index].egress.next_departure() {
            self.plan(number, Role::Data, departure);
        }
    }

    fn recipients(&self, own: u16, to: &Recipients) -> Arc<[u16]> {
        let node_of = &self.common.node_of;
        match to {
            Recipients::One(place) => node_of.get(place.as_usize()).into_iter().copied().collect(),
            Recipients::AllBut { author } => {
                let author = node_of.get(author.as_usize()).copied();
                node_of
                    .iter()
                    .copied()
                    .filter(|node| *node != own && Some(*node) != author)
                    .collect()
            }
        }
    }

    /// Returns when the thread is done with it.
    fn handle_event(&mut self, number: u16, event: Event, done: Time) -> Time {
        let node = usize::from(number);
        let Event::Delivered(delivery) = event else {
            self.digest.note(done, EVENT, [u64::from(number), 0, 0]);
            self.reports.push_back(Report::Cast {
                node,
                at: done,
                event: Box::new(event),
            });
            return done;
        };
        let id = MessageId {
            epoch: delivery.epoch,
            round: delivery.round,
            author: delivery.author_index,
        };
        let (decode, check) = self.decoding_costs(&delivery);
        let at = self.charge(number, Role::Cast, decode + check);
        let (started, encoded) = self.led.get(&id).copied().unwrap_or_default();
        let symbol = self.nodes[node].last_symbol.remove(&id);
        let stages = symbol.map_or_else(Stages::default, |(stamp, verified)| {
            // What is left between the last symbol's check and the decoder is other work of the thread.
            let waited = (at - (decode + check)).since(verified);
            let mut stages = Stages::until_verified(&stamp, started, encoded, verified);
            stages.receive += waited;
            Stages {
                decode,
                check,
                ..stages
            }
        });
        self.digest.note(
            at,
            DELIVERY,
            [
                u64::from(number),
                delivery.round.number(),
                u64::from(delivery.symbols_received),
            ],
        );
        self.reports.push_back(Report::Delivered {
            node,
            at,
            delivery: Box::new(delivery),
            stages,
        });
        at
    }

    fn decoding_costs(&self, delivery: &Delivery) -> (Duration, Duration) {
        let costs = &self.config.costs;
        let payload = delivery.payload.len();
        let coded = payload * usize::from(delivery.symbols) / usize::from(delivery.source_symbols).max(1);
        (costs.decode.of(payload), costs.check.of(coded))
    }

    fn message_id(&self, header: &Header) -> Option<MessageId> {
        let author = match header.author {
            falconet_raptorcast::AuthorRef::Index(index) => index,
            falconet_raptorcast::AuthorRef::Key(key) => self.common.set.index_of(&key)?,
        };
        Some(MessageId {
            epoch: header.epoch,
            round: header.round,
            author,
        })
    }
}

fn header(chunk: &[u8]) -> Option<Header> {
    ChunkView::parse(chunk).ok().map(|view| view.header)
}
