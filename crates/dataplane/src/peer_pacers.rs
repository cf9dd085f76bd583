//! A rate for each peer, beside the node's.

use std::collections::HashMap;
use std::time::Instant;

use falconet_transport::PeerId;

use crate::config::Rate;
use crate::pacer::Pacer;

/// Token buckets by peer, made when a peer is first sent to; one a peer at most, since removed ones go
/// (docs/spec/threads.md#peer-pacing).
pub(crate) struct PeerPacers {
    rate: Rate,
    pacers: HashMap<PeerId, Pacer>,
    /// When the earliest of the peers that had to wait may go on.
    earliest: Option<Instant>,
}

impl PeerPacers {
    pub(crate) fn new(rate: Rate) -> PeerPacers {
        PeerPacers {
            rate,
            pacers: HashMap::new(),
            earliest: None,
        }
    }

    /// Most wire bytes one group should have; `None` is no limit.
    pub(crate) fn group_limit(&self) -> Option<usize> {
        Pacer::new(self.rate).group_limit()
    }

    /// Whether `peer`, which has something to send, must wait.
    pub(crate) fn holds(&mut self, now: Instant, peer: PeerId) -> bool {
        if self.rate == Rate::Unlimited {
            return false;
        }
        let wait = self.pacers.get_mut(&peer).and_then(|pacer| pacer.poll_wait(now));
        if let Some(at) = wait {
            self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
        }
        wait.is_some()
    }

    /// When the first of those that were held since the last call may go on.
    pub(crate) fn take_earliest(&mut self) -> Option<Instant> {
        self.earliest.take()
    }

    /// Charges `wire` bytes that left for `peer` at `now`, which `has_more` to send or not.
    pub(crate) fn charge(&mut self, now: Instant, peer: PeerId, wire: usize, has_more: bool) {
        if self.rate == Rate::Unlimited {
            return;
        }
        let rate = self.rate;
        let pacer = self.pacers.entry(peer).or_insert_with(|| Pacer::new(rate));
        pacer.charge(now, wire);
        if !has_more {
            pacer.note_idle();
        }
    }

    pub(crate) fn remove_peer(&mut self, peer: PeerId) {
        self.pacers.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GROUP: usize = 12_500;

    #[test]
    fn each_peer_has_its_own_rate_and_late_wakeups_cost_none_of_it() {
        // 12,500 bytes at 100 Mbit/s are a millisecond.
        let mut pacers = PeerPacers::new(Rate::BitsPerSecond(100_000_000));
        let start = Instant::now();
        let (mut now, mut sent) = (start, [0_u32; 2]);
        while now < start + Duration::from_secs(1) {
            for peer in 0..2 {
                while !pacers.holds(now, PeerId(peer)) {
                    pacers.charge(now, PeerId(peer), GROUP, true);
                    sent[peer as usize] += 1;
                }
            }
            // Every wakeup is 700 us late.
            now = pacers.take_earliest().unwrap() + Duration::from_micros(700);
        }
        for groups in sent {
            assert!((998..=1_004).contains(&groups), "{sent:?}");
        }
    }

    #[test]
    fn unlimited_holds_nobody_and_keeps_nothing() {
        let (mut pacers, now) = (PeerPacers::new(Rate::Unlimited), Instant::now());
        for peer in 0..100 {
            pacers.charge(now, PeerId(peer), 1 << 20, true);
            assert!(!pacers.holds(now, PeerId(peer)));
        }
        assert!(pacers.pacers.is_empty() && pacers.take_earliest().is_none());
        assert_eq!(pacers.group_limit(), None);
    }

    #[test]
    fn a_removed_peer_leaves_nothing_behind() {
        let (mut pacers, now) = (PeerPacers::new(Rate::BitsPerSecond(1_000_000)), Instant::now());
        pacers.charge(now, PeerId(1), 1 << 20, true);
        assert!(pacers.holds(now, PeerId(1)) && !pacers.holds(now, PeerId(2)));
        pacers.remove_peer(PeerId(1));
        assert!(!pacers.holds(now, PeerId(1)) && pacers.pacers.is_empty());
    }
}
