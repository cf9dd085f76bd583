//! Broadcasting by a schedule: rounds follow the clock, so all nodes of a network agree on them without a word, and a
//! node that was restarted goes on in a later round.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use falconet::{IdentityKey, Node, Round};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::event::{Event, unix};
use super::setup::Lead;
use crate::payload::PayloadDigest;

impl Lead {
    /// The round that the clock is in: intervals since the Unix epoch.
    pub(super) fn round_at(&self, unix: Duration) -> u64 {
        (unix.as_nanos() / self.interval.as_nanos().max(1)) as u64
    }

    /// From this time on to the beginning of a later round.
    fn until(&self, round: u64, unix: Duration) -> Duration {
        let begins = self.interval.as_nanos() * u128::from(round);
        Duration::from_nanos(begins.saturating_sub(unix.as_nanos()) as u64)
    }

    /// Who broadcasts in a round: the leaders take turns.
    pub(super) fn leader(&self, round: u64) -> IdentityKey {
        self.leaders[(round % self.leaders.len() as u64) as usize]
    }

    /// The same for the engine, which refuses everybody else's messages.
    pub(super) fn schedule(&self) -> impl Fn(Round) -> Option<IdentityKey> + Send + Sync + 'static {
        let leaders = self.leaders.clone();
        move |round| Some(leaders[(round.number() % leaders.len() as u64) as usize])
    }

    /// Orders a broadcast in each round of this node, as often as the schedule says; then waits for ever.
    pub(super) async fn run(&self, own: IdentityKey, epoch: u32, broadcaster: &Broadcaster) {
        let mut round = self.round_at(unix());
        while self.count.is_none_or(|count| broadcaster.ordered() < count) {
            // A round that this node was too slow for is nobody's any more.
            round = (round + 1).max(self.round_at(unix()));
            tokio::time::sleep(self.until(round, unix())).await;
            if self.leader(round) == own {
                let (payload, sha256) = self.payloads.payload(round);
                broadcaster.order((epoch, round), (payload, sha256)).await;
            }
        }
        std::future::pending().await
    }
}

/// A task that broadcasts what is ordered, so that nothing which the node does meanwhile cuts a broadcast's report off.
pub(super) struct Broadcaster {
    orders: mpsc::Sender<Order>,
    ordered: AtomicU64,
    task: JoinHandle<()>,
}

struct Order {
    at: (u32, u64),
    payload: Bytes,
    sha256: PayloadDigest,
}

impl Broadcaster {
    /// Needs a tokio runtime.
    pub(super) fn spawn(node: Arc<Node>) -> Self {
        let (orders, ordered) = mpsc::channel(1);
        Self {
            orders,
            ordered: AtomicU64::new(0),
            task: tokio::spawn(broadcast_all(node, ordered)),
        }
    }

    /// Broadcasts that were ordered since the start.
    fn ordered(&self) -> u64 {
        self.ordered.load(Ordering::Relaxed)
    }

    async fn order(&self, at: (u32, u64), (payload, sha256): (Bytes, PayloadDigest)) {
        let order = Order { at, payload, sha256 };
        if self.orders.send(order).await.is_ok() {
            self.ordered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets go of the node.
    pub(super) async fn stop(self) {
        self.task.abort();
        // It was told to end, so that it did not come to its end is right.
        self.task.await.ok();
    }
}

async fn broadcast_all(node: Arc<Node>, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.recv().await {
        let (round, bytes) = (order.at.1, order.payload.len());
        match node.broadcast(round, order.payload).await {
            Ok(report) => Event::published(order.at, (bytes, order.sha256), &report),
            Err(error) => Event::PublishFailed {
                round,
                error: error.to_string(),
            },
        }
        .print();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::PayloadSource;

    #[test]
    fn rounds_follow_the_clock_and_leaders_take_turns() {
        let leaders: Vec<_> = [1, 2, 3].map(|byte| IdentityKey::from_bytes([byte; 32])).into();
        let lead = Lead {
            leaders: leaders.clone(),
            interval: Duration::from_millis(250),
            payloads: PayloadSource::Generated { size: 1, seed: 1 },
            count: None,
        };
        let at = Duration::from_millis(1_000_100);
        assert_eq!(lead.round_at(at), 4_000);
        assert_eq!(lead.until(4_001, at), Duration::from_millis(150));
        assert_eq!(lead.until(4_000, at), Duration::ZERO);
        assert_eq!(lead.leader(4_000), leaders[1]);
        let schedule = lead.schedule();
        for round in 4_000..4_010 {
            assert_eq!(schedule(Round::new(round).unwrap()), Some(lead.leader(round)));
        }
    }
}
