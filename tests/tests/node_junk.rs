//! Junk from strangers and altered datagrams from the wire, on both lanes, before, during and after a session: each
//! ends in a discard that has a name, and the node works on.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cast::{BOTH, EPOCH, Member, PATIENCE, eventually, payload};
use falconet::{Class, Node, Peer, Policy};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const MESSAGE: u8 = 0x20;
/// Datagrams on their way at once: few, so that no buffer overflows and every one can be accounted for.
const WINDOW: usize = 64;
/// Altered copies of one captured datagram.
const ALTERATIONS: usize = 48;

/// Length 0 to 2,048, of zeros, ones and random bytes.
fn junk(rng: &mut ChaCha20Rng) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for len in 0..=2_048 {
        let mut random = vec![0; len];
        rng.fill_bytes(&mut random);
        if random.first() == Some(&MESSAGE) {
            // On the plain lane this would be no junk but a message.
            random[0] = 0xfe;
        }
        all.extend([vec![0; len], vec![0xff; len], random]);
    }
    all
}

/// Sends all of it, and sees that each is discarded under some name; what the kernel drops has one, too.
async fn is_discarded(member: &Member, from: &UdpSocket, to: SocketAddr, datagrams: &[Vec<u8>]) {
    let before = member.discards();
    let mut sent = 0;
    for window in datagrams.chunks(WINDOW) {
        for datagram in window {
            from.send_to(datagram, to).await.unwrap();
        }
        sent += window.len() as u64;
        let what = format!("{sent} datagrams to {to} are accounted for");
        eventually(&what, || member.discards() - before >= sent).await;
    }
    assert_eq!(
        member.discards() - before,
        sent,
        "{:?}",
        member.node.stats().discards
    );
}

async fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

fn listening(number: u8) -> falconet::NodeBuilder {
    let any = "127.0.0.1:0".parse().unwrap();
    Node::builder(cast::keys(number))
        .listen(any)
        .listen_plain(any)
        .validators(EPOCH, cast::validators(2))
}

/// Forwards between two addresses, as a middlebox would, and keeps a copy of everything to the second.
struct Relay {
    socket: Arc<UdpSocket>,
    captured: Arc<Mutex<Vec<Vec<u8>>>>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Between the two addresses that `ends` will hold.
    async fn start(ends: Arc<Mutex<[Option<SocketAddr>; 2]>>) -> Self {
        let (socket, captured) = (Arc::new(socket().await), Arc::new(Mutex::new(Vec::new())));
        let (inner, copies) = (Arc::clone(&socket), Arc::clone(&captured));
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let Ok((len, from)) = inner.recv_from(&mut buffer).await else {
                    continue;
                };
                let [Some(first), Some(second)] = *ends.lock().unwrap() else {
                    continue;
                };
                if from == first {
                    copies.lock().unwrap().push(buffer[..len].to_vec());
                }
                let to = if from == first { second } else { first };
                let _ = inner.send_to(&buffer[..len], to).await;
            }
        });
        Self {
            socket,
            captured,
            task,
        }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// What was captured, one of each first byte and length.
    fn samples(&self) -> Vec<Vec<u8>> {
        let captured = self.captured.lock().unwrap();
        let mut kinds = BTreeSet::new();
        captured
            .iter()
            .filter(|datagram| kinds.insert((datagram.first(), datagram.len())))
            .cloned()
            .collect()
    }
}

/// Truncated and bit-flipped copies.
fn alterations(sample: &[u8], rng: &mut ChaCha20Rng) -> Vec<Vec<u8>> {
    let step = (sample.len() / ALTERATIONS).max(1);
    let truncated = (0..sample.len()).step_by(step).map(|len| sample[..len].to_vec());
    // The header byte by byte, and the rest here and there.
    let places = (0..sample.len().min(64)).chain((64..sample.len()).step_by(step));
    let mut flip = |at: usize| {
        let mut altered = sample.to_vec();
        altered[at] ^= 1 << (rng.next_u32() % 8);
        altered
    };
    let flipped: Vec<_> = places.map(&mut flip).collect();
    truncated.chain(flipped).collect()
}

