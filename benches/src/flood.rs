//! Sending at a rate, to this machine only, bounded in time and number.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Most datagrams of one flood, whatever its rate.
const MOST: u64 = 20_000_000;
/// The longest flood.
const LONGEST: Duration = Duration::from_secs(120);

/// A flood to be: where to, how fast, how long.
#[derive(Debug)]
pub struct Flood<'a> {
    rate: Option<f64>,
    time: Duration,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Flood<'a> {
    /// To `target`, at `rate` datagrams a second or as fast as it goes, for `time`.
    ///
    /// # Panics
    /// If `target` is another machine (a link-local address is the other end of a cable that a bench has plugged in,
    /// and is routed nowhere), or `time` is longer than two minutes.
    pub fn new(target: SocketAddr, rate: Option<f64>, time: Duration) -> Self {
        let is_here = match target.ip() {
            IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_loopback(),
        };
        assert!(is_here, "nothing but this machine is flooded");
        assert!(time <= LONGEST, "no flood is longer than {LONGEST:?}");
        Self {
            rate,
            time,
            stop: None,
        }
    }

    /// Ends it also when `stop` is set.
    #[must_use]
    pub fn with_stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Calls `send` with the number of datagrams sent before, for `burst` more; it says whether they were sent. Spins
    /// on the calling thread, also at a rate of 0. Returns how many were sent.
    pub fn run(&self, burst: u64, mut send: impl FnMut(u64) -> bool) -> u64 {
        let (started, mut sent) = (Instant::now(), 0);
        let is_stopped = || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        while started.elapsed() < self.time && sent < MOST && !is_stopped() {
            let allowed = self
                .rate
                .map_or(f64::INFINITY, |rate| rate * started.elapsed().as_secs_f64());
            if sent as f64 >= allowed {
                std::thread::yield_now();
            } else if send(sent) {
                sent += burst;
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    #[should_panic(expected = "nothing but this machine")]
    fn another_machine_is_not_flooded() {
        let _ = Flood::new("192.0.2.1:9".parse().expect("an address"), Some(1.0), SHORT);
    }

    #[test]
    #[should_panic(expected = "nothing but this machine")]
    fn another_machine_is_not_flooded_by_ipv6() {
        let _ = Flood::new("[2001:db8::1]:9".parse().expect("an address"), None, SHORT);
    }

    #[test]
    #[should_panic(expected = "no flood is longer")]
    fn a_flood_ends() {
        let _ = Flood::new("127.0.0.1:9".parse().expect("an address"), None, 2 * LONGEST);
    }

    #[test]
    fn what_is_sent_keeps_to_the_rate() {
        let flood = Flood::new("[::1]:9".parse().expect("an address"), Some(0.0), SHORT);
        assert_eq!(flood.run(1, |_| panic!("nothing may be sent at a rate of 0")), 0);
    }
}
