//! From scheduled datagrams to sealed groups.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use falconet_crypto::Now;
use falconet_transport::{Lane, LaneDecision, PeerId, Sessions};

use crate::drop_reason::DropReason;
use crate::egress::Egress;
use crate::outgoing::{Class, Cost, Outgoing, Recipients};
use crate::pacer::{Pacer, wire_bytes};
use crate::parked::{Parked, Ticket};
use crate::payloads::Run;
use crate::peer_pacers::PeerPacers;
use crate::report::{drop_datagrams, report};
use crate::scheduler::{ClassLimits, GroupLimits, Scheduler};
use crate::stats::Counters;
use crate::unit::{MAX_UNIT_BYTES, Unit};

/// Bytes of the frame in front of a plaintext.
const HEADROOM: usize = 16;
/// Bytes of the tag behind it.
const TAIL: usize = 16;
/// UDP and IPv4 headers, the least a datagram has in front of it.
const LEAST_HEADERS: usize = 28;
/// The least a peer may send in its turn, in bytes: eleven datagrams of 1,472, since eight already get most
/// of what grouping gives.
const LEAST_QUANTUM: usize = 16 * 1024;

/// Schedules, paces, seals.
pub(crate) struct Emission {
    scheduler: Scheduler,
    pacer: Pacer,
    peer_pacers: PeerPacers,
    parked: Parked,
    limits: GroupLimits,
    group: Vec<Run>,
    expired: Vec<Run>,
    /// Peers found to send on a blocked lane; one group of each waits there.
    held: HashMap<PeerId, Lane>,
}

/// What a step of the dataplane thread works with.
pub(crate) struct Turn<'a> {
    pub(crate) now: Now,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) egress: &'a mut Egress,
    pub(crate) counters: &'a mut Counters,
}

/// Whose the present group is.
#[derive(Clone, Copy)]
struct Destination {
    class: Class,
    peer: PeerId,
}

/// What came of trying to send one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emitted {
    /// A group of so many bytes of plaintext left, or was buffered or refused.
    Group(usize),
    /// The rate allows the next one then.
    Wait(Instant),
    /// Nothing is scheduled, or the sockets are blocked.
    Nothing,
}

impl Emission {
    pub(crate) fn new(
        classes: [ClassLimits; Class::COUNT],
        pacer: Pacer,
        peer_pacers: PeerPacers,
        mtu: usize,
    ) -> Emission {
        let paced = [pacer.group_limit(), peer_pacers.group_limit()];
        let limits = GroupLimits {
            bytes: paced.into_iter().flatten().min().unwrap_or(MAX_UNIT_BYTES),
            segment: mtu.saturating_sub(LEAST_HEADERS),
            overhead: HEADROOM + TAIL,
        };
        // Whole groups, so that a turn does not end in a short one.
        let group = limits.bytes.clamp(1, MAX_UNIT_BYTES);
        let quantum = group * LEAST_QUANTUM.div_ceil(group);
        Emission {
            scheduler: Scheduler::new(classes, quantum),
            pacer,
            peer_pacers,
            parked: Parked::default(),
            limits,
            group: Vec::new(),
            expired: Vec::new(),
            held: HashMap::new(),
        }
    }

    /// Whether the scheduler takes this much more of `class`.
    pub(crate) fn has_room(&self, class: Class, cost: Cost) -> bool {
        self.scheduler.has_room(class, cost)
    }

    pub(crate) fn depth(&self, class: Class) -> Cost {
        self.scheduler.depth(class)
    }

    /// Schedules every datagram for every recipient.
    pub(crate) fn push(&mut self, now: Instant, outgoing: Outgoing, counters: &mut Counters) {
        let Outgoing {
            to,
            class,
            mut datagrams,
            completion,
        } = outgoing;
        let (peers, told) = (to.as_slice(), completion.as_ref());
        let mut drop = |datagrams: usize, reason| {
            drop_datagrams(now, told, datagrams * peers.len(), reason, counters);
        };
        let offered = datagrams.len();
        datagrams.retain(|datagram| !datagram.is_empty());
        let filled = datagrams.len();
        datagrams.retain(|datagram| datagram.len() + HEADROOM + TAIL <= MAX_UNIT_BYTES);
        drop(offered - filled, DropReason::Empty);
        drop(filled - datagrams.len(), DropReason::TooLong);
        let refused = self
            .scheduler
            .push(now, class, peers, datagrams, completion.clone());
        drop(refused, DropReason::QueueFull);
    }

