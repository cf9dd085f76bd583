//! Waking a thread, at most once a nap.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use tokio::sync::Notify;

/// Lets producers wake a thread only when it is about to sleep or sleeps: a wakeup costs the
/// waker 7 us and the sleeper 22, a flag nothing (docs/spec/threads.md#wakeups).
#[derive(Debug, Default)]
pub(crate) struct Wake {
    napping: AtomicBool,
    notify: Notify,
}

impl Wake {
    /// Called by a producer behind its push.
    pub(crate) fn wake(&self) {
        // Pairs with the fence in `announce_nap`: either we see the nap, or the thread sees our push.
        fence(Ordering::SeqCst);
        if self.napping.load(Ordering::Relaxed) && self.napping.swap(false, Ordering::AcqRel) {
            self.notify.notify_one();
        }
    }

    /// Called by the thread before it looks at its queues for the last time and sleeps.
    pub(crate) fn announce_nap(&self) {
        self.napping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Called by the thread when it is up again.
    pub(crate) fn end_nap(&self) {
        self.napping.store(false, Ordering::Relaxed);
    }

    /// Resolves once somebody has called [`Wake::wake`] since the nap was announced.
    pub(crate) fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}
