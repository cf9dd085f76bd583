//! A network in virtual time: nodes with an endpoint each, and links that delay, lose, duplicate and
//! reorder. The same seed gives the same run.

use bytes::Bytes;
use falconet_crypto::{Now, TransportSecret};
use falconet_transport::{
    Content, Discard, Endpoint, Event, Lane, PeerConfig, PeerId, SendError, TransportConfig, Work, kind,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) struct Link {
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    /// Percent.
    pub(crate) loss: u32,
    pub(crate) duplicate: u32,
    pub(crate) corrupt: u32,
}

pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    pub(crate) address: SocketAddr,
    pub(crate) plain: SocketAddr,
    /// Every plaintext with the peer that it is from.
    pub(crate) received: Vec<(Option<PeerId>, Lane, Vec<u8>)>,
    pub(crate) events: Vec<Event>,
    pub(crate) discards: Vec<Discard>,
    peers: Vec<(PeerId, PeerConfig)>,
    config: TransportConfig,
    restarts: u32,
    /// What its clock shows of the time since 1970 is less than the network's by this.
    pub(crate) behind: Duration,
    /// Asks everybody for a cookie, also after a reset.
    pub(crate) under_load: bool,
}

pub(crate) struct Flight {
    pub(crate) to: SocketAddr,
    pub(crate) from: SocketAddr,
    pub(crate) lane: Lane,
    pub(crate) datagram: Vec<u8>,
}

pub(crate) struct Network {
    pub(crate) now: Now,
    pub(crate) nodes: Vec<Node>,
    pub(crate) link: Link,
    pub(crate) rng: ChaCha20Rng,
    /// Everything that was put on the wire, if recording.
    pub(crate) tap: Option<Vec<Flight>>,
    /// Nothing reaches or leaves this node.
    pub(crate) cut_off: Option<usize>,
    /// Nobody polls events.
    pub(crate) keeps_events: bool,
    flights: BTreeMap<(Instant, u64), Flight>,
    /// Diffie-Hellmans that nodes have given away, by when they are done, and for which life of the node.
    works: BTreeMap<(Instant, u64), (usize, u32, Work)>,
    sequence: u64,
}

pub(crate) fn secret(node: usize) -> TransportSecret {
    TransportSecret::from_bytes([node as u8 + 1; 32])
}

/// A message that says which it is.
pub(crate) fn message(number: u64) -> Bytes {
    let mut bytes = vec![kind::MESSAGE];
    bytes.extend(number.to_le_bytes());
    bytes.resize(9 + (number % 40) as usize, number as u8);
    bytes.into()
}

impl Network {
    /// `nodes` nodes that know each other's addresses; `configure` completes what `i` knows of `j`.
    pub(crate) fn new(nodes: usize, configure: impl Fn(usize, usize, PeerConfig) -> PeerConfig) -> Self {
        Self::with_config(nodes, &TransportConfig::default(), configure)
    }

    pub(crate) fn with_config(
        nodes: usize,
        config: &TransportConfig,
        configure: impl Fn(usize, usize, PeerConfig) -> PeerConfig,
    ) -> Self {
        let config = &config.clone().with_offload(crate::OFFLOADED);
        let now = Now {
            instant: Instant::now(),
            unix: Duration::from_secs(1_700_000_000),
        };
        let mut network = Self {
            now,
            nodes: Vec::new(),
            link: Link {
                delay: ms(10),
                jitter: ms(0),
                loss: 0,
                duplicate: 0,
                corrupt: 0,
            },
            rng: ChaCha20Rng::seed_from_u64(1),
            tap: None,
            cut_off: None,
            keeps_events: false,
            flights: BTreeMap::new(),
            works: BTreeMap::new(),
            sequence: 0,
        };
        for i in 0..nodes {
            let others = (0..nodes).filter(|&j| j != i);
            let peers = others.map(|j| {
                let known = PeerConfig::new(secret(j).public()).with_address(address(j));
                (PeerId(j as u32), configure(i, j, known))
            });
            let mut node = Node {
                endpoint: Endpoint::new(config.clone(), secret(i), now, [i as u8 + 100; 32]),
                address: address(i),
                plain: plain_address(i),
                received: Vec::new(),
                events: Vec::new(),
                discards: Vec::new(),
                peers: peers.collect(),
                config: config.clone(),
                restarts: 0,
                behind: ms(0),
                under_load: false,
            };
            node.add_peers(now);
            network.nodes.push(node);
        }
        network.collect();
        network
    }

    /// Forgets everything that node `i` had in memory. Its keys stay.
    pub(crate) fn reset(&mut self, i: usize) {
        let now = self.clock_of(i);
        let node = &mut self.nodes[i];
        node.restarts += 1;
        let mut seed = [i as u8 + 100; 32];
        seed[..4].copy_from_slice(&node.restarts.to_le_bytes());
        node.endpoint = Endpoint::new(node.config.clone(), secret(i), now, seed);
        node.endpoint.set_under_load(node.under_load);
        node.add_peers(now);
        self.collect();
    }