    /// Schedules what `Sessions` has released.
    pub(crate) fn handle_released(
        &mut self,
        now: Instant,
        tag: u32,
        plaintext: Bytes,
        counters: &mut Counters,
    ) {
        if let Some(ticket) = self.parked.take(tag) {
            let outgoing = Outgoing {
                to: Recipients::One(ticket.peer),
                class: ticket.class,
                datagrams: vec![plaintext],
                completion: ticket.completion,
            };
            self.push(now, outgoing, counters);
        }
    }

    /// A buffered datagram was given up; its class.
    pub(crate) fn handle_send_failed(
        &mut self,
        now: Instant,
        tag: u32,
        counters: &mut Counters,
    ) -> Option<Class> {
        let ticket = self.parked.take(tag)?;
        let reason = DropReason::HandshakeTimeout;
        drop_datagrams(now, ticket.completion.as_ref(), 1, reason, counters);
        Some(ticket.class)
    }

    /// Gives up everything that is for `peer`.
    pub(crate) fn remove_peer(&mut self, now: Instant, peer: PeerId, counters: &mut Counters) {
        let mut removed = Vec::new();
        self.scheduler.remove_peer(peer, &mut removed);
        self.peer_pacers.remove_peer(peer);
        let parked = self.parked.take_all(|ticket| ticket.peer == peer);
        self.give_up(now, removed, parked, DropReason::PeerRemoved, counters);
    }

    /// Gives up everything.
    pub(crate) fn shut_down(&mut self, now: Instant, counters: &mut Counters) {
        let mut removed = Vec::new();
        self.scheduler.drain(&mut removed);
        let parked = self.parked.take_all(|_| true);
        self.give_up(now, removed, parked, DropReason::Shutdown, counters);
    }

    fn give_up(
        &mut self,
        now: Instant,
        mut removed: Vec<Run>,
        parked: Vec<Ticket>,
        reason: DropReason,
        counters: &mut Counters,
    ) {
        drop_runs(&mut self.scheduler, &mut removed, now, reason, counters);
        for ticket in parked {
            drop_datagrams(now, ticket.completion.as_ref(), 1, reason, counters);
        }
    }

    /// Charges the rate for wire bytes of a session's own datagram or of handshakes, which do not wait.
    pub(crate) fn charge(&mut self, now: Instant, wire: usize) {
        self.pacer.charge(now, wire);
    }

    /// Sends the next group if there is one and the rate and the sockets allow it.
    pub(crate) fn poll_group(&mut self, turn: &mut Turn<'_>) -> Emitted {
        let now = turn.now.instant;
        if self.scheduler.is_empty() {
            self.pacer.note_idle();
            return Emitted::Nothing;
        }
        if turn.egress.is_held() {
            return Emitted::Nothing;
        }
        if !turn.egress.is_any_blocked() {
            self.held.clear();
        }
        if let Some(at) = self.pacer.poll_wait(now) {
            return Emitted::Wait(at);
        }
        let (group, expired) = (&mut self.group, &mut self.expired);
        let (held, egress) = (&self.held, &turn.egress);
        let pacers = &mut self.peer_pacers;
        let holds = |peer: PeerId| {
            held.get(&peer).is_some_and(|lane| egress.is_blocked(*lane)) || pacers.holds(now, peer)
        };
        let next = self.scheduler.poll_group(now, self.limits, holds, group, expired);
        let reason = DropReason::Expired;
        drop_runs(&mut self.scheduler, &mut self.expired, now, reason, turn.counters);
        let earliest = self.peer_pacers.take_earliest();
        let Some((class, peer)) = next else {
            return earliest.map_or(Emitted::Nothing, Emitted::Wait);
        };
        if let Some(first) = self.group.first() {
            turn.counters
                .note_age(class, now.saturating_duration_since(first.queued));
        }
        let (datagrams, bytes) = self.datagrams().fold((0, 0), |(count, bytes), datagram| {
            (count + 1, bytes + datagram.len())
        });
        let to = Destination { class, peer };
        match turn.sessions.lane(turn.now, peer, datagrams) {
            LaneDecision::Authenticated => self.seal_group(to, turn),
            LaneDecision::Plain(address) => self.copy_group(to, address, turn),
            LaneDecision::Buffer => self.buffer_group(to, turn),
            LaneDecision::Refuse(_) => self.drop_group(DropReason::SendRefused, turn),
        }
        Emitted::Group(bytes)
    }

    /// The datagrams of the present group.
    fn datagrams(&self) -> impl Iterator<Item = &Bytes> {
        self.group.iter().flat_map(|run| self.scheduler.datagrams(run))
    }

