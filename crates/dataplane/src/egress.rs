//! The way out: the emulated link if there is one, the sockets, and what they could not take yet.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use falconet_transport::Lane;

use crate::delay_line::DelayLine;
use crate::socket::{Blocked, Port};
use crate::stats::{Counters, DropReason};
use crate::unit::Unit;

/// Most groups that wait for a blocked socket. Scheduled groups stop at the first; what comes on top are
/// session datagrams and arrivals from the emulated link (docs/spec/threads.md#queue-bounds).
const OUTBOX: usize = 256;
/// How long to wait for a device queue, of whose room nothing tells.
const DEVICE_RETRY: Duration = Duration::from_micros(500);
/// Buffers kept for the next groups.
const SPARE: usize = 16;
/// Groups that leave the emulated link in one turn.
const DUE_A_TURN: usize = 64;

/// Owns the sockets.
pub(crate) struct Egress {
    pub(crate) authenticated: Option<Port>,
    pub(crate) plain: Option<Port>,
    line: Option<DelayLine>,
    outbox: VecDeque<Unit>,
    blocked: Option<Blocked>,
    spare: Vec<Vec<u8>>,
}

impl Egress {
    pub(crate) fn new(authenticated: Option<Port>, plain: Option<Port>, line: Option<DelayLine>) -> Egress {
        Egress {
            authenticated,
            plain,
            line,
            outbox: VecDeque::new(),
            blocked: None,
            spare: Vec::new(),
        }
    }

    /// `to` as the socket of `lane` can send to it.
    pub(crate) fn route(&self, lane: Lane, to: SocketAddr) -> Result<SocketAddr, DropReason> {
        let port = match lane {
            Lane::Authenticated => &self.authenticated,
            Lane::Plain => &self.plain,
        };
        let port = port.as_ref().ok_or(DropReason::NoSocket)?;
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
            return self.send(unit, counters);
        };
        let verdict = line.push(now, unit);
        counters.note_dropped(DropReason::EmulatedLoss, verdict.lost);
        counters.note_dropped(DropReason::DelayLineFull, verdict.overflowed);
        verdict.overflowed
    }

    /// Sends what waited for a socket, then what is due from the emulated link. True if there may be more.
    pub(crate) fn handle_timeout(&mut self, now: Instant, counters: &mut Counters) -> bool {
        self.blocked = None;
        while let Some(unit) = self.outbox.pop_front() {
            if let Err(unit) = self.try_send(unit, counters) {
                self.outbox.push_front(unit);
                return false;
            }
        }
        for _ in 0..DUE_A_TURN {
            let Some(unit) = self.line.as_mut().and_then(|line| line.poll_due(now)) else {
                return false;
            };
            self.send(unit, counters);
        }
        true
    }

    /// When [`Egress::handle_timeout`] has something to do; writability is told by the socket.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let retry = (self.blocked == Some(Blocked::ForAWhile)).then(|| now + DEVICE_RETRY);
        let due = self.line.as_ref().and_then(DelayLine::poll_timeout);
        retry.into_iter().chain(due).min()
    }

    /// Why nothing more should be scheduled now.
    pub(crate) fn blocked(&self) -> Option<Blocked> {
        self.blocked
    }

    /// Groups on the emulated link.
    pub(crate) fn in_flight(&self) -> usize {
        self.line.as_ref().map_or(0, DelayLine::len)
    }

    fn send(&mut self, unit: Unit, counters: &mut Counters) -> usize {
        // Behind what already waits, so that a lane keeps its order.
        let blocked = if self.outbox.is_empty() {
            match self.try_send(unit, counters) {
                Ok(refused) => return refused,
                Err(unit) => unit,
            }
        } else {
            unit
        };
        if self.outbox.len() < OUTBOX {
            self.outbox.push_back(blocked);
            return 0;
        }
        let datagrams = blocked.remaining_datagrams();
        counters.note_dropped(DropReason::Backlog, datagrams);
        self.recycle(blocked.into_buffer());
        datagrams
    }

    fn try_send(&mut self, mut unit: Unit, counters: &mut Counters) -> Result<usize, Unit> {
        let port = match unit.lane {
            Lane::Authenticated => self.authenticated.as_mut(),
            Lane::Plain => self.plain.as_mut(),
        };
        let Some(port) = port else {
            let datagrams = unit.remaining_datagrams();
            counters.note_dropped(DropReason::NoSocket, datagrams);
            return Ok(datagrams);
        };
        match port.send(&mut unit, counters) {
            Ok(refused) => {
                self.recycle(unit.into_buffer());
                Ok(refused)
            }
            Err(blocked) => {
                self.blocked = Some(blocked);
                Err(unit)
            }
        }
    }
}
