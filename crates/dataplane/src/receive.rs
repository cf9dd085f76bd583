//! Receive buffers and the way of their contents to the consumers.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use falconet_transport::{Lane, PeerId};
use quinn_udp::RecvMeta;

use crate::inbound::Inbound;
use crate::socket::{Port, canonical};
use crate::stats::Counters;

/// Size of a receive buffer: a smaller one loses what a local sender's large groups carry.
const BUFFER: usize = 64 * 1024;
/// Most datagrams one buffer can hold: the kernel aggregates up to 64.
const MAX_AGGREGATE: usize = 64;
/// Buffers of one receive call, if each may hold an aggregate.
const AGGREGATES: usize = 4;
/// Buffers of one receive call without receive offload: as many as `quinn-udp` takes.
const SINGLES: usize = 32;
/// Received bytes from which on a buffer is given away instead of copied out of: a consumer that holds
/// one datagram then pins at most twice what it was sent along with (docs/spec/threads.md#receive-buffers).
const GIVE_AWAY: usize = BUFFER / 2;
/// Given-away buffers that are watched for their return.
const LENT: usize = 32;

/// Receives aggregates and turns them into batches.
pub(crate) struct Receiver {
    buffers: Vec<BytesMut>,
    metas: [RecvMeta; SINGLES],
    /// Most datagrams that one buffer may turn out to hold.
    aggregate: usize,
    accepted: Vec<Accepted>,
    lent: VecDeque<Bytes>,
}

/// What the judge of a datagram found.
pub(crate) enum Judged {
    /// For the consumer of chunks: the plaintext's place in the datagram.
    Chunk(Option<PeerId>, Range<usize>),
    /// For the consumer of messages.
    Message(Option<PeerId>, Range<usize>),
    /// Nothing for a consumer.
    Done,
    /// Dropped, by reason.
    Discarded(&'static str),
}

/// The batches of one turn.
#[derive(Default)]
pub(crate) struct Batches {
    pub(crate) chunks: Vec<Inbound>,
    pub(crate) messages: Vec<Inbound>,
}

struct Accepted {
    peer: Option<PeerId>,
    is_chunk: bool,
    place: Range<usize>,
}

impl Receiver {
    /// `aggregation` says whether the sockets hand over aggregates.
    pub(crate) fn new(aggregation: bool) -> Receiver {
        let (buffers, aggregate) = if aggregation {
            (AGGREGATES, MAX_AGGREGATE)
        } else {
            (SINGLES, 1)
        };
        Receiver {
            buffers: (0..buffers).map(|_| BytesMut::zeroed(BUFFER)).collect(),
            metas: [RecvMeta::default(); SINGLES],
            aggregate,
            accepted: Vec::new(),
            lent: VecDeque::new(),
        }
    }

    /// Reads aggregates from `port`, as many as cannot hold more than `budget` datagrams; returns how many
    /// there were. docs/spec/threads.md#receive-budget
    pub(crate) fn fill(&mut self, port: &Port, budget: usize, counters: &mut Counters) -> usize {
        // Each buffer may turn out to hold an aggregate of the longest kind.
        let count = (budget / self.aggregate).min(self.buffers.len());
        if count == 0 {
            return 0;
        }
        let mut buffers = self.buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; SINGLES] = std::array::from_fn(|_| {
            let buffer = buffers.next().map(|buffer| &mut buffer[..]);
            IoSliceMut::new(buffer.unwrap_or_default())
        });
        port.receive(&mut slices[..count], &mut self.metas[..count], counters)
    }

    /// Judges what the last [`Receiver::fill`] has put into the first `filled` buffers, each datagram
    /// where it lies; returns how many there were.
    pub(crate) fn judge(
        &mut self,
        lane: Lane,
        filled: usize,
        counters: &mut Counters,
        batches: &mut Batches,
        mut judge: impl FnMut(SocketAddr, &mut [u8]) -> Judged,
    ) -> usize {
        (0..filled.min(self.buffers.len()))
            .map(|index| self.take_aggregate(index, lane, counters, batches, &mut judge))
            .sum()
    }