    /// From now on node `i` asks everybody for a cookie, or no longer does.
    pub(crate) fn set_under_load(&mut self, i: usize, under_load: bool) {
        self.nodes[i].under_load = under_load;
        self.nodes[i].endpoint.set_under_load(under_load);
    }

    /// What the clock of node `i` shows.
    pub(crate) fn clock_of(&self, i: usize) -> Now {
        self.nodes[i].clock(self.now)
    }

    pub(crate) fn send(&mut self, from: usize, to: usize, plaintext: &Bytes) -> Result<(), SendError> {
        let now = self.clock_of(from);
        let result = self.nodes[from].endpoint.send(now, PeerId(to as u32), plaintext);
        self.collect();
        result
    }

    pub(crate) fn connect(&mut self, from: usize, to: usize) {
        let now = self.clock_of(from);
        self.nodes[from].endpoint.connect(now, PeerId(to as u32));
        self.collect();
    }

    /// Restarts every node with what `configure` makes of its peers now.
    #[allow(dead_code)] // Only one of the tests that include this file needs it.
    pub(crate) fn reconfigure(&mut self, configure: impl Fn(usize, usize, PeerConfig) -> PeerConfig) {
        for i in 0..self.nodes.len() {
            for (peer, config) in &mut self.nodes[i].peers {
                let j = peer.0 as usize;
                let known = PeerConfig::new(secret(j).public()).with_address(address(j));
                *config = configure(i, j, known);
            }
            self.reset(i);
        }
    }

    /// Node `from` removes `to` and adds it again.
    pub(crate) fn forget(&mut self, from: usize, to: usize) {
        let now = self.clock_of(from);
        let node = &mut self.nodes[from];
        node.endpoint.remove_peer(PeerId(to as u32));
        let config = node.peers.iter().find(|(peer, _)| *peer == PeerId(to as u32));
        if let Some((peer, config)) = config {
            node.endpoint.add_peer(now, *peer, config).unwrap();
        }
        self.collect();
    }

    pub(crate) fn is_connected(&self, from: usize, to: usize) -> bool {
        self.nodes[from]
            .endpoint
            .sessions()
            .is_connected(self.now, PeerId(to as u32))
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now.instant + time;
        while self.step(end) {}
        self.advance(end);
    }

    /// Runs until `done`, at most for `time`; says how long it took.
    pub(crate) fn run_until(&mut self, time: Duration, done: impl Fn(&Self) -> bool) -> Option<Duration> {
        let start = self.now.instant;
        loop {
            if done(self) {
                return Some(self.now.instant - start);
            }
            if !self.step(start + time) {
                return None;
            }
        }
    }

    /// One datagram, one timer or the end of one piece of work, if there is one before `end`.
    fn step(&mut self, end: Instant) -> bool {
        let flight = self.flights.keys().next().map(|key| key.0);
        let timers = self.nodes.iter().filter_map(|node| node.endpoint.poll_timeout());
        let timer = timers.min();
        let work = self.works.keys().next().map(|key| key.0);
        let events = flight.into_iter().chain(timer).chain(work);
        let Some(at) = events.min().filter(|at| *at <= end) else {
            return false;
        };
        self.advance(at);
        if work == Some(at) {
            self.finish_work();
        } else if flight.is_some_and(|flight| flight <= at)
            && let Some((_, flight)) = self.flights.pop_first()
        {
            self.deliver(flight);
        } else {
            for node in &mut self.nodes {
                if node.endpoint.poll_timeout().is_some_and(|timeout| timeout <= at) {
                    let now = node.clock(self.now);
                    node.endpoint.handle_timeout(now);
                    assert!(
                        node.endpoint.poll_timeout().is_none_or(|next| next > at),
                        "the loop spins"
                    );
                }
            }
        }
        self.collect();
        true
    }

    /// Does what is done first; whoever gave it away may have lost its memory since.
    fn finish_work(&mut self) {
        let Some((_, (node, life, work))) = self.works.pop_first() else {
            return;
        };
        let (now, node) = (self.clock_of(node), &mut self.nodes[node]);
        if node.restarts == life
            && let Err(reason) = node.endpoint.handle_finished(now, work.run())
        {
            node.discards.push(reason);
        }
    }

    /// Work is done by others in up to 3 ms, so in another order than it was given away.
    fn give_away(&mut self, node: usize) {
        while let Some(work) = self.nodes[node].endpoint.poll_work() {
            let takes = Duration::from_micros(u64::from(self.rng.next_u32() % 3000));
            self.sequence += 1;
            let life = self.nodes[node].restarts;
            self.works
                .insert((self.now.instant + takes, self.sequence), (node, life, work));
        }
    }

