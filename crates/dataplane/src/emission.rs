//! From scheduled datagrams to sealed groups.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use falconet_crypto::Now;
use falconet_transport::{Lane, LaneDecision, PeerId, Sessions};

use crate::drop_reason::DropReason;
use crate::egress::Egress;
use crate::outgoing::{Class, Completion, Cost, Outgoing};
use crate::pacer::{Pacer, wire_bytes};
use crate::parked::{Parked, Ticket};
use crate::scheduler::{Entry, GroupLimits, Scheduler};
use crate::stats::Counters;
use crate::unit::{MAX_UNIT_BYTES, Unit};

/// Bytes of the frame in front of a plaintext.
const HEADROOM: usize = 16;
/// Bytes of the tag behind it.
const TAIL: usize = 16;
/// UDP and IPv4 headers, the least a datagram has in front of it.
const LEAST_HEADERS: usize = 28;

/// Schedules, paces, seals.
pub(crate) struct Emission {
    scheduler: Scheduler,
    pacer: Pacer,
    parked: Parked,
    limits: GroupLimits,
    group: Vec<Entry>,
    expired: Vec<Entry>,
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
    pub(crate) fn new(scheduler: Scheduler, pacer: Pacer, mtu: usize) -> Emission {
        let limits = GroupLimits {
            bytes: pacer.group_limit().unwrap_or(MAX_UNIT_BYTES),
            segment: mtu.saturating_sub(LEAST_HEADERS),
            overhead: HEADROOM + TAIL,
        };
        Emission {
            scheduler,
            pacer,
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
        for datagram in outgoing.datagrams {
            for peer in outgoing.to.as_slice() {
                let entry = Entry {
                    datagram: datagram.clone(),
                    completion: outgoing.completion.clone(),
                    queued: now,
                };
                self.enqueue(now, outgoing.class, *peer, entry, counters);
            }
        }
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
            let entry = Entry {
                datagram: plaintext,
                completion: ticket.completion,
                queued: now,
            };
            self.enqueue(now, ticket.class, ticket.peer, entry, counters);
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
        drop_one(
            now,
            ticket.completion.as_ref(),
            DropReason::HandshakeTimeout,
            counters,
        );
        Some(ticket.class)
    }

    /// Gives up everything that is for `peer`.
    pub(crate) fn remove_peer(&mut self, now: Instant, peer: PeerId, counters: &mut Counters) {
        let mut removed = Vec::new();
        self.scheduler.remove_peer(peer, &mut removed);
        let parked = self.parked.take_all(|ticket| ticket.peer == peer);
        let completions = removed.into_iter().map(|(_, entry)| entry.completion);
        for completion in completions.chain(parked.into_iter().map(|ticket| ticket.completion)) {
            drop_one(now, completion.as_ref(), DropReason::PeerRemoved, counters);
        }
    }

    /// Gives up everything.
    pub(crate) fn shut_down(&mut self, now: Instant, counters: &mut Counters) {
        let mut removed = Vec::new();
        self.scheduler.drain(&mut removed);
        let parked = self.parked.take_all(|_| true);
        let completions = removed.into_iter().map(|(_, entry)| entry.completion);
        for completion in completions.chain(parked.into_iter().map(|ticket| ticket.completion)) {
            drop_one(now, completion.as_ref(), DropReason::Shutdown, counters);
        }
    }

    /// Charges the rate for a session's own datagram, which does not wait.
    pub(crate) fn charge(&mut self, now: Instant, payload: usize, to: SocketAddr) {
        self.pacer.charge(now, wire_bytes(payload, to));
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
        let holds = |peer: PeerId| held.get(&peer).is_some_and(|lane| egress.is_blocked(*lane));
        let next = self.scheduler.poll_group(now, self.limits, holds, group, expired);
        for entry in self.expired.drain(..) {
            drop_one(now, entry.completion.as_ref(), DropReason::Expired, turn.counters);
        }
        let Some((class, peer)) = next else {
            return Emitted::Nothing;
        };
        if let Some(first) = self.group.first() {
            turn.counters
                .note_age(class, now.saturating_duration_since(first.queued));
        }
        let bytes = self.group.iter().map(|entry| entry.datagram.len()).sum();
        match turn.sessions.lane(turn.now, peer) {
            LaneDecision::Authenticated => self.seal_group(peer, turn),
            LaneDecision::Plain(to) => self.copy_group(peer, to, turn),
            LaneDecision::Buffer => self.buffer_group(peer, class, turn),
            LaneDecision::Refuse(_) => self.drop_group(DropReason::SendRefused, turn),
        }
        Emitted::Group(bytes)
    }

    /// The one copy of a datagram: into the group's buffer, where it is sealed.
    fn seal_group(&mut self, peer: PeerId, turn: &mut Turn<'_>) {
        let mut bytes = turn.egress.buffer();
        let (mut to, mut segment) = (None, 0);
        let now = turn.now;
        self.group.retain(|entry| {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; HEADROOM]);
            bytes.extend_from_slice(&entry.datagram);
            bytes.extend_from_slice(&[0; TAIL]);
            let sealed = turn.sessions.seal(now, peer, &mut bytes[start..]);
            match sealed {
                Ok(address) => {
                    to = Some(address);
                    segment = segment.max(bytes.len() - start);
                }
                Err(_) => {
                    bytes.truncate(start);
                    let completion = entry.completion.as_ref();
                    drop_one(now.instant, completion, DropReason::SendRefused, turn.counters);
                }
            }
            sealed.is_ok()
        });
        match to {
            Some(to) => {
                let unit = Unit::new(Lane::Authenticated, to, segment, bytes);
                self.send_group(peer, unit, HEADROOM + TAIL, turn);
            }
            None => turn.egress.recycle(bytes),
        }
    }

    fn copy_group(&mut self, peer: PeerId, to: SocketAddr, turn: &mut Turn<'_>) {
        let mut bytes = turn.egress.buffer();
        let segment = self.group.first().map_or(0, |entry| entry.datagram.len());
        for entry in &self.group {
            bytes.extend_from_slice(&entry.datagram);
        }
        self.send_group(peer, Unit::new(Lane::Plain, to, segment, bytes), 0, turn);
    }

    /// Sends a group whose datagrams are longer than their plaintexts by `overhead`.
    fn send_group(&mut self, peer: PeerId, mut unit: Unit, overhead: usize, turn: &mut Turn<'_>) {
        match turn.egress.route(unit.lane, unit.to) {
            Ok(to) => unit.to = to,
            Err(reason) => {
                turn.egress.recycle(unit.into_buffer());
                return self.drop_group(reason, turn);
            }
        }
        let (now, to, lane) = (turn.now.instant, unit.to, unit.lane);
        let lengths = self.group.iter().map(|entry| entry.datagram.len() + overhead);
        self.pacer
            .charge(now, lengths.map(|length| wire_bytes(length, to)).sum());
        let refused = turn.egress.push(now, unit, turn.counters);
        if turn.egress.is_blocked(lane) {
            self.held.insert(peer, lane);
        }
        let left = self.group.len().saturating_sub(refused);
        report(&mut self.group, left, overhead, now);
    }

    fn buffer_group(&mut self, peer: PeerId, class: Class, turn: &mut Turn<'_>) {
        let now = turn.now;
        for entry in self.group.drain(..) {
            let ticket = Ticket {
                peer,
                class,
                completion: entry.completion,
            };
            let refused = match self.parked.insert(ticket) {
                Err(ticket) => Some(ticket),
                Ok(tag) => match turn.sessions.buffer(now, peer, entry.datagram, tag) {
                    Ok(()) => None,
                    Err(_) => self.parked.take(tag),
                },
            };
            if let Some(ticket) = refused {
                let completion = ticket.completion.as_ref();
                drop_one(now.instant, completion, DropReason::BufferFull, turn.counters);
            }
        }
    }

    fn drop_group(&mut self, reason: DropReason, turn: &mut Turn<'_>) {
        for entry in self.group.drain(..) {
            drop_one(turn.now.instant, entry.completion.as_ref(), reason, turn.counters);
        }
    }

    fn enqueue(&mut self, now: Instant, class: Class, peer: PeerId, entry: Entry, counters: &mut Counters) {
        let wrong = match entry.datagram.len() {
            0 => Some(DropReason::Empty),
            length if length + HEADROOM + TAIL > MAX_UNIT_BYTES => Some(DropReason::TooLong),
            _ => None,
        };
        if let Some(reason) = wrong {
            return drop_one(now, entry.completion.as_ref(), reason, counters);
        }
        if let Err(entry) = self.scheduler.push(class, peer, entry) {
            drop_one(now, entry.completion.as_ref(), DropReason::QueueFull, counters);
        }
    }
}

