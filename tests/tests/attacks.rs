//! The attacks of `cargo bench --bench attack` in miniature: bounded in number, over loopback, and what counts is under
//! which name each datagram ends, that nothing honest is lost, and who is charged. Hostile leaders: `attacks_leader.rs`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;
mod raw_peer;
mod villain;

use std::net::UdpSocket;
use std::time::Duration;

use bytes::Bytes;
use cast::{EPOCH, Member, eventually, payload, stop};
use falconet_raptorcast::{ChunkView, Epoch, MessageId, RepairRequest, Round, SymbolIndex, Wanted};
use falconet_tests::hostile::{with_bad_proof, with_bad_signature};
use falconet_transport::TransportConfig;
use raw_peer::{RawPeer, now};
use villain::{
    HONEST, Villain, cluster, cluster_with, ended, ended_so_far, nothing_honest_is_lost, root, send_plain,
};

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
    // Members that started earlier than this one knew them were refused as well.
    let refusals = ["unknown_peer", "cookie_demanded"];
    let refused_before = ended_so_far(node, &refusals);
    send_plain(&stranger, sealed, &initiations);
    ended(node, refused_before, &refusals, initiations.len() as u64).await;

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

    // Far more than is forgiven in a second.
    let unknown = villain.message(2, payload(3_000, 1));
    let noise: Vec<_> = (0..2_000)
        .map(|number| with_bad_signature(&villain.of(0, &unknown)[0], number))
        .collect();
    villain.send(0, &noise);
    ended(&members[0], 0, &["signature", "bad_sender"], 2_000).await;
    let refused = ended_so_far(&members[0], &["bad_sender"]);
    assert!(refused > 1_500, "{:?}", members[0].node.stats());
    nothing_honest_is_lost(&mut members).await;
    assert_eq!(ended_so_far(&members[0], &["bad_sender"]), refused);
    assert_eq!(ended_so_far(&members[0], &["verification_budget"]), 0);
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
