//! A hostile leader in miniature: whatever it signs ends in evidence against it at all honest nodes, and takes nothing from
//! honest broadcasts.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;
mod raw_peer;
mod villain;

use cast::{eventually, payload, stop};
use falconet::{Class, NodeEvent};
use falconet_raptorcast::{ChunkView, ExpiryReason, Round};
use villain::{HONEST, cluster, event, nothing_honest_is_lost, root};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_of_inconsistent_symbols_is_found_out_by_all() {
    let (mut members, mut villain) = cluster().await;
    let mut events: Vec<_> = members.iter().map(|member| member.node.events()).collect();
    let honest = villain.message(1, payload(40_000, 1));
    let inconsistent = villain.leader.recommit(honest, |index| index % 2 == 1);
    villain.lead(&inconsistent);
    for events in &mut events {
        let taint = event(events, |event| match event {
            NodeEvent::Tainted(taint) => Some(taint),
            _ => None,
        });
        let taint = taint.await;
        assert_eq!(taint.author, cast::identity(HONEST));
        assert_eq!(taint.id.round, Round::from(1));
        assert_eq!(taint.evidence.root, root(&inconsistent[0].chunk));
    }
    // Nothing of it was delivered: the first deliveries are the honest ones.
    nothing_honest_is_lost(&mut members).await;
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_messages_a_round_are_evidence_at_all_and_one_delivery_at_most() {
    let (mut members, mut villain) = cluster().await;
    let mut events: Vec<_> = members.iter().map(|member| member.node.events()).collect();
    for filling in 0..10 {
        let message = villain.message(1, payload(20_000, filling));
        villain.lead(&message);
    }
    for events in &mut events {
        let found = event(events, |event| match event {
            NodeEvent::Equivocation(found) => Some(found),
            _ => None,
        });
        let found = found.await;
        assert_eq!(
            (found.author, found.id.round),
            (cast::identity(HONEST), Round::from(1))
        );
        assert_ne!(found.first.root, found.second.root);
    }
    for member in &mut members {
        // It is the first that all decode, and that they relay.
        assert!(member.delivery().await.payload == payload(20_000, 0));
    }
    nothing_honest_is_lost(&mut members).await;
    for member in &members {
        assert_eq!(
            member.node.stats().broadcasts.equivocations,
            1,
            "reported once a round"
        );
    }
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_sends_too_little_is_given_up_with_its_name() {
    let (mut members, mut villain) = cluster().await;
    let mut events: Vec<_> = members.iter().map(|member| member.node.events()).collect();
    let message = villain.message(1, payload(40_000, 1));
    let source_symbols = ChunkView::parse(&message[0].chunk)
        .unwrap()
        .header
        .source_symbols();
    // Enough for repair to be tried, and too few for any code.
    let withheld = &message[..source_symbols as usize - 2];
    villain.lead(withheld);
    nothing_honest_is_lost(&mut members).await;
    for events in &mut events {
        let expiry = event(events, |event| match event {
            NodeEvent::Expired(expiry) => Some(expiry),
            _ => None,
        });
        let expiry = expiry.await;
        assert_eq!(
            (expiry.author, expiry.reason),
            (cast::identity(HONEST), ExpiryReason::TimedOut)
        );
        assert!(expiry.symbols_received < source_symbols);
    }
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn largest_messages_take_the_place_of_their_own_authors_only() {
    let (mut members, mut villain) = cluster().await;
    let mut events = members[0].node.events();
    for round in 1..=7 {
        let message = villain.message(round, payload(3 << 20, 1));
        villain.send(0, &villain.of(0, &message)[..1]);
    }
    // Four of an author may be incomplete at a time.
    for round in 1..=3 {
        let evicted = event(&mut events, |event| match event {
            NodeEvent::Expired(expiry) => Some((expiry.id.round, expiry.reason)),
            _ => None,
        });
        assert_eq!(evicted.await, (Round::from(round), ExpiryReason::Evicted));
    }
    nothing_honest_is_lost(&mut members).await;
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_make_a_node_relay_has_a_queue_of_its_own() {
    let (mut members, mut villain) = cluster().await;
    let message = villain.message(1, payload(100_000, 1));
    villain.lead(&message);
    for member in &mut members {
        member.delivery().await;
    }
    let own = |class: Class, number: usize| {
        let queues = members[number].node.thread_stats().queues;
        queues[class.index()].datagrams_sent
    };
    for number in 0..members.len() {
        let relayed = villain.of(number, &message).len() as u64 * u64::from(HONEST - 1);
        eventually("all is relayed", || own(Class::Relay, number) >= relayed).await;
        assert_eq!(own(Class::Proposal, number), 0);
    }
    nothing_honest_is_lost(&mut members).await;
    stop(members).await;
}