    /// The one copy of a datagram: into the group's buffer, where it is sealed. What cannot be sealed ends the
    /// group, since the rest of it has the same session.
    fn seal_group(&mut self, to: Destination, turn: &mut Turn<'_>) {
        let mut bytes = turn.egress.buffer();
        let (mut address, mut segment, mut sealed) = (None, 0, 0);
        for datagram in self.datagrams() {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; HEADROOM]);
            bytes.extend_from_slice(datagram);
            bytes.extend_from_slice(&[0; TAIL]);
            let since = (sealed == 0).then(Instant::now);
            let Ok(found) = turn.sessions.seal(turn.now, to.peer, &mut bytes[start..]) else {
                bytes.truncate(start);
                break;
            };
            if let Some(since) = since {
                turn.counters.timings.sealing.note(since.elapsed());
            }
            address = Some(found);
            segment = segment.max(bytes.len() - start);
            sealed += 1;
        }
        let refused = self.datagrams().count() - sealed;
        turn.counters.note_dropped(DropReason::SendRefused, refused);
        match address {
            Some(address) => {
                let unit = Unit::new(Lane::Authenticated, address, segment, bytes);
                self.send_group(to, unit, sealed, HEADROOM + TAIL, turn);
            }
            None => {
                turn.egress.recycle(bytes);
                report(&mut self.scheduler, &mut self.group, 0, 0, turn.now.instant);
            }
        }
    }

    fn copy_group(&mut self, to: Destination, address: SocketAddr, turn: &mut Turn<'_>) {
        let mut bytes = turn.egress.buffer();
        let (mut segment, mut count) = (0, 0);
        for datagram in self.datagrams() {
            bytes.extend_from_slice(datagram);
            segment = segment.max(datagram.len());
            count += 1;
        }
        let unit = Unit::new(Lane::Plain, address, segment, bytes);
        self.send_group(to, unit, count, 0, turn);
    }

    /// Sends a group of the first `count` datagrams, longer than their plaintexts by `overhead` each.
    fn send_group(
        &mut self,
        to: Destination,
        mut unit: Unit,
        count: usize,
        overhead: usize,
        turn: &mut Turn<'_>,
    ) {
        let (now, lane) = (turn.now.instant, unit.lane);
        match turn.egress.route(lane, unit.to) {
            Ok(address) => unit.to = address,
            Err(reason) => {
                turn.egress.recycle(unit.into_buffer());
                turn.counters.note_dropped(reason, count);
                return report(&mut self.scheduler, &mut self.group, 0, 0, now);
            }
        }
        let lengths = self
            .datagrams()
            .take(count)
            .map(|datagram| datagram.len() + overhead);
        let wire = lengths.map(|length| wire_bytes(length, unit.to)).sum();
        self.pacer.charge(now, wire);
        let has_more = self.scheduler.has(to.peer);
        self.peer_pacers.charge(now, to.peer, wire, has_more);
        let refused = turn.egress.push(now, unit, turn.counters);
        if turn.egress.is_blocked(lane) {
            self.held.insert(to.peer, lane);
        }
        let left = count.saturating_sub(refused);
        let bytes = self
            .datagrams()
            .take(left)
            .map(|datagram| datagram.len() + overhead);
        turn.counters.note_left(to.class, left, bytes.sum());
        report(&mut self.scheduler, &mut self.group, left, overhead, now);
    }

    fn buffer_group(&mut self, to: Destination, turn: &mut Turn<'_>) {
        let (now, Destination { class, peer }) = (turn.now, to);
        for run in self.group.drain(..) {
            let completion = self.scheduler.completion(&run);
            for datagram in self.scheduler.datagrams(&run) {
                let ticket = Ticket {
                    peer,
                    class,
                    completion: completion.cloned(),
                };
                let kept = match self.parked.insert(ticket) {
                    Err(_) => false,
                    Ok(tag) => {
                        let buffered = turn.sessions.buffer(now, peer, datagram.clone(), tag);
                        buffered.is_ok() || self.parked.take(tag).is_none()
                    }
                };
                if !kept {
                    let reason = DropReason::BufferFull;
                    drop_datagrams(now.instant, completion, 1, reason, turn.counters);
                }
            }
            self.scheduler.release(run);
        }
    }

    fn drop_group(&mut self, reason: DropReason, turn: &mut Turn<'_>) {
        let now = turn.now.instant;
        drop_runs(&mut self.scheduler, &mut self.group, now, reason, turn.counters);
    }
}

/// Gives up `runs`.
fn drop_runs(
    scheduler: &mut Scheduler,
    runs: &mut Vec<Run>,
    now: Instant,
    reason: DropReason,
    counters: &mut Counters,
) {
    counters.note_dropped(reason, runs.iter().map(Run::len).sum());
    report(scheduler, runs, 0, 0, now);
}
