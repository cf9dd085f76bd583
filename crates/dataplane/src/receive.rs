//! Receive buffers and the way of their contents to the consumers.

use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use falconet_transport::{Lane, PeerId};
use quinn_udp::RecvMeta;

use crate::buffers::Buffers;
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
/// Sizes of the buffers that go to consumers: shorter aggregates are copied into the least that holds them, so that
/// whoever keeps one datagram pins little more than what it was sent along with
/// (docs/spec/threads.md#receive-buffers).
const SIZES: [usize; 4] = [2 * 1024, 8 * 1024, 32 * 1024, BUFFER];

/// Receives aggregates and turns them into batches.
pub(crate) struct Receiver {
    buffers: Vec<BytesMut>,
    metas: [RecvMeta; SINGLES],
    /// Most datagrams that one buffer may turn out to hold.
    aggregate: usize,
    accepted: Vec<Accepted>,
    /// By size, those of [`SIZES`].
    pools: [Buffers; SIZES.len()],
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
        let mut pools = SIZES.map(Buffers::new);
        let largest = &mut pools[SIZES.len() - 1];
        Receiver {
            buffers: (0..buffers).map(|_| largest.take()).collect(),
            metas: [RecvMeta::default(); SINGLES],
            aggregate,
            accepted: Vec::new(),
            pools,
        }
    }

    /// How many buffers cannot turn out to hold more than `budget` datagrams, each being filled by an aggregate of
    /// the longest kind (docs/spec/threads.md#receive-budget).
    pub(crate) fn room(&self, budget: usize) -> usize {
        (budget / self.aggregate).min(self.buffers.len())
    }

    /// Reads up to `count` aggregates from `port`; returns how many there were.
    pub(crate) fn fill(&mut self, port: &Port, count: usize, counters: &mut Counters) -> usize {
        let count = count.min(self.buffers.len());
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
        let [smaller @ .., largest] = &mut self.pools;
        for (pool, size) in smaller.iter_mut().zip(SIZES) {
            if length <= size {
                let mut copy = pool.take();
                copy[..length].copy_from_slice(&self.buffers[index][..length]);
                return pool.lend(copy);
            }
        }
        let fresh = largest.take();
        largest.lend(std::mem::replace(&mut self.buffers[index], fresh))
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
    fn short_aggregates_are_copied_and_pin_no_receive_buffer() {
        let mut receiver = Receiver::new(true);
        let address = receiver.buffers[0].as_ptr();
        receiver.buffers[0][..3].copy_from_slice(&[7, 8, 9]);
        for (length, size) in [(3, 2_048), (2_049, 8_192), (32_768, 32_768)] {
            let handed = receiver.hand_out(0, length);
            assert_eq!((&handed[..3], handed.len()), (&[7, 8, 9][..], size));
            assert_eq!(receiver.buffers[0].as_ptr(), address);
        }
    }

    #[test]
    fn a_long_aggregate_takes_its_buffer_along_and_lets_it_come_back() {
        let mut receiver = Receiver::new(true);
        let address = receiver.buffers[0].as_ptr();
        let slice = receiver.hand_out(0, 60_000).slice(100..200);
        assert_ne!(receiver.buffers[0].as_ptr(), address);
        drop(slice);
        drop(receiver.hand_out(1, 60_000));
        assert_eq!(receiver.buffers[1].as_ptr(), address);
        assert!(receiver.buffers.iter().all(|buffer| buffer.len() == BUFFER));
    }
}
