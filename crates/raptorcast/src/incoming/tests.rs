//! Hostile leaders, relays and strangers.

use std::time::Duration;

use bytes::Bytes;
use falconet_crypto::{Purpose, Signature, Signer};

use super::*;
use crate::assignment::Assignment;
use crate::ids::{Round, SymbolIndex};
use crate::limits::{HASH_LEN, SIGNATURE_LEN};
use crate::merkle::{Tree, leaf_hash};
use crate::test_support::{CALM, Cluster, EPOCH, InFlight, network, payload};
use crate::{EngineConfig, Event, ExpiryReason};

mod charges;

const LEADER: NodeIndex = NodeIndex::new(0);

/// A cluster in which the leader has broadcast, and what is on its way to first hops.
fn broadcast(len: usize, config: impl Fn(EngineConfig) -> EngineConfig) -> (Cluster, Vec<InFlight>) {
    let mut cluster = Cluster::with_config(&[1; 5], config);
    let now = cluster.now;
    cluster.engines[0]
        .broadcast(now, EPOCH, Round::from(1), payload(len, 1))
        .unwrap();
    cluster.collect(LEADER);
    let chunks = std::mem::take(&mut cluster.in_flight);
    (cluster, chunks)
}

/// The same chunks with changed symbols or headers, committed to and signed as a hostile leader would.
fn forge(
    cluster: &Cluster,
    chunks: &[InFlight],
    change: impl Fn(&mut Header, &mut Vec<u8>),
) -> Vec<InFlight> {
    let mut parts: Vec<_> = chunks
        .iter()
        .map(|in_flight| {
            let view = ChunkView::parse(&in_flight.chunk).unwrap();
            let (mut header, mut symbol) = (view.header, view.symbol.to_vec());
            change(&mut header, &mut symbol);
            (in_flight.to, header, symbol)
        })
        .collect();
    parts.sort_by_key(|(_, header, _)| header.index);
    let leaves: Vec<_> = parts.iter().map(|(_, _, symbol)| leaf_hash(symbol)).collect();
    let depth = crate::limits::merkle_depth(parts[0].1.symbols);
    let tree = Tree::build(&leaves, depth);
    let fields = parts[0].1.commitment_bytes();
    let signature = cluster
        .secret_of(LEADER)
        .sign(Purpose::Chunk, &network(), &[fields.as_slice(), &tree.root()])
        .unwrap();
    let chunk = |header: &Header, symbol: &[u8]| {
        let at = header.encoded_len();
        let mut bytes = vec![0; at + SIGNATURE_LEN + HASH_LEN * usize::from(depth)];
        header.encode(&mut bytes);
        bytes[at..at + SIGNATURE_LEN].copy_from_slice(signature.as_bytes());
        tree.write_proof(header.index, &mut bytes[at + SIGNATURE_LEN..]);
        bytes.extend_from_slice(symbol);
        Bytes::from(bytes)
    };
    parts
        .iter()
        .map(|(to, h, symbol)| InFlight {
            from: LEADER,
            to: *to,
            chunk: chunk(h, symbol),
        })
        .collect()
}

#[test]
fn inconsistent_symbols_taint_the_message_everywhere() {
    let (mut cluster, chunks) = broadcast(40_000, |config| config);
    let source = ChunkView::parse(&chunks[0].chunk)
        .unwrap()
        .header
        .source_symbols() as u16;
    for altered in [0, source - 1, source, source + 40] {
        let round = Round::from(100 + u32::from(altered));
        let forged = forge(&cluster, &chunks, |header, symbol| {
            header.round = round;
            if header.index == SymbolIndex::new(altered) {
                symbol[5] ^= 1;
            }
        });
        // The first hops of the forged round are others: send each symbol to its own.
        let id = MessageId {
            epoch: EPOCH,
            round,
            author: LEADER,
        };
        let view = ChunkView::parse(&forged[0].chunk).unwrap();
        let geometry = cluster.engines[1].geometry_of(id, &view.header).unwrap();
        let redundancy = cluster.engines[1].config.redundancy;
        let assignment = Assignment::derive(&network(), id, &cluster.set, &geometry, redundancy);
        cluster.in_flight = forged
            .into_iter()
            .zip(assignment.iter())
            .map(|(chunk, (_, to))| InFlight { to, ..chunk })
            .collect();
        cluster.events.iter_mut().for_each(Vec::clear);
        cluster.run(&CALM);
        for node in cluster.nodes().filter(|node| *node != LEADER) {
            let events = &cluster.events[node.as_usize()];
            assert!(matches!(events[..], [Event::Tainted(_)]), "{altered}: {events:?}");
        }
    }
}

