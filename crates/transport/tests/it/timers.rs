//! When what happens without a datagram: keepalives, dials and their retries;
//! `docs/spec/session.md#timers`, `docs/spec/session.md#retransmission`.

use crate::network::{Flight, Network, address, message, ms, secs};
use falconet_transport::{PeerConfig, PeerId, Policy};
use std::time::Duration;

fn require(_: usize, _: usize, peer: PeerConfig) -> PeerConfig {
    peer.with_policy(Policy::Require)
}

/// Two nodes with a session between them, everything that they send from then on on record.
fn connected(configure: impl Fn(usize, usize, PeerConfig) -> PeerConfig) -> Network {
    let mut network = Network::new(2, configure);
    network.send(0, 1, &message(1)).unwrap();
    network.run_for(ms(200));
    assert!(network.is_connected(0, 1) && network.is_connected(1, 0));
    network
}

/// Runs for `time` and says what node `from` sent meanwhile: type of message and length, and when.
fn sent_within(network: &mut Network, from: usize, time: Duration) -> Vec<(Duration, u8, usize)> {
    let start = network.now.instant;
    let mut sent = Vec::new();
    while network.now.instant < start + time {
        network.tap = Some(Vec::new());
        network.run_for(ms(10));
        let at = network.now.instant - start;
        let tap = network.tap.take().unwrap();
        let theirs = tap.into_iter().filter(|flight| flight.from == address(from));
        sent.extend(theirs.map(|flight| (at, flight.datagram[0], flight.datagram.len())));
    }
    sent
}

#[test]
fn data_that_is_not_answered_for_ten_seconds_gets_a_keepalive_and_no_second_one() {
    let mut network = connected(require);
    network.run_for(secs(20));
    network.send(0, 1, &message(2)).unwrap();
    let sent = sent_within(&mut network, 1, secs(60));
    let [(at, 4, 32)] = sent[..] else {
        panic!("one keepalive: {sent:?}");
    };
    assert!((ms(10_000)..=ms(10_030)).contains(&at), "{at:?}");
}

#[test]
fn data_that_nothing_came_back_for_in_fifteen_seconds_starts_a_dial() {
    let mut network = connected(require);
    // What was sent before is answered by now, if only by a keepalive.
    network.run_for(secs(20));
    network.link.loss = 100;
    network.send(0, 1, &message(2)).unwrap();
    let sent = sent_within(&mut network, 0, secs(16));
    let first = sent.iter().find(|(_, kind, _)| *kind == 1).unwrap();
    assert!((ms(15_000)..=ms(15_010)).contains(&first.0), "{sent:?}");
}

