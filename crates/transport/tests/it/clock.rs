//! Clocks that show nonsense, and what becomes of the timestamps; `docs/spec/session.md#high-water`.

use crate::network::{Network, message, secs};
use falconet_crypto::Tai64N;
use falconet_transport::{Discard, PeerConfig};
use std::time::Duration;

const EIGHTY_YEARS: Duration = Duration::from_secs(80 * 365 * 86_400);

fn refused(network: &Network, node: usize) -> u64 {
    let discards = network.nodes[node].endpoint.stats().0.discards;
    discards.of(Discard::ReplayedInitiation)
}

/// Two nodes, node 0's clock 80 years ahead, with a session; then that clock is set right. Its stored mark.
fn once_ahead(persistent: bool) -> (Network, Tai64N) {
    let mut network = Network::new(2, |_, _, peer: PeerConfig| peer.with_persistent(persistent));
    network.intercept();
    network.now.unix += EIGHTY_YEARS;
    network.nodes[1].behind = EIGHTY_YEARS;
    network.reset(0);
    network.reset(1);
    network.connect(0, 1);
    network.run_for(secs(1));
    assert!(network.is_connected(0, 1) && network.is_connected(1, 0));
    let mark = network.nodes[0].endpoint.poll_timestamp_mark().unwrap();
    assert!(mark > Tai64N::from_unix(network.now.unix));
    network.nodes[0].behind = EIGHTY_YEARS;
    (network, mark)
}

fn both_ways(network: &mut Network, number: u64) {
    for (from, to) in [(0, 1), (1, 0)] {
        network.nodes[to].received.clear();
        network.send(from, to, &message(number)).unwrap();
        network.run_for(secs(1));
        assert_eq!(network.nodes[to].received.len(), 1, "{from} to {to}");
    }
}

#[test]
fn a_clock_that_was_ahead_for_a_while_keeps_nobody_out() {
    for persistent in [true, false] {
        let (mut network, _) = once_ahead(persistent);
        // Through several renewals by either side: timestamps go on where they were.
        for number in 0..90 {
            both_ways(&mut network, number);
            network.run_for(secs(8));
        }
        assert_eq!((refused(&network, 0), refused(&network, 1)), (0, 0));
        // Handshakes are a nanosecond apart now, so that the mark lasts.
        assert_eq!(network.nodes[0].endpoint.poll_timestamp_mark(), None);
    }
}

#[test]
fn a_restart_goes_on_from_the_mark_of_a_clock_that_was_ahead() {
    for persistent in [true, false] {
        let (mut network, mut mark) = once_ahead(persistent);
        for restart in 0..5 {
            network.reset(0);
            // The embedder does this before it adds peers; here the first dial is already lost.
            network.intercept();
            network.nodes[0].endpoint.raise_timestamp(mark);
            network.connect(0, 1);
            network.run_for(secs(10));
            network.connect(0, 1);
            network.run_for(secs(2));
            both_ways(&mut network, restart);
            let next = network.nodes[0].endpoint.poll_timestamp_mark();
            assert!(next > Some(mark), "a new one, above what it started from");
            mark = next.unwrap();
        }
        assert_eq!(refused(&network, 1), 0);
    }
}

#[test]
fn losing_the_mark_of_a_clock_that_was_ahead_is_healed_for_persistent_peers() {
    let (mut network, _) = once_ahead(true);
    network.reset(0);
    network.run_for(secs(15));
    assert!(refused(&network, 1) > 0);
    both_ways(&mut network, 1);
}