/// Two nodes with a relay on each lane between them. The first dials and leads.
struct Pair {
    members: Vec<Member>,
    /// Authenticated and plain.
    relays: [Relay; 2],
}

impl Pair {
    async fn start(receiver: Member) -> Self {
        let ends = [(); 2].map(|()| Arc::new(Mutex::new([None, None])));
        let relays = [
            Relay::start(Arc::clone(&ends[0])).await,
            Relay::start(Arc::clone(&ends[1])).await,
        ];
        let sender = Member::start(listening(0)).await;
        let addresses = |member: &Member| [member.node.local_addr(), member.node.local_plain_addr()];
        for ((ends, first), second) in ends.iter().zip(addresses(&sender)).zip(addresses(&receiver)) {
            *ends.lock().unwrap() = [first, second];
        }
        let [sealed, plain] = relays.each_ref().map(Relay::address);
        let to_receiver = Peer::new(cast::identity(1)).with_authenticated(cast::transport_key(1), sealed);
        sender.node.add_peer(to_receiver.with_plain(plain)).unwrap();
        if receiver.node.stats().connected_peers == 0 {
            let to_sender = Peer::new(cast::identity(0)).with_transport_key(cast::transport_key(0));
            // Not again for a sender that restarts: it is known by then, and its plain relay is another one.
            let _ = receiver
                .node
                .add_peer(to_sender.with_plain(plain).with_persistent(false));
        }
        let pair = Self {
            members: vec![sender, receiver],
            relays,
        };
        assert_eq!(pair.members[0].node.wait_connected(PATIENCE).await, Ok(()));
        pair
    }

    fn receiver(&self) -> &Member {
        &self.members[1]
    }

    /// That the receiver still gets broadcasts, after what may have got lost in between.
    async fn works(&mut self, first_round: u64) {
        for round in first_round..first_round + 50 {
            self.members[0]
                .node
                .broadcast(round, payload(30_000, round as u8))
                .await
                .unwrap();
            let next = tokio::time::timeout(Duration::from_secs(1), self.members[1].deliveries.recv()).await;
            if let Ok(Some(delivery)) = next {
                assert_eq!(delivery.payload, payload(30_000, delivery.round as u8));
                return;
            }
        }
        panic!(
            "no broadcast arrives any more: {:?}",
            self.receiver().node.stats()
        );
    }

    /// Waits until nothing more comes by itself, so that every discard is one of the test.
    async fn is_quiet(&self) {
        let count = || {
            (
                self.receiver().discards(),
                self.receiver().node.stats().authenticated.datagrams_received,
            )
        };
        let mut last = count();
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if count() == last {
                return;
            }
            last = count();
        }
    }

    async fn stop(self) {
        for relay in &self.relays {
            relay.task.abort();
        }
        cast::stop(self.members).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn junk_of_every_length_is_discarded_by_name_before_during_and_after_a_session() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let stranger = socket().await;
    let receiver = Member::start(listening(1)).await;
    let lanes = [
        receiver.node.local_addr().unwrap(),
        receiver.node.local_plain_addr().unwrap(),
    ];
    for lane in lanes {
        is_discarded(&receiver, &stranger, lane, &junk(&mut rng)).await;
    }

    let mut pair = Pair::start(receiver).await;
    pair.works(1).await;
    pair.is_quiet().await;
    for lane in lanes {
        is_discarded(pair.receiver(), &stranger, lane, &junk(&mut rng)).await;
    }
    pair.works(100).await;

    let mut members = pair.members;
    members.remove(0).node.shutdown().await;
    let mut receiver = members.remove(0);
    for lane in lanes {
        is_discarded(&receiver, &stranger, lane, &junk(&mut rng)).await;
    }
    receiver.has_no_message().await;
    let stats = receiver.node.stats();
    assert_eq!(
        stats
            .discards
            .iter()
            .filter(|(reason, _)| reason.is_empty())
            .count(),
        0
    );
    let pair = Pair {
        members: vec![restarted(&receiver).await, receiver],
        relays: pair.relays,
    };
    works_once_more(pair).await;
}

