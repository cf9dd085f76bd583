//! Who pays for what turns out to be worthless, and what is known of messages that had to be forgotten.

use std::time::Duration;

use super::broadcast;
use crate::ids::{NodeIndex, Round};
use crate::test_support::{CALM, Cluster, EPOCH, InFlight, payload};
use crate::{Discard, Stats};

const BUDGET: u32 = 10;

fn discarded(stats: &Stats, reason: Discard) -> u64 {
    stats.discarded(reason)
}

// docs/spec/broadcast.md#charge
#[test]
fn a_session_of_bad_proofs_is_not_hashed_any_more_for_a_time() {
    let (mut cluster, chunks) = broadcast(40_000, |config| config.with_verifications_per_validator(BUDGET));
    let to = chunks[0].to;
    let own: Vec<_> = chunks.iter().filter(|chunk| chunk.to == to).cloned().collect();
    assert_eq!(cluster.deliver(own[0].clone()), Ok(()));
    for number in 0..3 * BUDGET {
        let mut bytes = own[1].chunk.to_vec();
        let last = bytes.len() - 1;
        bytes[last] ^= 1 + number as u8;
        let expected = if number < BUDGET {
            Discard::Proof
        } else {
            Discard::BadSender
        };
        let bad = InFlight {
            chunk: bytes.into(),
            ..own[1].clone()
        };
        assert_eq!(cluster.deliver(bad), Err(expected), "{number}");
    }
    assert_eq!(cluster.deliver(own[1].clone()), Err(Discard::BadSender));
    // Others are taken meanwhile, and the sender itself when a second has passed.
    let other = chunks.iter().find(|chunk| chunk.to != to).unwrap();
    let relayed = InFlight {
        from: other.to,
        to,
        chunk: other.chunk.clone(),
    };
    assert_eq!(cluster.deliver(relayed), Ok(()));
    cluster.now = cluster.now.after(Duration::from_secs(1));
    assert_eq!(cluster.deliver(own[1].clone()), Ok(()));
}

// docs/spec/broadcast.md#charge
#[test]
fn a_session_of_bad_signatures_costs_a_tenth_of_the_checks() {
    let (mut cluster, chunks) = broadcast(40_000, |config| {
        config.with_verifications_per_validator(5 * BUDGET)
    });
    let mut outcomes = Vec::new();
    for number in 0..3 * BUDGET {
        let mut bytes = chunks[0].chunk.to_vec();
        bytes[40] ^= 1 + number as u8;
        let bad = InFlight {
            chunk: bytes.into(),
            ..chunks[0].clone()
        };
        outcomes.push(cluster.deliver(bad).unwrap_err());
    }
    assert_eq!(outcomes[..5], [Discard::Signature; 5]);
    assert_eq!(outcomes[5..], [Discard::BadSender; 25]);
    let stats = cluster.engines[chunks[0].to.as_usize()].stats();
    assert_eq!(stats.signatures_checked, 5);
}

/// The chunks of a small message, as its author sends them.
fn small(cluster: &mut Cluster, author: NodeIndex, round: u32) -> Vec<InFlight> {
    let now = cluster.now;
    cluster.engines[author.as_usize()]
        .broadcast(now, EPOCH, Round::from(round), payload(50, round as u8))
        .unwrap();
    cluster.collect(author);
    std::mem::take(&mut cluster.in_flight)
}

// docs/spec/broadcast.md#charge
#[test]
fn what_an_author_signs_is_charged_to_it_and_not_to_who_relays_it() {
    let mut cluster = Cluster::with_config(&[1; 5], |config| {
        config
            .with_verifications_per_validator(BUDGET)
            .with_author_slots(100)
    });
    let [prolific, honest, hop, to] = [0, 1, 2, 3].map(NodeIndex::new);
    let via = |hop: NodeIndex, chunks: Vec<InFlight>| {
        let own = chunks.into_iter().find(|chunk| chunk.to == hop).unwrap();
        InFlight { from: hop, to, ..own }
    };
    for round in 1..=2 * BUDGET {
        let chunk = via(hop, small(&mut cluster, prolific, round));
        let expected = if round <= BUDGET {
            Ok(())
        } else {
            Err(Discard::VerificationBudget)
        };
        assert_eq!(cluster.deliver(chunk), expected, "{round}");
    }
    for round in 1..=BUDGET / 2 {
        let chunk = via(hop, small(&mut cluster, honest, round));
        assert_eq!(cluster.deliver(chunk), Ok(()), "{round}");
    }
    let stats = cluster.engines[to.as_usize()].stats();
    assert_eq!(stats.signatures_checked, u64::from(BUDGET + BUDGET / 2));
    assert_eq!(discarded(stats, Discard::VerificationBudget), u64::from(BUDGET));
}

// docs/spec/chunk.md#forgotten
#[test]
fn a_message_that_had_to_be_forgotten_is_not_delivered_again() {
    // Eight of an author are remembered.
    let mut cluster = Cluster::with_config(&[1; 4], |config| config.with_remembered_slots(80));
    let [author, to] = [0, 1].map(NodeIndex::new);
    let mut all = Vec::new();
    for round in 1..=10 {
        cluster.now = cluster.now.after(Duration::from_millis(10));
        let chunks = small(&mut cluster, author, round);
        cluster.in_flight.clone_from(&chunks);
        cluster.run(&CALM);
        all.push(chunks);
    }
    assert_eq!(cluster.deliveries(to).len(), 10);
    for (round, chunks) in (1..).zip(&all) {
        let own = chunks.iter().find(|chunk| chunk.to == to).unwrap();
        let again = cluster.deliver(own.clone());
        let expected = if round <= 2 {
            Discard::Abandoned
        } else {
            Discard::AlreadyDecoded
        };
        assert_eq!(again, Err(expected), "{round}");
        cluster.poll_events(to);
    }
    assert_eq!(cluster.deliveries(to).len(), 10);
    // And the next one of the same author is as welcome as ever.
    cluster.now = cluster.now.after(Duration::from_millis(10));
    let chunks = small(&mut cluster, author, 11);
    cluster.in_flight = chunks;
    cluster.run(&CALM);
    assert_eq!(cluster.deliveries(to).len(), 11);
}
