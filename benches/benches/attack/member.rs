//! The sixth validator: a dataplane with sessions to all five nodes, and no node above it.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use falconet::{NetworkId, Peer, Policy, Signer, TransportSecret};
use falconet_benches::rig::{Count, SENDER, Side, config, pin};
use falconet_dataplane::{Class, Outgoing, Recipients};
use falconet_raptorcast::{Epoch, NodeIndex, ValidatorSet};
use falconet_tests::hostile::{Addressed, HostileLeader};
use falconet_transport::{PeerConfig, PeerId};

use crate::cluster::{Cluster, EPOCH, HOSTILE, NODES, VICTIM, identity, validators};

/// Datagrams and submissions that wait at most.
const QUEUED: u64 = 1_024;

pub(crate) struct Member {
    side: Side,
    /// The socket of its plain lane, as all know it.
    pub(crate) plain: UdpSocket,
    pub(crate) leader: HostileLeader,
    /// The nodes by their numbers in the set.
    indices: Vec<NodeIndex>,
}

impl Member {
    /// Joins the cluster; its threads have the generator's processor.
    pub(crate) fn join(cluster: &Cluster) -> Self {
        pin(SENDER);
        let side = Side::start(HOSTILE, config(SENDER, "hostile"), Count::default());
        let plain = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = side.dataplane.local_addr().expect("a lane");
        let itself = Peer::new(identity(HOSTILE).identity())
            .with_authenticated(TransportSecret::from_bytes([HOSTILE; 32]).public(), address)
            .with_plain(plain.local_addr().expect("bound"))
            .with_policy(Policy::Prefer);
        let set = ValidatorSet::new(validators()).expect("members");
        let mut indices = Vec::new();
        for (number, node) in cluster.nodes.iter().enumerate() {
            node.add_peer(itself.clone()).expect("it runs");
            let config = PeerConfig::new(node.transport_key())
                .with_address(node.local_addr().expect("a lane"))
                .with_policy(Policy::Require)
                .with_persistent(true);
            let sender = side.dataplane.sender();
            sender.add_peer(PeerId(number as u32), config).expect("it runs");
            indices.push(set.index_of(&node.identity()).expect("a validator"));
        }
        side.wait_for_sessions(NODES);
        let network = NetworkId::from_name("falconet");
        Self {
            side,
            plain,
            leader: HostileLeader::new(identity(HOSTILE), network, Epoch::new(EPOCH), set),
            indices,
        }
    }

    /// Queues datagrams for the session with a node; says whether there was room. Little is queued: the memory of the
    /// generator is none of the cluster's.
    pub(crate) fn send(&self, number: usize, datagrams: Vec<Bytes>) -> bool {
        let queue = self.side.dataplane.stats().queues[Class::Relay.index()];
        if queue.entries + queue.submissions > QUEUED {
            return false;
        }
        let outgoing = Outgoing {
            to: Recipients::One(PeerId(number as u32)),
            class: Class::Relay,
            datagrams,
            completion: None,
        };
        self.side.dataplane.sender().try_send(outgoing).is_ok()
    }

    /// Sends each chunk to its first hop, and waits for room; gives their number.
    pub(crate) fn lead(&self, chunks: &[Addressed]) -> u64 {
        let mut sent = 0;
        for (number, index) in self.indices.iter().enumerate() {
            let own = self.hops(chunks, *index);
            sent += own.len() as u64;
            for run in own.chunks(64) {
                while !self.send(number, run.to_vec()) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        sent
    }

    /// The chunks whose first hop is the victim.
    pub(crate) fn victims(&self, chunks: &[Addressed]) -> Vec<Bytes> {
        self.hops(chunks, self.indices[VICTIM])
    }

    fn hops(&self, chunks: &[Addressed], hop: NodeIndex) -> Vec<Bytes> {
        let own = chunks.iter().filter(|addressed| addressed.to == hop);
        own.map(|addressed| addressed.chunk.clone()).collect()
    }
}

/// Sends datagrams of one length in groups that the receiver's kernel takes apart.
pub(crate) struct Groups {
    socket: UdpSocket,
    state: quinn_udp::UdpSocketState,
}

impl Groups {
    pub(crate) fn new(socket: UdpSocket) -> Self {
        let state = quinn_udp::UdpSocketState::new((&socket).into()).expect("options");
        Self { socket, state }
    }

    pub(crate) fn send(&self, target: SocketAddr, contents: &[u8], length: usize) -> bool {
        let transmit = quinn_udp::Transmit {
            destination: target,
            ecn: None,
            contents,
            segment_size: Some(length),
            src_ip: None,
        };
        self.state.try_send((&self.socket).into(), &transmit).is_ok()
    }
}
