//! A leader's and a receiver's whole work for one message, on one core.
//!
//! `cargo bench -p falconet-benches --bench raptorcast [-- --quick]`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_benches::{Contest, Report, Unit};
use falconet_crypto::{IdentitySecret, NetworkId, Now, Signer};
use falconet_raptorcast::{
    Engine, EngineConfig, Epoch, Event, NodeIndex, Recipients, Round, Sender, Stake, Validator, ValidatorSet,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

const VALIDATORS: usize = 100;
const EPOCH: Epoch = Epoch::new(1);
const MIB: usize = 1 << 20;

fn main() {
    let mut report = Report::from_args();
    println!("100 validators of equal stake, redundancy 2.5, chunks of 1,440 bytes, one core");
    for (name, length) in [("1KiB", 1 << 10), ("64KiB", 1 << 16), ("2MiB", 2 * MIB), ("3MiB", 3 * MIB)] {
        leader(&mut report, name, length);
        receiver(&mut report, name, length);
    }
    report.finish();
}

/// From the payload to all datagrams ready: encode, tree, signature, headers.
fn leader(report: &mut Report, name: &str, length: usize) {
    let network = Network::new();
    let mut leader = network.engine(0);
    let payload = payload(length);
    let mut round = 0;
    Contest::with_untimed(format!("leader/{name}/2.5"), |repeats| {
        (0..repeats)
            .map(|_| {
                round += 1;
                let started = Instant::now();
                let report = leader.broadcast(now(), EPOCH, Round::from(round), payload.clone());
                black_box(report).expect("a broadcast");
                let elapsed = started.elapsed();
                while leader.poll_transmit().is_some() {}
                elapsed
            })
            .sum()
    })
    .run(report, Unit::Milliseconds);
}

/// From the first chunk to delivery: verify K + 1 chunks as they come, decode, encode again, compare the root. The
/// chunks come in random order, as two hops over many paths deliver them.
fn receiver(report: &mut Report, name: &str, length: usize) {
    let network = Network::new();
    let mut leader = network.engine(0);
    let mut receiver = network.engine(1);
    let payload = payload(length);
    let mut rng = ChaCha20Rng::from_seed([5; 32]);
    let mut round = 0;
    Contest::with_untimed(format!("receiver/{name}/2.5"), |repeats| {
        (0..repeats)
            .map(|_| {
                round += 1;
                leader.broadcast(now(), EPOCH, Round::from(round), payload.clone()).expect("a broadcast");
                let mut chunks = network.chunks_as_first_hops_send_them(&mut leader);
                shuffle(&mut chunks, &mut rng);
                receive(&mut receiver, chunks)
            })
            .sum()
    })
    .run(report, Unit::Milliseconds);
}

fn receive(receiver: &mut Engine, chunks: Vec<(Sender, Bytes)>) -> Duration {
    let started = Instant::now();
    for (sender, chunk) in chunks {
        black_box(receiver.handle_chunk(now(), sender, chunk)).expect("a valid chunk");
        if let Some(event) = receiver.poll_event() {
            assert!(matches!(event, Event::Delivered(_)), "{event:?}");
            break;
        }
    }
    let elapsed = started.elapsed();
    while receiver.poll_transmit().is_some() {}
    elapsed
}

/// Keys and set of a network.
struct Network {
    secrets: Vec<Arc<IdentitySecret>>,
    set: Arc<ValidatorSet>,
}

impl Network {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let secrets: Vec<_> = (0..VALIDATORS).map(|_| Arc::new(IdentitySecret::generate(&mut rng))).collect();
        let members = secrets.iter().map(|secret| Validator { identity: secret.identity(), stake: Stake::new(1) });
        let set = Arc::new(ValidatorSet::new(members.collect()).expect("a set"));
        Self { secrets, set }
    }

    fn engine(&self, node: usize) -> Engine {
        // Nothing that bounds a hostile author is to be measured here.
        let config = EngineConfig::new(NetworkId::from_name("bench"))
            .with_verifications_per_validator(1_000_000)
            .with_relay_messages_per_second(1_000_000);
        let mut engine = Engine::new(config, self.secrets[node].clone(), [node as u8; 32]).expect("an engine");
        engine.set_epoch(EPOCH, Arc::clone(&self.set));
        engine
    }

    /// Every chunk that the leader emits, with the first hop that would relay it.
    fn chunks_as_first_hops_send_them(&self, leader: &mut Engine) -> Vec<(Sender, Bytes)> {
        let mut chunks = Vec::new();
        let receiver = self.set.index_of(&self.secrets[1].identity());
        while let Some(transmit) = leader.poll_transmit() {
            let Recipients::One(hop) = transmit.to else { unreachable!("a leader sends to first hops") };
            let sender = if Some(hop) == receiver { self.secrets[0].identity() } else { self.identity(hop) };
            chunks.extend(transmit.chunks.into_iter().map(|chunk| (Sender::Validator(sender), chunk)));
        }
        chunks
    }

    fn identity(&self, node: NodeIndex) -> falconet_crypto::IdentityKey {
        self.set.get(node).expect("a member").identity
    }
}

fn now() -> Now {
    Now { instant: Instant::now(), unix: Duration::from_secs(1_800_000_000) }
}

fn payload(length: usize) -> Bytes {
    let mut payload = vec![0; length];
    ChaCha20Rng::from_seed([1; 32]).fill_bytes(&mut payload);
    payload.into()
}

/// Fisher-Yates.
fn shuffle<T>(items: &mut [T], rng: &mut ChaCha20Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.next_u32() as usize % (last + 1));
    }
}
