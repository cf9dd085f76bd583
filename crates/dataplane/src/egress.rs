//! The way out: the emulated link if there is one, the sockets, and what they could not take yet.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use falconet_transport::Lane;

use crate::delay_line::DelayLine;
use crate::drop_reason::DropReason;
use crate::socket::{Blocked, Port};
use crate::stats::Counters;
use crate::unit::Unit;

/// Most groups that wait for a lane's blocked socket (docs/spec/threads.md#queue-bounds).
const OUTBOX: usize = 256;
/// Waiting groups from which on nothing more is scheduled; the rest is for session datagrams.
const HELD: usize = OUTBOX / 2;
/// How long to wait for a device queue, of whose room nothing tells.
const DEVICE_RETRY: Duration = Duration::from_micros(500);
/// Buffers kept for the next groups.
const SPARE: usize = 16;
/// Groups that leave the emulated link in one turn.
const DUE_A_TURN: usize = 64;

/// Owns the sockets. A blocked one pauses its own lane only (docs/spec/threads.md#blocked).
pub(crate) struct Egress {
    lanes: [LaneExit; 2],
    line: Option<DelayLine>,
    spare: Vec<Vec<u8>>,
}

/// One lane's socket and what it could not take yet.
struct LaneExit {
    port: Option<Port>,
    outbox: VecDeque<Unit>,
    blocked: Option<Blocked>,
}

impl LaneExit {
    fn new(port: Option<Port>) -> LaneExit {
        LaneExit {
            port,
            outbox: VecDeque::new(),
            blocked: None,
        }
    }
}

impl Egress {
    pub(crate) fn new(authenticated: Option<Port>, plain: Option<Port>, line: Option<DelayLine>) -> Egress {
        Egress {
            lanes: [LaneExit::new(authenticated), LaneExit::new(plain)],
            line,
            spare: Vec::new(),
        }
    }

    /// The socket of `lane`.
    pub(crate) fn port(&self, lane: Lane) -> Option<&Port> {
        self.lanes[lane_index(lane)].port.as_ref()
    }

    /// Every socket, and whether it is waited for until it is writable.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (&Port, bool)> {
        self.lanes.iter().filter_map(|exit| {
            let waited_for = exit.blocked == Some(Blocked::UntilWritable);
            exit.port.as_ref().map(|port| (port, waited_for))
        })
    }

    /// `to` as the socket of `lane` can send to it.
    pub(crate) fn route(&self, lane: Lane, to: SocketAddr) -> Result<SocketAddr, DropReason> {
        let port = self.port(lane).ok_or(DropReason::NoSocket)?;
        port.reachable(to).ok_or(DropReason::Unroutable)
    }

    /// An empty buffer for a group.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives a buffer back unused.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Sends a routed group, or puts it on the emulated link; returns how many of its datagrams were
    /// given up at once.
    pub(crate) fn push(&mut self, now: Instant, unit: Unit, counters: &mut Counters) -> usize {
        let Some(line) = &mut self.line else {
            return self.send(now, unit, counters);
        };
        let verdict = line.push(now, unit);
        counters.note_dropped(DropReason::EmulatedLoss, verdict.lost);
        counters.note_dropped(DropReason::DelayLineFull, verdict.overflowed);
        verdict.overflowed
    }

    /// Sends what waited for a socket, then what is due from the emulated link. True if there may be more.
    pub(crate) fn handle_timeout(&mut self, now: Instant, counters: &mut Counters) -> bool {
        for lane in [Lane::Authenticated, Lane::Plain] {
            self.flush(now, lane, counters);
        }
        for _ in 0..DUE_A_TURN {
            if self.is_held() {
                return false;
            }
            let Some(unit) = self.line.as_mut().and_then(|line| line.poll_due(now)) else {
                return false;
            };
            self.send(now, unit, counters);
        }
        true
    }

    /// When [`Egress::handle_timeout`] has something to do; writability is told by the socket.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let waits = |exit: &LaneExit| exit.blocked == Some(Blocked::ForAWhile);
        let retry = self.lanes.iter().any(waits).then(|| now + DEVICE_RETRY);
        let due = self.line.as_ref().filter(|_| !self.is_held());
        let due = due.and_then(DelayLine::poll_timeout);
        retry.into_iter().chain(due).min()
    }

    /// Whether the socket of `lane` took nothing more when it was last asked.
    pub(crate) fn is_blocked(&self, lane: Lane) -> bool {
        self.lanes[lane_index(lane)].blocked.is_some()
    }

    /// Whether any lane is blocked.
    pub(crate) fn is_any_blocked(&self) -> bool {
        self.lanes.iter().any(|exit| exit.blocked.is_some())
    }

    /// Whether nothing at all should be scheduled: every lane is blocked, or one for so long that many
    /// groups wait for it.
    pub(crate) fn is_held(&self) -> bool {
        self.lanes
            .iter()
            .all(|exit| exit.port.is_none() || exit.blocked.is_some())
            || self.lanes.iter().any(|exit| exit.outbox.len() >= HELD)
    }

    /// Groups on the emulated link.
    pub(crate) fn in_flight(&self) -> usize {
        self.line.as_ref().map_or(0, DelayLine::len)
    }

    fn flush(&mut self, now: Instant, lane: Lane, counters: &mut Counters) {
        let at = lane_index(lane);
        self.lanes[at].blocked = None;
        while let Some(unit) = self.lanes[at].outbox.pop_front() {
            if let Err(unit) = self.try_send(now, unit, counters) {
                return self.lanes[at].outbox.push_front(unit);
            }
        }
    }

    fn send(&mut self, now: Instant, unit: Unit, counters: &mut Counters) -> usize {
        let at = lane_index(unit.lane);
        // Behind what already waits, so that a lane keeps its order.
        let blocked = if self.lanes[at].outbox.is_empty() {
            match self.try_send(now, unit, counters) {
                Ok(refused) => return refused,
                Err(unit) => unit,
            }
        } else {
            unit
        };
        if self.lanes[at].outbox.len() < OUTBOX {
            self.lanes[at].outbox.push_back(blocked);
            return 0;
        }
        let datagrams = blocked.remaining_datagrams();
        counters.note_dropped(DropReason::Backlog, datagrams);
        self.recycle(blocked.into_buffer());
        datagrams
    }

    fn try_send(&mut self, now: Instant, mut unit: Unit, counters: &mut Counters) -> Result<usize, Unit> {
        let exit = &mut self.lanes[lane_index(unit.lane)];
        let Some(port) = &mut exit.port else {
            let datagrams = unit.remaining_datagrams();
            counters.note_dropped(DropReason::NoSocket, datagrams);
            return Ok(datagrams);
        };
        match port.send(now, &mut unit, counters) {
            Ok(refused) => {
                self.recycle(unit.into_buffer());
                Ok(refused)
            }
            Err(blocked) => {
                exit.blocked = Some(blocked);
                Err(unit)
            }
        }
    }
}

const fn lane_index(lane: Lane) -> usize {
    match lane {
        Lane::Authenticated => 0,
        Lane::Plain => 1,
    }
}

#[cfg(test)]
mod tests;
