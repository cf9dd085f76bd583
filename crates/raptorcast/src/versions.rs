//! Taking a new chunk version into use without a moment at which somebody gets what it does not know
//! (`docs/spec/chunk.md#rollout`).

use std::collections::BTreeSet;

use falconet_crypto::IdentityKey;

use crate::engine::Engine;
use crate::set::ValidatorSet;

/// A version of the chunk format: one bit of the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Version {
    /// The version that everybody knows.
    #[default]
    V0 = 0,
    /// Laid out as version 0; what a network rehearses a rollout with.
    V1 = 1,
}

/// How far a node is with version 1. A network goes through them one by one: each node may be one stage ahead of the
/// others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rollout {
    /// Version 0 is published, and nothing else accepted.
    #[default]
    PublishOld,
    /// Version 0 is published, both are accepted.
    AcceptBoth,
    /// Both are accepted. Version 1 is published to sets all of whose members are known to accept it, version 0 to
    /// others.
    PublishNew,
}

impl Rollout {
    pub(crate) fn accepts(self, version: Version) -> bool {
        version == Version::V0 || self >= Self::AcceptBoth
    }
}

/// Members that are known to accept version 1. Holds no others than it is told to [keep](Capable::retain).
#[derive(Debug, Default)]
pub(crate) struct Capable(BTreeSet<IdentityKey>);

impl Capable {
    /// Whether all members of a set are, `own` aside.
    pub(crate) fn covers(&self, set: &ValidatorSet, own: &IdentityKey) -> bool {
        let mut others = set.iter().map(|(_, member)| member.identity);
        others.all(|identity| identity == *own || self.0.contains(&identity))
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&IdentityKey) -> bool) {
        self.0.retain(|identity| keep(identity));
    }
}

impl Engine {
    /// Says which chunk version is the newest that a member accepts, as its record or a handshake told; version 0 until
    /// it is said. False if it is in no known set: say it again once its set is known.
    pub fn set_newest_version(&mut self, peer: IdentityKey, newest: Version) -> bool {
        if !self.epochs.has_member(&peer) {
            return false;
        }
        match newest {
            Version::V0 => self.capable.0.remove(&peer),
            Version::V1 => self.capable.0.insert(peer),
        };
        self.epochs.update_capable(&self.capable, &self.identity);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Rollout, Version};
    use crate::test_support::{CALM, Cluster, EPOCH, payload};
    use crate::{ChunkView, Discard, NodeIndex, Round};

    const LEADER: NodeIndex = NodeIndex::new(0);

    fn cluster(stage: Rollout) -> Cluster {
        Cluster::with_config(&[1; 4], |config| config.with_rollout(stage))
    }

    /// Everybody hears of everybody but of those at the end of the list.
    fn introduce(cluster: &mut Cluster, silent: usize) {
        let identities: Vec<_> = cluster.nodes().map(|node| cluster.identity(node)).collect();
        for engine in &mut cluster.engines {
            for identity in &identities[..identities.len() - silent] {
                assert!(engine.set_newest_version(*identity, Version::V1));
            }
        }
    }

    /// The version that the leader publishes, and how many get the payload.
    fn publish(cluster: &mut Cluster, round: u32) -> (Version, usize) {
        let now = cluster.now;
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(round), payload(9_000, round as u8))
            .unwrap();
        cluster.collect(LEADER);
        let version = ChunkView::parse(&cluster.in_flight[0].chunk)
            .unwrap()
            .header
            .version;
        cluster.run(&CALM);
        let round = Round::from(round);
        let has_it = |node: &NodeIndex| {
            cluster
                .deliveries(*node)
                .iter()
                .any(|delivery| delivery.round == round)
        };
        (version, cluster.nodes().filter(has_it).count())
    }

    #[test]
    fn the_new_version_is_published_once_all_are_known_to_accept_it() {
        for (stage, silent, version) in [
            (Rollout::PublishOld, 0, Version::V0),
            (Rollout::AcceptBoth, 0, Version::V0),
            (Rollout::PublishNew, 1, Version::V0),
            (Rollout::PublishNew, 0, Version::V1),
        ] {
            let mut cluster = cluster(stage);
            introduce(&mut cluster, silent);
            assert_eq!(
                publish(&mut cluster, 1),
                (version, 3),
                "{stage:?}, {silent} silent"
            );
        }
    }

    #[test]
    fn one_that_goes_back_is_sent_the_old_version_again() {
        let mut cluster = cluster(Rollout::PublishNew);
        introduce(&mut cluster, 0);
        assert_eq!(publish(&mut cluster, 1), (Version::V1, 3));
        let back = cluster.identity(NodeIndex::new(2));
        assert!(cluster.engines[0].set_newest_version(back, Version::V0));
        assert_eq!(publish(&mut cluster, 2), (Version::V0, 3));
        let stranger = falconet_crypto::IdentityKey::from_bytes([1; 32]);
        assert!(!cluster.engines[0].set_newest_version(stranger, Version::V1));
    }

    #[test]
    fn a_new_set_is_sent_what_all_of_it_accept() {
        let mut cluster = cluster(Rollout::PublishNew);
        introduce(&mut cluster, 0);
        let larger = std::sync::Arc::new(crate::test_support::set_of(&[1; 5]));
        let next = crate::Epoch::new(EPOCH.number() + 1);
        cluster.engines[0].set_epoch(next, larger);
        let now = cluster.now;
        cluster.engines[0]
            .broadcast(now, next, Round::from(1), payload(9_000, 1))
            .unwrap();
        let chunk = cluster.engines[0].poll_transmit().unwrap().chunks[0].clone();
        assert_eq!(ChunkView::parse(&chunk).unwrap().header.version, Version::V0);
    }

    #[test]
    fn the_new_version_is_neither_taken_nor_passed_on_where_it_is_not_known() {
        let mut cluster = cluster(Rollout::PublishNew);
        introduce(&mut cluster, 0);
        // Two does not accept it, and one does not know that two does.
        let old = crate::EngineConfig::new(crate::test_support::network());
        cluster.engines[2].config = old;
        let two = cluster.identity(NodeIndex::new(2));
        cluster.engines[1].set_newest_version(two, Version::V0);
        let now = cluster.now;
        cluster.engines[0]
            .broadcast(now, EPOCH, Round::from(1), payload(9_000, 1))
            .unwrap();
        cluster.collect(LEADER);
        for chunk in std::mem::take(&mut cluster.in_flight) {
            let expected = if chunk.to == NodeIndex::new(2) {
                Err(Discard::Version)
            } else {
                Ok(())
            };
            let to_decode = cluster.deliver(chunk);
            assert!(
                to_decode == expected || to_decode == Err(Discard::AlreadyDecoded),
                "{to_decode:?}"
            );
        }
        for engine in &mut cluster.engines {
            engine.handle_timeout(now.after(std::time::Duration::from_millis(1)));
        }
        assert_eq!(
            cluster.engines[1].poll_transmit(),
            None,
            "not where somebody may not know it"
        );
        assert!(cluster.engines[1].stats().relays_unknown_version > 0);
        assert!(cluster.engines[3].poll_transmit().is_some());
    }
}
