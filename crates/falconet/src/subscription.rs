//! Bounded streams from a node to its embedder: a slow reader loses the oldest, and learns how many.

use tokio::sync::broadcast::{self, error::RecvError};

/// One item of a stream, with what was lost before it.
pub(crate) struct Next<T> {
    pub(crate) item: T,
    pub(crate) missed: u64,
}

/// The node's end.
pub(crate) struct Publisher<T> {
    sender: broadcast::Sender<T>,
    /// Keeps what came before the first reader; taken by it.
    first: std::sync::Mutex<Option<broadcast::Receiver<T>>>,
}

impl<T: Clone> Publisher<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let (sender, first) = broadcast::channel(capacity);
        Self {
            sender,
            first: std::sync::Mutex::new(Some(first)),
        }
    }

    /// What the node's threads publish into; never blocks.
    pub(crate) fn sender(&self) -> broadcast::Sender<T> {
        self.sender.clone()
    }

    /// The first subscription starts with what has been kept since the node started, each later one from now.
    pub(crate) fn subscribe(&self) -> Subscription<T> {
        let mut first = self
            .first
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Subscription {
            receiver: first.take().unwrap_or_else(|| self.sender.subscribe()),
        }
    }
}

/// The reader's end.
pub(crate) struct Subscription<T> {
    receiver: broadcast::Receiver<T>,
}

impl<T: Clone> Subscription<T> {
    /// The next item; `None` once the node has shut down and everything kept was read.
    pub(crate) async fn recv(&mut self) -> Option<Next<T>> {
        let mut missed = 0;
        loop {
            match self.receiver.recv().await {
                Ok(item) => return Some(Next { item, missed }),
                Err(RecvError::Lagged(lost)) => missed += lost,
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
