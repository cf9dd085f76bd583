//! What can happen to an initiation while its Diffie-Hellmans are under way; `docs/spec/session.md#offload`.

use crate::network::{Network, address, ms, secret, secs};
use falconet_crypto::{Now, SecretBytes};
use falconet_transport::{
    AdmissionOptions, Discard, Endpoint, Lane, PeerConfig, PeerId, TransportConfig, Work,
};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Node 1, which has node 0 as a peer, and nobody who computes for it.
struct Rig {
    node: Endpoint,
    now: Now,
}

fn rig(config: TransportConfig) -> Rig {
    let now = Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    };
    let mut rig = Rig {
        node: Endpoint::new(config.with_offload(true), secret(1), now, [9; 32]),
        now,
    };
    rig.add(&PeerConfig::new(secret(0).public()));
    rig
}

/// `count` initiations by node 0 to node 1, oldest first.
fn initiations(count: usize) -> Vec<Vec<u8>> {
    let mut network = Network::new(2, |_, _, peer| peer);
    network.tap = Some(Vec::new());
    network.link.loss = 100;
    network.connect(0, 1);
    network.run_for(secs(80));
    let tap = network.tap.take().unwrap();
    let datagrams: Vec<_> = tap
        .into_iter()
        .map(|flight| flight.datagram)
        .take(count)
        .collect();
    assert_eq!(datagrams.len(), count);
    datagrams
}

impl Rig {
    fn add(&mut self, config: &PeerConfig) {
        self.node.add_peer(self.now, PeerId(0), config).unwrap();
    }

    /// Takes an initiation, and gives its first Diffie-Hellman away.
    fn begin(&mut self, initiation: &[u8]) -> Work {
        self.now = self.now.after(ms(100));
        self.feed(initiation).unwrap();
        self.node.poll_work().unwrap()
    }

    fn feed(&mut self, initiation: &[u8]) -> Result<(), Discard> {
        let mut datagram = initiation.to_vec();
        let inbound = self
            .node
            .handle_datagram(self.now, address(0), Lane::Authenticated, &mut datagram);
        inbound.map(|_| ())
    }

    /// Does a step; the next one, if there is one.
    fn go_on(&mut self, work: Work) -> Result<Option<Work>, Discard> {
        self.node.handle_finished(self.now, work.run())?;
        Ok(self.node.poll_work())
    }

    fn installed(&self) -> u64 {
        self.node.stats().1.installed
    }
}

#[test]
fn a_replay_that_is_under_way_twice_installs_once() {
    let [initiation] = initiations(1).try_into().unwrap();
    // Both copies have their first step done before either is answered, and the other way round.
    for first_is_answered_first in [true, false] {
        let mut rig = rig(TransportConfig::default());
        let (one, other) = (rig.begin(&initiation), rig.begin(&initiation));
        let answer = rig.go_on(one).unwrap().unwrap();
        if first_is_answered_first {
            assert!(rig.go_on(answer).unwrap().is_none());
            assert_eq!(rig.go_on(other).unwrap_err(), Discard::ReplayedInitiation);
        } else {
            assert_eq!(rig.go_on(other).unwrap_err(), Discard::ReplayedInitiation);
            assert!(rig.go_on(answer).unwrap().is_none());
        }
        assert_eq!(rig.installed(), 1);
        let (handshakes, sessions) = rig.node.stats();
        assert_eq!((handshakes.in_work, sessions.sessions), (0, 1));
        assert_eq!(handshakes.discards.of(Discard::ReplayedInitiation), 1);
    }
}

#[test]
fn an_unknown_key_under_way_twice_gets_one_place() {
    let [initiation] = initiations(1).try_into().unwrap();
    let config = TransportConfig::default()
        .with_max_peers(1)
        .with_accept_unknown(true);
    let mut rig = rig(config);
    rig.node.remove_peer(PeerId(0));
    let (one, other) = (rig.begin(&initiation), rig.begin(&initiation));
    // Both are found to be unknown, then both static-static secrets are there.
    let (one, other) = (
        rig.go_on(one).unwrap().unwrap(),
        rig.go_on(other).unwrap().unwrap(),
    );
    let answer = rig.go_on(one).unwrap().unwrap();
    assert_eq!(rig.go_on(other).unwrap_err(), Discard::ReplayedInitiation);
    rig.go_on(answer).unwrap();
    assert_eq!(rig.installed(), 1);
    assert_eq!(rig.node.handshakes().peer_timestamps().count(), 1);
}

#[test]
fn a_peer_that_is_configured_while_it_is_under_way_as_a_stranger_is_answered_as_a_peer() {
    let [initiation] = initiations(1).try_into().unwrap();
    let config = TransportConfig::default()
        .with_max_peers(1)
        .with_accept_unknown(true);
    let mut rig = rig(config);
    rig.node.remove_peer(PeerId(0));
    let work = rig.begin(&initiation);
    let met = rig.go_on(work).unwrap().unwrap();
    rig.add(&PeerConfig::new(secret(0).public()));
    let answer = rig.go_on(met).unwrap().unwrap();
    rig.go_on(answer).unwrap();
    assert_eq!(rig.installed(), 1);
    assert!(rig.node.poll_transmit().is_some(), "the response");
}

