//! What a node has to send, and the pace of its way out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::stages::Stamp;
use crate::time::Time;

/// How far ahead of the wire datagrams are handed over: the precision of the pacing.
pub(crate) const LEAD: Duration = Duration::from_micros(100);
/// Chunks that wait to leave; the product keeps 16,384 relayed ones.
const CAPACITY: usize = 1 << 20;
/// While both classes wait, a relayed datagram goes after this many of our own.
const PROPOSALS_FOR_A_RELAY: u32 = 3;

/// Chunks for the same recipients, which leave recipient by recipient.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) recipients: Arc<[u16]>,
    pub(crate) chunks: Vec<(Bytes, Stamp)>,
    /// From when on they may leave.
    pub(crate) ready: Time,
    next: usize,
}

impl Run {
    pub(crate) fn new(recipients: Arc<[u16]>, chunks: Vec<(Bytes, Stamp)>, ready: Time) -> Self {
        Self {
            recipients,
            chunks,
            ready,
            next: 0,
        }
    }

    fn remaining(&self) -> usize {
        self.recipients.len() * self.chunks.len() - self.next
    }

    fn pop(&mut self) -> Option<(u16, Bytes, Stamp)> {
        let chunks = self.chunks.len();
        let recipient = *self.recipients.get(self.next.checked_div(chunks)?)?;
        let (chunk, stamp) = &self.chunks[self.next % chunks];
        self.next += 1;
        Some((recipient, chunk.clone(), *stamp))
    }
}

/// Own broadcasts and relayed symbols, and when the wire is free.
#[derive(Debug, Default)]
pub(crate) struct Egress {
    proposals: VecDeque<Run>,
    relays: VecDeque<Run>,
    waiting: usize,
    proposals_in_a_row: u32,
    pub(crate) wire_free: Time,
    pub(crate) dropped: u64,
    /// Bytes that have left, frames counted whole.
    pub(crate) wire_bytes: u64,
}

impl Egress {
    pub(crate) fn push_proposal(&mut self, run: Run) {
        if self.admit(&run) {
            self.proposals.push_back(run);
        }
    }

    pub(crate) fn push_relay(&mut self, run: Run) {
        if self.admit(&run) {
            self.relays.push_back(run);
        }
    }

    fn admit(&mut self, run: &Run) -> bool {
        let admitted = self.waiting + run.remaining() <= CAPACITY;
        if admitted {
            self.waiting += run.remaining();
        } else {
            self.dropped += run.remaining() as u64;
        }
        admitted
    }

    /// The next chunk that may leave at `now`, with its recipient.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(u16, Bytes, Stamp)> {
        let is_ready = |queue: &VecDeque<Run>| queue.front().is_some_and(|run| run.ready <= now);
        let relay_turn = self.proposals_in_a_row >= PROPOSALS_FOR_A_RELAY || !is_ready(&self.proposals);
        let queue = if relay_turn && is_ready(&self.relays) {
            self.proposals_in_a_row = 0;
            &mut self.relays
        } else if is_ready(&self.proposals) {
            self.proposals_in_a_row += 1;
            &mut self.proposals
        } else {
            return None;
        };
        let run = queue.front_mut()?;
        let popped = run.pop();
        if run.remaining() == 0 {
            queue.pop_front();
        }
        self.waiting -= 1;
        popped
    }

    /// When the next chunk may leave, by its readiness and the pace.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        let ready = [&self.proposals, &self.relays]
            .into_iter()
            .filter_map(|queue| Some(queue.front()?.ready))
            .min()?;
        Some(ready.max(self.wire_free - LEAD / 2))
    }

    pub(crate) fn clear(&mut self) {
        self.proposals.clear();
        self.relays.clear();
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(recipients: &[u16], chunks: &[&'static [u8]], ready: u64) -> Run {
        let chunks = chunks
            .iter()
            .map(|chunk| (Bytes::from_static(chunk), Stamp::default()));
        Run::new(recipients.into(), chunks.collect(), Time::from_nanos(ready))
    }

    fn drain(egress: &mut Egress, now: u64) -> Vec<(u16, Bytes)> {
        std::iter::from_fn(|| egress.pop(Time::from_nanos(now)))
            .map(|(to, chunk, _)| (to, chunk))
            .collect()
    }

    #[test]
    fn a_run_leaves_recipient_by_recipient_once_it_is_ready() {
        let mut egress = Egress::default();
        egress.push_relay(run(&[4, 5], &[b"a", b"b"], 10));
        assert_eq!(drain(&mut egress, 9), []);
        assert_eq!(egress.next_departure(), Some(Time::from_nanos(10)));
        let left = drain(&mut egress, 10);
        assert_eq!(
            left.iter().map(|(to, chunk)| (*to, chunk[0])).collect::<Vec<_>>(),
            [(4, b'a'), (4, b'b'), (5, b'a'), (5, b'b')]
        );
        assert_eq!(egress.next_departure(), None);
    }

    #[test]
    fn neither_class_starves_the_other() {
        let mut egress = Egress::default();
        for _ in 0..8 {
            egress.push_proposal(run(&[1], &[b"p"], 0));
            egress.push_relay(run(&[2], &[b"r"], 0));
        }
        let order: String = drain(&mut egress, 0)
            .iter()
            .map(|(_, chunk)| char::from(chunk[0]))
            .collect();
        assert_eq!(order, "ppprppprpprrrrrr");
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut egress = Egress::default();
        let many: Vec<u16> = (0..1_000).collect();
        for _ in 0..1_100 {
            egress.push_relay(run(&many, &[b"r"], 0));
        }
        assert_eq!(egress.dropped, 1_100_000 - 1_048_000);
    }
}
