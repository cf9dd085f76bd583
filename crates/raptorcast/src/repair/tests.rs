//! Loss, leaders that choose who gets what, and peers that ask or answer as they should not.

use std::time::Duration;

use bytes::Bytes;
use falconet_crypto::Signer;
use proptest::prelude::*;

use super::*;
use crate::test_support::{CALM, Cluster, EPOCH, InFlight, Weather, payload};
use crate::{ChunkView, Event, ExpiryReason, Sender, Transmit};

const LEADER: NodeIndex = NodeIndex::new(0);
const VICTIM: NodeIndex = NodeIndex::new(1);
const LEN: usize = 60_000;

fn id() -> MessageId {
    MessageId {
        epoch: EPOCH,
        round: Round::from(1),
        author: LEADER,
    }
}

/// A cluster of equal members in which the leader has broadcast and everything is under way to first hops.
fn broadcast(members: usize, len: usize) -> Cluster {
    let mut cluster = Cluster::new(&vec![1; members]);
    let now = cluster.now;
    cluster.engines[0]
        .broadcast(now, EPOCH, Round::from(1), payload(len, 1))
        .unwrap();
    cluster.collect(LEADER);
    cluster
}

/// Everybody but the victim decodes; of what is sent to it only the first `count` chunks arrive.
fn starve(cluster: &mut Cluster, count: usize) {
    let mut left = count;
    while !cluster.in_flight.is_empty() {
        for chunk in std::mem::take(&mut cluster.in_flight) {
            if chunk.to == VICTIM {
                if left == 0 {
                    continue;
                }
                left -= 1;
            }
            let _ = cluster.deliver(chunk);
        }
        let later = cluster.now.after(Duration::from_millis(1));
        for node in cluster.nodes() {
            cluster.engines[node.as_usize()].handle_timeout(later);
            cluster.collect(node);
            cluster.poll_events(node);
        }
    }
}

/// Lets time pass for the victim; its requests.
fn requests(cluster: &mut Cluster, after: Duration) -> Vec<InFlight> {
    cluster.now = cluster.now.after(after);
    cluster.engines[VICTIM.as_usize()].handle_timeout(cluster.now);
    cluster.collect(VICTIM);
    let sent = std::mem::take(&mut cluster.in_flight);
    sent.into_iter()
        .filter(|sent| sent.chunk[0] == REPAIR_REQUEST)
        .collect()
}

fn source_symbols(cluster: &Cluster) -> usize {
    usize::from(cluster.deliveries(NodeIndex::new(2))[0].source_symbols)
}

/// A victim with most symbols, everybody else with all.
fn starved(missing: usize) -> Cluster {
    let mut cluster = broadcast(6, LEN);
    let source = 53;
    starve(&mut cluster, source - missing);
    assert_eq!(source_symbols(&cluster), source, "adjust the count");
    assert_eq!(cluster.engines[1].occupancy().incomplete, 1);
    cluster
}

#[test]
fn a_leader_that_chooses_who_gets_too_few_does_not_keep_them_from_it() {
    let mut cluster = starved(10);
    let requests = requests(&mut cluster, Duration::from_millis(500));
    assert!(!requests.is_empty() && requests.len() <= 4);
    cluster.in_flight = requests;
    cluster.run(&CALM);
    let deliveries = cluster.deliveries(VICTIM);
    assert_eq!(deliveries.len(), 1);
    assert_eq!(deliveries[0].payload, payload(LEN, 1));
    let by_source: u32 = deliveries[0].sources.iter().map(|(_, count)| count).sum();
    assert_eq!(by_source, deliveries[0].symbols_received);
    let taken = cluster.engines[1].stats().repairs_taken;
    assert!(taken >= 10);
    // What had to be asked for is to nobody's credit.
    let by_author = deliveries[0].sources.iter().find(|(node, _)| *node == LEADER);
    let by_author = by_author.map_or(0, |(_, count)| u64::from(*count));
    let members = cluster.engines[1].participation(EPOCH).unwrap();
    let relayed: u64 = members.iter().map(|member| member.in_time).sum();
    assert_eq!(
        relayed + by_author + taken,
        u64::from(deliveries[0].symbols_received)
    );
}