/// The sender again, without relays.
async fn restarted(receiver: &Member) -> Member {
    let address = receiver.node.local_addr().unwrap();
    let to_receiver = Peer::new(cast::identity(1)).with_authenticated(cast::transport_key(1), address);
    let sender = Member::start(listening(0).peers([to_receiver.with_policy(Policy::Require)])).await;
    assert_eq!(sender.node.wait_connected(PATIENCE).await, Ok(()));
    sender
}

async fn works_once_more(mut pair: Pair) {
    pair.works(200).await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_datagrams_of_a_session_are_discarded_by_name() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut pair = Pair::start(Member::start(listening(1)).await).await;
    pair.works(1).await;
    let receiver = pair.members[1].node.identity();
    pair.members[0]
        .node
        .send(&receiver, Bytes::from_static(b"a vote"), Class::Control)
        .await
        .unwrap();
    assert_eq!(
        pair.members[1].message().await.payload,
        Bytes::from_static(b"a vote")
    );
    pair.is_quiet().await;

    let samples = pair.relays[0].samples();
    let types: BTreeSet<_> = samples.iter().filter_map(|sample| sample.first()).collect();
    assert!(
        types.contains(&1) && types.contains(&4),
        "nothing to alter: {types:?}"
    );
    let to = pair.receiver().node.local_addr().unwrap();
    for sample in &samples {
        // From where the genuine ones come.
        is_discarded(
            pair.receiver(),
            &pair.relays[0].socket,
            to,
            &alterations(sample, &mut rng),
        )
        .await;
    }
    // Replays of the genuine ones fare no better.
    is_discarded(pair.receiver(), &pair.relays[0].socket, to, &samples).await;
    pair.members[1].has_no_message().await;
    pair.works(100).await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_chunks_of_the_plain_lane_are_discarded_by_name() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut setup = cast::Setup::new(&[BOTH, BOTH]);
    setup.policy = Box::new(|_, _| Policy::Plain);
    let mut members = setup.start().await;
    // A stand-in for the wire: a peer that nobody knows learns what chunks look like by being sent them.
    let tap = socket().await;
    let eavesdropped = Peer::new(cast::identity(2)).with_plain(tap.local_addr().unwrap());
    let three = cast::validators(3);
    for member in &members {
        member.node.set_validators(EPOCH + 1, three.clone()).unwrap();
        member.node.enter_epoch(EPOCH + 1);
    }
    members[0].node.add_peer(eavesdropped).unwrap();
    members[0].node.broadcast(1, payload(30_000, 1)).await.unwrap();
    let mut chunk = vec![0; 2_048];
    let len = tokio::time::timeout(PATIENCE, tap.recv(&mut chunk))
        .await
        .unwrap()
        .unwrap();
    chunk.truncate(len);
    assert_eq!(chunk[0] & 0xf0, 0x10, "a chunk");

    eventually("the broadcast has settled", || {
        members[1].node.stats().broadcasts.chunks_received > 0
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let to = members[1].node.local_plain_addr().unwrap();
    is_discarded(&members[1], &tap, to, &alterations(&chunk, &mut rng)).await;
    // What is left of the first broadcast is none of the test's business; the next one arrives.
    members[0].node.broadcast(2, payload(30_000, 2)).await.unwrap();
    loop {
        let delivery = members[1].delivery().await;
        if delivery.round == 2 {
            assert_eq!(delivery.payload, payload(30_000, 2));
            break;
        }
    }
    cast::stop(members).await;
}
