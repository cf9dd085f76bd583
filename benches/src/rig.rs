//! Two sides on two processors, and what is measured of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use falconet_crypto::{Now, Suite, TransportSecret};
use falconet_dataplane::{
    Class, Completion, Consumer, Consumers, Dataplane, DataplaneConfig, Full, Inbound, Outgoing, Placement,
    Rate, Recipients, TrySendError,
};
use falconet_transport::{Event, PeerConfig, PeerId, Policy, TransportConfig, split};

pub use crate::machine::{pin, processor_time, quantile, thread_time};

/// The processor that sends.
pub const SENDER: usize = 0;
/// The processor that receives.
pub const RECEIVER: usize = 1;

/// Unpaced, on loopback, every thread on `processor`.
pub fn config(processor: usize, prefix: &str) -> DataplaneConfig {
    let place = |nice| Placement {
        processor: Some(processor),
        nice,
    };
    DataplaneConfig::new()
        .with_listen("127.0.0.1:0".parse().expect("an address"))
        .with_listen_plain("127.0.0.1:0".parse().expect("an address"))
        .with_rate(Rate::Unlimited)
        .with_thread_prefix(prefix)
        .with_data_thread(place(0))
        .with_handshake_thread(place(5))
}

/// A node: its dataplane, its key, and how many sessions came about.
pub struct Side {
    /// Its threads.
    pub dataplane: Dataplane,
    secret: u8,
    connected: Arc<AtomicUsize>,
}

impl Side {
    /// Starts a node whose key and entropy follow from `secret`; `consumer` gets its chunks and messages.
    pub fn start(secret: u8, config: DataplaneConfig, consumer: impl Consumer + Clone + 'static) -> Side {
        Self::start_with(secret, TransportConfig::default(), config, consumer)
    }

    /// As [`Side::start`], with this transport.
    pub fn start_with(
        secret: u8,
        transport: TransportConfig,
        config: DataplaneConfig,
        consumer: impl Consumer + Clone + 'static,
    ) -> Side {
        let now = Now {
            instant: Instant::now(),
            unix: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .expect("a clock after 1970"),
        };
        let key = TransportSecret::from_bytes([secret; 32]);
        let (handshakes, sessions) = split(transport, key, now, [secret; 32]);
        let connected = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connected);
        let consumers = Consumers {
            chunks: Box::new(consumer.clone()),
            messages: Box::new(consumer),
            events: Box::new(move |event| {
                if matches!(event, Event::Connected { .. }) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }),
        };
        Side {
            dataplane: Dataplane::start(config, handshakes, sessions, consumers)
                .expect("sockets on loopback"),
            secret,
            connected,
        }
    }

    /// Makes `other` known here under `peer`; `suites` are those of the session to come, none for the plain lane.
    pub fn add(&self, peer: PeerId, other: &Side, suites: Option<Suite>) {
        let key = TransportSecret::from_bytes([other.secret; 32]).public();
        let mut config = PeerConfig::new(key).with_policy(if suites.is_some() {
            Policy::Require
        } else {
            Policy::Plain
        });
        if let Some(suite) = suites {
            config = config.with_suites(vec![suite]);
        }
        let (address, plain) = (other.dataplane.local_addr(), other.dataplane.local_plain_addr());
        config = config.with_address(address.expect("a lane"));
        config = config.with_plain_address(plain.expect("a lane"));
        self.dataplane.sender().add_peer(peer, config).expect("it runs");
    }

    /// Waits until `sessions` have come about.
    pub fn wait_for_sessions(&self, sessions: usize) {
        let started = Instant::now();
        while self.connected.load(Ordering::Relaxed) < sessions {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "no session came about"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Two nodes that know each other, connected if `suite` is given.
pub fn connect(a: &Side, b: &Side, suite: Option<Suite>) {
    a.add(PeerId(0), b, suite);
    b.add(PeerId(0), a, suite);
    if suite.is_some() {
        a.dataplane.sender().connect(PeerId(0)).expect("it runs");
        a.wait_for_sessions(1);
    }
}

/// Counts what arrives.
#[derive(Clone, Default)]
pub struct Count {
    /// Datagrams so far.
    pub datagrams: Arc<AtomicU64>,
    /// Their bytes, kinds included.
    pub bytes: Arc<AtomicU64>,
}

impl Consumer for Count {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let bytes: usize = batch.iter().map(|inbound| inbound.datagram.len()).sum();
        self.datagrams.fetch_add(batch.len() as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Counts what has left.
#[derive(Default)]
pub struct Left(
    /// Datagrams so far, the dropped ones included.
    pub AtomicUsize,
);

impl Completion for Left {
    fn finished(&self, sent: usize, dropped: usize, _sent_bytes: usize, _at: Instant) {
        self.0.fetch_add(sent + dropped, Ordering::Relaxed);
    }
}

/// Submits `outgoing`, trying again while the queue is full.
pub fn submit(side: &Side, mut outgoing: Outgoing) {
    loop {
        match side.dataplane.sender().try_send(outgoing) {
            Ok(()) => return,
            Err(TrySendError::Full(back)) => outgoing = back,
            Err(error) => panic!("{error}"),
        }
        // The queues hold milliseconds of work: a thread that looks more often only takes time from the one that sends.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// `count` chunks of `length` bytes.
pub fn chunks(count: usize, length: usize) -> Vec<Bytes> {
    let mut chunk = vec![0x5a; length];
    chunk[0] = 0x11;
    vec![Bytes::from(chunk); count]
}

/// Datagrams in the class of relayed chunks.
pub fn to(recipients: Recipients, datagrams: Vec<Bytes>) -> Outgoing {
    Outgoing {
        to: recipients,
        class: Class::Relay,
        datagrams,
        completion: None,
    }
}
