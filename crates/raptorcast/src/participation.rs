//! Which first hops do their part, epoch by epoch (`docs/spec/broadcast.md#participation`).

use crate::ids::NodeIndex;

/// What one first hop did for the messages of an epoch that were delivered here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Participation {
    /// Symbols that it was to relay.
    pub assigned: u64,
    /// Those of them that were here when their message was decoded. An honest and quick hop has about as large a part
    /// here as the others; all of them would take a message that is never decoded early.
    pub in_time: u64,
}

/// The participation of every member of a set.
#[derive(Debug)]
pub(crate) struct Roll {
    members: Vec<Participation>,
}

impl Roll {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            members: vec![Participation::default(); members],
        }
    }

    pub(crate) fn members(&self) -> &[Participation] {
        &self.members
    }

    pub(crate) fn count(&mut self, hop: NodeIndex, is_in_time: bool) {
        if let Some(member) = self.members.get_mut(hop.as_usize()) {
            member.assigned += 1;
            member.in_time += u64::from(is_in_time);
        }
    }
}
