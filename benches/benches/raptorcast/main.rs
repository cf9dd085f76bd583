//! A leader's and a receiver's whole work for one message, on one core.
//!
//! `cargo bench -p falconet-benches --bench raptorcast [-- --quick] [-- NAME]`; with `--features mimalloc` under that
//! allocator instead of the system's.
//!
//! Times are processor time of the one thread that works, system calls and page faults included: nothing here sleeps
//! or waits, so on an idle core it is the time on the wall, and on a busy one it still says what the work costs.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use falconet_benches::{Contest, Report, Unit};
use falconet_crypto::Sha256Method;
use falconet_raptorcast::{Engine, Event, Round, Sender};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use meter::{cpu, page_faults};
use network::{EPOCH, Network, VALIDATORS, now, payload, shuffle};

mod codes;
mod meter;
mod network;
mod parts;
mod scaling;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Chunks that the dataplane hands over at a time: one segmented receive.
const BATCH: usize = 44;
/// Messages before page faults are counted, and messages over which they are. The first thirteen fill what is kept of
/// delivered messages to answer repair requests.
const WARM_UP: (u32, u32) = (20, 24);

fn main() {
    let mut report = Report::from_args();
    println!(
        "allocator: {}",
        if cfg!(feature = "mimalloc") {
            "mimalloc"
        } else {
            "the system's"
        }
    );
    println!(
        "{VALIDATORS} validators of equal stake, redundancy 2.5, chunks of 1,440 bytes, batches of {BATCH}, \
         one thread's processor time; SHA-256: {:?}",
        Sha256Method::of_this_host()
    );
    for (name, length) in [
        ("1KiB", 1 << 10),
        ("64KiB", 1 << 16),
        ("2MiB", 2 << 20),
        ("3MiB", 3 << 20),
    ] {
        leader(&mut report, name, length);
        receiver(&mut report, name, length);
    }
    codes::run(&mut report);
    parts::run(&mut report);
    scaling::run(&mut report);
    faults(&mut report);
    report.finish();
}

/// From the payload to the first datagram, and to all datagrams ready: encode, tree, signature, headers.
fn leader(report: &mut Report, name: &str, length: usize) {
    let network = Network::new();
    let mut leader = network.engine(0);
    let payload = payload(length);
    let mut round = 0;
    Contest::with_untimed(format!("leader/{name}/2.5"), |repeats| {
        (0..repeats)
            .map(|_| {
                round += 1;
                let elapsed = cpu(|| publish(&mut leader, round, &payload));
                while leader.poll_transmit().is_some() {}
                elapsed
            })
            .sum()
    })
    .run(report, Unit::Milliseconds);
    Contest::with_untimed(format!("leader-first-datagram/{name}/2.5"), |repeats| {
        (0..repeats)
            .map(|_| {
                round += 1;
                let elapsed = cpu(|| {
                    publish(&mut leader, round, &payload);
                    black_box(leader.poll_transmit());
                });
                while leader.poll_transmit().is_some() {}
                elapsed
            })
            .sum()
    })
    .run(report, Unit::Milliseconds);
}

fn publish(leader: &mut Engine, round: u32, payload: &Bytes) {
    let report = leader.broadcast(now(), EPOCH, Round::from(round), payload.clone());
    black_box(report).expect("a broadcast");
}

/// From the first chunk to delivery: verify K + 1 chunks in batches, decode, encode again, compare the root; and the
/// verification alone. The chunks come in random order, as two hops over many paths deliver them.
fn receiver(report: &mut Report, name: &str, length: usize) {
    let mut exchange = Exchange::new(length);
    Contest::with_untimed(format!("receiver/{name}/2.5"), |repeats| {
        (0..repeats).map(|_| exchange.message().0).sum()
    })
    .run(report, Unit::Milliseconds);
    Contest::with_untimed(format!("receiver-verify/{name}/2.5"), |repeats| {
        (0..repeats).map(|_| exchange.message().1).sum()
    })
    .run(report, Unit::Milliseconds);
}

/// Messages from a leader to a receiver.
struct Exchange {
    network: Network,
    leader: Engine,
    receiver: Engine,
    payload: Bytes,
    rng: ChaCha20Rng,
    round: u32,
}

impl Exchange {
    fn new(length: usize) -> Self {
        let network = Network::new();
        let (leader, mut receiver) = (network.engine(0), network.engine(1));
        receiver.warm_up(length);
        Self {
            leader,
            receiver,
            network,
            payload: payload(length),
            rng: ChaCha20Rng::from_seed([5; 32]),
            round: 0,
        }
    }

    /// Passes one message; what the receiver spent until delivery, and of that on verification.
    fn message(&mut self) -> (Duration, Duration) {
        self.round += 1;
        let report = self
            .leader
            .broadcast(now(), EPOCH, Round::from(self.round), self.payload.clone());
        let enough = usize::from(report.expect("a broadcast").source_symbols) + 1;
        let mut chunks = self.network.chunks_as_first_hops_send_them(&mut self.leader);
        shuffle(&mut chunks, &mut self.rng);
        let (first, rest) = chunks.split_at(enough.min(chunks.len()));
        let (mut verifying, mut decoding) = (Duration::ZERO, Duration::ZERO);
        for batch in first.chunks(BATCH).chain(rest.chunks(1)) {
            verifying += cpu(|| self.take(batch));
            let mut event = None;
            decoding += cpu(|| event = self.receiver.poll_event());
            if let Some(event) = event {
                assert!(matches!(event, Event::Delivered(_)), "{event:?}");
                break;
            }
        }
        self.let_relays_go();
        (verifying + decoding, verifying)
    }

    /// What the receiver would relay holds the leader's buffers, as they share a process.
    fn let_relays_go(&mut self) {
        self.receiver.handle_timeout(now().after(Duration::from_secs(1)));
        while self.receiver.poll_transmit().is_some() {}
    }

    fn take(&mut self, batch: &[(Sender, Bytes)]) {
        self.receiver.handle_chunks(now(), batch, |_, outcome| {
            black_box(outcome).expect("a valid chunk");
        });
    }
}

/// Page faults a message in steady state, with the default allocator.
fn faults(report: &mut Report) {
    if !report.wants("page-faults/leader/2MiB") && !report.wants("page-faults/receiver/2MiB") {
        return;
    }
    let mut exchange = Exchange::new(2 << 20);
    exchange.leader.warm_up(2 << 20);
    let (mut sending, mut receiving) = (0, 0);
    for turn in 0..WARM_UP.0 + WARM_UP.1 {
        let before = page_faults();
        exchange.round += 1;
        publish(&mut exchange.leader, exchange.round, &exchange.payload);
        let sent = page_faults();
        let chunks = exchange
            .network
            .chunks_as_first_hops_send_them(&mut exchange.leader);
        let ready = page_faults();
        for batch in chunks.chunks(BATCH) {
            exchange.receiver.handle_chunks(now(), batch, |_, outcome| {
                black_box(outcome).ok();
            });
            if exchange.receiver.poll_event().is_some() {
                break;
            }
        }
        exchange.let_relays_go();
        if turn >= WARM_UP.0 {
            sending += sent - before;
            receiving += page_faults() - ready;
        }
    }
    let each = |faults: u64| faults as f64 / f64::from(WARM_UP.1);
    report.figure("page-faults/leader/2MiB", each(sending), Unit::Count);
    report.figure("page-faults/receiver/2MiB", each(receiving), Unit::Count);
}
