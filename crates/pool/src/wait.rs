//! Waiting for a resource without a thread.

use std::pin::Pin;
use std::task::{Context, Poll};

use thiserror::Error;

use crate::lease::Lease;
use crate::pool::Pool;

/// No resource was idle until the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no resource of the pool was idle until the deadline")]
pub struct TimedOut;

/// Resolves to a lease, or to [`TimedOut`] when the timer completes first.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<T, D> {
    pool: Pool<T>,
    timer: D,
    registered: Option<u64>,
    has_waited: bool,
}

impl<T, D> Acquire<T, D> {
    pub(crate) const fn new(pool: Pool<T>, timer: D) -> Self {
        Self {
            pool,
            timer,
            registered: None,
            has_waited: false,
        }
    }
}

impl<T, D: Future<Output = ()> + Unpin> Future for Acquire<T, D> {
    type Output = Result<Lease<T>, TimedOut>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        {
            let mut state = this.pool.shared.lock();
            if let Some(number) = this.registered.take() {
                state.unregister(number);
            }
            if let Some((generation, resource)) = state.take() {
                state.count(this.has_waited);
                drop(state);
                return Poll::Ready(Ok(Lease::new(this.pool.clone(), generation, resource)));
            }
            this.registered = Some(state.register(context.waker().clone()));
            this.has_waited = true;
        }
        // The lock is free again: a timer is the caller's code.
        match Pin::new(&mut this.timer).poll(context) {
            Poll::Ready(()) => {
                this.pool.shared.lock().count(true);
                Poll::Ready(Err(TimedOut))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T, D> Drop for Acquire<T, D> {
    fn drop(&mut self) {
        if let Some(number) = self.registered.take() {
            let was_woken = !self.pool.shared.lock().unregister(number);
            if was_woken {
                // Somebody else may still be waiting for what woke this.
                self.pool.shared.pass_on();
            }
        }
    }
}
