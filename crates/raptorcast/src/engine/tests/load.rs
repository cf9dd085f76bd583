//! A stream of payloads in virtual time, and what one hostile message costs, both in counted work.

use std::time::Duration;

use crate::test_support::{CALM, Cluster, EPOCH, InFlight, payload};
use crate::{Event, ExpiryReason, NodeIndex, Round};

const PAYLOAD: usize = 200_000;
/// Rounds of a quarter of a second: four payloads a second, for five seconds.
const ROUNDS: u32 = 20;
const ROUND_TIME: Duration = Duration::from_millis(250);

/// Each round another leader broadcasts; half of its chunks leave in the round, the rest in the next, so that leaders
/// overlap. Every fourth leader stops halfway.
#[test]
fn four_payloads_a_second_flow_through_and_stale_rounds_leave() {
    let mut cluster =
        Cluster::with_config(&[1; 6], |config| config.with_repair_after(Duration::from_secs(5)));
    let mut late: Vec<InFlight> = Vec::new();
    let (mut most_incomplete, mut most_bytes) = (0, 0);
    for round in 1..=ROUNDS {
        let leader = NodeIndex::new((round % 6) as u16);
        let now = cluster.now;
        cluster.engines[leader.as_usize()]
            .broadcast(now, EPOCH, Round::from(round), payload(PAYLOAD, round as u8))
            .unwrap();
        cluster.collect(leader);
        let mut fresh = std::mem::take(&mut cluster.in_flight);
        let stops_halfway = round.is_multiple_of(4);
        // Less than K of 2.5 K.
        let next = fresh.split_off(fresh.len() / if stops_halfway { 3 } else { 2 });
        cluster.in_flight = std::mem::replace(&mut late, if stops_halfway { Vec::new() } else { next });
        cluster.in_flight.extend(fresh);
        cluster.run(&CALM);
        for node in cluster.nodes() {
            let engine = &mut cluster.engines[node.as_usize()];
            engine.set_round(Round::from(round));
            if round > 2 {
                engine.drop_rounds_before(Round::from(round - 1));
            }
            let occupancy = engine.occupancy();
            most_incomplete = most_incomplete.max(occupancy.incomplete);
            most_bytes = most_bytes.max(occupancy.bytes);
            cluster.poll_events(node);
        }
        cluster.now = now.after(ROUND_TIME);
    }
    // The rounds that nobody finished are never more than those that are not over: this one and the last.
    assert!(most_incomplete <= 2, "{most_incomplete}");
    assert!(
        most_bytes <= 2 * 4 * PAYLOAD,
        "{most_bytes} bytes, redundancy 2.5 counted in advance"
    );
    for node in cluster.nodes() {
        let led = (1..=ROUNDS).filter(|round| round % 6 == u32::from(node.number()));
        let unfinished = |round: &u32| round.is_multiple_of(4);
        let expected = (1..=ROUNDS)
            .filter(|round| !unfinished(round) && round % 6 != u32::from(node.number()))
            .count();
        let deliveries = cluster.deliveries(node);
        assert_eq!(deliveries.len(), expected, "{node}");
        let stats = cluster.engines[node.as_usize()].stats();
        // One solve a payload, now and then a second: what decoding costs at this rate.
        assert!(
            stats.decode_attempts <= expected as u64 + 2,
            "{} attempts",
            stats.decode_attempts
        );
        assert_eq!(
            (
                stats.events_dropped,
                stats.relays_dropped,
                stats.decodes_postponed
            ),
            (0, 0, 0)
        );
        let stale = cluster.events[node.as_usize()].iter().filter(
            |event| matches!(event, Event::Expired(expiry) if expiry.reason == ExpiryReason::StaleRound),
        );
        // The last unfinished round is not over yet.
        let unfinished_of_others =
            (1..ROUNDS).filter(unfinished).count() - led.filter(|r| unfinished(r) && *r < ROUNDS).count();
        assert_eq!(stale.count(), unfinished_of_others, "{node}");
    }
}

/// The dearest message that symbols alone can make: the largest payload, whose commitment turns out to be wrong only
/// after all has been decoded, encoded again and hashed; and everything that its author still sends after that.
// docs/spec/broadcast.md#worst-message
#[test]
fn a_message_costs_one_decode_and_one_encode_and_then_nothing() {
    let mut cluster = Cluster::new(&[1; 4]);
    let now = cluster.now;
    cluster.engines[0]
        .broadcast(now, EPOCH, Round::from(1), payload(1 << 20, 1))
        .unwrap();
    cluster.collect(NodeIndex::new(0));
    let all = cluster.in_flight.clone();
    cluster.run(&CALM);
    let before: Vec<_> = cluster
        .engines
        .iter()
        .map(|engine| engine.stats().clone())
        .collect();
    for _ in 0..3 {
        cluster.in_flight = all.clone();
        cluster.run(&CALM);
    }
    for (engine, before) in cluster.engines.iter().zip(&before).skip(1) {
        let after = engine.stats();
        assert!(before.decode_attempts <= 2, "{}", before.decode_attempts);
        assert_eq!(after.decode_attempts, before.decode_attempts);
        assert_eq!(after.signatures_checked, 1);
        assert_eq!(after.chunks_relayed, before.chunks_relayed);
    }
}
