//! Between the nodes: what leaves one, and what reaches another.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use falconet_transport::Lane;

use super::{What, World};
use crate::node::{Flight, address};
use crate::stages::Stamp;
use crate::thread::Role;
use crate::time::Time;

/// Bytes that the authenticated lane adds to a datagram.
pub(super) const FRAME: usize = 32;
/// What the digest calls an arrival.
const ARRIVAL: u8 = 1;

impl World {
    /// Puts a datagram on the wire, not before `ready`, and sends it on its way.
    pub(super) fn depart(&mut self, from: u16, to: u16, ready: Time, mut flight: Flight) {
        let bytes = flight.wire_payload();
        let serialization = self.config.link.serialization(bytes);
        let egress = &mut self.nodes[usize::from(from)].egress;
        let left = egress.wire_free.max(ready) + serialization;
        egress.wire_free = left;
        egress.wire_bytes += (bytes + crate::link::WIRE_OVERHEAD) as u64;
        if let Some(counters) = self
            .counters
            .as_mut()
            .filter(|_| flight.lane == Lane::Authenticated)
        {
            counters.note(self.now, (from, to), &flight.datagram);
        }
        if flight.stamp.at_hop == Time::START {
            flight.stamp.left_leader = left;
        } else {
            flight.stamp.left_hop = Some(left);
        }
        let extra = self.extra_loss.get(&(from, to)).copied().unwrap_or_default();
        let fate = self.nodes[usize::from(to)]
            .path
            .fate(&self.config.link, bytes, extra);
        let delay = self.config.topology.delay(usize::from(from), usize::from(to));
        let [first, second] = fate;
        if let Some(jitter) = second {
            let copy = Flight {
                datagram: flight.datagram.clone(),
                chunk: flight.chunk.clone(),
                ..flight
            };
            self.schedule(left + delay + jitter, What::Arrive(to, copy));
        }
        if let Some(jitter) = first {
            self.schedule(left + delay + jitter, What::Arrive(to, flight));
        }
    }

    /// A datagram has reached a node: it queues for the way in, and for the thread that takes it.
    pub(super) fn handle_arrival(&mut self, to: u16, mut flight: Flight) {
        let bytes = flight.wire_payload();
        self.digest.note(
            self.now,
            ARRIVAL,
            [u64::from(to), u64::from(flight.from), bytes as u64],
        );
        let serialization = self.config.link.serialization(bytes);
        let now = self.now;
        let node = &mut self.nodes[usize::from(to)];
        if !node.is_up {
            return;
        }
        // It came in while it arrived; only what comes at the same time has to wait.
        node.ingress_free = now.max(node.ingress_free + serialization);
        let ready = node.ingress_free;
        if flight.stamp.left_hop.is_some() {
            flight.stamp.arrived = ready;
        } else {
            flight.stamp.at_hop = ready;
        }
        let is_handshake = flight.lane == Lane::Authenticated
            && !flight.modelled
            && matches!(flight.datagram.first(), Some(1..=3));
        let (role, was_idle) = if is_handshake {
            let was_idle = node.handshake.turn.is_none();
            node.handshake.push(ready, flight);
            (Role::Handshake, was_idle)
        } else {
            let was_idle = node.data.turn.is_none();
            node.data.push(ready, flight);
            (Role::Data, was_idle)
        };
        let wake = if was_idle {
            self.config.costs.wake.of(0)
        } else {
            Duration::ZERO
        };
        self.plan(to, role, ready + wake);
    }

    /// Sends what the endpoint of a node has to say by itself: handshakes, keepalives, what was buffered. Handshake
    /// messages are charged to the handshake thread, and leave when it is done.
    pub(super) fn flush_endpoint(&mut self, number: u16, ready: Time) {
        while let Some(mark) = self.nodes[usize::from(number)].endpoint.poll_timestamp_mark() {
            self.nodes[usize::from(number)].disk.timestamp_mark = Some(mark);
        }
        while let Some(transmit) = self.nodes[usize::from(number)].endpoint.poll_transmit() {
            let Some(to) = self.node_at(transmit.to, transmit.lane) else {
                continue;
            };
            let cost = match (transmit.lane, transmit.datagram.first()) {
                (Lane::Authenticated, Some(1)) => self.config.costs.dial.of(0),
                (Lane::Authenticated, Some(2)) => self.config.costs.accept.of(0),
                _ => Duration::ZERO,
            };
            let ready = if cost.is_zero() {
                ready
            } else {
                self.charge(number, Role::Handshake, cost).max(ready)
            };
            let flight = self.flight(number, transmit.lane, transmit.datagram, Stamp::default());
            self.depart(number, to, ready, flight);
        }
        self.report_sessions(number);
        if let Some(timeout) = self.nodes[usize::from(number)].endpoint.poll_timeout() {
            let at = self.clock.time_of(timeout);
            // A timer that is overdue and stays so would otherwise turn for ever at one point of time.
            self.plan(number, Role::Data, at.max(self.now + Duration::from_micros(1)));
        }
    }

    fn report_sessions(&mut self, number: u16) {
        let (node, at) = (usize::from(number), self.now);
        while let Some(event) = self.nodes[node].endpoint.poll_event() {
            self.nodes[node].disk.note(&event);
            self.reports.push_back(super::Report::Session { node, at, event });
        }
    }

    pub(super) fn flight(&self, from: u16, lane: Lane, datagram: Bytes, stamp: Stamp) -> Flight {
        let node = usize::from(from);
        Flight {
            from,
            source: address(node, lane, self.nodes[node].address_shift),
            lane,
            modelled: false,
            datagram,
            chunk: None,
            stamp,
        }
    }

    /// The node that has this address now; datagrams to an address that nobody has are lost.
    pub(super) fn node_at(&self, to: SocketAddr, lane: Lane) -> Option<u16> {
        let SocketAddr::V4(v4) = to else { return None };
        let [_, shift, high, low] = v4.ip().octets();
        let number = u16::from(high) << 8 | u16::from(low);
        let node = self.nodes.get(usize::from(number))?;
        let serves = match lane {
            Lane::Authenticated => node.lanes.has_auth(),
            Lane::Plain => node.lanes.has_plain(),
        };
        (serves && node.address_shift == u16::from(shift)).then_some(number)
    }
}

impl Flight {
    /// Bytes of the UDP payload, as they are or would be.
    pub(super) fn wire_payload(&self) -> usize {
        let chunk = self.chunk.as_ref().or(self.modelled.then_some(&self.datagram));
        match (chunk, self.lane) {
            (Some(chunk), Lane::Authenticated) => chunk.len() + FRAME,
            (Some(chunk), Lane::Plain) => chunk.len(),
            (None, _) => self.datagram.len(),
        }
    }
}
