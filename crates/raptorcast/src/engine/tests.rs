//! Networks of engines in memory, honest ones here; hostile ones are in `incoming/tests.rs`.

use std::time::Duration;

use bytes::Bytes;

use crate::limits::MAX_PAYLOAD_LEN;
use crate::test_support::{CALM, Cluster, EPOCH, Weather, payload};
use crate::{
    BroadcastError, ChunkSize, Class, Discard, Epoch, Event, GeometryError, NodeIndex, Recipients,
    Redundancy, Round,
};

mod load;

const LEADER: NodeIndex = NodeIndex::new(0);

fn broadcast(cluster: &mut Cluster, leader: NodeIndex, round: u32, payload: &Bytes) {
    let now = cluster.now;
    cluster.engines[leader.as_usize()]
        .broadcast(now, EPOCH, Round::from(round), payload.clone())
        .unwrap();
}

fn assert_all_delivered(cluster: &Cluster, leader: NodeIndex, payload: &Bytes) {
    for node in cluster.nodes() {
        let deliveries = cluster.deliveries(node);
        if node == leader {
            assert!(deliveries.is_empty(), "the leader does not receive its own");
        } else {
            assert_eq!(
                deliveries.len(),
                1,
                "node {node}: {:?}",
                cluster.engines[node.as_usize()].stats()
            );
            assert_eq!(deliveries[0].payload, *payload);
            assert_eq!(deliveries[0].author_index, leader);
        }
    }
}

#[test]
fn payloads_of_every_shape_reach_everybody() {
    let symbol = 1280;
    for len in [
        1,
        63,
        64,
        65,
        symbol,
        symbol + 1,
        2 * symbol,
        10 * symbol - 1,
        100_000,
        400_001,
    ] {
        let mut cluster = Cluster::new(&[10, 20, 30, 40, 50]);
        let payload = payload(len, 1);
        broadcast(&mut cluster, LEADER, 1, &payload);
        cluster.run(&CALM);
        assert_all_delivered(&cluster, LEADER, &payload);
    }
}

#[test]
fn the_largest_payload_reaches_everybody() {
    let mut cluster = Cluster::new(&[1; 4]);
    let payload = payload(MAX_PAYLOAD_LEN, 2);
    broadcast(&mut cluster, LEADER, 1, &payload);
    cluster.run(&CALM);
    assert_all_delivered(&cluster, LEADER, &payload);
}

#[test]
fn loss_reordering_and_duplication_are_made_up_for() {
    let weather = Weather {
        loss: 0.2,
        duplication: 0.2,
        is_reordering: true,
    };
    for seed in 0..3 {
        let mut cluster = Cluster::new(&[5, 9, 1, 7, 3, 8, 2]);
        let leader = NodeIndex::new(seed);
        let payload = payload(150_000, seed as u8);
        broadcast(&mut cluster, leader, 1, &payload);
        cluster.run(&weather);
        assert_all_delivered(&cluster, leader, &payload);
        assert!(
            cluster
                .discards
                .iter()
                .any(|(_, reason)| *reason == Discard::Duplicate)
        );
    }
}

#[test]
fn a_third_of_the_stake_may_be_silent() {
    let mut cluster = Cluster::new(&[10; 10]);
    let payload = payload(80_000, 3);
    broadcast(&mut cluster, LEADER, 1, &payload);
    cluster.collect(LEADER);
    let silent = |node: NodeIndex| node.number() >= 7;
    cluster.in_flight.retain(|chunk| !silent(chunk.to));
    cluster.run(&CALM);
    for node in cluster.nodes().filter(|node| *node != LEADER) {
        assert_eq!(cluster.deliveries(node).len(), 1, "{node}");
    }
}

#[test]
fn two_validators_and_validators_without_stake_are_served() {
    for stakes in [&[5, 5][..], &[5, 5, 0], &[0, 0, 5], &[0, u128::MAX, u128::MAX, 0]] {
        let mut cluster = Cluster::new(stakes);
        let payload = payload(5_000, 4);
        let has_hop = |node: NodeIndex| {
            cluster
                .set
                .iter()
                .any(|(other, member)| other != node && member.stake.units() > 0)
        };
        let leader = cluster.nodes().find(|node| has_hop(*node)).unwrap();
        broadcast(&mut cluster, leader, 1, &payload);
        cluster.run(&CALM);
        assert_all_delivered(&cluster, leader, &payload);
    }
}

