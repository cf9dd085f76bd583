//! boringtun at the far end of long paths that lose 30 % each way: whoever dials, and both at once.
//!
//! boringtun reads the real clock and repeats an initiation after 5 s, so the cases run side by side. Nothing is left
//! to luck: the fates of handshake messages follow from the seed (see `long_path`), and with them the attempt that is
//! answered; a bound is when that attempt has left at the latest, one round trip, and `SLACK` for a busy machine. Of
//! `CONVERSATION` data datagrams each way at least a quarter has to come: of 100 draws of 0.7 fewer than 25 succeed
//! with a probability below 1e-20.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod long_path;

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519;
use bytes::Bytes;
use falconet_crypto::{Now, TransportPublicKey, TransportSecret};
use falconet_transport::{Content, Endpoint, Event, Lane, PeerConfig, PeerId, Policy, TransportConfig};
use long_path::{End, LongPath, ROUND_TRIPS, latest_departure};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const PEER: PeerId = PeerId(3);
/// Cases of each round trip and dialler.
const SEEDS: usize = 3;
/// Attempts in the cases that are run: several, so that something is repeated, and few, so that it ends in time.
const ATTEMPTS: std::ops::RangeInclusive<usize> = 2..=5;
/// What a busy machine may add.
const SLACK: Duration = Duration::from_secs(10);
/// boringtun repeats an initiation after 5 s, and looks at its timers whenever we say.
const THEIR_PAUSE: Duration = Duration::from_secs(5);
const THEIR_TIMERS: Duration = Duration::from_millis(50);
/// Datagrams that each side sends once there is a session, and the pause between them.
const CONVERSATION: u32 = 100;
const PERIOD: Duration = Duration::from_millis(50);
/// No case takes longer, whatever happens: five attempts of theirs, the slack, the conversation.
const HARD_LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Diallers {
    We,
    They,
    Both,
}

#[test]
fn boringtun_answers_our_dial_over_long_paths_with_loss() {
    run_all(Diallers::We);
}

#[test]
fn boringtun_dials_us_over_long_paths_with_loss() {
    run_all(Diallers::They);
}

#[test]
fn boringtun_and_we_dial_at_once_over_long_paths_with_loss() {
    run_all(Diallers::Both);
}

fn run_all(diallers: Diallers) {
    std::thread::scope(|scope| {
        for round_trip in ROUND_TRIPS {
            let eventful = (0..).filter(|seed| ATTEMPTS.contains(&attempts(round_trip, *seed, diallers)));
            for seed in eventful.take(SEEDS) {
                scope.spawn(move || Pair::new(round_trip, seed).run(diallers));
            }
        }
    });
}

/// The attempt that is answered, of whoever is answered later.
fn attempts(round_trip: Duration, seed: u64, diallers: Diallers) -> usize {
    let path = LongPath::new(round_trip, seed);
    let (ours, theirs) = (
        path.our_first_answered(End::Theirs),
        path.first_answered(End::Ours, 0),
    );
    match diallers {
        Diallers::We => ours,
        Diallers::They => theirs,
        Diallers::Both => ours.max(theirs),
    }
}

struct Pair {
    case: String,
    path: LongPath,
    start: Instant,
    endpoint: Endpoint,
    tunn: Tunn,
    /// Numbers of the packets that each side was handed.
    heard: [Vec<u32>; 2],
    events: Vec<Event>,
}

fn address(end: End) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, end as u8 + 1], 51820))
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap(),
    }
}

/// An IPv4 packet of 24 bytes that carries its number; boringtun looks at version, length and source only.
fn packet(number: u32) -> Bytes {
    let mut packet = vec![0; 24];
    packet[0] = 0x45;
    packet[3] = 24;
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet[20..].copy_from_slice(&number.to_le_bytes());
    packet.into()
}

fn number(packet: &[u8]) -> u32 {
    u32::from_le_bytes(packet[20..24].try_into().unwrap())
}

impl Pair {
    fn new(round_trip: Duration, seed: u64) -> Self {
        // Either side has the smaller key for some seed.
        let secret = TransportSecret::from_bytes([seed as u8 * 2 + 1; 32]);
        let their_secret = x25519::StaticSecret::from([seed as u8 * 2 + 2; 32]);
        let their_public = x25519::PublicKey::from(&their_secret);
        let our_public = x25519::PublicKey::from(*secret.public().as_bytes());
        let limiter = Arc::new(RateLimiter::new(&their_public, u64::MAX));
        let tunn = Tunn::new(their_secret, our_public, None, None, 7, Some(limiter));
        let peer = PeerConfig::new(TransportPublicKey::from_bytes(their_public.to_bytes()))
            .with_address(address(End::Theirs))
            .with_policy(Policy::Require)
            .with_wireguard(true);
        let mut endpoint = Endpoint::new(TransportConfig::default(), secret, now(), [seed as u8; 32]);
        endpoint.add_peer(now(), PEER, &peer).unwrap();
        Self {
            case: format!("{round_trip:?}, seed {seed}"),
            path: LongPath::new(round_trip, seed),
            start: Instant::now(),
            endpoint,
            tunn,
            heard: [Vec::new(), Vec::new()],
            events: Vec::new(),
        }
    }