#[test]
fn a_wire_that_loses_a_third_of_all_ends_in_delivery() {
    let weather = Weather {
        loss: 0.33,
        duplication: 0.0,
        is_reordering: true,
    };
    let mut short_of_it = 0;
    for round in 0..8 {
        // Redundancy 2 and two lossy hops: not everybody gets K.
        let mut cluster = Cluster::with_config(&[1; 9], |config| {
            config.with_redundancy(crate::Redundancy::from_hundredths(200).unwrap())
        });
        let now = cluster.now;
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round + 1), payload(LEN, 2))
            .unwrap();
        cluster.run(&weather);
        short_of_it += cluster
            .nodes()
            .skip(1)
            .filter(|node| cluster.deliveries(*node).is_empty())
            .count();
        for _ in 0..2 {
            cluster.now = cluster.now.after(Duration::from_millis(500));
            for node in cluster.nodes() {
                cluster.engines[node.as_usize()].handle_timeout(cluster.now);
            }
            cluster.run(&weather);
        }
        for node in cluster.nodes().skip(1) {
            assert_eq!(
                cluster.deliveries(node).len(),
                1,
                "{node}: {:?}",
                cluster.engines[node.as_usize()].stats()
            );
        }
    }
    assert!(short_of_it > 0, "without repair everybody would have had it");
}

#[test]
fn what_nobody_has_ends_in_a_timeout_that_says_who_sent_what() {
    let mut cluster = broadcast(6, LEN);
    // The leader lets nobody have more than 40 of 53.
    let kept: Vec<_> = cluster
        .in_flight
        .drain(..)
        .filter(|sent| ChunkView::parse(&sent.chunk).unwrap().header.index.number() < 40)
        .collect();
    cluster.in_flight = kept;
    cluster.run(&CALM);
    for _ in 0..3 {
        cluster.now = cluster.now.after(Duration::from_millis(500));
        for node in cluster.nodes() {
            cluster.engines[node.as_usize()].handle_timeout(cluster.now);
        }
        cluster.run(&CALM);
    }
    cluster.now = cluster.now.after(Duration::from_secs(10));
    let now = cluster.now;
    cluster.engines[1].handle_timeout(now);
    cluster.poll_events(VICTIM);
    let Some(Event::Expired(expiry)) = cluster.events[1].last() else {
        panic!("{:?}", cluster.events[1])
    };
    assert_eq!(
        (expiry.reason, expiry.symbols_received),
        (ExpiryReason::TimedOut, 40)
    );
    assert_eq!(expiry.given_up_at, now.instant);
    assert!(expiry.first_symbol_at < now.instant - Duration::from_secs(10));
    assert_eq!(expiry.sources.iter().map(|(_, count)| count).sum::<u32>(), 40);
    assert!(expiry.sources.iter().any(|(node, _)| *node == LEADER) && expiry.sources.len() > 3);
    assert!(cluster.engines[1].stats().repairs_asked > 0);
}

#[test]
fn two_requests_a_message_and_peer_and_none_before_their_time() {
    let mut cluster = starved(10);
    assert!(requests(&mut cluster, Duration::from_millis(480)).is_empty());
    let mut by_peer = std::collections::BTreeMap::new();
    for _ in 0..20 {
        for request in requests(&mut cluster, Duration::from_millis(250)) {
            *by_peer.entry(request.to).or_insert(0) += 1;
            assert_ne!(request.to, LEADER);
        }
    }
    assert!(
        !by_peer.is_empty() && by_peer.values().all(|count| *count <= 2),
        "{by_peer:?}"
    );
    assert!(cluster.engines[1].repairs_due.is_empty());
    // Too few symbols: whoever has less than half asks nobody.
    let mut poor = broadcast(6, LEN);
    starve(&mut poor, 20);
    assert!(requests(&mut poor, Duration::from_millis(500)).is_empty());
    assert!(requests(&mut poor, Duration::from_millis(500)).is_empty());
}

