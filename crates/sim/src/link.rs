//! What the network does to a datagram on its way.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

/// Bytes on the wire beside the UDP payload of a full Ethernet frame: preamble and gap 20, Ethernet 18, IPv4 20,
/// UDP 8.
pub const WIRE_OVERHEAD: usize = 66;

/// How datagrams are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None is.
    #[default]
    None,
    /// Each by itself, with this probability.
    Independent(f64),
    /// In bursts (Gilbert-Elliott): a good state that loses nothing, and a bad one.
    Bursts {
        /// Probability that a datagram finds the state turned from good to bad.
        begin: f64,
        /// Probability that a datagram finds the state turned from bad to good.
        end: f64,
        /// Probability of loss in the bad state.
        loss: f64,
    },
}

/// What every path of a network does, beside the delay of its topology.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bits a second that a node sends and receives at most; frames are counted whole ([`WIRE_OVERHEAD`]).
    pub rate: u64,
    /// What is lost on its way to a node.
    pub loss: Loss,
    /// Up to this much delay more, drawn evenly. What it overtakes comes out of order.
    pub jitter: Duration,
    /// Share of the datagrams that come a second time.
    pub duplicate: f64,
    /// The longest UDP payload that gets through, in bytes.
    pub max_datagram: usize,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate: 1_000_000_000,
            loss: Loss::None,
            jitter: Duration::ZERO,
            duplicate: 0.0,
            max_datagram: 1_472,
        }
    }
}

impl Link {
    /// How long a datagram of this many bytes takes to be put on the wire.
    #[must_use]
    pub fn serialization(&self, bytes: usize) -> Duration {
        let bits = 8 * (bytes + WIRE_OVERHEAD) as u64;
        Duration::from_nanos(bits * 1_000_000_000 / self.rate.max(1))
    }
}

/// The state of the way to one node.
#[derive(Debug)]
pub(crate) struct Path {
    rng: ChaCha20Rng,
    in_burst: bool,
}

/// What becomes of a datagram: how long it takes beyond the delay of the topology, twice if it comes twice.
pub(crate) type Fate = [Option<Duration>; 2];

impl Path {
    pub(crate) fn new(rng: ChaCha20Rng) -> Self {
        Self { rng, in_burst: false }
    }

    /// Draws what becomes of the next datagram; `extra_loss` is lost beside what the link loses.
    pub(crate) fn fate(&mut self, link: &Link, bytes: usize, extra_loss: f64) -> Fate {
        if bytes > link.max_datagram || self.is_lost(link.loss) || self.chance(extra_loss) {
            return [None, None];
        }
        let second = self.chance(link.duplicate).then(|| self.jitter(link));
        [Some(self.jitter(link)), second]
    }

    fn is_lost(&mut self, loss: Loss) -> bool {
        match loss {
            Loss::None => false,
            Loss::Independent(probability) => self.chance(probability),
            Loss::Bursts { begin, end, loss } => {
                let turn = if self.in_burst { end } else { begin };
                self.in_burst ^= self.chance(turn);
                self.in_burst && self.chance(loss)
            }
        }
    }

    fn jitter(&mut self, link: &Link) -> Duration {
        if link.jitter.is_zero() {
            return Duration::ZERO;
        }
        link.jitter.mul_f64(self.unit())
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// From 0 up to but not including 1, all 53 bits of it.
    fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    fn lost(loss: Loss) -> Vec<bool> {
        let link = Link {
            loss,
            ..Link::default()
        };
        let mut path = Path::new(ChaCha20Rng::seed_from_u64(1));
        (0..100_000)
            .map(|_| path.fate(&link, 100, 0.0)[0].is_none())
            .collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    /// Of the datagrams after a lost one, how many are lost too.
    fn share_after_loss(lost: &[bool]) -> f64 {
        let after: Vec<_> = lost
            .windows(2)
            .filter(|pair| pair[0])
            .map(|pair| pair[1])
            .collect();
        share(&after)
    }

    #[test]
    fn a_gigabit_carries_a_full_frame_in_twelve_microseconds() {
        assert_eq!(Link::default().serialization(1_472), Duration::from_nanos(12_304));
    }

    #[test]
    fn independent_loss_has_no_memory_and_bursts_have_one() {
        let independent = lost(Loss::Independent(0.07));
        assert!((share(&independent) - 0.07).abs() < 0.005);
        assert!((share_after_loss(&independent) - 0.07).abs() < 0.02);
        // In the bad state a tenth of the time, and there seven of ten are lost.
        let bursts = lost(Loss::Bursts {
            begin: 0.01,
            end: 0.09,
            loss: 0.7,
        });
        assert!((share(&bursts) - 0.07).abs() < 0.01, "{}", share(&bursts));
        assert!(share_after_loss(&bursts) > 0.5);
    }

    #[test]
    fn what_is_too_long_for_the_path_never_arrives() {
        let mut path = Path::new(ChaCha20Rng::seed_from_u64(1));
        let link = Link::default();
        assert_eq!(path.fate(&link, 1_472, 0.0), [Some(Duration::ZERO), None]);
        assert_eq!(path.fate(&link, 1_473, 0.0), [None, None]);
    }

    #[test]
    fn duplicates_come_in_their_share() {
        let link = Link {
            duplicate: 0.25,
            ..Link::default()
        };
        let mut path = Path::new(ChaCha20Rng::seed_from_u64(1));
        let twice = (0..10_000)
            .filter(|_| path.fate(&link, 100, 0.0)[1].is_some())
            .count();
        assert!((2_300..2_700).contains(&twice), "{twice}");
    }
}