    fn take_aggregate(
        &mut self,
        index: usize,
        lane: Lane,
        counters: &mut Counters,
        batches: &mut Batches,
        judge: &mut impl FnMut(SocketAddr, &mut [u8]) -> Judged,
    ) -> usize {
        let meta = self.metas[index];
        let (length, from) = (meta.len.min(BUFFER), canonical(meta.addr));
        let mut datagrams = 0;
        for place in segments(length, meta.stride) {
            datagrams += 1;
            let start = place.start;
            match judge(from, &mut self.buffers[index][place]) {
                Judged::Chunk(peer, inner) => self.accept(peer, true, start, inner),
                Judged::Message(peer, inner) => self.accept(peer, false, start, inner),
                Judged::Done => {}
                Judged::Discarded(reason) => counters.note_discarded(reason, 1),
            }
        }
        counters.note_received(lane, datagrams, length);
        if !self.accepted.is_empty() {
            let whole = self.hand_out(index, length);
            for accepted in self.accepted.drain(..) {
                let inbound = Inbound {
                    peer: accepted.peer,
                    lane,
                    from,
                    datagram: whole.slice(accepted.place),
                };
                let batch = if accepted.is_chunk {
                    &mut batches.chunks
                } else {
                    &mut batches.messages
                };
                batch.push(inbound);
            }
        }
        datagrams
    }

    fn accept(&mut self, peer: Option<PeerId>, is_chunk: bool, start: usize, inner: Range<usize>) {
        self.accepted.push(Accepted {
            peer,
            is_chunk,
            place: start + inner.start..start + inner.end,
        });
    }

    /// The received bytes as something the consumers may keep.
    fn hand_out(&mut self, index: usize, length: usize) -> Bytes {
        if length < GIVE_AWAY {
            return Bytes::copy_from_slice(&self.buffers[index][..length]);
        }
        let fresh = self.reclaim();
        let whole = std::mem::replace(&mut self.buffers[index], fresh).freeze();
        if self.lent.len() >= LENT {
            self.lent.pop_front();
        }
        self.lent.push_back(whole.clone());
        whole
    }

    /// A buffer that its consumers have let go, else a new one.
    fn reclaim(&mut self) -> BytesMut {
        let returned = self.lent.iter().position(Bytes::is_unique);
        returned
            .and_then(|at| self.lent.remove(at))
            .and_then(|bytes| bytes.try_into_mut().ok())
            .filter(|buffer| buffer.len() == BUFFER)
            .unwrap_or_else(|| BytesMut::zeroed(BUFFER))
    }
}

/// The datagrams of an aggregate of `length` bytes; an empty datagram is one, too.
fn segments(length: usize, stride: usize) -> impl Iterator<Item = Range<usize>> {
    let stride = if stride == 0 { length.max(1) } else { stride };
    let count = length.div_ceil(stride).max(1);
    (0..count).map(move |i| i * stride..((i + 1) * stride).min(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(length: usize, stride: usize) -> Vec<Range<usize>> {
        segments(length, stride).collect()
    }

    #[test]
    fn aggregates_fall_into_their_datagrams() {
        assert_eq!(of(30, 10), [0..10, 10..20, 20..30]);
        assert_eq!(of(25, 10), [0..10, 10..20, 20..25]);
        assert_eq!(of(5, 10), vec![0..5; 1]);
        assert_eq!(of(0, 0), vec![0..0; 1]);
        assert_eq!(of(7, 0), vec![0..7; 1]);
    }

    #[test]
    fn small_aggregates_pin_no_receive_buffer_and_large_ones_come_back() {
        let mut receiver = Receiver::new(true);
        assert_eq!(receiver.hand_out(0, 1_500).len(), 1_500);
        assert!(receiver.lent.is_empty());
        let address = receiver.buffers[0].as_ptr();
        let slice = receiver.hand_out(0, 60_000).slice(100..200);
        assert_ne!(receiver.buffers[0].as_ptr(), address);
        drop(receiver.hand_out(1, 60_000));
        assert_eq!(slice.len(), 100);
        drop(slice);
        receiver.hand_out(2, 60_000);
        receiver.hand_out(3, 60_000);
        let reused = receiver.buffers.iter().any(|buffer| buffer.as_ptr() == address);
        assert!(reused, "a buffer that was let go is used again");
        assert!(receiver.lent.len() <= 3);
    }

    #[test]
    fn held_buffers_are_watched_only_up_to_the_cap() {
        let mut receiver = Receiver::new(true);
        let held: Vec<_> = (0..100).map(|_| receiver.hand_out(0, 60_000)).collect();
        assert_eq!(receiver.lent.len(), LENT);
        assert_eq!(held.len(), 100);
    }
}