#[test]
fn a_peer_that_is_removed_meanwhile_gets_no_session_though_it_is_there_again() {
    let [initiation] = initiations(1).try_into().unwrap();
    let psk = Arc::new(SecretBytes::new([7; 32]));
    let others = [
        None,
        Some(PeerConfig::new(secret(0).public())),
        Some(PeerConfig::new(secret(0).public()).with_psk(psk)),
        Some(PeerConfig::new(secret(5).public())),
    ];
    for other in others {
        // Before the first decision, what counts is who is configured then.
        let mut rig = rig(TransportConfig::default());
        let work = rig.begin(&initiation);
        rig.node.remove_peer(PeerId(0));
        other.iter().for_each(|config| rig.add(config));
        let is_known = other
            .as_ref()
            .is_some_and(|config| config.transport_key == Some(secret(0).public()));
        assert_eq!(rig.go_on(work).is_ok(), is_known);

        // After it, the answer is for a peer that is no more.
        let mut rig = self::rig(TransportConfig::default());
        let work = rig.begin(&initiation);
        let answer = rig.go_on(work).unwrap().unwrap();
        rig.node.remove_peer(PeerId(0));
        other.iter().for_each(|config| rig.add(config));
        assert_eq!(rig.go_on(answer).unwrap_err(), Discard::UnknownPeer);
        assert_eq!((rig.installed(), rig.node.stats().0.accepted), (0, 0));
        assert!(rig.node.poll_transmit().is_none(), "no response");
        // Its timestamp was accepted, and stays so.
        if is_known {
            let again = rig.begin(&initiation);
            assert_eq!(rig.go_on(again).unwrap_err(), Discard::ReplayedInitiation);
        }
    }
}

#[test]
fn a_newer_initiation_that_is_answered_first_replaces_an_older_one() {
    let [older, newer] = initiations(2).try_into().unwrap();
    let mut rig = rig(TransportConfig::default());
    let (older, newer) = (rig.begin(&older), rig.begin(&newer));
    let older = rig.go_on(older).unwrap().unwrap();
    let newer = rig.go_on(newer).unwrap().unwrap();
    rig.go_on(newer).unwrap();
    assert_eq!(rig.go_on(older).unwrap_err(), Discard::Superseded);
    assert_eq!(rig.installed(), 1);

    // If the first step of the newer one is done first, the older one is a replay like any.
    let [older, newer] = initiations(2).try_into().unwrap();
    let mut rig = self::rig(TransportConfig::default());
    let (older, newer) = (rig.begin(&older), rig.begin(&newer));
    rig.go_on(newer).unwrap().unwrap();
    assert!(matches!(
        rig.go_on(older),
        Err(Discard::ReplayedInitiation | Discard::InitiationTooSoon)
    ));
}

#[test]
fn what_is_under_way_is_bounded_and_holds_its_place_until_it_is_done_or_dropped() {
    let rate = NonZeroU32::new(100_000).unwrap();
    let options = AdmissionOptions::default().with_unproved_per_second(rate);
    let mut rig = rig(TransportConfig::default().with_admission(options).unwrap());
    let [initiation, another] = initiations(2).try_into().unwrap();
    let mut works: Vec<_> = (0..64).map(|_| rig.begin(&initiation)).collect();
    assert_eq!(rig.node.stats().0.in_work, 64);
    assert_eq!(rig.feed(&initiation), Err(Discard::NoRoom));
    assert!(!rig.node.handshakes().has_room());
    // A thread that dies takes no place along.
    drop(works.pop());
    assert_eq!(rig.node.stats().0.in_work, 63);
    let last = rig.begin(&initiation);
    assert_eq!(rig.feed(&initiation), Err(Discard::NoRoom));
    let answer = rig.go_on(last).unwrap().unwrap();
    assert_eq!(
        rig.node.stats().0.in_work,
        64,
        "an answer under way keeps its place"
    );
    for work in works {
        assert!(rig.go_on(work).is_err());
    }
    assert_eq!(rig.node.stats().0.in_work, 1);
    rig.go_on(answer).unwrap();
    let work = rig.begin(&another);
    let answer = rig.go_on(work).unwrap().unwrap();
    rig.go_on(answer).unwrap();
    assert_eq!((rig.node.stats().0.in_work, rig.installed()), (0, 2));
}

#[test]
fn the_answer_to_an_own_dial_waits_behind_nobodys_work() {
    let mut network = Network::new(3, |_, _, peer| peer);
    network.connect(1, 0);
    network
        .intercept()
        .into_iter()
        .for_each(|flight| network.deliver(flight));
    let [response] = network.intercept().try_into().ok().unwrap();
    let [initiation] = initiations(1).try_into().unwrap();
    // Every place is taken by work that nobody does.
    let node = &mut network.nodes[1];
    let mut now = network.now;
    let mut taken = 0;
    let full = loop {
        now = now.after(ms(100));
        let mut datagram = initiation.clone();
        let result = node
            .endpoint
            .handle_datagram(now, address(2), Lane::Authenticated, &mut datagram);
        match result {
            Ok(_) => taken += 1,
            Err(reason) => break reason,
        }
    };
    assert_eq!((taken, full), (64, Discard::NoRoom));
    let mut datagram = response.datagram;
    let inbound = node
        .endpoint
        .handle_datagram(now, address(0), Lane::Authenticated, &mut datagram);
    assert!(inbound.is_ok());
    assert!(node.endpoint.sessions().is_connected(now, PeerId(0)));
}

#[test]
fn work_can_go_to_another_thread() {
    fn is_send<T: Send + 'static>() {}
    is_send::<Work>();
    is_send::<falconet_transport::Finished>();
    let [initiation] = initiations(1).try_into().unwrap();
    let mut rig = rig(TransportConfig::default());
    let mut work = Some(rig.begin(&initiation));
    while let Some(next) = work {
        let finished = std::thread::spawn(|| next.run()).join().unwrap();
        assert_eq!(format!("{finished:?}"), "Finished(..)");
        rig.node.handle_finished(rig.now, finished).unwrap();
        work = rig.node.poll_work();
    }
    assert_eq!(rig.installed(), 1);
}
