//! The pool: what is idle, what is lent, and who waits.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Instant;

use thiserror::Error;

use crate::lease::Lease;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::wait::{Acquire, TimedOut};

/// Why a pool cannot be what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A pool without resources would only ever make its callers wait.
    #[error("a pool needs at least one resource")]
    Empty,
    /// A refresh must bring as many resources as the pool has places.
    #[error("a refresh with {given} resources: the pool has {size} places")]
    Size {
        /// Resources given.
        given: usize,
        /// Places of the pool.
        size: usize,
    },
}

/// What a pool has done, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Leases given at once.
    pub hits: u64,
    /// Leases given, or given up, after a wait.
    pub waits: u64,
    /// Resources dropped because their lease was stale.
    pub stale: u64,
    /// Resources dropped because their lease ended in a panic.
    pub panicked: u64,
    /// Most leases at a time.
    pub peak: usize,
    /// Leases now.
    pub leased: usize,
    /// Resources that wait to be lent.
    pub idle: usize,
}

/// A fixed number of resources, lent one at a time. Cheap to clone; all clones are the same pool.
pub struct Pool<T> {
    pub(crate) shared: Arc<Shared<T>>,
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

pub(crate) struct Shared<T> {
    state: Mutex<State<T>>,
    returned: Condvar,
    /// Held for the whole of a refresh: two at a time would mix their generations.
    refreshing: Mutex<()>,
    size: usize,
}

pub(crate) struct State<T> {
    /// With the generation of each.
    idle: Vec<(u64, T)>,
    generation: u64,
    /// Leases of older generations whose replacement is here already.
    replaced: usize,
    /// Tasks that wait, by a number of their own.
    wakers: VecDeque<(u64, Waker)>,
    next_waker: u64,
    stats: Stats,
}

impl<T> Pool<T> {
    /// A pool of these resources; warm them up before.
    ///
    /// # Errors
    ///
    /// [`PoolError::Empty`] if there are none.
    pub fn new(contents: Vec<T>) -> Result<Self, PoolError> {
        if contents.is_empty() {
            return Err(PoolError::Empty);
        }
        let size = contents.len();
        let state = State {
            idle: contents.into_iter().map(|resource| (0, resource)).collect(),
            generation: 0,
            replaced: 0,
            wakers: VecDeque::new(),
            next_waker: 0,
            stats: Stats::default(),
        };
        let shared = Shared {
            state: Mutex::new(state),
            returned: Condvar::new(),
            refreshing: Mutex::new(()),
            size,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Number of places.
    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// A resource, if one is idle.
    pub fn try_acquire(&self) -> Option<Lease<T>> {
        let mut state = self.shared.lock();
        let (generation, resource) = state.take()?;
        state.stats.hits += 1;
        drop(state);
        Some(Lease::new(self.clone(), generation, resource))
    }

    /// A resource; blocks this thread until one is idle.
    ///
    /// # Errors
    ///
    /// [`TimedOut`] if none was until `deadline`.
    pub fn acquire(&self, deadline: Instant) -> Result<Lease<T>, TimedOut> {
        let mut state = self.shared.lock();
        let mut has_waited = false;
        loop {
            if let Some((generation, resource)) = state.take() {
                let counter = if has_waited {
                    &mut state.stats.waits
                } else {
                    &mut state.stats.hits
                };
                *counter += 1;
                drop(state);
                return Ok(Lease::new(self.clone(), generation, resource));
            }
            // This pool serves plain threads too, so it reads the clock itself here and nowhere else.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.stats.waits += 1;
                return Err(TimedOut);
            }
            has_waited = true;
            let woken = self.shared.returned.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A resource, or [`TimedOut`] once `timer` completes. Never blocks the thread that polls it.
    pub fn acquire_async<D: Future<Output = ()> + Unpin>(&self, timer: D) -> Acquire<T, D> {
        Acquire::new(self.clone(), timer)
    }

    /// Replaces all resources at once by a new generation. Leases of the old one go on, and are dropped when
    /// they come back.
    ///
    /// # Errors
    ///
    /// [`PoolError::Size`] unless there are exactly as many as the pool has places.
    pub fn refresh(&self, contents: Vec<T>) -> Result<(), PoolError> {
        let size = self.shared.size;
        if contents.len() != size {
            return Err(PoolError::Size {
                given: contents.len(),
                size,
            });
        }
        let _only = self
            .shared
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.lock();
        state.generation += 1;
        let generation = state.generation;
        let fresh = contents
            .into_iter()
            .map(|resource| (generation, resource))
            .collect();
        let old = std::mem::replace(&mut state.idle, fresh);
        state.replaced = state.stats.leased;
        drop(state);
        self.shared.wake(size);
        // Expensive resources may be expensive to drop: not under the lock.
        drop(old);
        Ok(())
    }

    /// Replaces the resources one by one, so that at most one more than the pool's size is idle or being made
    /// at a time, leases of the old generation aside.
    pub fn refresh_rolling(&self, mut make: impl FnMut() -> T) {
        let _only = self
            .shared
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.shared.lock().generation += 1;
        for _ in 0..self.shared.size {
            let fresh = make();
            let mut state = self.shared.lock();
            let generation = state.generation;
            let old = state.idle.iter().position(|(other, _)| *other < generation);
            let old = old.map(|place| state.idle.swap_remove(place));
            if old.is_none() && state.replaced < state.stats.leased {
                // Nothing old is idle, so one that is lent is what this replaces (or one that a panic took).
                state.replaced += 1;
            }
            state.idle.push((generation, fresh));
            drop(state);
            self.shared.wake(1);
            drop(old);
        }
    }

    /// Counters and occupancy.
    pub fn stats(&self) -> Stats {
        let state = self.shared.lock();
        Stats {
            idle: state.idle.len(),
            ..state.stats
        }
    }
}

impl<T> Shared<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No user code runs under the lock, so a poisoned one is as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a resource back; called once a lease.
    pub(crate) fn give_back(&self, generation: u64, resource: T, is_panicking: bool) {
        let mut state = self.lock();
        state.stats.leased -= 1;
        let is_replaced = generation < state.generation && state.replaced > 0;
        if is_replaced {
            state.replaced -= 1;
        }
        if is_replaced || is_panicking {
            let counter = if is_replaced {
                &mut state.stats.stale
            } else {
                &mut state.stats.panicked
            };
            *counter += 1;
            drop(state);
            drop(resource);
            return;
        }
        state.idle.push((generation, resource));
        drop(state);
        self.wake(1);
    }

    /// Wakes as many waiters as resources have come.
    fn wake(&self, count: usize) {
        for _ in 0..count {
            self.returned.notify_one();
        }
        let mut state = self.lock();
        let count = count.min(state.wakers.len());
        let woken: Vec<_> = state.wakers.drain(..count).collect();
        drop(state);
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Wakes one more task: for one that was woken and does not take what is there.
    pub(crate) fn pass_on(&self) {
        self.wake(1);
    }
}

impl<T> State<T> {
    /// The youngest idle resource, with its generation.
    pub(crate) fn take(&mut self) -> Option<(u64, T)> {
        let taken = self.idle.pop()?;
        self.stats.leased += 1;
        self.stats.peak = self.stats.peak.max(self.stats.leased);
        Some(taken)
    }

    /// Registers a waiting task; returns its number.
    pub(crate) fn register(&mut self, waker: Waker) -> u64 {
        self.next_waker += 1;
        self.wakers.push_back((self.next_waker, waker));
        self.next_waker
    }

    /// Removes a waiting task; false if it has been woken.
    pub(crate) fn unregister(&mut self, number: u64) -> bool {
        let before = self.wakers.len();
        self.wakers.retain(|(other, _)| *other != number);
        self.wakers.len() < before
    }

    pub(crate) fn count(&mut self, has_waited: bool) {
        if has_waited {
            self.stats.waits += 1
        } else {
            self.stats.hits += 1
        }
    }
}
