//! What the dataplane thread receives: judged, and handed over a batch a turn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use falconet_crypto::Now;
use falconet_transport::Lane;

use super::DataThread;
use crate::inbound::{Consumer, Inbound};
use crate::judge::{judge_authenticated, judge_plain, judge_under_bans};
use crate::receive::Judged;
use crate::stats::Counters;

/// Most datagrams taken from the data socket in a turn (docs/spec/threads.md#receive-budget).
const DATA_BUDGET: usize = 256;
/// Most datagrams taken from the plain socket in a turn.
const PLAIN_BUDGET: usize = 128;

impl DataThread {
    /// Receives within the lanes' budgets and hands the batches over; true if there may be more.
    pub(super) fn receive(&mut self, now: Now) -> bool {
        let mut busy = self.receive_lane(now, Lane::Authenticated, DATA_BUDGET);
        busy |= self.receive_lane(now, Lane::Plain, PLAIN_BUDGET);
        let (consumers, batches, counters) = (&mut self.consumers, &mut self.batches, &mut self.counters);
        let chunks = consumers.chunks.as_mut();
        deliver(chunks, &mut batches.chunks, "chunks_full", counters);
        let messages = consumers.messages.as_mut();
        deliver(messages, &mut batches.messages, "messages_full", counters);
        busy
    }

    /// Receives from one lane until nothing is there or `budget` datagrams were taken; true if there may be more.
    pub(super) fn receive_lane(&mut self, now: Now, lane: Lane, budget: usize) -> bool {
        let mut taken = 0;
        while let Some(port) = self.egress.port(lane) {
            let asked = self.receiver.room(budget - taken.min(budget));
            if asked == 0 {
                return true;
            }
            let filled = self.receiver.fill(port, asked, &mut self.counters);
            if filled == 0 {
                break;
            }
            // Whoever sent this may have done so because our embedder had added it as a peer: that
            // command is in the queue by now (docs/spec/threads.md#commands).
            self.handle_commands(now);
            let (sessions, handshakes, bans) = (&mut self.sessions, &self.handshakes, &self.bans);
            let timings = Arc::clone(&self.counters.timings);
            let mut is_sampled = false;
            let mut judge = |from, datagram: &mut [u8]| match lane {
                Lane::Authenticated => {
                    let since = (!is_sampled).then(Instant::now);
                    let judged = judge_authenticated(sessions, handshakes, now, from, datagram);
                    if let (Some(since), Judged::Chunk(..) | Judged::Message(..)) = (since, &judged) {
                        is_sampled = true;
                        timings.opening.note(since.elapsed());
                    }
                    judged
                }
                Lane::Plain => judge_plain(sessions, now, from, datagram),
            };
            let judge = |from: SocketAddr, datagram: &mut [u8]| {
                if bans.is_empty() {
                    judge(from, datagram)
                } else {
                    judge_under_bans(bans, from, || judge(from, datagram))
                }
            };
            let (counters, batches) = (&mut self.counters, &mut self.batches);
            taken += self.receiver.judge(lane, filled, counters, batches, judge);
            if filled < asked {
                break;
            }
        }
        false
    }
}

/// Hands `batch` over and puts an empty one in its place.
fn deliver(
    consumer: &mut dyn Consumer,
    batch: &mut Vec<Inbound>,
    reason: &'static str,
    counters: &mut Counters,
) {
    if batch.is_empty() {
        return;
    }
    let datagrams = batch.len();
    let empty = consumer.spare().filter(Vec::is_empty);
    // One allocation a batch at most: the next one is likely no longer.
    let full = std::mem::replace(batch, empty.unwrap_or_else(|| Vec::with_capacity(datagrams)));
    if consumer.deliver(full).is_err() {
        counters.note_discarded(reason, datagrams);
    }
}
