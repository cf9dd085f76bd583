//! The attacks of `cargo bench --bench attack` in miniature: bounded in number, over loopback, and what counts is under
//! which name each datagram ends, that nothing honest is lost, and who is charged.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;
mod raw_peer;
mod villain;

use std::net::UdpSocket;
use std::time::Duration;

use bytes::Bytes;
use cast::{EPOCH, Member, PATIENCE, broadcast_arrives, eventually, payload, stop};
use falconet::{Events, NodeEvent};
use falconet_raptorcast::{
    ChunkView, Epoch, ExpiryReason, MessageId, RepairRequest, Round, SymbolIndex, Wanted, leaf_hash, root_of,
};
use falconet_tests::hostile::{with_bad_proof, with_bad_signature};
use falconet_transport::TransportConfig;
use raw_peer::{RawPeer, now};
use villain::{HONEST, Villain, cluster, cluster_with, send_plain};

/// Rounds of honest broadcasts begin above all of the villain's.
const HONEST_ROUND: u64 = 1_000;

/// That so many more datagrams than before ended at the node for these reasons.
async fn ended(member: &Member, before: u64, reasons: &[&str], count: u64) {
    let what = format!("{count} datagrams end as {reasons:?}");
    eventually(&what, || ended_so_far(member, reasons) >= before + count).await;
    assert_eq!(
        ended_so_far(member, reasons),
        before + count,
        "{:?}",
        member.node.stats()
    );
}

fn ended_so_far(member: &Member, reasons: &[&str]) -> u64 {
    let stats = member.node.stats();
    reasons.iter().map(|reason| stats.discarded(reason)).sum()
}

/// Each honest node leads once, and all others deliver.
async fn nothing_honest_is_lost(members: &mut [Member]) {
    for leader in 0..members.len() {
        let round = HONEST_ROUND + leader as u64;
        broadcast_arrives(members, leader, round, &payload(40_000, leader as u8)).await;
    }
    for member in members {
        assert_eq!(ended_so_far(member, &["raptorcast_queue_full", "chunks_full"]), 0);
    }
}

