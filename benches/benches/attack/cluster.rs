//! Five nodes on one processor, 20 ms apart in a row, that broadcast in turn, and a sixth validator that is none.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet::{
    IdentityKey, IdentitySecret, LinkEmulation, Node, NodeKeys, Peer, Policy, Signer, Stake, Stats,
    TransportSecret, Validator,
};
use falconet_benches::rig::{RECEIVER, pin};

pub(crate) const EPOCH: u32 = 1;
pub(crate) const NODES: usize = 5;
/// The one in the middle is attacked.
pub(crate) const VICTIM: usize = 2;
/// The number of the member that is hostile; its key's bytes.
pub(crate) const HOSTILE: u8 = 6;
/// One way, from each node to the next.
const STEP: Duration = Duration::from_millis(20);
const PAYLOAD: usize = 64 << 10;
/// Each node leads twice a second.
const PERIOD: Duration = Duration::from_millis(100);
/// From then on the nodes' caches forget as much as they take.
const SETTLED_AFTER: Duration = Duration::from_secs(22);
/// What is on its way when the last broadcast has begun.
const DRAIN: Duration = Duration::from_millis(400);
/// Between two questions to the victim's dataplane thread.
const QUESTIONS: Duration = Duration::from_millis(10);

/// A payload that reached a node.
struct Arrival {
    receiver: usize,
    round: u64,
    at: Instant,
    is_genuine: bool,
}

pub(crate) struct Cluster {
    pub(crate) nodes: Arc<Vec<Node>>,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    /// Milliseconds until the victim's dataplane thread answered, and that a datagram had waited in its queues.
    ages: Arc<Mutex<(Vec<f64>, f64)>>,
    /// Whether the victim's embedder reads nothing.
    pub(crate) is_unread: Arc<AtomicBool>,
    round: u64,
}

/// What became of the honest broadcasts of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: usize,
    pub(crate) delivered: usize,
    /// Median of each way from one node to another, averaged over all ways, in ms.
    pub(crate) p50: f64,
    /// Of all deliveries, in ms.
    pub(crate) p99: f64,
    /// 99 % of the time the victim's dataplane thread answers a question within this, in ms.
    pub(crate) answer_p99: f64,
    /// The longest that a datagram was seen to have waited in the victim's queues, in ms.
    pub(crate) queue_age: f64,
}

pub(crate) fn identity(number: u8) -> IdentitySecret {
    IdentitySecret::from_bytes([number; 32])
}