fn drop_one(
    now: Instant,
    completion: Option<&Arc<dyn Completion>>,
    reason: DropReason,
    counters: &mut Counters,
) {
    counters.note_dropped(reason, 1);
    if let Some(completion) = completion {
        completion.finished(0, 1, 0, now);
    }
}

/// Tells the completions of a group, one call for neighbours of the same one: the first `left` datagrams
/// left, the others were refused.
fn report(group: &mut Vec<Entry>, left: usize, overhead: usize, now: Instant) {
    let mut open: Option<(Arc<dyn Completion>, usize, usize, usize)> = None;
    for (position, entry) in group.drain(..).enumerate() {
        let Some(completion) = entry.completion else {
            continue;
        };
        let same = open
            .as_ref()
            .is_some_and(|part| Arc::ptr_eq(&part.0, &completion));
        if !same && let Some(part) = open.take() {
            part.0.finished(part.1, part.2, part.3, now);
        }
        let part = open.get_or_insert((completion, 0, 0, 0));
        if position < left {
            part.1 += 1;
            part.3 += entry.datagram.len() + overhead;
        } else {
            part.2 += 1;
        }
    }
    if let Some(part) = open {
        part.0.finished(part.1, part.2, part.3, now);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Log(Mutex<Vec<(usize, usize, usize)>>);

    impl Completion for Log {
        fn finished(&self, sent: usize, dropped: usize, sent_bytes: usize, _at: Instant) {
            self.0.lock().unwrap().push((sent, dropped, sent_bytes));
        }
    }

    #[test]
    fn neighbours_of_one_completion_are_reported_together() {
        let (first, second) = (Arc::new(Log::default()), Arc::new(Log::default()));
        let now = Instant::now();
        let entry = |log: &Arc<Log>| Entry {
            datagram: Bytes::from_static(&[0x20; 10]),
            completion: Some(Arc::clone(log) as Arc<dyn Completion>),
            queued: now,
        };
        let mut group = vec![
            entry(&first),
            entry(&first),
            entry(&second),
            entry(&second),
            entry(&first),
        ];
        report(&mut group, 3, 32, now);
        assert_eq!(*first.0.lock().unwrap(), [(2, 0, 84), (0, 1, 0)]);
        assert_eq!(*second.0.lock().unwrap(), [(1, 1, 42)]);
    }
}
