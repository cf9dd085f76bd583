//! What each message of a handshake costs, beside boringtun in the same run.
//!
//! `cargo bench -p falconet-benches --bench handshake [-- --quick]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use boringtun::noise::{Tunn, TunnResult};
use falconet_benches::{Contest, Report, Unit, peers};
use falconet_crypto::{SessionIndex, Suite, Tai64N, TransportSecret};
use falconet_handshake::{INITIATION_LEN, LocalStatic, Message, PeerStatic, PendingInitiation};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn main() {
    let mut report = Report::from_args();
    println!(
        "peer: boringtun 0.7; the initiations that are consumed are made outside of the time that counts"
    );
    mac1(&mut report);
    initiate(&mut report);
    respond(&mut report);
    report.finish();
}

fn mac1(report: &mut Report) {
    let mut pair = Pair::new();
    let initiation = pair.initiation();
    Contest::new("check-mac1", || {
        let Ok(Message::Initiation(message)) = Message::parse(black_box(&initiation)) else {
            unreachable!("it was made as an initiation");
        };
        black_box(message.check_mac1(&pair.responder)).expect("a good mac1");
    })
    .run(report, Unit::Nanoseconds);
}

fn initiate(report: &mut Report) {
    let mut pair = Pair::new();
    let (mut tunnel, _) = peers::boringtun_tunnels();
    let mut buffer = [0; 256];
    Contest::new("initiate", || {
        black_box(pair.initiation());
    })
    .against("boringtun", || {
        let initiation = tunnel.format_handshake_initiation(&mut buffer, true);
        assert!(matches!(black_box(initiation), TunnResult::WriteToNetwork(_)));
    })
    .run(report, Unit::Microseconds);
}

fn respond(report: &mut Report) {
    let mut pair = Pair::new();
    let (mut initiator, mut responder) = peers::boringtun_tunnels();
    Contest::with_untimed("respond/known-peer", |repeats| {
        (0..repeats).map(|_| pair.time_response()).sum()
    })
    .against_with_untimed("boringtun", |repeats| {
        (0..repeats)
            .map(|_| time_boringtun_response(&mut initiator, &mut responder))
            .sum()
    })
    .run(report, Unit::Microseconds);
}

fn time_boringtun_response(initiator: &mut Tunn, responder: &mut Tunn) -> Duration {
    let (mut first, mut second) = ([0; 256], [0; 256]);
    let TunnResult::WriteToNetwork(initiation) = initiator.format_handshake_initiation(&mut first, true)
    else {
        panic!("boringtun initiates");
    };
    let started = Instant::now();
    let response = black_box(responder.decapsulate(None, black_box(initiation), &mut second));
    let elapsed = started.elapsed();
    assert!(
        matches!(response, TunnResult::WriteToNetwork(_)),
        "boringtun responds"
    );
    elapsed
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

    fn initiation(&mut self) -> [u8; INITIATION_LEN] {
        self.sequence += 1;
        let timestamp = Tai64N::from_unix(Duration::from_millis(self.sequence));
        let (_, initiation) = PendingInitiation::new(
            &self.initiator,
            &self.to_responder,
            Suite::ChaCha20Poly1305,
            SessionIndex::new(7),
            timestamp,
            None,
            &mut self.rng,
        )
        .expect("a real key");
        initiation
    }

    fn time_response(&mut self) -> Duration {
        let initiation = self.initiation();
        let started = Instant::now();
        let Ok(Message::Initiation(message)) = Message::parse(black_box(&initiation)) else {
            unreachable!("it was made as an initiation");
        };
        let identified = message
            .check_mac1(&self.responder)
            .and_then(|checked| checked.identify(&self.responder));
        let verified = identified
            .and_then(|identified| identified.verify(&self.to_initiator))
            .expect("genuine");
        let response = verified.respond(&self.to_initiator, SessionIndex::new(8), &mut self.rng);
        black_box(response).expect("responds");
        started.elapsed()
    }
}
