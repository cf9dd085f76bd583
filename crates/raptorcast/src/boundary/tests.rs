use std::sync::Arc;
use std::time::Duration;

use falconet_crypto::Signer;

use crate::test_support::{CALM, Cluster, EPOCH, payload, secret, set_of};
use crate::{BroadcastError, Discard, Epoch, Event, NodeIndex, Round, Sender};

const LEADER: NodeIndex = NodeIndex::new(0);
const NEXT: Epoch = Epoch::new(EPOCH.number() + 1);

#[test]
fn who_joins_with_the_next_set_is_told_before_the_boundary() {
    let mut cluster = Cluster::new(&[1; 3]);
    let engine = &mut cluster.engines[0];
    assert_eq!(engine.poll_event(), None, "with the first set everybody is new");
    let next = Arc::new(set_of(&[1; 5]));
    engine.set_epoch(NEXT, Arc::clone(&next));
    let Some(Event::Joiners(joiners)) = engine.poll_event() else {
        panic!("nobody joined")
    };
    let mut expected = [3, 4].map(|id| secret(id).identity());
    expected.sort_unstable();
    assert_eq!((joiners.epoch, &joiners.members[..]), (NEXT, &expected[..]));
    engine.set_epoch(NEXT, next);
    assert_eq!(engine.poll_event(), None, "the same set brings nobody");
}

#[test]
fn messages_at_the_boundary_are_judged_by_their_own_set() {
    let mut cluster = Cluster::new(&[1; 4]);
    let now = cluster.now;
    // Member 3 of the first set leaves, and another comes: numbers and shares differ.
    let next = Arc::new(set_of(&[5, 1, 1]));
    for engine in &mut cluster.engines {
        engine.set_epoch(NEXT, Arc::clone(&next));
    }
    let leaver = cluster
        .nodes()
        .find(|node| next.index_of(&cluster.identity(*node)).is_none())
        .unwrap();
    let refused = cluster.engines[leaver.as_usize()].broadcast(now, NEXT, Round::from(2), payload(9_000, 1));
    assert_eq!(refused, Err(BroadcastError::NotInSet(NEXT)));
    cluster.engines[leaver.as_usize()]
        .broadcast(now, EPOCH, Round::from(2), payload(9_000, 1))
        .unwrap();
    cluster.run(&CALM);
    for node in cluster.nodes().filter(|node| *node != leaver) {
        let deliveries = cluster.deliveries(node);
        assert_eq!(deliveries.len(), 1, "the old set still judges");
        assert_eq!(deliveries[0].epoch, EPOCH);
    }
    // In the new epoch the leaver may not send, whatever it relays.
    let stayer = cluster.nodes().find(|node| *node != leaver).unwrap();
    cluster.engines[stayer.as_usize()]
        .broadcast(now, NEXT, Round::from(3), payload(9_000, 2))
        .unwrap();
    let chunk = cluster.engines[stayer.as_usize()].poll_transmit().unwrap().chunks[0].clone();
    let to = cluster
        .nodes()
        .find(|node| ![leaver, stayer].contains(node))
        .unwrap();
    let from = crate::Sender::Validator(cluster.identity(leaver));
    let outcome = cluster.engines[to.as_usize()].handle_chunk(now, from, chunk);
    assert_eq!(outcome, Err(Discard::SenderNotInSet));
}

#[test]
fn only_the_leader_of_a_round_is_heard() {
    let mut cluster = Cluster::new(&[1; 4]);
    let now = cluster.now;
    let leaders: Vec<_> = cluster.nodes().map(|node| cluster.identity(node)).collect();
    let schedule = move |round: Round| leaders.get(round.number() as usize % 5).copied();
    assert!(!cluster.engines[1].set_schedule(NEXT, Arc::new(schedule.clone())));
    for engine in &mut cluster.engines[1..] {
        assert!(engine.set_schedule(EPOCH, Arc::new(schedule.clone())));
    }
    // Node 0 has no schedule, and takes a round that is not its own.
    for (round, outcome) in [
        (1, Err(Discard::NotLeader)),
        (4, Err(Discard::NotLeader)),
        (5, Ok(())),
    ] {
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round), payload(5_000, 1))
            .unwrap();
        cluster.collect(LEADER);
        let chunk = cluster.in_flight.remove(0);
        cluster.in_flight.clear();
        assert_eq!(cluster.deliver(chunk), outcome, "round {round}");
    }
    assert_eq!(
        cluster.engines[1].stats().signatures_checked,
        cluster.engines[1].occupancy().incomplete as u64
    );
    let own = cluster.engines[1].broadcast(now, EPOCH, Round::from(7), payload(5, 1));
    assert_eq!(own, Err(BroadcastError::NotLeader(EPOCH, Round::from(7))));
    assert!(
        cluster.engines[1]
            .broadcast(now, EPOCH, Round::from(6), payload(5, 1))
            .is_ok()
    );
}

