use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Sender as Queue, bounded};

use super::*;
use crate::test_support::{EPOCH, network, payload, secret, set_of};
use crate::{EngineConfig, GeometryError};
use falconet_crypto::{IdentityKey, Signer};

/// Hands all runs to the other node's thread; every second offer of a run is refused first.
struct Wire {
    own: IdentityKey,
    peer: Queue<(Sender, Bytes)>,
    offers: usize,
}

impl ChunkSink for Wire {
    fn send(&mut self, transmit: Transmit) -> Result<(), QueueFull> {
        self.offers += 1;
        if self.offers % 8 == 1 {
            return Err(QueueFull(transmit));
        }
        for chunk in transmit.chunks {
            self.peer.send((Sender::Validator(self.own), chunk)).unwrap();
        }
        Ok(())
    }
}

struct Events(Queue<Event>);

impl EventSink for Events {
    fn event(&mut self, event: Event) {
        self.0.send(event).unwrap();
    }
}

fn engine(id: u16) -> Engine {
    let mut engine = Engine::new(EngineConfig::new(network()), Arc::new(secret(id)), [0; 32]).unwrap();
    engine.set_epoch(EPOCH, Arc::new(set_of(&[1, 1])));
    engine
}

#[test]
fn a_payload_passes_from_thread_to_thread() {
    let (wire, chunks) = bounded(1 << 14);
    let (events, delivered) = bounded(16);
    let (unused, _other) = bounded(16);
    let start = |id, peer, events| {
        let wire = Wire {
            own: secret(id).identity(),
            peer,
            offers: 0,
        };
        RaptorcastThread::start(ThreadConfig::new("rc-test"), engine(id), wire, Events(events)).unwrap()
    };
    let leader = start(0, wire, bounded(16).0);
    let receiver = start(1, unused, events);
    let (reply, report) = bounded(1);
    let expected = payload(300_000, 1);
    leader
        .handle()
        .broadcast(EPOCH, Round::from(1), expected.clone(), move |outcome| {
            reply.send(outcome).unwrap()
        })
        .unwrap();
    let report = report.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    let batch = (0..report.symbols).map(|_| chunks.recv_timeout(Duration::from_secs(60)).unwrap());
    receiver.handle().chunks(batch.collect()).unwrap();
    let event = delivered.recv_timeout(Duration::from_secs(60)).unwrap();
    let Event::Delivered(delivery) = event else {
        panic!("{event:?}")
    };
    assert_eq!(delivery.payload, expected);
    assert!(leader.handle().thread_stats().proposal_waits > 0);
    let handle = leader.handle();
    leader.shutdown();
    receiver.shutdown();
    assert_eq!(handle.set_round(Round::from(1)), Err(CommandError::Stopped));
    assert_eq!(handle.chunks(vec![]), Err(CommandError::Stopped));
}

#[test]
fn a_refused_broadcast_is_answered() {
    let (peer, _chunks) = bounded(1);
    let wire = Wire {
        own: secret(0).identity(),
        peer,
        offers: 0,
    };
    let thread = RaptorcastThread::start(
        ThreadConfig::new("rc-test"),
        engine(0),
        wire,
        Events(bounded(1).0),
    )
    .unwrap();
    let (reply, outcome) = bounded(1);
    let answer = move |outcome| reply.send(outcome).unwrap();
    thread
        .handle()
        .broadcast(EPOCH, Round::from(1), Bytes::new(), answer)
        .unwrap();
    let outcome = outcome.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(outcome, Err(BroadcastError::Geometry(GeometryError::Empty)));
}

/// Tells the test that the thread is here, and holds it up until the test lets go.
struct Held(Queue<()>, crossbeam_channel::Receiver<()>);

impl ChunkSink for Held {
    fn send(&mut self, _transmit: Transmit) -> Result<(), QueueFull> {
        // Errors mean that the test knows, or is over.
        let _ = self.0.try_send(());
        let _ = self.1.recv();
        Ok(())
    }
}

// docs/spec/broadcast.md#waiting-chunks
#[test]
fn chunks_that_wait_are_bounded_whatever_the_batches() {
    let (arrived, is_held) = bounded(1);
    let (let_go, held) = bounded(0);
    let config = ThreadConfig::new("rc-held").with_chunk_slots(100);
    let sink = Held(arrived, held);
    let thread = RaptorcastThread::start(config, engine(0), sink, Events(bounded(16).0)).unwrap();
    let handle = thread.handle();
    handle
        .broadcast(EPOCH, Round::from(1), payload(10, 1), |_| {})
        .unwrap();
    is_held.recv_timeout(Duration::from_secs(60)).unwrap();
    let batch = || vec![(Sender::Unknown, Bytes::from_static(b"?")); 40];
    let taken = (0..50).filter(|_| handle.chunks(batch()).is_ok()).count();
    assert_eq!(taken, 3, "the third is taken while 80 of 100 wait");
    assert_eq!(handle.thread_stats().chunks_dropped, 47 * 40);
    drop(let_go);
    // All that was taken is handled, and there is room again.
    while handle.stats.waiting.load(Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    assert_eq!(handle.chunks(batch()), Ok(()));
    thread.shutdown();
}
