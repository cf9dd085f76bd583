//! Who leads which round, if the embedder says so (`docs/spec/broadcast.md#schedule`).

use std::fmt;
use std::sync::Arc;

use falconet_crypto::IdentityKey;

use crate::ids::Round;

/// Who may broadcast in which round of an epoch. Asked for every chunk, so it must be cheap; a closure will do.
pub trait LeaderSchedule: Send + Sync {
    /// The leader of a round; `None` if nobody may broadcast in it.
    fn leader(&self, round: Round) -> Option<IdentityKey>;
}

impl<F: Fn(Round) -> Option<IdentityKey> + Send + Sync> LeaderSchedule for F {
    fn leader(&self, round: Round) -> Option<IdentityKey> {
        self(round)
    }
}

/// The schedule of one epoch.
#[derive(Clone)]
pub(crate) struct Schedule(pub(crate) Arc<dyn LeaderSchedule>);

impl Schedule {
    pub(crate) fn allows(&self, author: &IdentityKey, round: Round) -> bool {
        self.0.leader(round).is_some_and(|leader| leader == *author)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedule(..)")
    }
}
