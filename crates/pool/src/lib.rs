//! Leases on expensive resources: buffers, encoders, provers.
//!
//! ```text
//!   Pool::new(contents) ---- acquire / try_acquire / acquire_async ----> Lease (derefs to the resource)
//!        ^    ^                                                             |
//!        |    +---- refresh: a new generation, capacity never drops         | drop
//!        +--------------- back, once; stale or panicked: discarded <--------+
//! ```
//!
//! # Provided
//!
//! - A lease gives its resource back when it is dropped, exactly once, on whatever thread.
//! - A lease carries its own generation: what was lent before a refresh is recognised when it comes back, and
//!   dropped.
//! - A refresh swaps generation and contents under one lock; a rolling one has at most one resource more alive
//!   than the pool's size. Readers find as many resources during it as before.
//! - A lease that is dropped by a panic is discarded: nobody knows what state its resource is in.
//! - Waiting has a deadline. Plain threads block, tasks wait for a waker; the timer is the caller's, so no
//!   runtime is needed.
//!
//! # Not provided
//!
//! - Making resources on demand: memory is what the caller put in, no more.
//! - Fairness between blocked threads and waiting tasks.
//!
//! # Example
//!
//! ```
//! use falconet_pool::Pool;
//!
//! let pool = Pool::new(vec![Vec::with_capacity(1024), Vec::with_capacity(1024)])?;
//! let mut lease = pool.try_acquire().expect("two are idle");
//! lease.push(1_u8);
//! drop(lease);
//! assert_eq!(pool.stats().idle, 2);
//! # Ok::<(), falconet_pool::PoolError>(())
//! ```

#![allow(unexpected_cfgs, reason = "`--cfg loom` builds the models of tests/loom.rs")]

mod lease;
mod pool;
mod sync;
mod wait;

pub use lease::Lease;
pub use pool::{Pool, PoolError, Stats};
pub use wait::{Acquire, TimedOut};

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
