//! Knowing when the last datagram of a broadcast has left.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use falconet_dataplane::Completion;
use tokio::sync::Notify;

/// What became of the datagrams of one broadcast.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departed {
    pub(crate) sent: usize,
    pub(crate) dropped: usize,
    pub(crate) sent_bytes: usize,
    pub(crate) last_sent: Option<Instant>,
}

/// Counts the datagrams of one broadcast out. Told of by the dataplane thread, waited for by a task.
#[derive(Default)]
pub(crate) struct Departure {
    state: Mutex<State>,
    finished: Notify,
}

#[derive(Default)]
struct State {
    departed: Departed,
    /// How many there are in all; known once the engine has encoded.
    expected: Option<usize>,
}

impl Departure {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// The engine has encoded: there are this many datagrams.
    pub(crate) fn expect(&self, datagrams: usize) {
        self.lock().expected = Some(datagrams);
        self.finished.notify_one();
    }

    /// Some will never leave, since the node knows no way to their receiver or no queue had room.
    pub(crate) fn drop_datagrams(&self, count: usize) {
        self.lock().departed.dropped += count;
        self.finished.notify_one();
    }

    /// Resolves once each expected datagram has left or was dropped.
    pub(crate) async fn wait(&self) -> Departed {
        loop {
            if let Some(departed) = self.departed() {
                return departed;
            }
            self.finished.notified().await;
        }
    }

    fn departed(&self) -> Option<Departed> {
        let state = self.lock();
        let done = state.departed.sent + state.departed.dropped;
        state
            .expected
            .filter(|expected| done >= *expected)
            .map(|_| state.departed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completion for Departure {
    fn finished(&self, sent: usize, dropped: usize, sent_bytes: usize, at: Instant) {
        let mut state = self.lock();
        let departed = &mut state.departed;
        departed.sent += sent;
        departed.dropped += dropped;
        departed.sent_bytes += sent_bytes;
        if sent > 0 {
            departed.last_sent = departed.last_sent.max(Some(at));
        }
        let done = departed.sent + departed.dropped;
        let is_finished = state.expected.is_some_and(|expected| done >= expected);
        drop(state);
        if is_finished {
            self.finished.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn resolves_only_once_all_have_left_or_were_dropped() {
        let departure = Departure::new();
        let start = Instant::now();
        departure.finished(2, 0, 2_000, start);
        departure.expect(4);
        assert!(departure.departed().is_none());
        departure.drop_datagrams(1);
        departure.finished(1, 0, 1_000, start + Duration::from_millis(5));

        let departed = departure.wait().await;

        assert_eq!(
            (departed.sent, departed.dropped, departed.sent_bytes),
            (3, 1, 3_000)
        );
        assert_eq!(departed.last_sent, Some(start + Duration::from_millis(5)));
    }
}