#[test]
fn a_header_with_the_authors_key_is_accepted_too() {
    let mut cluster = Cluster::with_config(&[1, 2, 3], |config| config.with_author_by_key(true));
    let payload = payload(30_000, 5);
    broadcast(&mut cluster, LEADER, 1, &payload);
    cluster.run(&CALM);
    assert_all_delivered(&cluster, LEADER, &payload);
}

#[test]
fn other_chunk_sizes_and_redundancies_work() {
    for (bytes, hundredths) in [(1200, 110), (1420, 200), (8900, 300)] {
        let mut cluster = Cluster::with_config(&[4, 5, 6, 7], |config| {
            config
                .with_chunk(ChunkSize::new(bytes).unwrap())
                .with_redundancy(Redundancy::from_hundredths(hundredths).unwrap())
        });
        let payload = payload(200_000, 6);
        broadcast(&mut cluster, LEADER, 1, &payload);
        cluster.run(&CALM);
        assert_all_delivered(&cluster, LEADER, &payload);
    }
}

#[test]
fn overlapping_leaders_do_not_disturb_each_other() {
    let mut cluster = Cluster::new(&[1; 6]);
    let payloads: Vec<_> = (0..4).map(|seed| payload(60_000, 10 + seed)).collect();
    for (leader, payload) in payloads.iter().enumerate() {
        broadcast(
            &mut cluster,
            NodeIndex::new(leader as u16),
            1 + leader as u32 % 2,
            payload,
        );
    }
    cluster.run(&Weather {
        loss: 0.05,
        duplication: 0.05,
        is_reordering: true,
    });
    for node in cluster.nodes() {
        let mut got: Vec<_> = cluster
            .deliveries(node)
            .iter()
            .map(|d| (d.author_index, d.payload.clone()))
            .collect();
        got.sort_by_key(|(author, _)| *author);
        let expected: Vec<_> = (0..4)
            .map(|leader| (NodeIndex::new(leader), payloads[usize::from(leader)].clone()))
            .filter(|(leader, _)| *leader != node)
            .collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn a_symbol_is_relayed_once_also_after_the_message_is_decoded() {
    let mut cluster = Cluster::new(&[1; 5]);
    let payload = payload(50_000, 7);
    broadcast(&mut cluster, LEADER, 1, &payload);
    cluster.collect(LEADER);
    let first = cluster.in_flight.clone();
    cluster.run(&CALM);
    cluster.in_flight = first.clone();
    cluster.run(&CALM);
    assert_all_delivered(&cluster, LEADER, &payload);
    for node in cluster.nodes().filter(|node| *node != LEADER) {
        let own = first.iter().filter(|chunk| chunk.to == node).count() as u64;
        assert_eq!(
            cluster.engines[node.as_usize()].stats().chunks_relayed,
            own,
            "every own symbol, once"
        );
    }
}

#[test]
fn source_symbols_leave_first_in_runs_by_turns() {
    let mut cluster = Cluster::with_config(&[1; 5], |config| config.with_run_length(3));
    let now = cluster.now;
    let engine = &mut cluster.engines[0];
    let report = engine
        .broadcast(now, EPOCH, Round::from(1), payload(100_000, 8))
        .unwrap();
    let mut hops = Vec::new();
    let mut indices = Vec::new();
    while let Some(transmit) = engine.poll_transmit() {
        assert_eq!(transmit.class, Class::Proposal);
        assert!(transmit.chunks.len() <= 3);
        let Recipients::One(hop) = transmit.to else {
            panic!("a proposal goes to one first hop")
        };
        hops.push(hop);
        let index = |chunk: &Bytes| crate::ChunkView::parse(chunk).unwrap().header.index.number();
        indices.extend(transmit.chunks.iter().map(index));
    }
    let turn: std::collections::BTreeSet<_> = hops[..4].iter().collect();
    assert_eq!(
        turn.len(),
        4,
        "each first hop has its turn before any has a second"
    );
    let source = report.source_symbols;
    assert!(indices[..usize::from(source)].iter().all(|index| *index < source));
    indices.sort_unstable();
    assert_eq!(indices, (0..indices.len() as u16).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_broadcast_is_refused_before_any_work() {
    let mut cluster = Cluster::new(&[1; 3]);
    let now = cluster.now;
    let engine = &mut cluster.engines[0];
    let mut attempt = |epoch, round: u32, len| {
        engine
            .broadcast(now, epoch, Round::from(round), Bytes::from(vec![1; len]))
            .map(|report| report.payload_len)
    };
    assert_eq!(
        attempt(EPOCH, 5, 0),
        Err(BroadcastError::Geometry(GeometryError::Empty))
    );
    let too_large = MAX_PAYLOAD_LEN + 1;
    assert_eq!(
        attempt(EPOCH, 5, too_large),
        Err(BroadcastError::Geometry(GeometryError::TooLarge(too_large)))
    );
    let unknown = Epoch::new(8);
    assert_eq!(attempt(unknown, 5, 1), Err(BroadcastError::UnknownEpoch(unknown)));
    assert_eq!(attempt(EPOCH, 5, 1), Ok(1));
    assert_eq!(
        attempt(EPOCH, 5, 1),
        Err(BroadcastError::DuplicateRound(EPOCH, Round::from(5)))
    );
    assert_eq!(
        attempt(EPOCH, 4, 1),
        Err(BroadcastError::OldRound(Round::from(4), Round::from(5)))
    );
    assert_eq!(engine.stats().broadcasts, 1);
}

#[test]
fn a_restarted_node_does_not_publish_a_used_round() {
    let mut cluster = Cluster::new(&[1; 3]);
    let now = cluster.now;
    cluster.engines[0].resume_after(EPOCH, Round::from(9));
    let outcome = cluster.engines[0].broadcast(now, EPOCH, Round::from(9), Bytes::from_static(b"x"));
    assert_eq!(
        outcome,
        Err(BroadcastError::DuplicateRound(EPOCH, Round::from(9)))
    );
}

#[test]
fn broadcasts_that_do_not_leave_are_bounded() {
    let mut cluster = Cluster::with_config(&[1; 3], |config| config.with_outgoing_slots(2));
    let now = cluster.now;
    let mut attempt = |round: u32| {
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round), Bytes::from_static(b"x"))
            .map(|_| ())
    };
    assert_eq!([attempt(1), attempt(2)], [Ok(()), Ok(())]);
    assert_eq!(attempt(3), Err(BroadcastError::Backlog(2)));
}

#[test]
fn two_epochs_overlap_and_the_third_ends_the_first() {
    let mut cluster = Cluster::new(&[1; 4]);
    let payload = payload(20_000, 9);
    let next = Epoch::new(EPOCH.number() + 1);
    for engine in &mut cluster.engines {
        engine.set_epoch(next, cluster.set.clone());
    }
    broadcast(&mut cluster, LEADER, 1, &payload);
    cluster.run(&CALM);
    assert_all_delivered(&cluster, LEADER, &payload);
    broadcast(&mut cluster, LEADER, 2, &payload);
    cluster.collect(LEADER);
    let chunk = cluster.in_flight.remove(0);
    let later = cluster
        .in_flight
        .iter()
        .find(|other| other.to == chunk.to)
        .unwrap()
        .clone();
    let receiver = chunk.to;
    assert_eq!(cluster.deliver(chunk), Ok(()));
    let set = cluster.set.clone();
    cluster.engines[receiver.as_usize()].set_epoch(Epoch::new(next.number() + 1), set);
    assert_eq!(cluster.deliver(later), Err(Discard::Epoch));
    cluster.poll_events(receiver);
    assert!(matches!(
        cluster.events[receiver.as_usize()].last(),
        Some(Event::Expired(_))
    ));
}

#[test]
fn memory_of_one_broadcast_leaves_no_trace_in_the_next() {
    let chunks_of = |lengths: &[usize]| {
        let mut cluster = Cluster::new(&[1; 4]);
        let now = cluster.now;
        for (round, len) in lengths.iter().enumerate() {
            cluster.in_flight.clear();
            let round = Round::from(round as u32);
            cluster.engines[0]
                .broadcast(now, EPOCH, round, payload(*len, 1))
                .unwrap();
            cluster.collect(NodeIndex::new(0));
        }
        let mut symbols: Vec<_> = cluster
            .in_flight
            .iter()
            .map(|sent| sent.chunk.slice(91..))
            .collect();
        symbols.sort();
        symbols
    };
    for len in [1, 900, 30_000, 31_111] {
        assert_eq!(
            chunks_of(&[200_000, 64_000, len]),
            chunks_of(&[3, 2, len]),
            "{len} bytes"
        );
    }
}

#[test]
fn a_warm_engine_broadcasts_the_same() {
    let mut cluster = Cluster::new(&[1; 4]);
    cluster.engines[0].warm_up(20_000);
    let now = cluster.now;
    cluster.engines[0]
        .broadcast(now, EPOCH, Round::from(1), payload(20_000, 3))
        .unwrap();
    cluster.run(&CALM);
    for node in cluster.nodes().skip(1) {
        assert_eq!(cluster.deliveries(node)[0].payload, payload(20_000, 3));
    }
}

#[test]
fn an_author_who_makes_us_decode_too_often_waits() {
    let mut cluster = Cluster::with_config(&[1; 3], |config| config.with_decode_attempts_per_second(1));
    for round in 1..=2 {
        broadcast(
            &mut cluster,
            LEADER,
            round,
            &payload(MAX_PAYLOAD_LEN / 5 * 3, round as u8),
        );
    }
    broadcast(&mut cluster, NodeIndex::new(2), 1, &payload(5_000, 3));
    cluster.run(&CALM);
    let node = NodeIndex::new(1);
    let authors = |cluster: &Cluster| {
        let mut authors: Vec<_> = cluster
            .deliveries(node)
            .iter()
            .map(|delivery| delivery.author_index)
            .collect();
        authors.sort_unstable();
        authors
    };
    assert_eq!(
        authors(&cluster),
        [LEADER, NodeIndex::new(2)],
        "each author has a budget of its own"
    );
    let engine = &mut cluster.engines[node.as_usize()];
    assert!(engine.stats().decodes_postponed > 0);
    let retry = cluster.now.after(Duration::from_millis(1_100));
    assert!(
        engine.poll_timeout().is_some_and(|at| at <= retry.instant),
        "it asks to be woken"
    );
    engine.handle_timeout(retry);
    cluster.poll_events(node);
    assert_eq!(authors(&cluster), [LEADER, LEADER, NodeIndex::new(2)]);
}

#[test]
fn a_first_hop_that_relays_nothing_shows() {
    let mut cluster = Cluster::new(&[1; 6]);
    let (node, silent) = (NodeIndex::new(1), NodeIndex::new(4));
    broadcast(&mut cluster, LEADER, 1, &payload(60_000, 1));
    cluster.collect(LEADER);
    cluster.in_flight.retain(|sent| sent.to != silent);
    cluster.run(&CALM);
    assert_eq!(cluster.deliveries(node).len(), 1);
    let members = cluster.engines[node.as_usize()].participation(EPOCH).unwrap();
    for (place, member) in members.iter().enumerate() {
        let (was_assigned, relayed) = match NodeIndex::new(place as u16) {
            LEADER => (false, false),
            // What the leader owes to us is no first hop's doing.
            other if other == node => (false, false),
            other => (true, other != silent),
        };
        assert_eq!(
            (member.assigned > 0, member.in_time > 0),
            (was_assigned, relayed),
            "{place}: {member:?}"
        );
        assert!(member.in_time <= member.assigned);
    }
    assert_eq!(
        cluster.engines[node.as_usize()].participation(Epoch::new(99)),
        None
    );
}