    fn run(mut self, diallers: Diallers) {
        let round_trip = self.path.round_trip();
        if diallers != Diallers::They {
            self.say(End::Ours, 0);
        }
        if diallers != Diallers::We {
            self.say(End::Theirs, 0);
        }
        let our_bound = latest_departure(self.path.our_first_answered(End::Theirs)) + round_trip;
        let their_attempts = self.path.first_answered(End::Ours, 0) as u32;
        let their_bound = (THEIR_PAUSE + THEIR_TIMERS) * (their_attempts - 1) + round_trip;
        let bound = SLACK
            + match diallers {
                Diallers::We => our_bound,
                Diallers::They => their_bound,
                Diallers::Both => our_bound.min(their_bound),
            };
        // The session is whole once something came through it each way: what is said meanwhile may wait or be lost.
        let mut said = 1;
        while self.heard.iter().any(Vec::is_empty) {
            self.run_for(PERIOD);
            let took = self.start.elapsed();
            assert!(
                took <= bound,
                "{}: nothing came through after {took:?}",
                self.case
            );
            if self.is_connected() {
                End::BOTH.into_iter().for_each(|end| self.say(end, said));
                said += 1;
            }
        }
        self.converse(said, round_trip);
    }

    /// Many packets each way, in the one session.
    fn converse(mut self, said: u32, round_trip: Duration) {
        let before = self.heard.each_ref().map(Vec::len);
        for number in said..said + CONVERSATION {
            End::BOTH.into_iter().for_each(|end| self.say(end, number));
            self.run_for(PERIOD);
        }
        self.run_for(round_trip);
        for (heard, before) in self.heard.iter().zip(before) {
            let came = heard.len() - before;
            assert!(came >= CONVERSATION as usize / 4, "{}: {came} came", self.case);
        }
        // The delay is the same for all: nothing of ours comes twice or out of order, what had waited included.
        let [to_us, to_them] = &self.heard;
        assert!(to_them.is_sorted_by(|a, b| a < b), "{}: {to_them:?}", self.case);
        // boringtun sends what had waited as late as it likes.
        let distinct = to_us.iter().collect::<std::collections::HashSet<_>>();
        assert_eq!(distinct.len(), to_us.len(), "{}: {to_us:?}", self.case);
        let is_connection = matches!(self.events[..], [Event::Connected { .. }]);
        assert!(is_connection, "{}: {:?}", self.case, self.events);
    }

    fn is_connected(&self) -> bool {
        self.endpoint.sessions().is_connected(now(), PEER)
    }

    fn say(&mut self, end: End, number: u32) {
        if end == End::Ours {
            self.endpoint.send(now(), PEER, &packet(number)).unwrap();
            return self.collect();
        }
        let mut buffer = [0; 256];
        let result = self.tunn.encapsulate(&packet(number), &mut buffer);
        if let TunnResult::WriteToNetwork(datagram) = result {
            self.path.send(Instant::now(), End::Ours, datagram);
        }
    }

    /// Lets this much time pass.
    fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut their_timers = Instant::now();
        while Instant::now() < end {
            assert!(self.start.elapsed() < HARD_LIMIT, "{}: too long", self.case);
            while let Some((to, datagram)) = self.path.poll(Instant::now()) {
                match to {
                    End::Ours => self.deliver_to_us(datagram),
                    End::Theirs => self.deliver_to_tunn(&datagram),
                }
            }
            if self
                .endpoint
                .poll_timeout()
                .is_some_and(|at| at <= Instant::now())
            {
                self.endpoint.handle_timeout(now());
                self.collect();
            }
            if their_timers <= Instant::now() {
                their_timers += THEIR_TIMERS;
                let mut buffer = [0; 256];
                if let TunnResult::WriteToNetwork(datagram) = self.tunn.update_timers(&mut buffer) {
                    self.path.send(Instant::now(), End::Ours, datagram);
                }
            }
            let next = [self.path.poll_timeout(), self.endpoint.poll_timeout()];
            let next = next
                .into_iter()
                .flatten()
                .fold(end.min(their_timers), Instant::min);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn deliver_to_us(&mut self, mut datagram: Vec<u8>) {
        let from = address(End::Theirs);
        let result = self
            .endpoint
            .handle_datagram(now(), from, Lane::Authenticated, &mut datagram);
        if let Ok(inbound) = result
            && inbound.content == Content::Other
        {
            self.heard[End::Ours as usize].push(number(&datagram[inbound.start..]));
        }
        self.collect();
    }

    fn deliver_to_tunn(&mut self, datagram: &[u8]) {
        let (mut buffer, mut input) = ([0; 256], datagram);
        loop {
            let from = Some(address(End::Ours).ip());
            match self.tunn.decapsulate(from, input, &mut buffer) {
                TunnResult::WriteToNetwork(answer) => {
                    self.path.send(Instant::now(), End::Ours, answer);
                    // boringtun's contract: call again with nothing until it is done.
                    input = &[];
                }
                TunnResult::WriteToTunnelV4(packet, _) => {
                    self.heard[End::Theirs as usize].push(number(packet));
                    return;
                }
                _ => return,
            }
        }
    }

    fn collect(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push(event);
        }
        while let Some(transmit) = self.endpoint.poll_transmit() {
            self.path.send(Instant::now(), End::Theirs, &transmit.datagram);
        }
    }
}
