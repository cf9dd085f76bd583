//! Two endpoints, what is on its way between them, and what must hold of it.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{Now, Suite, TransportSecret};
use falconet_transport::{Endpoint, Lane, PeerConfig, PeerId, Policy, TransportConfig, kind};

/// What each endpoint calls the other.
pub(super) const PEER: PeerId = PeerId(0);
const MAX_FLIGHTS: usize = 256;
/// The lost session is noticed after 15 s, and a dial that was under way tries again within 5 s and a third.
const RECONVERGES_WITHIN: Duration = Duration::from_secs(25);
/// Timers that fire in one advance of time; an endpoint that spins would fire more.
const MAX_TIMERS: usize = 10_000;

pub(super) struct Flight {
    pub(super) to: usize,
    pub(super) from: SocketAddr,
    pub(super) lane: Lane,
    pub(super) datagram: Vec<u8>,
}

pub(super) struct Wire {
    pub(super) now: Now,
    start: Instant,
    pub(super) endpoints: [Endpoint; 2],
    restarts: u8,
    policy: Policy,
    suites: Vec<Suite>,
    flights: VecDeque<Flight>,
    /// Every message that was sent: whom to, and whether it was handed out.
    sent: HashMap<Vec<u8>, (usize, bool)>,
    number: u64,
    heard_since: [bool; 2],
}

/// Each endpoint has a second address, as if a NAT had moved it: roaming may use it.
pub(super) fn address(node: usize, lane: Lane, is_moved: bool) -> SocketAddr {
    let port = if lane == Lane::Plain { 8000 } else { 7000 };
    SocketAddr::from(([10, 0, u8::from(is_moved), node as u8 + 1], port))
}

fn secret(node: usize) -> TransportSecret {
    TransportSecret::from_bytes([node as u8 + 1; 32])
}

impl Wire {
    pub(super) fn new(choices: u8) -> Self {
        let now = Now {
            instant: Instant::now(),
            unix: Duration::from_secs(1_700_000_000),
        };
        let policy = [
            Policy::Require,
            Policy::Prefer,
            Policy::PlainUntilSeen,
            Policy::Require,
        ][usize::from(choices % 4)];
        let suites = if choices & 4 == 0 {
            Vec::new()
        } else {
            vec![Suite::Aes256Gcm]
        };
        let mut wire = Self {
            now,
            start: now.instant,
            endpoints: [0, 1]
                .map(|node| Endpoint::new(TransportConfig::default(), secret(node), now, [node as u8; 32])),
            restarts: 0,
            policy,
            suites,
            flights: VecDeque::new(),
            sent: HashMap::new(),
            number: 0,
            heard_since: [false; 2],
        };
        (0..2).for_each(|node| wire.add_peer(node));
        wire
    }

    fn add_peer(&mut self, node: usize) {
        let other = 1 - node;
        let config = PeerConfig::new(secret(other).public())
            .with_address(address(other, Lane::Authenticated, false))
            .with_plain_address(address(other, Lane::Plain, false))
            .with_policy(self.policy)
            .with_suites(self.suites.clone());
        self.endpoints[node]
            .add_peer(self.now, PEER, &config)
            .expect("the first peer");
    }

    pub(super) fn restart(&mut self, node: usize) {
        self.restarts = self.restarts.wrapping_add(1);
        let seed = [self.restarts.wrapping_add(100); 32];
        // A restart takes time, and clocks go on: the same timestamp twice would be a replay.
        self.now = self.now.after(Duration::from_millis(30));
        self.endpoints[node] = Endpoint::new(TransportConfig::default(), secret(node), self.now, seed);
        self.add_peer(node);
    }

    pub(super) fn send(&mut self, node: usize) {
        self.number += 1;
        let mut message = vec![kind::MESSAGE];
        message.extend(self.number.to_le_bytes());
        message.resize(9 + (self.number % 40) as usize, 0);
        if self.endpoints[node]
            .send(self.now, PEER, &Bytes::from(message.clone()))
            .is_ok()
        {
            self.sent.insert(message, (1 - node, false));
        }
        self.collect();
    }

    pub(super) fn take(&mut self, which: usize) -> Option<Flight> {
        let len = self.flights.len();
        if len == 0 {
            None
        } else {
            self.flights.remove(which % len)
        }
    }

