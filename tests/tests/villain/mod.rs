//! A member of the set that is no node: it holds sessions with all honest ones, and sends what it likes on both lanes.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use falconet::{Events, IdentitySecret, NetworkId, NodeEvent, Now, Peer, Policy};
use falconet_raptorcast::{ChunkView, Epoch, Hash, NodeIndex, Round, ValidatorSet, leaf_hash, root_of};
use falconet_tests::hostile::{Addressed, HostileLeader};
use falconet_transport::{PeerConfig, PeerId, TransportConfig};

use crate::cast::{self, BOTH, EPOCH, Member, PATIENCE, Setup, broadcast_arrives, eventually, payload};
use crate::raw_peer::{RawPeer, now};

/// Honest nodes; the villain's number is the one after theirs.
pub(crate) const HONEST: u8 = 4;
/// Datagrams in a row, few enough for every buffer; then a pause in which they are taken.
const WINDOW: usize = 64;
const PAUSE: Duration = Duration::from_millis(3);

pub(crate) struct Villain {
    pub(crate) raw: RawPeer,
    /// The address of its plain lane, which all know.
    pub(crate) plain: UdpSocket,
    pub(crate) leader: HostileLeader,
    honest: Vec<NodeIndex>,
}

/// Four honest nodes on both lanes, and the fifth validator.
pub(crate) async fn cluster() -> (Vec<Member>, Villain) {
    cluster_with(|_, builder| builder).await
}

pub(crate) async fn cluster_with(
    build: impl Fn(u8, falconet::NodeBuilder) -> falconet::NodeBuilder + 'static,
) -> (Vec<Member>, Villain) {
    let mut setup = Setup::new(&[BOTH; HONEST as usize]);
    setup.build = Box::new(move |number, builder| {
        // Every datagram gets its own reason.
        let sockets = falconet::SocketOptions::new().with_filter(false);
        let builder = builder.validators(EPOCH, cast::validators(HONEST + 1));
        build(number, builder.sockets(sockets))
    });
    let members = setup.start().await;
    let villain = Villain::join(&members).await;
    (members, villain)
}

impl Villain {
    async fn join(members: &[Member]) -> Self {
        let mut raw = RawPeer::new(HONEST, TransportConfig::default());
        let plain = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (number, member) in members.iter().enumerate() {
            let itself = Peer::new(cast::identity(HONEST))
                .with_authenticated(cast::transport_key(HONEST), raw.address())
                .with_plain(plain.local_addr().unwrap())
                .with_persistent(false);
            member.node.add_peer(itself).unwrap();
            member.node.settle().await.unwrap();
            let config = PeerConfig::new(member.node.transport_key())
                .with_policy(Policy::Require)
                .with_address(member.node.local_addr().unwrap())
                .with_persistent(true);
            raw.endpoint
                .add_peer(now(), PeerId(number as u32), &config)
                .unwrap();
        }
        raw.run_until("sessions with all", |raw| {
            let is_connected = |number: u8| {
                raw.endpoint
                    .sessions()
                    .is_connected(now(), PeerId(u32::from(number)))
            };
            (0..HONEST).all(is_connected)
        });
        let set = ValidatorSet::new(cast::validators(HONEST + 1)).unwrap();
        let honest = (0..HONEST).map(|number| set.index_of(&cast::identity(number)).unwrap());
        Self {
            honest: honest.collect(),
            leader: HostileLeader::new(
                IdentitySecret::from_bytes([HONEST + 1; 32]),
                NetworkId::from_name("falconet"),
                Epoch::new(EPOCH),
                set,
            ),
            raw,
            plain,
        }
    }

    /// A message of its own, as an honest leader would send it.
    pub(crate) fn message(&self, round: u64, payload: Bytes) -> Vec<Addressed> {
        self.message_at(now(), round, payload)
    }

    pub(crate) fn message_at(&self, now: Now, round: u64, payload: Bytes) -> Vec<Addressed> {
        self.leader
            .message(now, Round::new(round).unwrap(), payload)
            .unwrap()
    }

    /// Those of the chunks of which this honest node is the first hop.
    pub(crate) fn of(&self, number: usize, chunks: &[Addressed]) -> Vec<Bytes> {
        let hop = self.honest[number];
        let own = chunks.iter().filter(|addressed| addressed.to == hop);
        own.map(|addressed| addressed.chunk.clone()).collect()
    }

    /// Sends a datagram after the other in the session with an honest node.
    pub(crate) fn send(&mut self, number: usize, datagrams: &[Bytes]) {
        for window in datagrams.chunks(WINDOW) {
            for datagram in window {
                let to = PeerId(number as u32);
                self.raw.endpoint.send(now(), to, datagram).unwrap();
                self.flush();
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends each chunk to its first hop.
    pub(crate) fn lead(&mut self, chunks: &[Addressed]) {
        for number in 0..self.honest.len() {
            let own = self.of(number, chunks);
            self.send(number, &own);
        }
    }

    fn flush(&mut self) {
        while let Some(transmit) = self.raw.endpoint.poll_transmit() {
            self.raw.socket.send_to(&transmit.datagram, transmit.to).unwrap();
        }
    }
}

/// Sends datagrams in the clear.
pub(crate) fn send_plain(from: &UdpSocket, to: SocketAddr, datagrams: &[Bytes]) {
    for window in datagrams.chunks(WINDOW) {
        window
            .iter()
            .for_each(|datagram| assert!(from.send_to(datagram, to).is_ok()));
        std::thread::sleep(PAUSE);
    }
}

/// Rounds of honest broadcasts begin above all of the villain's.
const HONEST_ROUND: u64 = 1_000;

/// That so many more datagrams than before ended at the node for these reasons.
pub(crate) async fn ended(member: &Member, before: u64, reasons: &[&str], count: u64) {
    let what = format!("{count} datagrams end as {reasons:?}");
    eventually(&what, || ended_so_far(member, reasons) >= before + count).await;
    assert_eq!(
        ended_so_far(member, reasons),
        before + count,
        "{:?}",
        member.node.stats()
    );
}

pub(crate) fn ended_so_far(member: &Member, reasons: &[&str]) -> u64 {
    let stats = member.node.stats();
    reasons.iter().map(|reason| stats.discarded(reason)).sum()
}

/// Each honest node leads once, and all others deliver.
pub(crate) async fn nothing_honest_is_lost(members: &mut [Member]) {
    for leader in 0..members.len() {
        let round = HONEST_ROUND + leader as u64;
        broadcast_arrives(members, leader, round, &payload(40_000, leader as u8)).await;
    }
    for member in members {
        assert_eq!(ended_so_far(member, &["raptorcast_queue_full", "chunks_full"]), 0);
    }
}

/// The next event of interest.
pub(crate) async fn event<T>(events: &mut Events, mut pick: impl FnMut(NodeEvent) -> Option<T>) -> T {
    let wait = async {
        loop {
            let (event, missed) = events.recv().await.expect("the node runs");
            assert_eq!(missed, 0);
            if let Some(picked) = pick(event) {
                return picked;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("no such event")
}

/// The root that a chunk's proof leads to.
pub(crate) fn root(chunk: &[u8]) -> Hash {
    let view = ChunkView::parse(chunk).unwrap();
    root_of(view.header.index, leaf_hash(view.symbol), view.proof)
}
