//! One priority class: its peers take turns.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use falconet_transport::PeerId;

use crate::outgoing::{Cost, ENTRY_OVERHEAD};
use crate::payloads::{Payloads, Run};
use crate::scheduler::{ClassLimits, GroupLimits};
use crate::unit::{MAX_SEGMENTS, MAX_UNIT_BYTES};

/// Scale of the virtual times: divisible by every default weight.
const VIRTUAL_SCALE: u64 = 840;
/// Emptied queues of peers that are kept for the next ones, so that a lone datagram allocates nothing.
const SPARE: usize = 256;

/// What waits in one class.
pub(crate) struct ClassQueue {
    limits: ClassLimits,
    /// Bytes a peer may send in its turn before the next peer has its own.
    quantum: isize,
    pub(crate) virtual_time: u64,
    pub(crate) held: Cost,
    peers: HashMap<PeerId, PeerQueue>,
    /// Peers with something queued, in the order of their turns.
    turns: VecDeque<PeerId>,
    spare: Vec<VecDeque<Run>>,
}

struct PeerQueue {
    runs: VecDeque<Run>,
    /// Bytes left of this turn; its last group may overdraw it, so that no group is cut short.
    deficit: isize,
}

impl ClassQueue {
    pub(crate) fn new(limits: ClassLimits, quantum: usize) -> ClassQueue {
        ClassQueue {
            limits,
            quantum: isize::try_from(quantum.max(1)).unwrap_or(isize::MAX),
            virtual_time: 0,
            held: Cost::default(),
            peers: HashMap::new(),
            turns: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Whether this much more is within the caps.
    pub(crate) fn fits(&self, more: Cost) -> bool {
        self.held.entries.saturating_add(more.entries) <= self.limits.entries
            && self.held.bytes.saturating_add(more.bytes) <= self.limits.bytes
    }

    /// How many of `datagrams`, from the front, are within the caps if each is queued for so many peers.
    pub(crate) fn room_for(&self, datagrams: &[Bytes], recipients: usize) -> usize {
        let mut sum = Cost::default();
        let fits = |datagram: &Bytes| {
            sum.entries = sum.entries.saturating_add(recipients);
            let bytes = (datagram.len() + ENTRY_OVERHEAD).saturating_mul(recipients);
            sum.bytes = sum.bytes.saturating_add(bytes);
            self.fits(sum)
        };
        let end = datagrams.iter().map(fits).position(|fits| !fits);
        end.unwrap_or(datagrams.len())
    }

    /// Queues `run`, which costs `cost`, for `peer`.
    pub(crate) fn push(&mut self, virtual_now: u64, peer: PeerId, run: Run, cost: Cost) {
        if self.held.entries == 0 {
            self.virtual_time = self.virtual_time.max(virtual_now);
        }
        self.held.entries += cost.entries;
        self.held.bytes += cost.bytes;
        let queue = self.peers.entry(peer).or_insert_with(|| {
            self.turns.push_back(peer);
            PeerQueue {
                runs: self.spare.pop().unwrap_or_default(),
                deficit: self.quantum,
            }
        });
        queue.runs.push_back(run);
    }

    /// Moves what is too old at the front of a peer's queue into `expired` (docs/spec/threads.md#age).
    pub(crate) fn expire(&mut self, payloads: &Payloads, peer: PeerId, now: Instant, expired: &mut Vec<Run>) {
        let Some(queue) = self.peers.get_mut(&peer) else {
            return;
        };
        let max_age = self.limits.max_age;
        let is_old = |run: &Run| now.saturating_duration_since(run.queued) > max_age;
        while let Some(run) = queue.runs.pop_front_if(|run| is_old(run)) {
            self.held.subtract(payloads.cost(&run));
            expired.push(run);
        }
        self.retire(peer);
    }

    /// Moves one group of `peer`, which is at the front, into `group`; false if it has nothing left.
    pub(crate) fn take_turn(
        &mut self,
        payloads: &mut Payloads,
        peer: PeerId,
        limits: GroupLimits,
        group: &mut Vec<Run>,
    ) -> bool {
        let Some(queue) = self.peers.get_mut(&peer) else {
            return false;
        };
        let taken = take_group(queue, payloads, limits, group);
        self.held.subtract(taken.cost);
        queue.deficit = queue.deficit.saturating_sub_unsigned(taken.bytes);
        self.virtual_time += taken.bytes as u64 * VIRTUAL_SCALE / self.limits.weight.max(1);
        self.retire(peer);
        taken.cost.entries > 0
    }

    /// The peer at the front, if anything is left of its turn; `None` if each is to be passed over. A lone peer
    /// shares with nobody and has no turns. A group costs a few turns at most, so the loop ends.
    pub(crate) fn next_turn(&mut self, holds: &mut impl FnMut(PeerId) -> bool) -> Option<PeerId> {
        let mut passed_over = 0;
        let is_alone = self.turns.len() == 1;
        while passed_over < self.turns.len() {
            let peer = *self.turns.front()?;
            if holds(peer) {
                passed_over += 1;
            } else {
                passed_over = 0;
                let queue = self.peers.get_mut(&peer)?;
                if is_alone {
                    queue.deficit = self.quantum;
                }
                if queue.deficit > 0 {
                    return Some(peer);
                }
                queue.deficit += self.quantum;
            }
            self.turns.rotate_left(1);
        }
        None
    }

    /// Takes out everything queued for `peer`.
    pub(crate) fn remove_peer(&mut self, payloads: &Payloads, peer: PeerId, removed: &mut Vec<Run>) {
        let Some(queue) = self.peers.get_mut(&peer) else {
            return;
        };
        for run in queue.runs.drain(..) {
            self.held.subtract(payloads.cost(&run));
            removed.push(run);
        }
        self.retire(peer);
    }

    /// Whether anything is queued for `peer`.
    pub(crate) fn has(&self, peer: PeerId) -> bool {
        self.peers.contains_key(&peer)
    }

    /// Any peer with something queued.
    pub(crate) fn first_peer(&self) -> Option<PeerId> {
        self.turns.front().copied()
    }

    /// Forgets `peer` if nothing is queued for it.
    fn retire(&mut self, peer: PeerId) {
        if !self.peers.get(&peer).is_some_and(|queue| queue.runs.is_empty()) {
            return;
        }
        if self.turns.front() == Some(&peer) {
            self.turns.pop_front();
        } else {
            self.turns.retain(|turn| *turn != peer);
        }
        if let Some(queue) = self.peers.remove(&peer)
            && self.spare.len() < SPARE
        {
            self.spare.push(queue.runs);
        }
    }

    /// Datagrams queued for `peer`.
    #[cfg(test)]
    pub(crate) fn backlog(&self, peer: PeerId) -> usize {
        self.peers
            .get(&peer)
            .map_or(0, |queue| queue.runs.iter().map(Run::len).sum())
    }
}

/// What a group takes out of a queue.
#[derive(Default)]
struct Taken {
    cost: Cost,
    /// Bytes on the wire but for headers, each datagram with the frame's.
    bytes: usize,
}

/// Moves the longest allowed run of datagrams from the front of `queue` into `group`.
fn take_group(
    queue: &mut PeerQueue,
    payloads: &mut Payloads,
    limits: GroupLimits,
    group: &mut Vec<Run>,
) -> Taken {
    let most = limits.bytes.min(MAX_UNIT_BYTES);
    let (mut taken, mut segment, mut is_closed) = (Taken::default(), None, false);
    while let Some(run) = queue.runs.front_mut() {
        let mut count = 0;
        for datagram in payloads.datagrams(run) {
            let length = datagram.len() + limits.overhead;
            let first = *segment.get_or_insert(length);
            let fits = length <= first
                && taken.bytes + length <= most
                && first - limits.overhead <= limits.segment
                && taken.cost.entries < MAX_SEGMENTS;
            if is_closed || (taken.cost.entries > 0 && !fits) {
                is_closed = true;
                break;
            }
            count += 1;
            taken.cost.entries += 1;
            taken.cost.bytes += datagram.len() + ENTRY_OVERHEAD;
            taken.bytes += length;
            is_closed = length < first;
        }
        if count == run.len() {
            group.extend(queue.runs.pop_front());
        } else if count > 0 {
            group.push(payloads.split(run, count));
        }
        if is_closed {
            break;
        }
    }
    taken
}
