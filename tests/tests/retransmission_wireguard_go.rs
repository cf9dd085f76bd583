//! wireguard-go (Debian package `wireguard-go`) at the far end of long paths that lose 30 % each way, in both dial
//! directions: real programs on real sockets, and a relay between the sockets that is the path.
//!
//! Needs what `interop_wireguard_go.rs` needs, and is skipped where that is. wireguard-go repeats an initiation after
//! 5 s and up to a third of a second, so the cases run side by side in one namespace. Nothing is left to luck: the
//! fates of handshake messages follow from the seed (see `long_path`), and with them the attempt that is answered; a
//! bound is when that attempt has left at the latest, one round trip, and `SLACK` for a busy machine. Of `PINGS` at
//! least a sixth has to be answered: each is with a probability of 0.7 x 0.7, so of 60 fewer than 10 are with one of
//! 4e-8.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod long_path;
mod wireguard_go;

use falconet_transport::Event;
use long_path::{End, LongPath, ROUND_TRIPS, latest_departure};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wireguard_go::{PEER, Rig, Tunnel, in_namespace, now};

/// Cases of each round trip and dialler.
const SEEDS: usize = 2;
/// Attempts in the cases that are run: several, so that something is repeated, and few, so that it ends in time.
const ATTEMPTS: std::ops::RangeInclusive<usize> = 2..=4;
/// What a busy machine may add.
const SLACK: Duration = Duration::from_secs(10);
/// The longest pause between two initiations of wireguard-go.
const THEIR_PAUSE: Duration = Duration::from_millis(5_334);
const PINGS: usize = 60;
/// How often the relay looks at its sockets: what a datagram may come late.
const RELAY_PERIOD: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialler {
    We,
    They,
}

#[test]
fn wireguard_go_answers_our_dial_over_long_paths_with_loss() {
    in_namespace("wireguard_go_answers_our_dial_over_long_paths_with_loss", || {
        run_all(Dialler::We);
    });
}

#[test]
fn wireguard_go_dials_us_over_long_paths_with_loss() {
    in_namespace("wireguard_go_dials_us_over_long_paths_with_loss", || {
        run_all(Dialler::They);
    });
}

fn run_all(dialler: Dialler) {
    std::thread::scope(|scope| {
        let mut numbers = 0..;
        for round_trip in ROUND_TRIPS {
            let eventful = (0..).filter(|seed| ATTEMPTS.contains(&attempts(round_trip, *seed, dialler)));
            for (seed, number) in eventful.take(SEEDS).zip(&mut numbers) {
                scope.spawn(move || run(number, round_trip, seed, dialler));
            }
        }
    });
}

/// The attempt that is answered.
fn attempts(round_trip: Duration, seed: u64, dialler: Dialler) -> usize {
    let path = LongPath::new(round_trip, seed);
    match dialler {
        Dialler::We => path.our_first_answered(End::Theirs),
        Dialler::They => path.first_answered(End::Ours, 0),
    }
}

fn run(number: u8, round_trip: Duration, seed: u64, dialler: Dialler) {
    let case = format!("{round_trip:?}, seed {seed}");
    let path = LongPath::new(round_trip, seed);
    let our_bound = latest_departure(path.our_first_answered(End::Theirs)) + round_trip;
    let their_attempts = u32::try_from(path.first_answered(End::Ours, 0)).unwrap();
    let their_bound = THEIR_PAUSE * (their_attempts - 1) + round_trip;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let relay = Relay::start(path, [socket.local_addr().unwrap(), Tunnel::address(number)]);
    let mut rig = Rig::through(number, socket, relay.to_us, relay.to_them);
    if dialler == Dialler::We {
        rig.endpoint.connect(now(), PEER);
        let is_in_time = rig.serve_until(our_bound + SLACK, Rig::is_connected);
        assert!(is_in_time, "{case}: not connected within {our_bound:?}");
    }
    // The first ping dials, or shows wireguard-go's session to be whole: the keepalive that confirms it may be lost,
    // and then wireguard-go dials as well.
    let early = rig.tunnel.ping(&["-i", "0.2"]);
    let is_in_time = rig.serve_until(their_bound + SLACK, |rig| rig.answered > 0);
    assert!(is_in_time, "{case}: no ping came within {their_bound:?}");
    drop(early);
    let stats = rig.endpoint.handshakes().stats();
    match dialler {
        Dialler::We => assert!(stats.dialled >= 1, "{case}: {stats:?}"),
        Dialler::They => assert_eq!((stats.accepted >= 1, stats.dialled), (true, 0), "{case}"),
    }
    converse(&mut rig, &case);
}

/// Pings cross the path both ways, in the one session that there is.
fn converse(rig: &mut Rig, case: &str) {
    let count = PINGS.to_string();
    let mut ping = rig.tunnel.ping(&["-i", "0.1", "-W", "2", "-c", &count]);
    let hard_limit = Duration::from_secs(30);
    assert!(rig.serve_until(hard_limit, |_| ping.is_over()), "{case}");
    let report = ping.report();
    let answered = report.lines().filter(|line| line.contains("icmp_seq=")).count();
    assert!(answered >= PINGS / 6, "{case}: {report}");
    assert!(!report.contains("DUP!"), "{case}: {report}");
    let is_connection = matches!(rig.events[..], [Event::Connected { .. }]);
    assert!(is_connection, "{case}: {:?}", rig.events);
}

/// A thread that carries datagrams over a [`LongPath`] between two sockets of its own.
struct Relay {
    /// Where the far end sends what is for us, and we what is for it.
    to_us: SocketAddr,
    to_them: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// `ends`: where we listen and where they do.
    fn start(mut path: LongPath, ends: [SocketAddr; 2]) -> Self {
        // By the end that a datagram which is received there goes to.
        let sockets = End::BOTH.map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        sockets
            .iter()
            .for_each(|socket| socket.set_nonblocking(true).unwrap());
        let [to_us, to_them] = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stopped.load(Ordering::Acquire) {
                for end in End::BOTH {
                    while let Ok((len, _)) = sockets[end as usize].recv_from(&mut buffer) {
                        path.send(Instant::now(), end, &buffer[..len]);
                    }
                }
                while let Some((to, datagram)) = path.poll(Instant::now()) {
                    // From the socket that the receiver sends to. It may have gone.
                    let socket = &sockets[to.other() as usize];
                    let _ = socket.send_to(&datagram, ends[to as usize]);
                }
                std::thread::sleep(RELAY_PERIOD);
            }
        });
        Self {
            to_us,
            to_them,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
