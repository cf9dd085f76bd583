//! What each message costs, beside boringtun.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant, SystemTime};

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use falconet_benches::{Contest, Report, Unit, peers};
use falconet_crypto::{Now, SessionIndex, Suite, Tai64N, TransportSecret};
use falconet_handshake::{
    CookieJar, INITIATION_LEN, Initiation, LocalStatic, Mac1Checked, Message, PeerStatic, PendingInitiation,
    RESPONSE_LEN,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// Each message by itself, then handshakes a second of one processor.
pub(crate) fn contests(report: &mut Report) {
    if report.wants("check-mac1 cookie-reply initiate respond finish handshakes") {
        println!("  peer: boringtun 0.7; what a step needs is made outside of the time that counts");
    }
    mac1(report);
    cookie_reply(report);
    initiate(report);
    respond(report, "respond/known-peer", Unit::Microseconds);
    finish(report);
    respond(report, "handshakes/responder", Unit::PerSecond);
    both_sides(report);
}

fn mac1(report: &mut Report) {
    let mut pair = Pair::new();
    let (_, initiation) = pair.initiate();
    let (limiter, theirs) = boringtun_gate(u64::MAX);
    let mut buffer = [0; 256];
    Contest::new("check-mac1", || {
        black_box(checked(&pair.responder, black_box(&initiation)));
    })
    .against("boringtun", || {
        let packet = limiter.verify_packet(None, black_box(&theirs), &mut buffer);
        assert!(black_box(packet).is_ok(), "a good mac1");
    })
    .run(report, Unit::Nanoseconds);
}

/// From a message without a cookie to the reply that carries one.
fn cookie_reply(report: &mut Report) {
    let mut pair = Pair::new();
    let (_, initiation) = pair.initiate();
    let jar = CookieJar::new(now(), &mut pair.rng);
    let from = SocketAddr::from(([127, 0, 0, 1], 9));
    // Limit 0: always under load.
    let (limiter, theirs) = boringtun_gate(0);
    let mut buffer = [0; 256];
    Contest::new("cookie-reply", || {
        let message = checked(&pair.responder, black_box(&initiation));
        black_box(jar.reply(&pair.responder, &message, from, &mut pair.rng));
    })
    .against("boringtun", || {
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let reply = limiter.verify_packet(Some(from), black_box(&theirs), &mut buffer);
        assert!(
            matches!(black_box(reply), Err(TunnResult::WriteToNetwork(_))),
            "a cookie"
        );
    })
    .run(report, Unit::Nanoseconds);
}

fn initiate(report: &mut Report) {
    let mut pair = Pair::new();
    let (mut tunnel, _) = peers::boringtun_tunnels();
    let mut buffer = [0; 256];
    Contest::new("initiate", || {
        black_box(pair.initiate());
    })
    .against("boringtun", || {
        let initiation = tunnel.format_handshake_initiation(&mut buffer, true);
        assert!(matches!(black_box(initiation), TunnResult::WriteToNetwork(_)));
    })
    .run(report, Unit::Microseconds);
}

/// From an initiation to the response and the session's keys.
fn respond(report: &mut Report, name: &str, unit: Unit) {
    let mut pair = Pair::new();
    let mut theirs = Tunnels::new();
    Contest::with_untimed(name, |repeats| {
        let once = |_| {
            let (_, initiation) = pair.initiate();
            timed(|| pair.respond(black_box(&initiation)))
        };
        (0..repeats).map(once).sum()
    })
    .against_with_untimed("boringtun", |repeats| {
        let once = |_| {
            let initiation = theirs.initiate();
            timed(|| theirs.respond(black_box(&initiation)))
        };
        (0..repeats).map(once).sum()
    })
    .run(report, unit);
}

/// From a response to the session's keys; boringtun also seals the keepalive that confirms.
fn finish(report: &mut Report) {
    let mut pair = Pair::new();
    let mut theirs = Tunnels::new();
    Contest::with_untimed("finish", |repeats| {
        let once = |_| {
            let (pending, initiation) = pair.initiate();
            let response = pair.respond(&initiation);
            timed(|| pair.finish(&pending, black_box(&response)))
        };
        (0..repeats).map(once).sum()
    })
    .against_with_untimed("boringtun", |repeats| {
        let once = |_| {
            let initiation = theirs.initiate();
            let response = theirs.respond(&initiation);
            timed(|| theirs.finish(black_box(&response)))
        };
        (0..repeats).map(once).sum()
    })
    .run(report, Unit::Microseconds);
}

/// All of it, both sides on one processor.
fn both_sides(report: &mut Report) {
    let mut pair = Pair::new();
    let mut theirs = Tunnels::new();
    Contest::new("handshakes/both-sides", || {
        let (pending, initiation) = pair.initiate();
        let response = pair.respond(&initiation);
        pair.finish(&pending, &response);
    })
    .against("boringtun", || {
        let initiation = theirs.initiate();
        let response = theirs.respond(&initiation);
        theirs.finish(&response);
    })
    .run(report, Unit::PerSecond);
}

fn timed<T>(job: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    black_box(job());
    started.elapsed()
}

fn now() -> Now {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Now {
        instant: Instant::now(),
        unix: unix.expect("a clock after 1970"),
    }
}

fn checked(responder: &LocalStatic, initiation: &[u8]) -> Mac1Checked<Initiation> {
    let Ok(Message::Initiation(message)) = Message::parse(initiation) else {
        unreachable!("it was made as an initiation");
    };
    message.check_mac1(responder).expect("a good mac1")
}

/// What stands before boringtun's handshake, and an initiation for it.
fn boringtun_gate(limit: u64) -> (RateLimiter, Vec<u8>) {
    let responder = PublicKey::from(&StaticSecret::from([2; 32]));
    (RateLimiter::new(&responder, limit), Tunnels::new().initiate())
}

/// Two ends that know each other, as validators do.
struct Pair {
    initiator: LocalStatic,
    responder: LocalStatic,
    to_responder: PeerStatic,
    to_initiator: PeerStatic,
    rng: ChaCha20Rng,
    sequence: u64,
}

impl Pair {
    fn new() -> Self {
        let initiator = LocalStatic::new(TransportSecret::from_bytes([1; 32]));
        let responder = LocalStatic::new(TransportSecret::from_bytes([2; 32]));
        let to_responder = PeerStatic::new(&initiator, *responder.public(), None).expect("a real key");
        let to_initiator = PeerStatic::new(&responder, *initiator.public(), None).expect("a real key");
        Self {
            initiator,
            responder,
            to_responder,
            to_initiator,
            rng: ChaCha20Rng::from_seed([9; 32]),
            sequence: 0,
        }
    }

    fn initiate(&mut self) -> (PendingInitiation, [u8; INITIATION_LEN]) {
        self.sequence += 1;
        let timestamp = Tai64N::from_unix(Duration::from_millis(self.sequence));
        let initiation = PendingInitiation::new(
            &self.initiator,
            &self.to_responder,
            Suite::ChaCha20Poly1305,
            SessionIndex::new(7),
            timestamp,
            None,
            &mut self.rng,
        );
        initiation.expect("a real key")
    }

    fn respond(&mut self, initiation: &[u8]) -> [u8; RESPONSE_LEN] {
        let identified = checked(&self.responder, initiation).identify(&self.responder);
        let verified = identified.and_then(|identified| identified.verify(&self.to_initiator));
        let verified = verified.expect("genuine");
        let (keys, response) = verified
            .respond(&self.to_initiator, SessionIndex::new(8), &mut self.rng)
            .expect("responds");
        black_box(keys);
        response
    }

    fn finish(&self, pending: &PendingInitiation, response: &[u8]) {
        let Ok(Message::Response(response)) = Message::parse(response) else {
            unreachable!("it was made as a response");
        };
        let response = response.check_mac1(&self.initiator).expect("a good mac1");
        let keys = pending.open_response(&self.initiator, &self.to_responder, &response);
        black_box(keys).expect("genuine");
    }
}

/// The same of boringtun.
struct Tunnels {
    initiator: Tunn,
    responder: Tunn,
}

impl Tunnels {
    fn new() -> Self {
        let (initiator, responder) = peers::boringtun_tunnels();
        Self { initiator, responder }
    }

    fn initiate(&mut self) -> Vec<u8> {
        let mut buffer = [0; 256];
        written(self.initiator.format_handshake_initiation(&mut buffer, true))
    }

    fn respond(&mut self, initiation: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 256];
        written(self.responder.decapsulate(None, initiation, &mut buffer))
    }

    fn finish(&mut self, response: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 256];
        written(self.initiator.decapsulate(None, response, &mut buffer))
    }
}

fn written(result: TunnResult<'_>) -> Vec<u8> {
    let TunnResult::WriteToNetwork(datagram) = result else {
        panic!("boringtun has something to send");
    };
    datagram.to_vec()
}
