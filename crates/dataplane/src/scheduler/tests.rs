use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::outgoing::ENTRY_OVERHEAD;
use crate::unit::{MAX_SEGMENTS, MAX_UNIT_BYTES};

const LIMITS: GroupLimits = GroupLimits {
    bytes: MAX_UNIT_BYTES,
    segment: 1472,
    overhead: 32,
};

fn scheduler(weights: [u64; 4]) -> Scheduler {
    let limits = |weight| ClassLimits {
        weight,
        entries: 1_000,
        bytes: 2 << 20,
        max_age: Duration::from_secs(1),
    };
    Scheduler::new(weights.map(limits), MAX_UNIT_BYTES)
}

fn push(scheduler: &mut Scheduler, class: Class, peer: u32, length: usize, now: Instant) -> bool {
    let datagrams = vec![Bytes::from(vec![0x20; length])];
    scheduler.push(now, class, &[PeerId(peer)], datagrams, None) == 0
}

fn lengths(scheduler: &Scheduler, group: &[Run]) -> Vec<usize> {
    let datagrams = group.iter().flat_map(|run| scheduler.datagrams(run));
    datagrams.map(Bytes::len).collect()
}

fn release(scheduler: &mut Scheduler, runs: &mut Vec<Run>) -> usize {
    let released = runs.drain(..).map(|run| {
        let datagrams = run.len();
        scheduler.release(run);
        datagrams
    });
    released.sum()
}

/// The next group as (class, peer, lengths).
fn poll(scheduler: &mut Scheduler, now: Instant) -> Option<(Class, PeerId, Vec<usize>)> {
    let (mut group, mut expired) = (Vec::new(), Vec::new());
    let (class, peer) = scheduler.poll_group(now, LIMITS, |_| false, &mut group, &mut expired)?;
    let lengths = lengths(scheduler, &group);
    release(scheduler, &mut group);
    Some((class, peer, lengths))
}

#[test]
fn equal_lengths_form_a_group_and_a_shorter_one_ends_it() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    for length in [100, 100, 60, 100, 120] {
        assert!(push(&mut s, Class::Relay, 1, length, now));
    }
    let groups: Vec<_> = std::iter::from_fn(|| poll(&mut s, now)).map(|g| g.2).collect();
    assert_eq!(groups, [vec![100, 100, 60], vec![100], vec![120]]);
}

#[test]
fn datagrams_past_the_segment_size_travel_alone() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    for length in [1473, 1473, 1440, 1440] {
        push(&mut s, Class::Relay, 1, length, now);
    }
    let groups: Vec<_> = std::iter::from_fn(|| poll(&mut s, now)).map(|g| g.2).collect();
    assert_eq!(groups, [vec![1473], vec![1473], vec![1440, 1440]]);
}

#[test]
fn a_group_has_at_most_44_datagrams() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    for _ in 0..100 {
        push(&mut s, Class::Relay, 1, 10, now);
    }
    assert_eq!(poll(&mut s, now).unwrap().2.len(), MAX_SEGMENTS);
}

#[test]
fn caps_hold_by_entries_and_by_bytes() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    let taken = (0..2_000)
        .filter(|_| push(&mut s, Class::Control, 1, 1, now))
        .count();
    assert_eq!(taken, 1_000);
    let taken = (0..2_000)
        .filter(|_| push(&mut s, Class::Regular, 1, 60_000, now))
        .count();
    assert_eq!(taken, (2 << 20) / (60_000 + ENTRY_OVERHEAD));
    assert!(
        push(&mut s, Class::Relay, 1, 1, now),
        "a full class leaves the others alone"
    );
}

#[test]
fn what_is_for_many_and_does_not_fit_loses_its_end_for_all_of_them() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    let peers: Vec<_> = (0..300).map(PeerId).collect();
    let datagrams = vec![Bytes::from_static(&[0x20; 100]); 5];
    assert_eq!(s.push(now, Class::Relay, &peers, datagrams.clone(), None), 2);
    assert_eq!(s.depth(Class::Relay).entries, 900);
    assert_eq!(s.push(now, Class::Relay, &peers, datagrams.clone(), None), 5);
    assert_eq!(s.push(now, Class::Relay, &[], datagrams, None), 0);
    let groups: Vec<_> = std::iter::from_fn(|| poll(&mut s, now)).collect();
    assert_eq!(groups.len(), 300, "one group a peer");
    assert!(groups.iter().all(|group| group.2 == [100; 3]));
    assert_eq!(s.payloads.len(), 0);
}

