//! A link in user space: delay and loss in front of the sockets.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::config::LinkEmulation;
use crate::unit::Unit;

/// Most bytes in flight on the emulated link (docs/spec/threads.md#delay-line).
pub(crate) const MAX_BYTES: usize = 64 << 20;
/// Most groups in flight on the emulated link.
pub(crate) const MAX_UNITS: usize = 65_536;

/// Groups on their way, ordered by when they are due, then by when they were sent.
pub(crate) struct DelayLine {
    link: LinkEmulation,
    /// A datagram is lost if a uniform 32-bit draw is below this.
    loss_below: u64,
    rng: ChaCha8Rng,
    held: BinaryHeap<Reverse<Held>>,
    sequence: u64,
    bytes: usize,
}

/// What became of a group's datagrams.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Lost on the emulated link.
    pub(crate) lost: usize,
    /// Did not fit into the delay line.
    pub(crate) overflowed: usize,
}

impl DelayLine {
    pub(crate) fn new(link: LinkEmulation) -> DelayLine {
        let loss = link.loss.clamp(0.0, 1.0);
        DelayLine {
            loss_below: (loss * 4_294_967_296.0) as u64,
            rng: ChaCha8Rng::seed_from_u64(link.seed),
            link,
            held: BinaryHeap::new(),
            sequence: 0,
            bytes: 0,
        }
    }

    /// Takes a group that leaves at `now`.
    pub(crate) fn push(&mut self, now: Instant, mut unit: Unit) -> Verdict {
        let mut verdict = Verdict::default();
        if self.loss_below > 0 {
            let (rng, below) = (&mut self.rng, self.loss_below);
            verdict.lost = unit.retain(|| u64::from(rng.next_u32()) >= below);
        }
        let size = unit.remaining().len();
        if size == 0 {
            return verdict;
        }
        if self.held.len() >= MAX_UNITS || self.bytes + size > MAX_BYTES {
            verdict.overflowed = unit.remaining_datagrams();
            return verdict;
        }
        self.bytes += size;
        self.sequence += 1;
        self.held.push(Reverse(Held {
            due: now + (self.link.delay)(unit.to),
            sequence: self.sequence,
            unit,
        }));
        verdict
    }

    /// The next group that has arrived at the far end of the link by `now`.
    pub(crate) fn poll_due(&mut self, now: Instant) -> Option<Unit> {
        if self.poll_timeout()? > now {
            return None;
        }
        let Reverse(held) = self.held.pop()?;
        self.bytes -= held.unit.remaining().len();
        Some(held.unit)
    }

    /// When the next group is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// Groups in flight.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }
}

struct Held {
    due: Instant,
    sequence: u64,
    unit: Unit,
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use falconet_transport::Lane;

    use super::*;

    fn line(loss: f64, seed: u64) -> DelayLine {
        DelayLine::new(LinkEmulation {
            delay: Arc::new(|to| Duration::from_millis(u64::from(to.port()))),
            loss,
            seed,
        })
    }

    fn unit(port: u16, datagrams: usize) -> Unit {
        let to = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        Unit::new(Lane::Plain, to, 10, vec![0; 10 * datagrams])
    }

    #[test]
    fn groups_come_out_by_due_time_then_order() {
        let (mut line, start) = (line(0.0, 1), Instant::now());
        for (port, datagrams) in [(20, 1), (10, 2), (20, 3), (10, 4)] {
            assert_eq!(line.push(start, unit(port, datagrams)), Verdict::default());
        }
        assert!(line.poll_due(start + Duration::from_millis(9)).is_none());
        assert_eq!(line.poll_timeout(), Some(start + Duration::from_millis(10)));
        let late = start + Duration::from_secs(1);
        let order: Vec<_> = std::iter::from_fn(|| line.poll_due(late))
            .map(|unit| (unit.to.port(), unit.remaining_datagrams()))
            .collect();
        assert_eq!(order, [(10, 2), (10, 4), (20, 1), (20, 3)]);
        assert_eq!(line.bytes, 0);
    }

    #[test]
    fn loss_hits_datagrams_not_groups_and_repeats_with_the_seed() {
        let lost = |seed| {
            let mut line = line(0.1, seed);
            let now = Instant::now();
            (0..500)
                .map(|_| line.push(now, unit(1, 40)).lost)
                .collect::<Vec<_>>()
        };
        let first = lost(7);
        assert_eq!(first, lost(7));
        assert_ne!(first, lost(8));
        let total: usize = first.iter().sum();
        assert!((1_800..2_200).contains(&total), "{total} of 20,000 at 10 %");
        assert!(first.iter().filter(|lost| **lost > 0 && **lost < 40).count() > 400);
    }

    #[test]
    fn total_loss_holds_nothing() {
        let mut line = line(1.0, 1);
        assert_eq!(line.push(Instant::now(), unit(1, 5)).lost, 5);
        assert_eq!(line.len(), 0);
    }

    #[test]
    fn full_line_counts_what_it_refuses() {
        let (mut line, now) = (line(0.0, 1), Instant::now());
        line.bytes = MAX_BYTES - 25;
        assert_eq!(line.push(now, unit(1, 2)), Verdict::default());
        assert_eq!(line.push(now, unit(1, 3)).overflowed, 3);
        assert_eq!(line.len(), 1);
    }
}
