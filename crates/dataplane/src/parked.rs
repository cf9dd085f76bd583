//! What belongs to datagrams that wait in `Sessions` for a handshake.

use std::sync::Arc;

use falconet_transport::PeerId;

use crate::outgoing::{Class, Completion};

/// Most parked datagrams; `Sessions` bounds them much earlier, by bytes.
const MAX_PARKED: usize = 1 << 20;

/// Class and completion of one buffered datagram.
pub(crate) struct Ticket {
    pub(crate) peer: PeerId,
    pub(crate) class: Class,
    pub(crate) completion: Option<Arc<dyn Completion>>,
}

/// Tickets by the tag under which `Sessions` holds the datagram.
#[derive(Default)]
pub(crate) struct Parked {
    slots: Vec<Option<Ticket>>,
    free: Vec<u32>,
}

impl Parked {
    /// Keeps `ticket`; gives it back if there is no room.
    pub(crate) fn insert(&mut self, ticket: Ticket) -> Result<u32, Ticket> {
        if let Some(tag) = self.free.pop() {
            self.slots[tag as usize] = Some(ticket);
            return Ok(tag);
        }
        match u32::try_from(self.slots.len()) {
            Ok(tag) if self.slots.len() < MAX_PARKED => {
                self.slots.push(Some(ticket));
                Ok(tag)
            }
            _ => Err(ticket),
        }
    }

    /// The ticket of `tag`, once.
    pub(crate) fn take(&mut self, tag: u32) -> Option<Ticket> {
        let ticket = self.slots.get_mut(tag as usize)?.take()?;
        self.free.push(tag);
        Some(ticket)
    }

    /// Every ticket for which `matches`.
    pub(crate) fn take_all(&mut self, matches: impl Fn(&Ticket) -> bool) -> Vec<Ticket> {
        let tags: Vec<u32> = (0_u32..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.as_ref().is_some_and(&matches))
            .map(|(tag, _)| tag)
            .collect();
        tags.into_iter().filter_map(|tag| self.take(tag)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(peer: u32) -> Ticket {
        Ticket {
            peer: PeerId(peer),
            class: Class::Regular,
            completion: None,
        }
    }

    #[test]
    fn a_ticket_is_taken_once_and_its_slot_used_again() {
        let mut parked = Parked::default();
        let first = parked.insert(ticket(1)).ok().unwrap();
        let second = parked.insert(ticket(2)).ok().unwrap();
        assert_ne!(first, second);
        assert_eq!(parked.take(first).unwrap().peer, PeerId(1));
        assert!(parked.take(first).is_none() && parked.take(99).is_none());
        assert_eq!(parked.insert(ticket(3)).ok(), Some(first));
        assert_eq!(parked.take_all(|t| t.peer == PeerId(3)).len(), 1);
        assert_eq!(parked.take_all(|_| true).len(), 1);
        assert_eq!(parked.slots.len(), 2);
    }
}