    pub(crate) fn advance(&mut self, to: Instant) {
        self.now = self.now.after(to.saturating_duration_since(self.now.instant));
    }

    pub(crate) fn deliver(&mut self, mut flight: Flight) {
        let now = self.now;
        let Some(node) = self.nodes.iter_mut().find(|node| match flight.lane {
            Lane::Authenticated => node.address == flight.to,
            Lane::Plain => node.plain == flight.to,
        }) else {
            return;
        };
        let now = node.clock(now);
        match node
            .endpoint
            .handle_datagram(now, flight.from, flight.lane, &mut flight.datagram)
        {
            Ok(inbound) if inbound.content != Content::None => {
                let plaintext = flight.datagram[inbound.start..][..inbound.len].to_vec();
                node.received.push((inbound.peer, flight.lane, plaintext));
            }
            Ok(_) => {}
            Err(reason) => node.discards.push(reason),
        }
    }

    /// Puts what the endpoints have to send on the wire.
    pub(crate) fn collect(&mut self) {
        for i in 0..self.nodes.len() {
            while !self.keeps_events
                && let Some(event) = self.nodes[i].endpoint.poll_event()
            {
                self.nodes[i].events.push(event);
            }
            while let Some(transmit) = self.nodes[i].endpoint.poll_transmit() {
                let node = &self.nodes[i];
                let from = match transmit.lane {
                    Lane::Authenticated => node.address,
                    Lane::Plain => node.plain,
                };
                let datagram = transmit.datagram.to_vec();
                self.launch(from, transmit.to, transmit.lane, datagram);
            }
            self.give_away(i);
        }
    }

    fn launch(&mut self, from: SocketAddr, to: SocketAddr, lane: Lane, datagram: Vec<u8>) {
        if let Some(tap) = &mut self.tap {
            let datagram = datagram.clone();
            tap.push(Flight {
                to,
                from,
                lane,
                datagram,
            });
        }
        let cut_off = self.cut_off.map(|node| &self.nodes[node]);
        let is_at = |node: &Node, address| node.address == address || node.plain == address;
        if cut_off.is_some_and(|node| is_at(node, from) || is_at(node, to)) {
            return;
        }
        let copies = 1 + u32::from(self.chance(self.link.duplicate));
        for _ in 0..copies {
            if self.chance(self.link.loss) {
                continue;
            }
            let mut datagram = datagram.clone();
            if self.chance(self.link.corrupt) {
                let at = self.rng.next_u32() as usize % datagram.len();
                datagram[at] ^= 1 << (self.rng.next_u32() % 8);
            }
            let jitter = self
                .link
                .jitter
                .mul_f64(f64::from(self.rng.next_u32()) / f64::from(u32::MAX));
            let at = self.now.instant + self.link.delay + jitter;
            self.sequence += 1;
            self.flights.insert(
                (at, self.sequence),
                Flight {
                    to,
                    from,
                    lane,
                    datagram,
                },
            );
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.rng.next_u32() % 100 < percent
    }

    /// Ends all work that was given away, now.
    pub(crate) fn settle(&mut self) {
        self.collect();
        while !self.works.is_empty() {
            self.finish_work();
            self.collect();
        }
    }

    /// Takes everything off the wire, and what work under way has to say.
    pub(crate) fn intercept(&mut self) -> Vec<Flight> {
        self.settle();
        std::mem::take(&mut self.flights).into_values().collect()
    }
}

impl Node {
    fn clock(&self, now: Now) -> Now {
        Now {
            unix: now.unix.saturating_sub(self.behind),
            ..now
        }
    }

    fn add_peers(&mut self, now: Now) {
        for (peer, config) in &self.peers {
            self.endpoint.add_peer(now, *peer, config).unwrap();
        }
    }
}

pub(crate) fn address(node: usize) -> SocketAddr {
    format!("10.0.0.{}:7000", node + 1).parse().unwrap()
}

pub(crate) fn plain_address(node: usize) -> SocketAddr {
    format!("10.0.0.{}:8000", node + 1).parse().unwrap()
}

/// `count` initiations to node 1 by node 2's key, each with its own ephemeral key and timestamp.
pub(crate) fn initiations(count: usize) -> Vec<Vec<u8>> {
    let mut strangers = Network::new(3, |_, _, peer| peer);
    strangers.tap = Some(Vec::new());
    strangers.link.loss = 100;
    while strangers.tap.as_ref().unwrap().len() < count {
        strangers.connect(2, 1);
        strangers.reset(2);
    }
    let tap = strangers.tap.take().unwrap();
    tap.into_iter().map(|flight| flight.datagram).collect()
}