/// The next event of interest.
async fn event<T>(events: &mut Events, mut pick: impl FnMut(NodeEvent) -> Option<T>) -> T {
    let wait = async {
        loop {
            let (event, missed) = events.recv().await.expect("the node runs");
            assert_eq!(missed, 0);
            if let Some(picked) = pick(event) {
                return picked;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("no such event")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_turned_away_by_name() {
    let (mut members, villain) = cluster().await;
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let node = &members[0];
    let (sealed, plain) = (
        node.node.local_addr().unwrap(),
        node.node.local_plain_addr().unwrap(),
    );
    let message = villain.message(1, payload(40_000, 1));
    let chunks = villain.of(0, &message);

    send_plain(&stranger, plain, &chunks);
    ended(node, 0, &["unknown_sender"], chunks.len() as u64).await;
    // The address of a member is a hint, and what comes from there still needs its author's signature.
    let noise = (0..200).map(|number| with_bad_signature(&chunks[0], number));
    send_plain(&villain.plain, plain, &noise.collect::<Vec<_>>());
    ended(node, 0, &["signature"], 200).await;
    let others = villain.of(1, &message);
    send_plain(&villain.plain, plain, &others);
    ended(node, 0, &["wrong_sender"], others.len() as u64).await;

    let junk: Vec<_> = (0..500_u32)
        .map(|guess| {
            [&[4, 0, 0, 0], &guess.to_le_bytes()[..], &[0; 24]]
                .concat()
                .into()
        })
        .collect();
    send_plain(&stranger, sealed, &junk);
    ended(node, 0, &["unknown_index"], 500).await;
    let initiations: Vec<_> = (60..70).map(|number| initiation(number, node)).collect();
    send_plain(&stranger, sealed, &initiations);
    let refusals = ["unknown_peer", "cookie_demanded"];
    ended(node, 0, &refusals, initiations.len() as u64).await;

    assert_eq!(members[0].node.stats().connected_peers, usize::from(HONEST));
    nothing_honest_is_lost(&mut members).await;
    stop(members).await;
}

/// A genuine one by a key that nobody knows.
fn initiation(number: u8, to: &Member) -> Bytes {
    let mut dialer = RawPeer::new(number, TransportConfig::default());
    let nowhere = UdpSocket::bind("127.0.0.1:0").unwrap();
    dialer.knows(to.node.transport_key(), nowhere.local_addr().ok());
    dialer.run_until("an initiation", |dialer| !dialer.initiations.is_empty());
    dialer.initiations.swap_remove(0).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_charged_for_its_bad_chunks_and_nobody_else_is() {
    let (mut members, mut villain) = cluster().await;
    let message = villain.message(1, payload(400_000, 1));
    let chunks = villain.of(0, &message);
    villain.send(0, &chunks[..1]);
    let bad_proofs: Vec<_> = (0..400)
        .map(|at| with_bad_proof(&chunks[1 + at % (chunks.len() - 1)]))
        .collect();
    villain.send(0, &bad_proofs);
    ended(&members[0], 0, &["proof"], 400).await;
    villain.send(0, &vec![chunks[0].clone(); 300]);
    ended(&members[0], 0, &["duplicate"], 300).await;
    villain.send(0, &villain.of(1, &message)[..20]);
    ended(&members[0], 0, &["wrong_sender"], 20).await;

    // Far more than its budget of a second; what it signs itself costs it as much.
    let unknown = villain.message(2, payload(3_000, 1));
    let noise: Vec<_> = (0..2_000)
        .map(|number| with_bad_signature(&villain.of(0, &unknown)[0], number))
        .collect();
    villain.send(0, &noise);
    ended(&members[0], 0, &["signature", "verification_budget"], 2_000).await;
    let refused = ended_so_far(&members[0], &["verification_budget"]);
    assert!(refused > 0, "{:?}", members[0].node.stats());
    nothing_honest_is_lost(&mut members).await;
    assert_eq!(ended_so_far(&members[0], &["verification_budget"]), refused);
    stop(members).await;
}

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

fn root(chunk: &[u8]) -> falconet_raptorcast::Hash {
    let view = ChunkView::parse(chunk).unwrap();
    root_of(view.header.index, leaf_hash(view.symbol), view.proof)
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
async fn requests_of_a_member_are_answered_within_its_budget() {
    let (mut members, mut villain) = cluster().await;
    let message = villain.message(1, payload(100_000, 1));
    villain.lead(&message);
    let view = ChunkView::parse(&message[0].chunk).unwrap();
    members[0].delivery().await;
    let author = villain.leader.set().index_of(&cast::identity(HONEST)).unwrap();
    let request = |root| -> Bytes {
        let request = RepairRequest {
            id: MessageId {
                epoch: Epoch::new(EPOCH),
                round: Round::from(1),
                author,
            },
            root,
            count: 64,
            wanted: Wanted::from(SymbolIndex::new(0), view.header.symbols, |_| true),
        };
        request.encode().into()
    };
    villain.send(0, &vec![request([7; 20]); 300]);
    ended(&members[0], 0, &["repair_unknown"], 300).await;
    villain.send(0, &vec![request(root(&message[0].chunk)); 300]);
    ended(&members[0], 0, &["repair_budget"], 298).await;
    assert!(members[0].node.stats().broadcasts.repairs_answered <= 2 * 64);
    for member in &mut members[1..] {
        member.delivery().await;
    }
    nothing_honest_is_lost(&mut members).await;
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timestamps_at_the_edges_of_the_window_are_taken_and_beyond_refused() {
    let (mut members, mut villain) = cluster().await;
    let shifted = |villain: &Villain, round: u64, milliseconds: i64| {
        let mut at = now();
        let shift = Duration::from_millis(milliseconds.unsigned_abs());
        at.unix = if milliseconds < 0 {
            at.unix - shift
        } else {
            at.unix + shift
        };
        villain.message_at(at, round, payload(3_000, round as u8))
    };
    for (round, milliseconds) in [(1, -8_000), (2, 9_900)] {
        let message = shifted(&villain, round, milliseconds);
        villain.lead(&message);
        for member in &mut members {
            assert_eq!(member.delivery().await.round, round);
        }
    }
    for (round, milliseconds) in [(3, -10_100), (4, 12_000)] {
        let before = ended_so_far(&members[0], &["timestamp"]);
        let message = shifted(&villain, round, milliseconds);
        let chunks = villain.of(0, &message);
        villain.send(0, &chunks);
        ended(&members[0], before, &["timestamp"], chunks.len() as u64).await;
    }
    nothing_honest_is_lost(&mut members).await;
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_loses_the_oldest_and_holds_nobody_up() {
    let (mut members, _villain) = cluster_with(|_, builder| builder.kept_deliveries(4)).await;
    for round in 1..=12_u64 {
        let sent = payload(20_000, round as u8);
        members[0].node.broadcast(round, sent.clone()).await.unwrap();
        for member in &mut members[1..3] {
            assert!(member.delivery().await.payload == sent);
        }
    }
    eventually("the last one is there", || {
        members[3].node.stats().broadcasts.delivered == 12
    })
    .await;
    let first = members[3].delivery().await;
    assert_eq!((first.missed, first.round), (8, 9));
    stop(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_members_datagrams_count_once_wherever_they_come_from_again() {
    let (mut members, mut villain) = cluster().await;
    let chunks = villain.of(0, &villain.message(1, payload(40_000, 1)));
    let (to, elsewhere) = (
        members[0].node.local_addr().unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    let mut sealed = Vec::new();
    for chunk in &chunks[..10] {
        villain
            .raw
            .endpoint
            .send(now(), falconet_transport::PeerId(0), chunk)
            .unwrap();
        while let Some(transmit) = villain.raw.endpoint.poll_transmit() {
            villain.raw.socket.send_to(&transmit.datagram, to).unwrap();
            sealed.push(transmit.datagram);
        }
    }
    let address = || {
        members[0]
            .node
            .peer_stats(&villain.leader.set().get(index(&villain)).unwrap().identity)
    };
    let before = address().await.unwrap().address;
    let all: Vec<Bytes> = sealed.iter().cloned().cycle().take(500).collect();
    send_plain(&elsewhere, to, &all);
    ended(&members[0], 0, &["replayed"], 500).await;
    assert_eq!(
        address().await.unwrap().address,
        before,
        "a replay moves no session"
    );
    nothing_honest_is_lost(&mut members).await;
    stop(members).await;
}

fn index(villain: &Villain) -> falconet_raptorcast::NodeIndex {
    villain.leader.set().index_of(&cast::identity(HONEST)).unwrap()
}