#[test]
fn one_submission_falls_into_groups_by_length_and_limit() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    let lengths = [1_000; 50].iter().chain(&[500, 700, 700, 20]);
    let datagrams = lengths.map(|length| Bytes::from(vec![0x20; *length])).collect();
    assert_eq!(s.push(now, Class::Relay, &[PeerId(1)], datagrams, None), 0);
    let groups: Vec<_> = std::iter::from_fn(|| poll(&mut s, now)).map(|g| g.2).collect();
    let expected = [
        vec![1_000; 44],
        [[1_000; 6].as_slice(), &[500]].concat(),
        vec![700, 700, 20],
    ];
    assert_eq!(groups, expected);
    assert_eq!(s.depth(Class::Relay), Cost::default());
}

#[test]
fn old_datagrams_expire_and_are_handed_back() {
    let (mut s, start) = (scheduler([1; 4]), Instant::now());
    for _ in 0..3 {
        push(&mut s, Class::Relay, 1, 100, start);
    }
    let later = start + Duration::from_millis(1_001);
    push(&mut s, Class::Relay, 1, 50, later);
    let (mut group, mut expired) = (Vec::new(), Vec::new());
    assert!(
        s.poll_group(later, LIMITS, |_| false, &mut group, &mut expired)
            .is_some()
    );
    let released = (release(&mut s, &mut group), release(&mut s, &mut expired));
    assert_eq!(released, (1, 3));
    assert!(s.is_empty());
    assert_eq!(s.payloads.len(), 0);
    assert_eq!(s.depth(Class::Relay), Cost::default());
}

#[test]
fn only_expired_left_is_nothing_to_send() {
    let (mut s, start) = (scheduler([1; 4]), Instant::now());
    push(&mut s, Class::Relay, 1, 100, start);
    push(&mut s, Class::Control, 2, 100, start);
    let (mut group, mut expired) = (Vec::new(), Vec::new());
    let later = start + Duration::from_secs(2);
    assert!(
        s.poll_group(later, LIMITS, |_| false, &mut group, &mut expired)
            .is_none()
    );
    assert_eq!(expired.len(), 2);
}

#[test]
fn every_backlogged_class_gets_its_share() {
    let (mut s, now) = (scheduler([4, 4, 1, 1]), Instant::now());
    let mut bytes = [0_usize; 4];
    for _ in 0..5_000 {
        for class in Class::ALL {
            while s.depth(class).entries < 100 {
                push(&mut s, class, 1, 1_200, now);
            }
        }
        let (class, _, lengths) = poll(&mut s, now).unwrap();
        bytes[class.index()] += lengths.iter().sum::<usize>();
    }
    let total: usize = bytes.iter().sum();
    for (share, weight) in bytes.iter().zip([4, 4, 1, 1]) {
        let percent = share * 100 / total;
        assert!(percent.abs_diff(weight * 10) <= 1, "{bytes:?}");
    }
}

#[test]
fn an_idle_class_saves_nothing_up() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    for _ in 0..500 {
        push(&mut s, Class::Relay, 1, 1_200, now);
        poll(&mut s, now);
    }
    for _ in 0..200 {
        push(&mut s, Class::Relay, 1, 1_200, now);
        push(&mut s, Class::Control, 1, 1_200, now);
    }
    let mut relay = 0;
    for _ in 0..10 {
        relay += usize::from(poll(&mut s, now).unwrap().0 == Class::Relay);
    }
    assert!(
        (4..=6).contains(&relay),
        "{relay} of 10 after an idle time of the other class"
    );
}

#[test]
fn peers_of_a_class_take_turns_by_bytes() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    // Backlogs longer than a turn: who has nothing left gives the rest of its turn up.
    let lengths = [(1_400, 100), (200, 400), (60_000, 5)];
    let mut bytes = [0_usize; 3];
    for _ in 0..3_000 {
        for (peer, (length, backlog)) in (0_u32..).zip(lengths) {
            while s.classes[1].backlog(PeerId(peer)) < backlog {
                push(&mut s, Class::Relay, peer, length, now);
            }
        }
        let (_, peer, lengths) = poll(&mut s, now).unwrap();
        bytes[peer.0 as usize] += lengths.iter().map(|l| l + 32).sum::<usize>();
    }
    let (least, most) = (*bytes.iter().min().unwrap(), *bytes.iter().max().unwrap());
    assert!(most - least <= 2 * 65_536, "{bytes:?}");
}