#[test]
fn the_keepalive_of_a_nat_is_an_option() {
    // Each 25 s, and by who asks for it only; it does not renew the session.
    let mut network = connected(|i, j, peer| {
        let peer = require(i, j, peer);
        match i {
            0 => peer.with_keepalive(secs(25)),
            _ => peer,
        }
    });
    let sent = sent_within(&mut network, 0, secs(110));
    let times: Vec<_> = sent.iter().map(|(at, ..)| at.as_millis()).collect();
    assert_eq!(times.len(), 4, "{sent:?}");
    assert!(sent.iter().all(|(_, kind, len)| (*kind, *len) == (4, 32)));
    for pair in times.windows(2) {
        assert!((25_000..=25_020).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    assert_eq!(sent_within(&mut network, 1, secs(30)), []);
    let mut without = connected(require);
    assert_eq!(sent_within(&mut without, 0, secs(110)), []);
}

#[test]
fn the_initiator_renews_at_120_seconds_when_it_sends_and_nobody_when_nobody_does() {
    let mut network = connected(require);
    for second in 0..119 {
        network.send(0, 1, &message(second)).unwrap();
        assert!(
            sent_within(&mut network, 0, secs(1))
                .iter()
                .all(|sent| sent.1 == 4)
        );
    }
    let dials = |network: &Network| network.nodes[0].endpoint.stats().0.initiations_sent;
    network.run_for(secs(2));
    assert_eq!(dials(&network), 1);
    network.send(0, 1, &message(200)).unwrap();
    assert_eq!(dials(&network), 2);
    let mut idle = connected(require);
    for node in 0..2 {
        let sent = sent_within(&mut idle, node, secs(89));
        assert!(sent.iter().all(|sent| sent.1 == 4), "{sent:?}");
    }
}

#[test]
fn retries_double_to_five_seconds_with_a_third_of_jitter_and_are_all_fresh() {
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    network.tap = Some(Vec::new());
    network.connect(0, 1);
    let mut tap = network.tap.take().unwrap();
    let mut sent = vec![Duration::ZERO];
    while sent.len() < 16 {
        network.tap = Some(Vec::new());
        let start = network.now.instant;
        let fired = network.run_until(secs(10), |network| {
            network.tap.as_ref().is_some_and(|tap| !tap.is_empty())
        });
        assert!(fired.is_some());
        let at = network.now.instant - start;
        sent.push(sent[sent.len() - 1] + at);
        tap.extend(network.tap.take().unwrap());
    }
    let pauses: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (n, pause) in pauses.iter().enumerate() {
        let base = ms((250 << n.min(5)).min(5000));
        let range = base..=base + base / 3 + ms(1);
        assert!(range.contains(pause), "{n}: {pause:?}");
    }
    // Some are longer than without jitter.
    assert!(pauses.iter().skip(5).any(|pause| *pause > ms(5100)));
    let mut ephemerals: Vec<_> = tap.iter().map(|flight| &flight.datagram[8..40]).collect();
    ephemerals.sort_unstable();
    ephemerals.dedup();
    assert_eq!(ephemerals.len(), 16);
    // Delivered in the order in which they left, each one is newer than all before.
    network.link.loss = 0;
    for flight in tap {
        network.run_for(ms(25));
        network.deliver(flight);
        network.settle();
    }
    assert_eq!(network.nodes[1].discards, []);
    assert_eq!(network.nodes[1].endpoint.stats().0.accepted, 16);
}

#[test]
fn the_two_newest_initiations_can_be_answered_and_the_newer_answer_counts() {
    let mut network = Network::new(2, require);
    network.link.loss = 100;
    network.tap = Some(Vec::new());
    network.connect(0, 1);
    network.run_for(ms(1200));
    let initiations = network.tap.take().unwrap();
    assert_eq!(initiations.len(), 3);
    network.link.loss = 0;
    let mut answers = Vec::new();
    for flight in initiations {
        network.now = network.now.after(ms(25));
        network.deliver(flight);
        answers.extend(network.intercept());
    }
    let [first, second, third]: [Flight; 3] = answers.try_into().ok().unwrap();
    let current = |network: &Network| network.nodes[0].endpoint.sessions().current(PeerId(1));
    network.deliver(first);
    assert!(current(&network).is_none(), "only two are kept");
    network.deliver(second);
    let older = current(&network).unwrap();
    network.deliver(third);
    let newer = current(&network).unwrap();
    assert_ne!(older.local_index, newer.local_index);
    // The responder follows, and both go on in the same session.
    network.collect();
    network.run_for(ms(100));
    network.send(0, 1, &message(1)).unwrap();
    network.send(1, 0, &message(2)).unwrap();
    network.run_for(ms(100));
    let theirs = network.nodes[1].endpoint.sessions().current(PeerId(0)).unwrap();
    assert_eq!(theirs.remote_index, newer.local_index);
    assert_eq!(
        network.nodes[0].received.len() + network.nodes[1].received.len(),
        2
    );
}

#[test]
fn a_peer_that_asks_for_cookies_again_and_again_hastens_four_initiations_a_dial() {
    let mut network = Network::new(2, require);
    network.set_under_load(1, true);
    network.connect(0, 1);
    // Each initiation reaches the peer from another port, so that its cookie never is for where it comes from.
    let mut sent = 0;
    for n in 0..20u16 {
        for mut flight in network.intercept() {
            if flight.to == address(1) {
                sent += 1;
                flight.from.set_port(10_000 + n);
            } else {
                flight.to = address(0);
            }
            network.deliver(flight);
        }
        network.collect();
        network.now = network.now.after(ms(25));
    }
    // The first, four that were hastened, and then nothing until the timer says so.
    assert_eq!(sent, 5);
}
