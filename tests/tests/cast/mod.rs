//! Nodes on loopback for the tests of this folder, known by their numbers.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet::{
    Deliveries, Delivery, IdentityKey, IdentitySecret, Messages, Node, NodeBuilder, NodeKeys, Peer, Policy,
    Signer, Stake, Suite, TransportPublicKey, TransportSecret, Validator,
};

/// Far longer than anything takes: only a bug waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The epoch of all tests.
pub(crate) const EPOCH: u32 = 1;

/// The keys of a node, always the same for its number.
pub(crate) fn keys(number: u8) -> NodeKeys {
    NodeKeys::new(Arc::new(identity_secret(number)), transport_secret(number))
}

pub(crate) fn identity(number: u8) -> IdentityKey {
    identity_secret(number).identity()
}

pub(crate) fn transport_key(number: u8) -> TransportPublicKey {
    transport_secret(number).public()
}

fn identity_secret(number: u8) -> IdentitySecret {
    IdentitySecret::from_bytes([number + 1; 32])
}

fn transport_secret(number: u8) -> TransportSecret {
    TransportSecret::from_bytes([number + 101; 32])
}

/// Validators 0 to `count`, of equal stake.
pub(crate) fn validators(count: u8) -> Vec<Validator> {
    (0..count)
        .map(|number| Validator {
            identity: identity(number),
            stake: Stake::new(1),
        })
        .collect()
}

/// A payload that says which it is.
pub(crate) fn payload(len: usize, filling: u8) -> Bytes {
    (0..len)
        .map(|at| filling.wrapping_add((at / 251) as u8))
        .collect::<Vec<_>>()
        .into()
}

/// The lanes that a node listens on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    pub(crate) authenticated: bool,
    pub(crate) plain: bool,
}

pub(crate) const AUTHENTICATED: Lanes = Lanes {
    authenticated: true,
    plain: false,
};
pub(crate) const PLAIN: Lanes = Lanes {
    authenticated: false,
    plain: true,
};
pub(crate) const BOTH: Lanes = Lanes {
    authenticated: true,
    plain: true,
};

/// How the nodes of a test are set up; all of them are validators.
pub(crate) struct Setup {
    pub(crate) lanes: Vec<Lanes>,
    pub(crate) ip: IpAddr,
    pub(crate) suites: Vec<Suite>,
    /// How a node speaks to another, by their numbers.
    pub(crate) policy: Box<dyn Fn(u8, u8) -> Policy>,
    /// The last word on a node's builder.
    pub(crate) build: Box<dyn Fn(u8, NodeBuilder) -> NodeBuilder>,
}

impl Setup {
    pub(crate) fn new(lanes: &[Lanes]) -> Self {
        Self {
            lanes: lanes.to_vec(),
            ip: Ipv4Addr::LOCALHOST.into(),
            suites: vec![Suite::ChaCha20Poly1305],
            policy: Box::new(|_, _| Policy::Prefer),
            build: Box::new(|_, builder| builder),
        }
    }

    /// Starts all nodes, introduces them to each other, and waits for their sessions.
    pub(crate) async fn start(self) -> Vec<Member> {
        let mut members = Vec::new();
        for (number, lanes) in (0..).zip(&self.lanes) {
            members.push(Member::start(self.builder(number, *lanes)).await);
        }
        for number in 0..members.len() {
            for other in (0..members.len()).filter(|other| *other != number) {
                let peer = self.peer(number, other, &members[other].node);
                members[number].node.add_peer(peer).unwrap();
            }
        }
        for member in &members {
            let missing = member.node.wait_connected(PATIENCE).await;
            assert_eq!(missing, Ok(()), "no session");
        }
        members
    }

    fn builder(&self, number: u8, lanes: Lanes) -> NodeBuilder {
        let mut builder = Node::builder(keys(number))
            .validators(EPOCH, validators(self.lanes.len() as u8))
            .suites(&self.suites);
        let any_port = SocketAddr::new(self.ip, 0);
        if lanes.authenticated {
            builder = builder.listen(any_port);
        }
        if lanes.plain {
            builder = builder.listen_plain(any_port);
        }
        (self.build)(number, builder)
    }

    fn peer(&self, number: usize, other: usize, node: &Node) -> Peer {
        let mut peer = Peer::new(node.identity())
            .with_policy((self.policy)(number as u8, other as u8))
            .with_suites(&self.suites);
        if let Some(address) = node.local_addr() {
            peer = peer.with_authenticated(node.transport_key(), address);
        }
        if let Some(address) = node.local_plain_addr() {
            peer = peer.with_plain(address);
        }
        peer
    }
}

/// A node and the streams that are read from it.
pub(crate) struct Member {
    pub(crate) node: Node,
    pub(crate) deliveries: Deliveries,
    pub(crate) messages: Messages,
}

impl Member {
    pub(crate) async fn start(builder: NodeBuilder) -> Self {
        let node = builder.start().await.unwrap();
        let (deliveries, messages) = (node.deliveries(), node.messages());
        Self {
            node,
            deliveries,
            messages,
        }
    }

    /// The next payload.
    pub(crate) async fn delivery(&mut self) -> Delivery {
        let next = tokio::time::timeout(PATIENCE, self.deliveries.recv()).await;
        next.unwrap_or_else(|_| panic!("nothing is delivered: {:?}", self.node.stats()))
            .expect("the node runs")
    }

    /// The next small message.
    pub(crate) async fn message(&mut self) -> falconet::Message {
        let next = tokio::time::timeout(PATIENCE, self.messages.recv()).await;
        next.unwrap_or_else(|_| panic!("no message comes: {:?}", self.node.stats()))
            .expect("the node runs")
    }

    /// That nothing is delivered. Only after a sign that whatever could come has come.
    pub(crate) async fn has_no_delivery(&mut self) {
        let next = tokio::time::timeout(Duration::from_millis(200), self.deliveries.recv()).await;
        assert!(
            next.is_err(),
            "a payload was delivered: {:?}",
            next.unwrap().map(|delivery| delivery.round)
        );
    }

    /// That no message comes. Only after a sign that whatever could come has come.
    pub(crate) async fn has_no_message(&mut self) {
        let next = tokio::time::timeout(Duration::from_millis(200), self.messages.recv()).await;
        assert!(next.is_err(), "a message came: {next:?}");
    }

    /// Discards of all reasons.
    pub(crate) fn discards(&self) -> u64 {
        self.node.stats().discards.iter().map(|(_, count)| count).sum()
    }
}

/// Broadcasts one payload and waits until everybody else has it.
pub(crate) async fn broadcast_arrives(members: &mut [Member], leader: usize, round: u64, payload: &Bytes) {
    let report = members[leader]
        .node
        .broadcast(round, payload.clone())
        .await
        .unwrap();
    assert_eq!(report.dropped, 0, "{:?}", members[leader].node.stats());
    let author = members[leader].node.identity();
    for (number, member) in members
        .iter_mut()
        .enumerate()
        .filter(|(number, _)| *number != leader)
    {
        let delivery = member.delivery().await;
        assert!(delivery.payload == payload, "altered at node {number}");
        assert_eq!(
            (delivery.round, delivery.epoch, delivery.author),
            (round, EPOCH, author)
        );
    }
}

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Stops all nodes.
pub(crate) async fn stop(members: Vec<Member>) {
    for member in members {
        member.node.shutdown().await;
    }
}
