//! Pacing in wire bytes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::config::Rate;

/// Ethernet's share of every packet: preamble and start delimiter 8, header 14, check sequence 4, gap 12.
pub(crate) const ETHERNET_OVERHEAD: usize = 38;
/// The smallest Ethernet payload; shorter ones are padded.
const ETHERNET_MINIMUM: usize = 46;
const UDP_HEADER: usize = 8;

/// The time one paced group takes on the wire, about: how precise pacing is under load.
pub(crate) const GRAIN: Duration = Duration::from_micros(100);
/// How much unused time an idle pacer keeps: the burst that may leave after a pause.
pub(crate) const BURST: Duration = Duration::from_micros(200);
/// How late a wakeup may be before its lateness is lost bandwidth.
pub(crate) const CATCH_UP: Duration = Duration::from_millis(5);

/// IP and UDP headers in front of a payload to `to`, in bytes.
pub(crate) fn ip_udp_overhead(to: SocketAddr) -> usize {
    UDP_HEADER + if to.is_ipv4() { 20 } else { 40 }
}

/// Bytes that `payload` bytes of UDP payload to `to` take on an Ethernet link.
pub(crate) fn wire_bytes(payload: usize, to: SocketAddr) -> usize {
    (payload + ip_udp_overhead(to)).max(ETHERNET_MINIMUM) + ETHERNET_OVERHEAD
}

/// A token bucket, kept as the instant at which the link is free again.
///
/// A group may leave as soon as the link is free, and is charged in full afterwards, so an instant ahead
/// of the clock is a debt. While there is a backlog, an instant behind the clock (the timer fired late) is
/// carried up to [`CATCH_UP`]; after a pause only [`BURST`] is (docs/spec/threads.md#pacing).
#[derive(Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    free_at: Option<Instant>,
    backlogged: bool,
}

impl Pacer {
    pub(crate) fn new(rate: Rate) -> Pacer {
        Pacer {
            rate,
            free_at: None,
            backlogged: false,
        }
    }

    /// When the next group may leave; `None` is now. Call only with something to send.
    pub(crate) fn poll_wait(&mut self, now: Instant) -> Option<Instant> {
        let wait = self.free_at.filter(|free_at| *free_at > now);
        if wait.is_some() {
            self.backlogged = true;
        }
        wait
    }

    /// Charges `wire` bytes that left at `now`.
    pub(crate) fn charge(&mut self, now: Instant, wire: usize) {
        let Some(cost) = self.duration_of(wire) else {
            return;
        };
        let allowance = if self.backlogged { CATCH_UP } else { BURST };
        let earliest = now.checked_sub(allowance).unwrap_or(now);
        let free_at = self.free_at.unwrap_or(earliest).max(earliest);
        self.free_at = Some(free_at + cost);
    }

    /// Nothing is left to send: from here on unused time is an idle link's.
    pub(crate) fn note_idle(&mut self) {
        self.backlogged = false;
    }

    /// Most wire bytes one group should have, so that it fills about one [`GRAIN`]; `None` is no limit.
    pub(crate) fn group_limit(&self) -> Option<usize> {
        match self.rate {
            Rate::Unlimited => None,
            Rate::BitsPerSecond(bits) => {
                let bytes = u128::from(bits) * GRAIN.as_nanos() / 8 / 1_000_000_000;
                Some(usize::try_from(bytes).unwrap_or(usize::MAX))
            }
        }
    }

    fn duration_of(&self, wire: usize) -> Option<Duration> {
        match self.rate {
            Rate::Unlimited => None,
            Rate::BitsPerSecond(bits) => {
                let nanos = wire as u128 * 8 * 1_000_000_000 / u128::from(bits.max(1));
                Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: u64 = 1_000_000_000;

    fn v4() -> SocketAddr {
        "127.0.0.1:1".parse().unwrap()
    }

    /// Sends `groups` groups in virtual time; each wakeup is `late` late. Returns the time they took.
    fn run(pacer: &mut Pacer, start: Instant, groups: usize, wire: usize, late: Duration) -> Duration {
        let mut now = start;
        for _ in 0..groups {
            if let Some(at) = pacer.poll_wait(now) {
                now = at + late;
            }
            assert!(pacer.poll_wait(now).is_none());
            pacer.charge(now, wire);
        }
        now - start
    }

    #[test]
    fn wire_bytes_count_every_layer() {
        assert_eq!(wire_bytes(1472, v4()), 1538);
        assert_eq!(wire_bytes(1452, "[::1]:1".parse().unwrap()), 1538);
        assert_eq!(
            wire_bytes(0, v4()),
            84,
            "a minimum frame is 64 bytes, 20 more on the wire"
        );
    }

    #[test]
    fn rate_is_exact_over_a_second() {
        let mut pacer = Pacer::new(Rate::BitsPerSecond(GIGABIT));
        let took = run(&mut pacer, Instant::now(), 10_000, 12_500, Duration::ZERO);
        assert!(took >= Duration::from_millis(999), "{took:?}");
        assert!(took <= Duration::from_secs(1), "{took:?}");
    }

    #[test]
    fn late_wakeups_lose_no_bandwidth() {
        let mut pacer = Pacer::new(Rate::BitsPerSecond(GIGABIT));
        let late = Duration::from_micros(900);
        let took = run(&mut pacer, Instant::now(), 10_000, 12_500, late);
        assert!(took <= Duration::from_micros(1_000_900), "{took:?}");
        assert!(took >= Duration::from_millis(999), "{took:?}");
    }

    #[test]
    fn a_pause_buys_only_a_bounded_burst() {
        let mut pacer = Pacer::new(Rate::BitsPerSecond(GIGABIT));
        let start = Instant::now();
        run(&mut pacer, start, 100, 12_500, Duration::ZERO);
        pacer.note_idle();
        let later = start + Duration::from_secs(60);
        let mut burst = 0;
        while pacer.poll_wait(later).is_none() {
            pacer.charge(later, 12_500);
            burst += 12_500;
        }
        // BURST at the rate, and the one group that is charged after it left.
        assert!(burst <= 25_000 + 12_500, "{burst}");
    }

    #[test]
    fn lateness_beyond_the_allowance_is_lost() {
        let mut pacer = Pacer::new(Rate::BitsPerSecond(GIGABIT));
        let start = Instant::now();
        run(&mut pacer, start, 10, 12_500, Duration::ZERO);
        assert!(pacer.poll_wait(start).is_some());
        let later = start + Duration::from_secs(1);
        let mut burst = 0;
        while pacer.poll_wait(later).is_none() {
            pacer.charge(later, 12_500);
            burst += 12_500;
        }
        assert!(burst <= 625_000 + 12_500, "{burst}");
    }

    #[test]
    fn unlimited_never_waits() {
        let mut pacer = Pacer::new(Rate::Unlimited);
        let now = Instant::now();
        for _ in 0..1000 {
            assert!(pacer.poll_wait(now).is_none());
            pacer.charge(now, 65_507);
        }
        assert_eq!(pacer.group_limit(), None);
    }
}