#[test]
fn a_removed_peer_leaves_nothing_behind() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    for class in Class::ALL {
        push(&mut s, class, 1, 100, now);
        push(&mut s, class, 2, 100, now);
    }
    let mut removed = Vec::new();
    s.remove_peer(PeerId(1), &mut removed);
    assert_eq!(removed.len(), 4);
    let peers: Vec<_> = std::iter::from_fn(|| poll(&mut s, now)).map(|g| g.1).collect();
    assert_eq!(peers, [PeerId(2); 4]);
}

proptest! {
    /// Whatever is pushed comes out once, in order by peer and class, as valid groups, and the books balance.
    #[test]
    fn nothing_is_lost_doubled_or_reordered(
        pushes in proptest::collection::vec((0_usize..4, 0_u32..5, 1_usize..3_000), 0..200),
        limit in 1_000_usize..70_000,
    ) {
        let (mut s, now) = (scheduler([8, 4, 2, 1]), Instant::now());
        let mut expected: HashMap<(Class, PeerId), VecDeque<usize>> = HashMap::new();
        for (class, peer, length) in pushes {
            let class = Class::ALL[class];
            if push(&mut s, class, peer, length, now) {
                expected.entry((class, PeerId(peer))).or_default().push_back(length);
            }
        }
        let limits = GroupLimits { bytes: limit, ..LIMITS };
        let (mut group, mut expired) = (Vec::new(), Vec::new());
        while let Some((class, peer)) = s.poll_group(now, limits, |_| false, &mut group, &mut expired) {
            let lengths = lengths(&s, &group);
            let total: usize = lengths.iter().map(|length| length + 32).sum();
            prop_assert!(lengths.len() == 1 || total <= limit);
            for (i, length) in lengths.iter().enumerate() {
                prop_assert!(*length == lengths[0] || (i + 1 == lengths.len() && *length < lengths[0]));
                prop_assert_eq!(expected.get_mut(&(class, peer)).unwrap().pop_front(), Some(*length));
            }
            release(&mut s, &mut group);
        }
        prop_assert!(expired.is_empty() && s.is_empty());
        prop_assert!(expected.values().all(VecDeque::is_empty));
        for class in Class::ALL {
            prop_assert_eq!(s.depth(class), Cost::default());
            prop_assert!(s.classes[class.index()].first_peer().is_none());
        }
        prop_assert_eq!(s.payloads.len(), 0);
    }
}

#[test]
fn peers_that_are_held_are_passed_over_and_save_nothing_up() {
    let (mut s, now) = (scheduler([1; 4]), Instant::now());
    for _ in 0..40 {
        push(&mut s, Class::Relay, 1, 1_000, now);
        push(&mut s, Class::Relay, 2, 1_000, now);
        push(&mut s, Class::Proposal, 1, 1_000, now);
    }
    let (mut group, mut expired) = (Vec::new(), Vec::new());
    let mut poll_with = |s: &mut Scheduler, held: &[u32]| {
        release(s, &mut group);
        let holds = |peer: PeerId| held.contains(&peer.0);
        let next = s.poll_group(now, LIMITS, holds, &mut group, &mut expired);
        next.map(|(class, peer)| (class, peer.0, lengths(s, &group).len()))
    };
    assert_eq!(poll_with(&mut s, &[1, 2]), None);
    let mut sent = 0;
    while let Some((class, peer, datagrams)) = poll_with(&mut s, &[1]) {
        assert_eq!((class, peer), (Class::Relay, 2));
        sent += datagrams;
    }
    assert_eq!(sent, 40);
    // Both classes are backlogged again: neither has a claim to more than its half.
    let classes: Vec<_> = (0..2)
        .filter_map(|_| poll_with(&mut s, &[]))
        .map(|next| next.0)
        .collect();
    assert!(
        classes.contains(&Class::Proposal) && classes.contains(&Class::Relay),
        "{classes:?}"
    );
}
