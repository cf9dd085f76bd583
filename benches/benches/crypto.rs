//! Seal and open a datagram, the whole operation (header, counter, replay window), beside boringtun and snow.
//!
//! `cargo bench -p falconet-benches --bench crypto [-- --quick]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use falconet_auth_framing::{Header, Opener, Sealer};
use falconet_benches::peers::{self, Resolver};
use falconet_benches::{Contest, Report, Unit};
use falconet_crypto::{SecretBytes, SessionIndex, Sha256Method, Suite, sha256_many};
use sha2::{Digest, Sha256};

const LENGTHS: [usize; 4] = [32, 256, 1_232, 1_440];
/// Datagrams sealed, untimed, before so many are opened: few enough to stay in the second-level cache.
const BATCH: usize = 256;
const COUNTER_FAR_FROM_LIMIT: &str = "the counter is far from its limit";

fn main() {
    let mut report = Report::from_args();
    println!(
        "peers: boringtun 0.7 (its ring ChaCha20-Poly1305), snow 0.10 (default resolver; ring resolver)"
    );
    for suite in Suite::ALL {
        for length in LENGTHS {
            seal(&mut report, suite, length);
            open(&mut report, suite, length);
        }
    }
    leaves(&mut report);
    report.finish();
}

fn name(operation: &str, length: usize, suite: Suite) -> String {
    let suite = match suite {
        Suite::ChaCha20Poly1305 => "chacha",
        Suite::Aes256Gcm => "aes",
    };
    format!("{operation}/{length}/{suite}")
}

fn seal(report: &mut Report, suite: Suite, length: usize) {
    let mut ours = Ours::new(suite, length);
    let mut default = Snow::new(suite, length, Resolver::Default);
    let mut ring = Snow::new(suite, length, Resolver::Ring);
    let mut boringtun = Boringtun::new(length);
    Contest::new(name("seal", length, suite), || ours.seal(0))
        .against("snow-default", || default.seal(0))
        .against("snow-ring", || ring.seal(0))
        .against("boringtun", || boringtun.seal(0))
        .run(report, Unit::Nanoseconds);
}

fn open(report: &mut Report, suite: Suite, length: usize) {
    let mut ours = Ours::new(suite, length);
    let mut default = Snow::new(suite, length, Resolver::Default);
    let mut ring = Snow::new(suite, length, Resolver::Ring);
    let mut boringtun = Boringtun::new(length);
    Contest::with_untimed(name("open", length, suite), |repeats| {
        time_opening(&mut ours, repeats)
    })
    .against_with_untimed("snow-default", |repeats| time_opening(&mut default, repeats))
    .against_with_untimed("snow-ring", |repeats| time_opening(&mut ring, repeats))
    .against_with_untimed("boringtun", |repeats| time_opening(&mut boringtun, repeats))
    .run(report, Unit::Nanoseconds);
}

/// One implementation with both ends of a session and `BATCH` buffers.
trait Tunnel {
    /// Seals a datagram into buffer `slot`.
    fn seal(&mut self, slot: usize);
    /// Opens the one in buffer `slot`.
    fn open(&mut self, slot: usize);
}

fn time_opening(tunnel: &mut impl Tunnel, repeats: u32) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = repeats as usize;
    while left > 0 {
        let batch = left.min(BATCH);
        (0..batch).for_each(|slot| tunnel.seal(slot));
        let started = Instant::now();
        (0..batch).for_each(|slot| tunnel.open(slot));
        spent += started.elapsed();
        left -= batch;
    }
    spent
}

struct Ours {
    sealer: Sealer,
    opener: Opener,
    buffers: Vec<Vec<u8>>,
}

impl Ours {
    fn new(suite: Suite, length: usize) -> Self {
        let key = SecretBytes::new([7; 32]);
        Self {
            sealer: Sealer::new(suite, &key, SessionIndex::new(1)),
            opener: Opener::new(suite, &key),
            buffers: vec![vec![0x20; length + 32]; BATCH],
        }
    }
}

impl Tunnel for Ours {
    fn seal(&mut self, slot: usize) {
        black_box(self.sealer.seal(black_box(&mut self.buffers[slot]))).expect(COUNTER_FAR_FROM_LIMIT);
    }

    fn open(&mut self, slot: usize) {
        let datagram = black_box(&mut self.buffers[slot]);
        let header = Header::parse(datagram).expect("it was sealed");
        black_box(self.opener.open(header, datagram)).expect("it was sealed");
    }
}

struct Snow {
    sender: snow::TransportState,
    receiver: snow::TransportState,
    plaintext: Vec<u8>,
    opened: Vec<u8>,
    buffers: Vec<Vec<u8>>,
}

impl Snow {
    fn new(suite: Suite, length: usize, resolver: Resolver) -> Self {
        let (sender, receiver) = peers::snow_pair(suite, resolver);
        let buffers = vec![vec![0; length + 16]; BATCH];
        Self {
            sender,
            receiver,
            plaintext: vec![0x20; length],
            opened: vec![0; length + 16],
            buffers,
        }
    }
}

impl Tunnel for Snow {
    fn seal(&mut self, slot: usize) {
        let sealed = self
            .sender
            .write_message(black_box(&self.plaintext), &mut self.buffers[slot]);
        black_box(sealed).expect("snow seals");
    }

    fn open(&mut self, slot: usize) {
        let opened = self
            .receiver
            .read_message(black_box(&self.buffers[slot]), &mut self.opened);
        black_box(opened).expect("snow opens");
    }
}

struct Boringtun {
    sender: boringtun::noise::Tunn,
    receiver: boringtun::noise::Tunn,
    packet: Vec<u8>,
    opened: Vec<u8>,
    buffers: Vec<Vec<u8>>,
}

impl Boringtun {
    fn new(length: usize) -> Self {
        let (sender, receiver) = peers::boringtun_pair();
        let buffers = vec![vec![0; length + 32]; BATCH];
        Self {
            sender,
            receiver,
            packet: peers::ipv4_packet(length),
            opened: vec![0; length + 32],
            buffers,
        }
    }
}

impl Tunnel for Boringtun {
    fn seal(&mut self, slot: usize) {
        let sealed = self
            .sender
            .encapsulate(black_box(&self.packet), &mut self.buffers[slot]);
        assert!(matches!(
            black_box(sealed),
            boringtun::noise::TunnResult::WriteToNetwork(_)
        ));
    }

    fn open(&mut self, slot: usize) {
        let opened = self
            .receiver
            .decapsulate(None, black_box(&self.buffers[slot]), &mut self.opened);
        assert!(matches!(
            black_box(opened),
            boringtun::noise::TunnResult::WriteToTunnelV4(..)
        ));
    }
}

/// The leaves of a 2 MiB message: 4,919 symbols of 1,088 bytes behind a tag.
fn leaves(report: &mut Report) {
    let symbols = vec![0x5a; 4_919 * 1_088];
    println!(
        "this host hashes many messages by {:?}",
        Sha256Method::of_this_host()
    );
    Contest::new("sha256/4919x1088", || {
        sha256_many(&[0], black_box(&symbols).chunks_exact(1_088), |_, hash| {
            black_box(hash);
        });
    })
    .against("sha2", || {
        for symbol in black_box(&symbols).chunks_exact(1_088) {
            black_box(Sha256::new().chain_update([0]).chain_update(symbol).finalize());
        }
    })
    .run(report, Unit::Milliseconds);
}