#[test]
fn a_leader_that_states_another_geometry_is_dropped_once_and_for_all() {
    let (mut cluster, chunks) = broadcast(40_000, |config| config);
    let forged = forge(&cluster, &chunks, |header, _| header.payload_len -= 1200);
    let [first, second] = [
        forged[0].clone(),
        forged.iter().rfind(|c| c.to == forged[0].to).unwrap().clone(),
    ];
    assert_eq!(cluster.deliver(first.clone()), Err(Discard::Geometry));
    assert_eq!(cluster.deliver(second), Err(Discard::Abandoned));
    assert_eq!(cluster.engines[first.to.as_usize()].stats().signatures_checked, 1);
}

#[test]
fn symbols_come_only_from_author_to_first_hop_and_from_first_hop_to_others() {
    let (mut cluster, chunks) = broadcast(40_000, |config| config);
    let chunk = chunks[0].clone();
    let other = cluster
        .nodes()
        .find(|node| *node != LEADER && *node != chunk.to)
        .unwrap();
    let third = cluster
        .nodes()
        .find(|n| ![LEADER, chunk.to, other].contains(n))
        .unwrap();
    let via = |from, to| InFlight {
        from,
        to,
        chunk: chunk.chunk.clone(),
    };
    assert_eq!(
        cluster.deliver(via(LEADER, other)),
        Err(Discard::WrongSender),
        "not its first hop"
    );
    assert_eq!(
        cluster.deliver(via(third, other)),
        Err(Discard::WrongSender),
        "not from the first hop"
    );
    assert_eq!(
        cluster.deliver(via(third, chunk.to)),
        Err(Discard::WrongSender),
        "ours, but not from the author"
    );
    assert_eq!(cluster.deliver(via(chunk.to, other)), Ok(()));
    assert_eq!(cluster.deliver(via(LEADER, chunk.to)), Ok(()));
    assert_eq!(cluster.deliver(via(LEADER, chunk.to)), Err(Discard::Duplicate));
    assert_eq!(cluster.deliver(via(chunk.to, LEADER)), Err(Discard::OwnMessage));
    let now = cluster.now;
    let engine = &mut cluster.engines[other.as_usize()];
    assert_eq!(
        engine.handle_chunk(now, Sender::Unknown, chunk.chunk.clone()),
        Err(Discard::UnknownSender)
    );
    let stranger = Sender::Hint(falconet_crypto::IdentityKey::from_bytes([1; 32]));
    assert_eq!(
        engine.handle_chunk(now, stranger, chunk.chunk.clone()),
        Err(Discard::SenderNotInSet)
    );
}

#[test]
fn every_flipped_bit_and_every_truncation_is_discarded() {
    for warm in [false, true] {
        let (mut cluster, chunks) =
            broadcast(3_000, |config| config.with_verifications_per_validator(1_000_000));
        let chunk = chunks[0].clone();
        if warm {
            let known = chunks.iter().rfind(|other| other.to == chunk.to).unwrap().clone();
            assert_eq!(cluster.deliver(known), Ok(()));
        }
        let header_bits = (27 + 64 + 100) * 8;
        for bit in (0..header_bits).chain((header_bits..chunk.chunk.len() * 8).step_by(97)) {
            let mut bytes = chunk.chunk.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let outcome = cluster.deliver(InFlight {
                chunk: bytes.into(),
                ..chunk.clone()
            });
            assert!(outcome.is_err(), "bit {bit}, warm: {warm}");
        }
        for len in 0..chunk.chunk.len() {
            let cut = InFlight {
                chunk: chunk.chunk.slice(..len),
                ..chunk.clone()
            };
            assert_eq!(cluster.deliver(cut), Err(Discard::Truncated));
        }
        assert_eq!(cluster.deliver(chunk), Ok(()), "and the intact one still counts");
    }
}

#[test]
fn noise_of_every_length_is_discarded() {
    let (mut cluster, _) = broadcast(1, |config| config);
    for len in 0..=2048 {
        for bytes in [
            vec![0; len],
            vec![0xff; len],
            vec![0x10; len],
            payload(len, 3).to_vec(),
        ] {
            let to = NodeIndex::new(1);
            assert!(
                cluster
                    .deliver(InFlight {
                        from: LEADER,
                        to,
                        chunk: bytes.into()
                    })
                    .is_err()
            );
        }
    }
    let stats = cluster.engines[1].stats();
    assert_eq!(stats.discards().map(|(_, count)| count).sum::<u64>(), 2049 * 4);
    assert_eq!(cluster.engines[1].occupancy().incomplete, 0);
}