#[test]
fn an_authors_wrong_clock_is_told_while_its_messages_are_still_taken() {
    let mut cluster = Cluster::new(&[1; 3]);
    let ahead = Duration::from_millis(2_600);
    for round in 1..=3 {
        let now = cluster.now;
        let wrong = falconet_crypto::Now {
            unix: now.unix + ahead,
            ..now
        };
        cluster.engines[0]
            .broadcast(wrong, EPOCH, Round::from(round), payload(700, round as u8))
            .unwrap();
        cluster.run(&CALM);
    }
    for node in [1, 2] {
        let skews: Vec<_> = cluster.events[node]
            .iter()
            .filter_map(|event| match event {
                Event::ClockSkew(skew) => Some(*skew),
                _ => None,
            })
            .collect();
        assert_eq!(skews.len(), 1);
        assert_eq!(skews[0].peer, cluster.identity(LEADER));
        assert!((-2_600..-2_500).contains(&skews[0].offset_ms), "{skews:?}");
        assert_eq!(cluster.deliveries(NodeIndex::new(node as u16)).len(), 3);
        assert_eq!(cluster.engines[node].clock_offsets().count(), 1);
    }
}

/// docs/spec/broadcast.md#refused-clock: a node whose clock has jumped hears nothing, and says why.
#[test]
fn a_clock_that_has_jumped_past_the_window_is_told_and_replays_are_no_clock() {
    let mut cluster = Cluster::new(&[1; 3]);
    let mut chunks = Vec::new();
    for round in 1..=5 {
        cluster.now = cluster.now.after(Duration::from_secs(2));
        let now = cluster.now;
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round), payload(700, round as u8))
            .unwrap();
        cluster.collect(LEADER);
        let of_round = cluster.in_flight.drain(..).find(|chunk| chunk.to.as_usize() == 1);
        chunks.push((now, of_round.unwrap().chunk));
    }
    let sender = Sender::Validator(cluster.identity(LEADER));
    let engine = &mut cluster.engines[1];
    let behind = |now: falconet_crypto::Now| falconet_crypto::Now {
        unix: now.unix - Duration::from_secs(3_600),
        ..now
    };
    let mut told = Vec::new();
    for (round, (now, chunk)) in chunks.iter().enumerate() {
        // The second comes thrice, the first again later, and one by a stranger's hand.
        for again in [chunk, chunk, &chunks[0].1] {
            assert_eq!(
                engine.handle_chunk(behind(*now), sender, again.clone()),
                Err(Discard::Timestamp)
            );
        }
        while let Some(event) = engine.poll_event() {
            if let Event::ClockSkew(skew) = event {
                told.push((round, skew.offset_ms, skew.samples));
            }
        }
    }
    assert_eq!(told, [(2, -3_600_000, 3)]);
    assert_eq!(
        engine.stats().signatures_checked,
        0,
        "nothing is taken out of a budget"
    );
}

#[test]
fn forged_timestamps_are_no_clock() {
    let mut cluster = Cluster::new(&[1; 3]);
    let now = cluster.now;
    cluster.engines[0]
        .broadcast(now, EPOCH, Round::from(1), payload(700, 1))
        .unwrap();
    cluster.collect(LEADER);
    let chunk = cluster
        .in_flight
        .drain(..)
        .find(|chunk| chunk.to.as_usize() == 1)
        .unwrap()
        .chunk;
    let sender = Sender::Validator(cluster.identity(NodeIndex::new(2)));
    for second in 1..=9_u64 {
        let mut forged = chunk.to_vec();
        let mut header = crate::ChunkView::parse(&chunk).unwrap().header;
        header.timestamp_ms += second * 100_000;
        header.encode(&mut forged);
        let at = now.after(Duration::from_secs(second));
        let refused = cluster.engines[1].handle_chunk(at, sender, forged.into());
        assert_eq!(refused, Err(Discard::Timestamp));
        assert_eq!(cluster.engines[1].poll_event(), None);
    }
}

#[test]
fn rounds_that_are_over_leave_nothing_behind() {
    let mut cluster = Cluster::new(&[1; 4]);
    let now = cluster.now;
    for round in [1, 2] {
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round), payload(9_000, 1))
            .unwrap();
    }
    cluster.collect(LEADER);
    let to = cluster.in_flight[0].to;
    let mut chunks: Vec<_> = cluster
        .in_flight
        .drain(..)
        .filter(|chunk| chunk.to == to)
        .collect();
    let round_of =
        |chunk: &crate::test_support::InFlight| crate::ChunkView::parse(&chunk.chunk).unwrap().header.round;
    let late = chunks
        .iter()
        .rposition(|chunk| round_of(chunk) == Round::from(1))
        .unwrap();
    let late = chunks.remove(late);
    for chunk in chunks {
        assert_eq!(cluster.deliver(chunk), Ok(()));
    }
    cluster.engines[0]
        .broadcast(now, EPOCH, Round::from(3), payload(9_000, 1))
        .unwrap();
    let engine = &mut cluster.engines[to.as_usize()];
    engine.drop_rounds_before(Round::from(2));
    engine.handle_timeout(now.after(Duration::from_millis(1)));
    while let Some(transmit) = engine.poll_transmit() {
        assert!(transmit.id.round >= Round::from(2), "a stale relay left");
    }
    assert_eq!(engine.occupancy().incomplete, 1);
    assert!(matches!(engine.poll_event(), Some(Event::Expired(expiry)) if expiry.id.round == Round::from(1)));
    assert_eq!(cluster.deliver(late), Err(Discard::Round));
    cluster.engines[0].drop_rounds_before(Round::from(4));
    assert_eq!(
        cluster.engines[0].poll_transmit(),
        None,
        "our own stale broadcast does not leave"
    );
}
