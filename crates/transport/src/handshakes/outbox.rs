//! Results that wait for the data plane; `docs/spec/session.md#room`.

use crate::ToSessions;
use crate::message::Origin;
use std::collections::VecDeque;

/// Results of each kind that wait for the dataplane thread, one turn's worth.
const MAX_OF_KIND: usize = 64;

/// What others have dialled cannot take the places of what we have dialled.
#[derive(Default)]
pub(super) struct Outbox {
    queue: VecDeque<ToSessions>,
    accepted: usize,
}

impl Outbox {
    /// Whether there is a place for the answer to another initiation, beside `under_way` that are promised one.
    pub(super) fn has_room_for_accepted(&self, under_way: usize) -> bool {
        self.accepted + under_way < MAX_OF_KIND
    }

    /// Whether there is a place for the answer to another dial of ours.
    pub(super) fn has_room_for_dialled(&self) -> bool {
        self.queue.len() - self.accepted < MAX_OF_KIND
    }

    pub(super) fn push(&mut self, message: ToSessions) {
        self.accepted += usize::from(is_accepted(&message));
        self.queue.push_back(message);
    }

    pub(super) fn pop(&mut self) -> Option<ToSessions> {
        let message = self.queue.pop_front()?;
        self.accepted -= usize::from(is_accepted(&message));
        Some(message)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

fn is_accepted(message: &ToSessions) -> bool {
    matches!(message.0.from, Origin::Accepted { .. })
}