#[test]
fn two_roots_in_a_round_are_reported_once_with_evidence() {
    let (mut cluster, chunks) = broadcast(40_000, |config| config);
    let forged = forge(&cluster, &chunks, |_, symbol| symbol[0] ^= 1);
    let receiver = chunks[0].to;
    let mine = |all: &[InFlight]| {
        all.iter()
            .filter(|c| c.to == receiver)
            .cloned()
            .collect::<Vec<_>>()
    };
    let (first, second) = (mine(&chunks), mine(&forged));
    assert_eq!(cluster.deliver(first[0].clone()), Ok(()));
    for chunk in second
        .into_iter()
        .filter(|c| c.chunk[23..25] != first[0].chunk[23..25])
    {
        assert_eq!(cluster.deliver(chunk), Err(Discard::Equivocation));
    }
    cluster.poll_events(receiver);
    let [Event::Equivocation(evidence)] = &cluster.events[receiver.as_usize()][..] else {
        panic!("{:?}", cluster.events[receiver.as_usize()]);
    };
    for side in [&evidence.first, &evidence.second] {
        let signature = Signature::from_bytes(side.signature);
        evidence
            .author
            .verify(
                Purpose::Chunk,
                &network(),
                &[&side.header, &side.root],
                &signature,
            )
            .unwrap();
    }
    assert_eq!(cluster.engines[receiver.as_usize()].stats().signatures_checked, 2);
    assert_eq!(
        cluster.deliver(first[1].clone()),
        Ok(()),
        "the first commitment goes on"
    );
}

#[test]
fn signatures_are_checked_within_budgets_and_once_a_message() {
    let (mut cluster, chunks) = broadcast(40_000, |c| c.with_verifications_plain(3).with_message_slots(64));
    let to = chunks[0].to;
    let sender = Sender::Hint(cluster.identity(LEADER));
    let now = cluster.now;
    let engine = &mut cluster.engines[to.as_usize()];
    let mut forged = chunks[0].chunk.to_vec();
    forged[40] ^= 1;
    let outcomes: Vec<_> = (0..5)
        .map(|_| {
            engine
                .handle_chunk(now, sender, forged.clone().into())
                .unwrap_err()
        })
        .collect();
    assert_eq!(outcomes[..3], [Discard::Signature; 3]);
    assert_eq!(outcomes[3..], [Discard::VerificationBudget; 2]);
    for chunk in chunks.iter().filter(|chunk| chunk.to == to).take(5) {
        assert_eq!(
            cluster.deliver(chunk.clone()),
            Ok(()),
            "the session has a budget of its own"
        );
    }
    assert_eq!(cluster.engines[to.as_usize()].stats().signatures_checked, 4);
}

#[test]
fn stale_and_distant_messages_are_refused() {
    let (mut cluster, chunks) = broadcast(40_000, |config| config);
    let chunk = chunks[0].clone();
    let engine = chunk.to.as_usize();
    cluster.engines[engine].set_round(Round::from(4));
    assert_eq!(cluster.deliver(chunk.clone()), Err(Discard::Round));
    cluster.engines[engine].set_round(Round::from(3));
    let before = cluster.now;
    cluster.now = before.after(Duration::from_secs(11));
    assert_eq!(cluster.deliver(chunk.clone()), Err(Discard::Timestamp));
    cluster.now = before;
    assert_eq!(cluster.deliver(chunk), Ok(()));
    cluster.engines[engine].set_round(Round::from(4));
    cluster.poll_events(NodeIndex::new(engine as u16));
    let [Event::Expired(expiry)] = &cluster.events[engine][..] else {
        panic!("no expiry")
    };
    assert_eq!(
        (expiry.reason, expiry.symbols_received),
        (ExpiryReason::StaleRound, 1)
    );
}

#[test]
fn incomplete_messages_time_out_and_are_forgotten() {
    let (mut cluster, chunks) = broadcast(40_000, |config| config);
    let chunk = chunks[0].clone();
    assert_eq!(cluster.deliver(chunk.clone()), Ok(()));
    let now = cluster.now;
    let engine = &mut cluster.engines[chunk.to.as_usize()];
    engine.handle_timeout(now.after(Duration::from_millis(1)));
    let half_a_second = Duration::from_millis(500);
    for looks in 1..=2 {
        // It may ask others for symbols twice before that.
        assert_eq!(engine.poll_timeout(), Some(now.instant + half_a_second * looks));
        engine.handle_timeout(now.after(half_a_second * looks));
    }
    assert_eq!(engine.poll_timeout(), Some(now.instant + Duration::from_secs(10)));
    engine.handle_timeout(now.after(Duration::from_secs(10)));
    assert!(matches!(engine.poll_event(), Some(Event::Expired(_))));
    assert_eq!(
        (
            engine.occupancy().incomplete,
            engine.occupancy().bytes,
            engine.occupancy().remembered
        ),
        (0, 0, 1)
    );
    engine.handle_timeout(now.after(Duration::from_secs(31)));
    assert_eq!((engine.occupancy().remembered, engine.poll_timeout()), (0, None));
}

