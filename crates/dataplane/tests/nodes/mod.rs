//! Nodes of a dataplane and nothing above it, and how the tests drive them.
#![allow(clippy::unwrap_used, dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use falconet_crypto::{Now, TransportSecret};
use falconet_dataplane::{
    Class, Completion, Consumer, Consumers, Dataplane, DataplaneConfig, Full, Inbound, Outgoing, Recipients,
    StartError, Stats, TrySendError,
};
use falconet_transport::{Event, PeerConfig, PeerId, Policy, TransportConfig, split};

/// The peer's handle in both nodes of a pair.
pub(crate) const PEER: PeerId = PeerId(0);
/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) struct Collect(pub(crate) Sender<Inbound>);

impl Consumer for Collect {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        for inbound in batch {
            let _ = self.0.send(inbound);
        }
        Ok(())
    }
}

pub(crate) struct Refuse;

impl Consumer for Refuse {
    fn deliver(&mut self, _batch: Vec<Inbound>) -> Result<(), Full> {
        Err(Full)
    }
}

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) sent: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
}

impl Completion for Tally {
    fn finished(&self, sent: usize, dropped: usize, sent_bytes: usize, _at: Instant) {
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        self.bytes.fetch_add(sent_bytes, Ordering::Relaxed);
    }
}

impl Tally {
    pub(crate) fn finished(&self) -> usize {
        self.sent.load(Ordering::Relaxed) + self.dropped.load(Ordering::Relaxed)
    }
}

pub(crate) struct Node {
    pub(crate) dataplane: Dataplane,
    pub(crate) received: Receiver<Inbound>,
    pub(crate) events: Receiver<Event>,
    pub(crate) secret: u8,
}

pub(crate) fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap(),
    }
}

pub(crate) fn config() -> DataplaneConfig {
    DataplaneConfig::new()
        .with_listen("127.0.0.1:0".parse().unwrap())
        .with_listen_plain("127.0.0.1:0".parse().unwrap())
        .with_socket_buffer(4 << 20)
}

pub(crate) fn start(secret: u8, config: DataplaneConfig) -> Node {
    let (tx, received) = channel();
    let consumers = |events| Consumers {
        chunks: Box::new(Collect(tx.clone())),
        messages: Box::new(Collect(tx)),
        events,
    };
    start_with(secret, config, consumers, received)
}

pub(crate) fn start_with(
    secret: u8,
    config: DataplaneConfig,
    consumers: impl FnOnce(Box<dyn FnMut(Event) + Send>) -> Consumers,
    received: Receiver<Inbound>,
) -> Node {
    let (event_tx, events) = channel();
    let consumers = consumers(Box::new(move |event| {
        let _ = event_tx.send(event);
    }));
    Node {
        dataplane: start_dataplane(secret, config, consumers).unwrap(),
        received,
        events,
        secret,
    }
}

/// A dataplane whose consumers refuse everything.
pub(crate) fn try_start(secret: u8, config: DataplaneConfig) -> Result<Dataplane, StartError> {
    let consumers = Consumers {
        chunks: Box::new(Refuse),
        messages: Box::new(Refuse),
        events: Box::new(|_| {}),
    };
    start_dataplane(secret, config, consumers)
}

fn start_dataplane(
    secret: u8,
    config: DataplaneConfig,
    consumers: Consumers,
) -> Result<Dataplane, StartError> {
    let key = TransportSecret::from_bytes([secret; 32]);
    let (handshakes, sessions) = split(TransportConfig::default(), key, now(), [secret; 32]);
    Dataplane::start(config, handshakes, sessions, consumers)
}

impl Node {
    pub(crate) fn knows(&self, other: &Node, policy: Policy) {
        let key = TransportSecret::from_bytes([other.secret; 32]).public();
        let mut config = PeerConfig::new(key).with_policy(policy);
        if let Some(address) = other.dataplane.local_addr() {
            config = config.with_address(address);
        }
        if let Some(address) = other.dataplane.local_plain_addr() {
            config = config.with_plain_address(address);
        }
        self.dataplane.sender().add_peer(PEER, config).unwrap();
    }

    pub(crate) fn send(&self, datagrams: Vec<Bytes>, class: Class) -> Arc<Tally> {
        let tally = Arc::new(Tally::default());
        let mut outgoing = Some(outgoing(datagrams, class, Some(&tally)));
        wait_until("room to send", || {
            match self.dataplane.sender().try_send(outgoing.take().unwrap()) {
                Ok(()) => true,
                Err(TrySendError::Full(back)) => {
                    outgoing = Some(back);
                    false
                }
                Err(error) => panic!("{error}"),
            }
        });
        tally
    }

    pub(crate) fn receive(&self, count: usize) -> Vec<Inbound> {
        (0..count)
            .map(|_| self.received.recv_timeout(PATIENCE).unwrap())
            .collect()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.dataplane.stats()
    }
}

pub(crate) fn outgoing(datagrams: Vec<Bytes>, class: Class, tally: Option<&Arc<Tally>>) -> Outgoing {
    Outgoing {
        to: Recipients::One(PEER),
        class,
        datagrams,
        completion: tally.map(|tally| Arc::clone(tally) as Arc<dyn Completion>),
    }
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// `count` datagrams of `length` bytes, each with its number behind the kind.
pub(crate) fn numbered(kind: u8, count: u32, length: usize) -> Vec<Bytes> {
    (0..count)
        .map(|i| {
            let mut datagram = vec![0; length];
            datagram[0] = kind;
            datagram[1..5].copy_from_slice(&i.to_le_bytes());
            Bytes::from(datagram)
        })
        .collect()
}

pub(crate) fn numbers(inbound: &[Inbound]) -> Vec<u32> {
    let mut numbers: Vec<_> = inbound
        .iter()
        .map(|i| u32::from_le_bytes(i.datagram[1..5].try_into().unwrap()))
        .collect();
    numbers.sort_unstable();
    numbers
}
