//! Who is who: identities, transport handles and places in a validator set, as the node's threads look them up.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use falconet_crypto::IdentityKey;
use falconet_raptorcast::{Epoch, NodeIndex, ValidatorSet};
use falconet_transport::PeerId;

/// Epochs whose sets are kept: the current one, its predecessor at the boundary, and two handed over early.
const MAX_EPOCHS: usize = 4;

/// One immutable view; a change makes a new one. Threads hold it for a batch.
#[derive(Clone, Default)]
pub(crate) struct Directory {
    by_identity: HashMap<IdentityKey, PeerId>,
    identities: Vec<Option<IdentityKey>>,
    sets: BTreeMap<Epoch, Arc<ValidatorSet>>,
}

impl Directory {
    pub(crate) fn peer(&self, identity: &IdentityKey) -> Option<PeerId> {
        self.by_identity.get(identity).copied()
    }

    pub(crate) fn identity(&self, peer: PeerId) -> Option<IdentityKey> {
        self.identities.get(peer.0 as usize).copied().flatten()
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.by_identity.values().copied()
    }

    pub(crate) fn validator(&self, epoch: Epoch, index: NodeIndex) -> Option<PeerId> {
        self.peer(&self.sets.get(&epoch)?.get(index)?.identity)
    }

    /// Every member of the epoch's set that is a peer (this node itself is none), but `author`.
    pub(crate) fn validators_but(&self, epoch: Epoch, author: NodeIndex) -> Arc<[PeerId]> {
        let Some(set) = self.sets.get(&epoch) else {
            return Arc::new([]);
        };
        let others = set.iter().filter(|(index, _)| *index != author);
        others
            .filter_map(|(_, validator)| self.peer(&validator.identity))
            .collect()
    }

    fn insert_peer(&mut self, identity: IdentityKey) -> Option<PeerId> {
        if self.by_identity.contains_key(&identity) {
            return None;
        }
        let peer = PeerId(u32::try_from(self.identities.len()).ok()?);
        self.identities.push(Some(identity));
        self.by_identity.insert(identity, peer);
        Some(peer)
    }

    fn insert_set(&mut self, epoch: Epoch, set: Arc<ValidatorSet>) {
        self.sets.insert(epoch, set);
        while self.sets.len() > MAX_EPOCHS {
            self.sets.pop_first();
        }
    }
}

/// The current view, for any thread; changes are made under the node's own lock.
#[derive(Clone, Default)]
pub(crate) struct SharedDirectory(Arc<ArcSwap<Directory>>);

impl SharedDirectory {
    pub(crate) fn load(&self) -> Arc<Directory> {
        self.0.load_full()
    }

    /// A handle for a new peer; `None` if the identity has one already.
    pub(crate) fn insert_peer(&self, identity: IdentityKey) -> Option<PeerId> {
        let mut inserted = None;
        self.0.rcu(|current| {
            let mut next = Directory::clone(current);
            inserted = next.insert_peer(identity);
            next
        });
        inserted
    }

    pub(crate) fn insert_set(&self, epoch: Epoch, set: &Arc<ValidatorSet>) {
        self.0.rcu(|current| {
            let mut next = Directory::clone(current);
            next.insert_set(epoch, Arc::clone(set));
            next
        });
    }
}