#[test]
fn the_cache_holds_to_its_limits_when_it_is_filled() {
    let mut cluster = Cluster::with_config(&[1; 8], |config| {
        config
            .with_message_slots(6)
            .with_author_slots(2)
            .with_remembered_slots(20)
            .with_round_window(1000)
    });
    let target = NodeIndex::new(7);
    for round in 1..=30 {
        for leader in 0..7 {
            let now = cluster.now;
            cluster.engines[leader]
                .broadcast(now, EPOCH, Round::from(round), payload(9_000, 1))
                .unwrap();
            cluster.collect(NodeIndex::new(leader as u16));
        }
        let mut seen = std::collections::BTreeSet::new();
        for chunk in std::mem::take(&mut cluster.in_flight) {
            if chunk.to == target && seen.insert(chunk.from) {
                cluster.now = cluster.now.after(Duration::from_millis(1));
                assert_eq!(cluster.deliver(chunk), Ok(()));
                let engine = &cluster.engines[target.as_usize()];
                assert!(engine.occupancy().incomplete <= 6);
                assert!(engine.occupancy().remembered <= 21, "{:?}", engine.occupancy());
                assert!((0..7).all(|author| engine.cache.receiving_of(NodeIndex::new(author)) <= 2));
            }
        }
    }
    assert!(cluster.engines[target.as_usize()].stats().expired > 100);
}

/// What a receiver is handed: the leader's chunks of two messages, a forged one, damaged and repeated ones.
fn mixed_traffic() -> (Cluster, NodeIndex, Vec<(Sender, Bytes)>) {
    let (mut cluster, chunks) = broadcast(60_000, |config| config);
    let now = cluster.now;
    cluster.engines[0]
        .broadcast(now, EPOCH, Round::from(2), payload(9_000, 2))
        .unwrap();
    cluster.collect(LEADER);
    let second = std::mem::take(&mut cluster.in_flight);
    let forged = forge(&cluster, &chunks, |_, symbol| symbol[0] ^= 1);
    let receiver = NodeIndex::new(1);
    let mut traffic = Vec::new();
    for (turn, in_flight) in chunks
        .iter()
        .zip(&forged)
        .flat_map(<[_; 2]>::from)
        .chain(&second)
        .enumerate()
    {
        let mut chunk = in_flight.chunk.to_vec();
        if turn % 5 == 0 {
            let at = turn * 131 % chunk.len();
            chunk[at] ^= 1;
        }
        let from = if in_flight.to == receiver {
            LEADER
        } else {
            in_flight.to
        };
        let sender = match turn % 11 {
            0 => Sender::Unknown,
            1 => Sender::Hint(cluster.identity(from)),
            _ => Sender::Validator(cluster.identity(from)),
        };
        traffic.extend(std::iter::repeat_n(
            (sender, Bytes::from(chunk)),
            1 + turn % 3 / 2,
        ));
    }
    (cluster, receiver, traffic)
}

#[test]
fn a_batch_is_judged_as_its_chunks_one_by_one_are() {
    let (mut cluster, receiver, mut traffic) = mixed_traffic();
    for round in 0..3 {
        shuffle(&mut traffic, &mut cluster.rng);
        let now = cluster.now;
        let judge = |batch: usize| {
            let mut engine = Cluster::new(&[1; 5]).engines.swap_remove(receiver.as_usize());
            let mut outcomes = Vec::new();
            for part in traffic.chunks(batch) {
                let start = outcomes.len();
                outcomes.resize(start + part.len(), None);
                engine.handle_chunks(now, part, |place, outcome| {
                    assert_eq!(outcomes[start + place].replace(outcome), None, "told once");
                });
            }
            let mut events = Vec::new();
            while let Some(event) = engine.poll_event() {
                events.push(event);
            }
            (outcomes, events, engine.stats().clone())
        };
        let alone = judge(1);
        assert!(
            alone.2.delivered > 0 && alone.2.discards().count() > 5,
            "{:?}",
            alone.2
        );
        for batch in [2, 44, 128, 1_000] {
            assert_eq!(judge(batch), alone, "batches of {batch}, round {round}");
        }
    }
}

fn shuffle<T>(items: &mut [T], rng: &mut impl rand_core::Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.next_u32() as usize % (last + 1));
    }
}
