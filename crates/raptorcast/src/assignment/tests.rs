use proptest::prelude::*;

use super::*;
use crate::limits::{ChunkSize, HEADER_LEN};
use crate::test_support::{network, unsigned_set};
use crate::wide::Wide;

fn derive(set: &ValidatorSet, author: u16, round: u32, len: usize) -> Option<Assignment> {
    let author = NodeIndex::new(author);
    let geometry = Geometry::for_set(
        len,
        ChunkSize::IPV4,
        HEADER_LEN,
        Redundancy::DEFAULT,
        (set, author),
    )
    .ok()?;
    let id = MessageId {
        epoch: Epoch::new(3),
        round: Round::from(round),
        author,
    };
    let assignment = Assignment::derive(&network(), id, set, &geometry, Redundancy::DEFAULT);
    assert_eq!(
        assignment.len(),
        usize::from(geometry.symbols),
        "every symbol has exactly one first hop"
    );
    Some(assignment)
}

fn counts(assignment: &Assignment, nodes: usize) -> Vec<u32> {
    let mut counts = vec![0; nodes];
    assignment
        .iter()
        .for_each(|(_, node)| counts[node.as_usize()] += 1);
    counts
}

#[test]
fn positions_depend_on_everything_that_names_the_message() {
    let set = unsigned_set(&[3; 10]);
    let one = derive(&set, 0, 1, 100_000).unwrap();
    assert_eq!(derive(&set, 0, 1, 100_000).unwrap(), one);
    assert_ne!(derive(&set, 0, 2, 100_000).unwrap(), one);
    assert_ne!(derive(&set, 1, 1, 100_000).unwrap(), one);
}

#[test]
fn a_thousand_validators_have_their_shares() {
    let set = unsigned_set(&(0..1000).map(|i| u128::MAX - i).collect::<Vec<_>>());
    let counts = counts(&derive(&set, 999, 1, 3 << 20).unwrap(), 1000);
    assert_eq!(counts[999], 0);
    let scaled = counts.iter().sum::<u32>() / 999;
    assert!(counts[..999].iter().all(|count| count.abs_diff(scaled) <= 1));
}

proptest! {
    #[test]
    fn shares_are_within_one_symbol_of_stake(
        stakes in prop_oneof![
            prop::collection::vec(prop_oneof![Just(0_u128), 1_u128..1 << 64, any::<u128>()], 1..4),
            prop::collection::vec(prop_oneof![Just(0_u128), 1_u128..1 << 64, any::<u128>()], 1..1001),
        ],
        author: prop::sample::Index,
        len in 1_usize..200_000,
    ) {
        let author = author.index(stakes.len());
        let set = unsigned_set(&stakes);
        let others = stakes.iter().fold(Wide::default(), |sum, stake| sum.plus(*stake)).minus(stakes[author]);
        let Some(assignment) = derive(&set, author as u16, 1, len) else {
            prop_assert!(others == Wide::default(), "no geometry");
            return Ok(());
        };
        let geometry = Geometry::for_set(
            len, ChunkSize::IPV4, HEADER_LEN, Redundancy::DEFAULT, (&set, NodeIndex::new(author as u16)),
        ).unwrap();
        let scaled = Redundancy::DEFAULT.scaled(u32::from(geometry.source_symbols));
        for (node, count) in counts(&assignment, stakes.len()).into_iter().enumerate() {
            if node == author || stakes[node] == 0 {
                prop_assert_eq!(count, 0);
            } else {
                let due = Wide::new(stakes[node]).times(scaled);
                prop_assert!(others.times(count - 1) <= due);
                prop_assert!(others.times(count) > due);
            }
        }
    }
}
