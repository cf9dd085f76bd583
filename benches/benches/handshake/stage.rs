//! A whole node with traffic: a stream of messages and broadcasts from another one, and a validator that connects again
//! and again.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet::{
    Class, IdentitySecret, Node, NodeKeys, Peer, Policy, Signer, Stake, Stats, TransportSecret, Validator,
};
use falconet_benches::rig::{RECEIVER, SENDER, pin, quantile};

use crate::probe::Probe;

const EPOCH: u32 = 1;
const VICTIM: u8 = 1;
const SPEAKER: u8 = 2;
const COMER: u8 = 3;
/// 1,400 bytes are 1,499 on the wire with kind, frame and headers: 17 a millisecond are 204 Mbit/s.
const MESSAGE: usize = 1_400;
const MESSAGES_A_MILLISECOND: usize = 17;
/// Something for the raptorcast threads to do.
const BROADCAST: usize = 64 << 10;
const BROADCAST_PERIOD: Duration = Duration::from_millis(100);
/// Between two dials of the validator.
const DIAL_PAUSE: Duration = Duration::from_millis(100);
/// More latencies than a cell has messages: they take the same memory in every cell.
const LATENCIES: usize = 400_000;

/// The victim on one processor, all others on the other one.
pub(crate) struct Stage {
    pub(crate) victim: Node,
    speaker: Node,
    comer: Mutex<Probe>,
    zero: Instant,
    latencies: Arc<Mutex<Vec<f64>>>,
    deliveries: Arc<AtomicU64>,
    rounds: AtomicU64,
}

/// What the traffic came to in one cell.
pub(crate) struct Traffic {
    /// Megabits of payload a second.
    pub(crate) goodput: f64,
    pub(crate) lost_percent: f64,
    pub(crate) p99_ms: f64,
    /// Broadcasts that were delivered, and that were sent.
    pub(crate) broadcasts: (u64, u64),
    /// Milliseconds in which the validator connected; those in vain say for how long.
    pub(crate) connects: Vec<Result<f64, f64>>,
}

fn keys(number: u8) -> NodeKeys {
    NodeKeys::new(Arc::new(identity(number)), secret(number))
}

fn identity(number: u8) -> IdentitySecret {
    IdentitySecret::from_bytes([number; 32])
}

fn secret(number: u8) -> TransportSecret {
    TransportSecret::from_bytes([number + 100; 32])
}