#[test]
fn nobody_may_send_others_symbols_unasked() {
    let mut cluster = starved(10);
    let asked = requests(&mut cluster, Duration::from_millis(500));
    let hop = asked[0].to;
    let deliver = |cluster: &mut Cluster, chunk: InFlight| cluster.deliver(chunk);
    assert_eq!(deliver(&mut cluster, asked[0].clone()), Ok(()));
    cluster.collect(hop);
    let answers = std::mem::take(&mut cluster.in_flight);
    assert!(!answers.is_empty() && answers.len() <= usize::from(MAX_REPAIR_SYMBOLS));
    let stranger = cluster
        .nodes()
        .find(|node| ![LEADER, VICTIM].contains(node) && asked.iter().all(|request| request.to != *node));
    for answer in &answers {
        assert_eq!(
            (answer.to, answer.chunk[0] & 0xf6),
            (VICTIM, 0x10),
            "an ordinary chunk"
        );
        // From somebody who was not asked, and over the plain lane.
        if let Some(from) = stranger {
            let hop = ChunkView::parse(&answer.chunk).unwrap().header.index;
            let outcome = deliver(
                &mut cluster,
                InFlight {
                    from,
                    ..answer.clone()
                },
            );
            assert!(
                outcome == Err(Discard::WrongSender) || outcome == Ok(()),
                "{hop:?}: {outcome:?}"
            );
        }
    }
    let now = cluster.now;
    let foreign = answers
        .iter()
        .find(|answer| {
            let hint = Sender::Hint(cluster.identity(hop));
            cluster.engines[1].handle_chunk(now, hint, answer.chunk.clone()) == Err(Discard::WrongSender)
        })
        .cloned();
    let foreign = foreign.expect("most are not from their first hop");
    // Damaged answers are dropped and use nothing up.
    let mut damaged = foreign.chunk.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let outcome = deliver(
        &mut cluster,
        InFlight {
            chunk: damaged.into(),
            ..foreign.clone()
        },
    );
    assert_eq!(outcome, Err(Discard::Proof));
    assert_eq!(deliver(&mut cluster, foreign.clone()), Ok(()));
    assert_eq!(deliver(&mut cluster, foreign), Err(Discard::Duplicate));
    cluster.collect(VICTIM);
    assert!(cluster.in_flight.is_empty(), "what is repaired is not relayed");
}

/// A request for everything, as whoever may have written it.
fn hostile_request(cluster: &Cluster, change: impl Fn(&mut RepairRequest)) -> Bytes {
    let chunk = &cluster.engines[2].cache.get(id()).unwrap().commitment;
    let mut request = RepairRequest {
        id: id(),
        root: chunk.root,
        count: MAX_REPAIR_SYMBOLS,
        wanted: Wanted::from(SymbolIndex::new(0), u16::MAX, |_| true),
    };
    change(&mut request);
    request.encode().into()
}

#[test]
fn a_requester_gets_no_more_than_its_budget() {
    let mut cluster = starved(10);
    let now = cluster.now;
    let all = hostile_request(&cluster, |_| {});
    let ask = |cluster: &mut Cluster, from: Sender, request: Bytes| {
        cluster.engines[2].handle_chunk(now, from, request)
    };
    let victim = Sender::Validator(cluster.identity(VICTIM));
    let answered = |cluster: &mut Cluster| {
        let mut sent = Vec::new();
        while let Some(Transmit { chunks, .. }) = cluster.engines[2].poll_transmit() {
            sent.extend(chunks);
        }
        sent
    };
    let plain = Sender::Hint(cluster.identity(VICTIM));
    assert_eq!(ask(&mut cluster, plain, all.clone()), Err(Discard::RepairLane));
    assert_eq!(
        ask(&mut cluster, Sender::Unknown, all.clone()),
        Err(Discard::UnknownSender)
    );
    let stranger = Sender::Validator(crate::test_support::secret(99).identity());
    assert_eq!(
        ask(&mut cluster, stranger, all.clone()),
        Err(Discard::SenderNotInSet)
    );
    for (change, reason) in [
        (
            (|r| r.root[0] ^= 1) as fn(&mut RepairRequest),
            Discard::RepairUnknown,
        ),
        (|r| r.id.round = Round::from(9), Discard::RepairUnknown),
        (|r| r.id.epoch = Epoch::new(99), Discard::Epoch),
        (|r| r.count = 0, Discard::RepairCount),
        (|r| r.count = 65, Discard::RepairCount),
    ] {
        let request = hostile_request(&cluster, change);
        assert_eq!(ask(&mut cluster, victim, request), Err(reason));
    }
    assert_eq!(
        ask(&mut cluster, victim, all.slice(..all.len() - 1)),
        Err(Discard::Truncated)
    );
    let longer = [&all[..], &[0]].concat().into();
    assert_eq!(ask(&mut cluster, victim, longer), Err(Discard::TrailingBytes));
    assert!(answered(&mut cluster).is_empty());
    let outcomes: Vec<_> = (0..5).map(|_| ask(&mut cluster, victim, all.clone())).collect();
    assert_eq!(outcomes[..2], [Ok(()); 2]);
    assert_eq!(outcomes[2..], [Err(Discard::RepairBudget); 3]);
    // docs/spec/broadcast.md#repair-limits: what one peer can make us send.
    let sent = answered(&mut cluster);
    assert!(sent.len() <= 2 * usize::from(MAX_REPAIR_SYMBOLS));
    assert!(sent.iter().map(Bytes::len).sum::<usize>() <= 2 * 64 * 1440);
    for chunk in &sent {
        assert!(
            ChunkView::parse(chunk).unwrap().header.index.number() < 53,
            "source symbols"
        );
    }
}