pub(crate) fn validators() -> Vec<Validator> {
    let numbers = (1..=NODES as u8).chain([HOSTILE]);
    let member = |number| Validator {
        identity: identity(number).identity(),
        stake: Stake::new(1),
    };
    numbers.map(member).collect()
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

impl Cluster {
    /// Starts and connects the nodes; their threads stay on the processor of the one that starts them.
    pub(crate) fn start() -> Self {
        pin(RECEIVER);
        let places = Arc::new(OnceLock::new());
        let nodes: Vec<_> = (0..NODES).map(|number| start(number, &places)).collect();
        let book = nodes.iter().enumerate().flat_map(|(number, node)| {
            let lanes = [node.local_addr(), node.local_plain_addr()];
            lanes.into_iter().flatten().map(move |at| (at, number))
        });
        places.set(book.collect::<HashMap<_, _>>()).expect("set once");
        for (number, node) in nodes.iter().enumerate() {
            for (_, other) in nodes.iter().enumerate().filter(|(other, _)| *other != number) {
                node.add_peer(peer(other)).expect("it runs");
            }
        }
        for node in &nodes {
            let connected = node.wait_connected(Duration::from_secs(30));
            runtime().block_on(connected).expect("sessions");
        }
        let mut cluster = Self {
            nodes: Arc::new(nodes),
            arrivals: Arc::default(),
            ages: Arc::default(),
            is_unread: Arc::default(),
            round: 0,
        };
        cluster.read();
        cluster.run(SETTLED_AFTER);
        cluster
    }

    pub(crate) fn victim(&self) -> &Node {
        &self.nodes[VICTIM]
    }

    pub(crate) fn stats(&self) -> Stats {
        self.victim().stats()
    }

    /// Broadcasts for `time`, each node in turn, and waits for what is on its way.
    pub(crate) fn run(&mut self, time: Duration) -> Traffic {
        pin(RECEIVER);
        self.arrivals.lock().expect("no panic").clear();
        *self.ages.lock().expect("no panic") = Default::default();
        let (runtime, began) = (runtime(), Instant::now());
        let mut broadcasts = HashMap::new();
        for number in 1.. {
            if began.elapsed() >= time {
                break;
            }
            self.round += 1;
            let leader = self.round as usize % NODES;
            let sent = runtime.block_on(self.nodes[leader].broadcast(self.round, payload(self.round)));
            let sent = sent.expect("it runs");
            broadcasts.insert(self.round, (leader, sent.started));
            let next = began + PERIOD * number;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        std::thread::sleep(DRAIN);
        self.is_unread.store(false, Ordering::Relaxed);
        std::thread::sleep(4 * QUESTIONS);
        self.sum_up(&broadcasts)
    }

    fn sum_up(&self, broadcasts: &HashMap<u64, (usize, Instant)>) -> Traffic {
        let mut ways: HashMap<(usize, usize), Vec<f64>> = HashMap::new();
        for arrival in self.arrivals.lock().expect("no panic").iter() {
            let Some((leader, started)) = broadcasts.get(&arrival.round) else {
                continue;
            };
            assert!(arrival.is_genuine, "an altered payload was delivered");
            let took = arrival.at.duration_since(*started).as_secs_f64() * 1e3;
            ways.entry((*leader, arrival.receiver)).or_default().push(took);
        }
        let mut all: Vec<f64> = ways.values().flatten().copied().collect();
        let medians: f64 = ways.values_mut().map(|times| quantile(times, 0.5)).sum();
        let (answers, queue_age) = &mut *self.ages.lock().expect("no panic");
        Traffic {
            sent: broadcasts.len() * (NODES - 1),
            delivered: all.len(),
            p50: medians / ways.len().max(1) as f64,
            p99: quantile(&mut all, 0.99),
            answer_p99: quantile(answers, 0.99),
            queue_age: *queue_age,
        }
    }

    /// Reads what the nodes hand out, and asks the victim's dataplane thread how it is, until the process ends.
    fn read(&self) {
        let (arrivals, ages) = (Arc::clone(&self.arrivals), Arc::clone(&self.ages));
        let (nodes, is_unread) = (Arc::clone(&self.nodes), Arc::clone(&self.is_unread));
        let streams: Vec<_> = nodes.iter().map(Node::deliveries).collect();
        std::thread::spawn(move || {
            pin(RECEIVER);
            let tasks = tokio::task::LocalSet::new();
            for (receiver, mut deliveries) in streams.into_iter().enumerate() {
                let (arrivals, is_unread) = (Arc::clone(&arrivals), Arc::clone(&is_unread));
                tasks.spawn_local(async move {
                    while let Some(delivery) = deliveries.recv().await {
                        let is_hostile = delivery.author == identity(HOSTILE).identity();
                        if !is_hostile {
                            arrivals.lock().expect("no panic").push(Arrival {
                                receiver,
                                round: delivery.round,
                                at: delivery.at,
                                is_genuine: delivery.payload == payload(delivery.round),
                            });
                        }
                        while receiver == VICTIM && is_unread.load(Ordering::Relaxed) {
                            tokio::time::sleep(QUESTIONS).await;
                        }
                    }
                });
            }
            let neighbour = nodes[VICTIM + 1].identity();
            tasks.spawn_local(async move { ask(&nodes[VICTIM], &neighbour, &ages).await });
            runtime().block_on(tasks);
        });
    }
}

async fn ask(victim: &Node, neighbour: &IdentityKey, ages: &Mutex<(Vec<f64>, f64)>) {
    loop {
        let asked = Instant::now();
        if victim.peer_stats(neighbour).await.is_err() {
            return;
        }
        let took = asked.elapsed().as_secs_f64() * 1e3;
        note(victim, took, ages);
        tokio::time::sleep(QUESTIONS).await;
    }
}

fn note(victim: &Node, answer: f64, ages: &Mutex<(Vec<f64>, f64)>) {
    let queues = victim.thread_stats().queues;
    let age = queues.iter().map(|queue| queue.age).max().unwrap_or_default();
    let mut ages = ages.lock().expect("no panic");
    ages.0.push(answer);
    ages.1 = ages.1.max(age.as_secs_f64() * 1e3);
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    falconet_benches::machine::quantile(values, share)
}

/// Says which round it is of.
fn payload(round: u64) -> Bytes {
    let mut payload = vec![round as u8; PAYLOAD];
    payload[..8].copy_from_slice(&round.to_le_bytes());
    payload.into()
}

fn start(number: usize, places: &Arc<OnceLock<HashMap<SocketAddr, usize>>>) -> Node {
    let byte = number as u8 + 1;
    let keys = NodeKeys::new(
        Arc::new(identity(byte)),
        TransportSecret::from_bytes([byte + 100; 32]),
    );
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let places = Arc::clone(places);
    let delay = move |to: SocketAddr| {
        let to = places.get().and_then(|places| places.get(&to));
        to.map_or(Duration::ZERO, |to| STEP * to.abs_diff(number) as u32)
    };
    let node = Node::builder(keys)
        .name(&format!("n{number}"))
        .listen(any)
        .listen_plain(any)
        .validators(EPOCH, validators())
        .warm_up(PAYLOAD)
        .link_emulation(LinkEmulation {
            delay: Arc::new(delay),
            loss: 0.0,
            seed: number as u64,
        });
    runtime().block_on(node.start()).expect("sockets on loopback")
}

fn peer(node: &Node) -> Peer {
    Peer::new(node.identity())
        .with_authenticated(
            node.transport_key(),
            node.local_addr().expect("an authenticated lane"),
        )
        .with_plain(node.local_plain_addr().expect("a plain lane"))
        .with_policy(Policy::Prefer)
}