fn peer(number: u8, address: SocketAddr) -> Peer {
    Peer::new(identity(number).identity())
        .with_authenticated(secret(number).public(), address)
        .with_policy(Policy::Require)
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

/// Starts a node whose threads stay on `processor`: they inherit that from the thread which starts them.
fn start(number: u8, name: &str, processor: usize) -> Node {
    pin(processor);
    let validators = [VICTIM, SPEAKER].map(|number| Validator {
        identity: identity(number).identity(),
        stake: Stake::new(1),
    });
    let node = Node::builder(keys(number))
        .listen("127.0.0.1:0".parse().expect("an address"))
        .validators(EPOCH, validators.to_vec())
        .name(name)
        .start();
    runtime().block_on(node).expect("sockets on loopback")
}

impl Stage {
    pub(crate) fn new() -> Self {
        let victim = start(VICTIM, "victim", RECEIVER);
        let speaker = start(SPEAKER, "speaker", SENDER);
        let (to_victim, to_speaker) = (address(&victim), address(&speaker));
        victim.add_peer(peer(SPEAKER, to_speaker)).expect("it runs");
        speaker.add_peer(peer(VICTIM, to_victim)).expect("it runs");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        // The victim knows its address and does not dial it: what counts is how it answers.
        let comer = peer(COMER, socket.local_addr().expect("bound")).with_persistent(false);
        victim.add_peer(comer).expect("it runs");
        let connected = speaker.wait_connected(Duration::from_secs(30));
        runtime().block_on(connected).expect("a session");
        let mut latencies = vec![0.0; LATENCIES];
        latencies.clear();
        let stage = Self {
            comer: Mutex::new(Probe::new(socket, victim.transport_key(), to_victim)),
            victim,
            speaker,
            zero: Instant::now(),
            latencies: Arc::new(Mutex::new(latencies)),
            deliveries: Arc::default(),
            rounds: AtomicU64::new(1),
        };
        stage.read();
        stage
    }

    /// Where the victim listens.
    pub(crate) fn target(&self) -> SocketAddr {
        address(&self.victim)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.victim.stats()
    }

    /// Reads what the victim hands out, on its processor, until it stops.
    fn read(&self) {
        let (mut messages, mut deliveries) = (self.victim.messages(), self.victim.deliveries());
        let (latencies, count) = (Arc::clone(&self.latencies), Arc::clone(&self.deliveries));
        let zero = self.zero;
        std::thread::spawn(move || {
            pin(RECEIVER);
            runtime().block_on(async move {
                tokio::spawn(async move {
                    while deliveries.recv().await.is_some() {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
                while let Some(message) = messages.recv().await {
                    let sent = u64::from_le_bytes(message.payload[..8].try_into().expect("eight bytes"));
                    let took = (zero.elapsed().as_nanos() as u64).saturating_sub(sent);
                    let mut latencies = latencies.lock().expect("no panic");
                    if latencies.len() < LATENCIES {
                        latencies.push(took as f64 * 1e-6);
                    }
                }
            });
        });
    }

    /// All of the traffic for `time`, and what came of it.
    pub(crate) fn run(&self, time: Duration) -> Traffic {
        self.latencies.lock().expect("no panic").clear();
        let delivered = self.deliveries.load(Ordering::Relaxed);
        let (sent, broadcasts, connects) = std::thread::scope(|scope| {
            let messages = scope.spawn(|| self.send_messages(time));
            let broadcasts = scope.spawn(|| self.broadcast(time));
            let connects = scope.spawn(|| self.connect(time));
            let joined = "no panic";
            (
                messages.join().expect(joined),
                broadcasts.join().expect(joined),
                connects.join().expect(joined),
            )
        });
        // What is on its way.
        std::thread::sleep(Duration::from_millis(200));
        let mut latencies = self.latencies.lock().expect("no panic");
        let received = latencies.len();
        Traffic {
            goodput: (received * MESSAGE * 8) as f64 * 1e-6 / time.as_secs_f64(),
            lost_percent: 100.0 * (1.0 - received as f64 / sent.max(1) as f64),
            p99_ms: quantile(&mut latencies, 0.99),
            broadcasts: (self.deliveries.load(Ordering::Relaxed) - delivered, broadcasts),
            connects,
        }
    }

    fn send_messages(&self, time: Duration) -> u64 {
        pin(SENDER);
        let to = self.victim.identity();
        let (started, mut sent) = (Instant::now(), 0);
        for millisecond in 1.. {
            if started.elapsed() >= time {
                break;
            }
            for _ in 0..MESSAGES_A_MILLISECOND {
                let mut payload = vec![0x5a; MESSAGE];
                payload[..8].copy_from_slice(&(self.zero.elapsed().as_nanos() as u64).to_le_bytes());
                // What finds no room is lost.
                let _ = self.speaker.try_send(&to, Bytes::from(payload), Class::Regular);
                sent += 1;
            }
            let next = started + Duration::from_millis(millisecond);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        sent
    }

    fn broadcast(&self, time: Duration) -> u64 {
        pin(SENDER);
        let payload = Bytes::from(vec![0x5a; BROADCAST]);
        let (started, mut sent) = (Instant::now(), 0);
        let runtime = runtime();
        while started.elapsed() < time {
            let round = self.rounds.fetch_add(1, Ordering::Relaxed);
            let report = runtime.block_on(self.speaker.broadcast(round, payload.clone()));
            sent += u64::from(report.is_ok());
            std::thread::sleep(BROADCAST_PERIOD);
        }
        sent
    }

    fn connect(&self, time: Duration) -> Vec<Result<f64, f64>> {
        pin(SENDER);
        let mut comer = self.comer.lock().expect("no panic");
        let started = Instant::now();
        let is_over = || started.elapsed() >= time;
        let mut connects = Vec::new();
        while !is_over() {
            let ms = |took: Duration| took.as_secs_f64() * 1e3;
            connects.push(comer.connect(secret(COMER), is_over).map(ms).map_err(ms));
            std::thread::sleep(DIAL_PAUSE);
        }
        connects
    }
}

fn address(node: &Node) -> SocketAddr {
    node.local_addr().expect("an authenticated lane")
}