#[test]
fn requests_of_all_peers_together_are_bounded_over_time() {
    let mut cluster = Cluster::with_config(&[1; 12], |config| {
        config
            .with_repair_symbols_per_peer(64)
            .with_repair_symbols_per_second(256)
    });
    let now = cluster.now;
    for round in 1..=4 {
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round), payload(9_000, round as u8))
            .unwrap();
    }
    cluster.run(&CALM);
    let now = cluster.now;
    let mut taken = 0;
    for round in 1..=4 {
        for node in 3..12 {
            let request = hostile_request(&cluster, |request| request.id.round = Round::from(round));
            let mut request = RepairRequest::parse(&request).unwrap();
            request.root = cluster.engines[2].cache.get(request.id).unwrap().commitment.root;
            let from = Sender::Validator(cluster.identity(NodeIndex::new(node)));
            let outcome = cluster.engines[2].handle_chunk(now, from, request.encode().into());
            taken += u32::from(outcome.is_ok());
        }
    }
    assert_eq!(taken, 4, "256 symbols, at 64 a request");
}

#[test]
fn delivered_payloads_are_kept_within_the_memory_of_the_cache() {
    let mut cluster = Cluster::with_config(&[1; 3], |config| {
        config.with_message_bytes(40 << 20).with_round_window(100)
    });
    for round in 1..=12 {
        let now = cluster.now;
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round), payload(1 << 20, round as u8))
            .unwrap();
        cluster.run(&CALM);
        let kept = cluster.engines[1].occupancy().kept_bytes;
        assert!(kept > 1 << 20 && kept <= 5 << 20, "{kept}");
    }
    let far = cluster.now.after(Duration::from_secs(60));
    cluster.engines[1].handle_timeout(far);
    assert_eq!(cluster.engines[1].occupancy().kept_bytes, 0);
}

#[test]
fn an_incomplete_receiver_answers_with_what_it_has() {
    let mut cluster = broadcast(6, LEN);
    let mine: Vec<_> = cluster
        .in_flight
        .drain(..)
        .filter(|sent| sent.to == NodeIndex::new(2))
        .take(7)
        .collect();
    let mut held: Vec<_> = mine.iter().map(|sent| sent.chunk.clone()).collect();
    for chunk in mine {
        assert_eq!(cluster.deliver(chunk), Ok(()));
    }
    let request = hostile_request(&cluster, |_| {});
    let now = cluster.now;
    let from = Sender::Validator(cluster.identity(VICTIM));
    assert_eq!(cluster.engines[2].handle_chunk(now, from, request), Ok(()));
    let answer = cluster.engines[2].poll_transmit().unwrap();
    let mut answered = answer.chunks;
    answered.sort();
    held.sort();
    assert_eq!(answered, held, "byte for byte the chunks that came");
}

proptest! {
    #[test]
    fn requests_are_written_as_they_are_read(bytes in proptest::collection::vec(any::<u8>(), REPAIR_REQUEST_LEN)) {
        let mut bytes = bytes;
        bytes[0] = REPAIR_REQUEST;
        match RepairRequest::parse(&bytes) {
            Ok(request) => prop_assert_eq!(request.encode(), bytes),
            Err(reason) => prop_assert_eq!(reason, Discard::RepairCount),
        }
    }

    #[test]
    fn a_window_holds_what_is_wanted_and_nothing_else(start in 0_u16..3000, symbols in 1_u16..3000, step in 1_u16..9) {
        let start = SymbolIndex::new(start % symbols);
        let is_wanted = |symbol: SymbolIndex| symbol.number().is_multiple_of(step);
        let wanted = Wanted::from(start, symbols, is_wanted);
        let listed: std::collections::BTreeSet<_> = wanted.iter(symbols).collect();
        for symbol in (0..symbols).map(SymbolIndex::new) {
            let distance = (usize::from(symbols) + symbol.as_usize() - start.as_usize()) % usize::from(symbols);
            prop_assert_eq!(listed.contains(&symbol), is_wanted(symbol) && distance < WINDOW);
            prop_assert_eq!(wanted.contains(symbol, symbols), listed.contains(&symbol));
        }
    }
}
