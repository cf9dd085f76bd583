//! Which peers have a session, kept from the transport's events.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use falconet_transport::PeerId;
use tokio::sync::Notify;

/// Written by the dataplane thread when a session comes or goes, read by the embedder's tasks.
#[derive(Default)]
pub(crate) struct Connections {
    connected: Mutex<HashSet<PeerId>>,
    changed: Notify,
}

impl Connections {
    pub(crate) fn connect(&self, peer: PeerId) {
        self.lock().insert(peer);
        self.changed.notify_waiters();
    }

    pub(crate) fn disconnect(&self, peer: PeerId) {
        self.lock().remove(&peer);
        self.changed.notify_waiters();
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn contains(&self, peer: PeerId) -> bool {
        self.lock().contains(&peer)
    }

    /// Waits until all of `expected` are connected; the error holds those that are not.
    pub(crate) async fn wait_for(&self, expected: &[PeerId], within: Duration) -> Result<(), Vec<PeerId>> {
        let all_connected = async {
            loop {
                let changed = self.changed.notified();
                if self.missing(expected).is_empty() {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(within, all_connected)
            .await
            .map_err(|_| self.missing(expected))
    }

    fn missing(&self, expected: &[PeerId]) -> Vec<PeerId> {
        let connected = self.lock();
        expected
            .iter()
            .copied()
            .filter(|peer| !connected.contains(peer))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<PeerId>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
