//! A turn of a dataplane thread: takes in what has come, then sends as far as the pace allows.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use falconet_crypto::Now;
use falconet_raptorcast::Sender;
use falconet_transport::{Content, Lane, PeerId};

use super::World;
use super::network::FRAME;
use crate::egress::LEAD;
use crate::node::{CastInput, Flight};
use crate::stages::Stamp;
use crate::thread::Role;
use crate::time::Time;

/// Datagrams that are taken in before anything is sent.
const BATCH: usize = 64;
/// Bytes of a chunk that stand in for all of it: its kind, and too few to be anything else.
const STAND_IN: usize = 9;

impl World {
    pub(super) fn data_turn(&mut self, number: u16) {
        let index = usize::from(number);
        let now = self.read(number, self.now);
        let received = self.take_in(number, now);
        let mut done = self.charge(number, Role::Data, received);
        let node = &mut self.nodes[index];
        if node.endpoint.poll_timeout().is_some_and(|at| at <= now.instant) {
            node.endpoint.handle_timeout(now);
        }
        self.flush_endpoint(number, done);
        while self.nodes[index].egress.wire_free <= done + LEAD {
            let Some((to, chunk, stamp)) = self.nodes[index].egress.pop(done) else {
                break;
            };
            let cost = self.send_chunk(number, (to, chunk, stamp), now, done);
            done = self.charge(number, Role::Data, cost);
        }
        let arrival = self.nodes[index].data.next_ready();
        let departure = self.nodes[index].egress.next_departure();
        if let Some(next) = arrival.into_iter().chain(departure).min() {
            self.plan(number, Role::Data, next.max(done));
        }
    }

    /// Opens what is ready and hands it on; returns what that costs.
    fn take_in(&mut self, number: u16, now: Now) -> Duration {
        let index = usize::from(number);
        let mut cost = Duration::ZERO;
        let mut chunks = Vec::new();
        for _ in 0..BATCH {
            let Some((_, flight)) = self.nodes[index].data.pop(self.now) else {
                break;
            };
            let received = if flight.modelled {
                flight.datagram.len()
            } else {
                flight.wire_payload()
            };
            cost += self.config.costs.receive.of(received);
            if flight.lane == Lane::Authenticated {
                cost += self
                    .config
                    .costs
                    .open
                    .of(flight.wire_payload().saturating_sub(FRAME));
            }
            chunks.extend(self.open(number, now, flight));
        }
        if chunks.is_empty() {
            return cost;
        }
        let was_idle = self.nodes[index].cast.turn.is_none();
        let handed = self.now + cost;
        for chunk in chunks {
            self.nodes[index].cast.push(handed, chunk);
        }
        let wake = if was_idle {
            self.config.costs.wake.of(0)
        } else {
            Duration::ZERO
        };
        self.plan(number, Role::Cast, handed + wake);
        cost
    }

    fn open(&mut self, number: u16, now: Now, flight: Flight) -> Option<CastInput> {
        let Flight {
            from,
            source,
            lane,
            modelled,
            datagram,
            chunk: whole,
            stamp,
        } = flight;
        let identity = self.common.identities[usize::from(from)];
        let sender = match lane {
            Lane::Authenticated => Sender::Validator(identity),
            Lane::Plain => Sender::Hint(identity),
        };
        if modelled {
            return Some(CastInput::Chunk(sender, datagram, stamp));
        }
        let endpoint = &mut self.nodes[usize::from(number)].endpoint;
        let (content, peer, chunk) = match lane {
            Lane::Authenticated => {
                let mut datagram = datagram
                    .try_into_mut()
                    .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
                let inbound = endpoint.handle_datagram(now, source, lane, &mut datagram).ok()?;
                let plaintext = datagram
                    .freeze()
                    .slice(inbound.start..inbound.start + inbound.len);
                (inbound.content, inbound.peer, plaintext)
            }
            Lane::Plain => {
                self.scratch.clear();
                self.scratch.extend_from_slice(&datagram);
                let inbound = endpoint
                    .handle_datagram(now, source, lane, &mut self.scratch)
                    .ok()?;
                (inbound.content, inbound.peer, datagram)
            }
        };
        self.flush_endpoint(number, self.now);
        let is_known = peer == Some(PeerId(u32::from(from)));
        let sender = if is_known { sender } else { Sender::Unknown };
        let chunk = whole.unwrap_or(chunk);
        (content == Content::Chunk).then_some(CastInput::Chunk(sender, chunk, stamp))
    }

    /// Sends one chunk; returns what that costs.
    fn send_chunk(
        &mut self,
        number: u16,
        (to, chunk, stamp): (u16, Bytes, Stamp),
        now: Now,
        ready: Time,
    ) -> Duration {
        let costs = &self.config.costs;
        let (send, seal) = (costs.send.of(chunk.len()), costs.seal.of(chunk.len()));
        if self.config.model_crypto {
            let both = |lane: fn(crate::LaneUse) -> bool| {
                [number, to]
                    .iter()
                    .all(|node| lane(self.nodes[usize::from(*node)].lanes))
            };
            let (lane, cost) = if both(crate::LaneUse::has_auth) {
                (Lane::Authenticated, send + seal)
            } else {
                (Lane::Plain, send)
            };
            let flight = Flight {
                modelled: true,
                ..self.flight(number, lane, chunk, stamp)
            };
            self.depart(number, to, ready + cost, flight);
            return cost;
        }
        let stand_in = self.stand_in(number, to, &chunk, now);
        let endpoint = &mut self.nodes[usize::from(number)].endpoint;
        let plaintext = stand_in.as_ref().unwrap_or(&chunk);
        // What cannot be sent has no session and no plain lane to fall back to: it is lost, like on a bad path.
        if endpoint.send(now, PeerId(u32::from(to)), plaintext).is_err() {
            return send;
        }
        let mut cost = Duration::ZERO;
        while let Some(transmit) = self.nodes[usize::from(number)].endpoint.poll_transmit() {
            let Some(to) = self.node_at(transmit.to, transmit.lane) else {
                continue;
            };
            cost += match transmit.lane {
                Lane::Authenticated => send + seal,
                Lane::Plain => send,
            };
            // Nothing else is as short: not what was released, no record, no keepalive.
            let is_stand_in = match transmit.lane {
                Lane::Authenticated => transmit.datagram.len() == STAND_IN + FRAME,
                Lane::Plain => transmit.datagram.len() == STAND_IN,
            };
            let flight = Flight {
                chunk: is_stand_in.then(|| chunk.clone()),
                ..self.flight(number, transmit.lane, transmit.datagram, stamp)
            };
            self.depart(number, to, ready + cost, flight);
        }
        cost
    }

    /// What is sealed in place of a chunk. Only in a session that there is: what has to wait for one is whole.
    fn stand_in(&self, number: u16, to: u16, chunk: &Bytes, now: Now) -> Option<Bytes> {
        let sessions = self.nodes[usize::from(number)].endpoint.sessions();
        let is_sealed = self.config.stand_ins && sessions.is_connected(now, PeerId(u32::from(to)));
        (is_sealed && chunk.len() > STAND_IN).then(|| chunk.slice(..STAND_IN))
    }
}