    pub(super) fn duplicate(&mut self, which: usize) {
        let len = self.flights.len();
        if len > 0 && len < MAX_FLIGHTS {
            let Flight {
                to,
                from,
                lane,
                ref datagram,
            } = self.flights[which % len];
            let copy = Flight {
                to,
                from,
                lane,
                datagram: datagram.clone(),
            };
            self.flights.push_back(copy);
        }
    }

    pub(super) fn deliver_next(&mut self, which: usize, alter: impl FnOnce(&mut Flight)) {
        if let Some(mut flight) = self.take(which) {
            // What is altered is not empty before.
            if !flight.datagram.is_empty() {
                alter(&mut flight);
            }
            self.deliver(flight);
            self.collect();
        }
    }

    pub(super) fn deliver(&mut self, mut flight: Flight) {
        let endpoint = &mut self.endpoints[flight.to];
        let Ok(inbound) = endpoint.handle_datagram(self.now, flight.from, flight.lane, &mut flight.datagram)
        else {
            return;
        };
        let plaintext = &flight.datagram[inbound.start..inbound.start + inbound.len];
        if flight.lane == Lane::Plain {
            assert_ne!(self.policy, Policy::Require, "a plain datagram was handed out");
            return;
        }
        if plaintext.first() != Some(&kind::MESSAGE) {
            return;
        }
        assert_eq!(inbound.peer, Some(PEER), "an authenticated message of nobody");
        let (to, was_handed_out) = self.sent.get_mut(plaintext).expect("a message that nobody sent");
        assert_eq!(*to, flight.to, "a message came back to its sender");
        assert!(!*was_handed_out, "a message was handed out twice");
        *was_handed_out = true;
        self.heard_since[flight.to] = true;
    }

    pub(super) fn collect(&mut self) {
        for (node, endpoint) in self.endpoints.iter_mut().enumerate() {
            while endpoint.poll_event().is_some() {}
            while let Some(transmit) = endpoint.poll_transmit() {
                let (lane, to) = (transmit.lane, 1 - node);
                assert!(
                    lane == Lane::Authenticated || self.policy != Policy::Require,
                    "sent in the clear"
                );
                let is_reachable = [false, true]
                    .map(|is_moved| address(to, lane, is_moved))
                    .contains(&transmit.to);
                assert!(is_reachable, "sent to nobody: {}", transmit.to);
                if self.flights.len() < MAX_FLIGHTS {
                    let from = address(node, lane, false);
                    self.flights.push_back(Flight {
                        to,
                        from,
                        lane,
                        datagram: transmit.datagram.to_vec(),
                    });
                }
            }
        }
    }

    /// Lets time pass; the timers fire one after the other.
    pub(super) fn advance(&mut self, by: Duration) {
        let end = self.now.instant + by;
        for _ in 0..MAX_TIMERS {
            let due = self
                .endpoints
                .iter()
                .filter_map(Endpoint::poll_timeout)
                .min()
                .filter(|at| *at <= end);
            let Some(at) = due else {
                self.now = self.now.after(end.saturating_duration_since(self.now.instant));
                return;
            };
            self.now = self.now.after(at.saturating_duration_since(self.now.instant));
            for endpoint in &mut self.endpoints {
                endpoint.handle_timeout(self.now);
            }
            self.collect();
        }
        panic!(
            "timers without end, {:?} after the start",
            self.now.instant - self.start
        );
    }

    /// The wire is good from now on: each hears the other on the authenticated lane soon.
    pub(super) fn reconverges(&mut self) {
        let good_since = self.now.instant;
        self.flights.clear();
        self.heard_since = [false; 2];
        while self.heard_since != [true; 2] {
            assert!(
                self.now.instant - good_since <= RECONVERGES_WITHIN,
                "still broken: {:?}",
                self.heard_since
            );
            (0..2).for_each(|node| self.send(node));
            for _ in 0..2 * MAX_FLIGHTS {
                self.deliver_next(0, |_| {});
            }
            self.advance(Duration::from_millis(500));
        }
        for endpoint in &self.endpoints {
            let sessions = endpoint.sessions().stats().sessions;
            assert!(sessions <= 3, "{sessions} sessions with one peer");
        }
    }
}
