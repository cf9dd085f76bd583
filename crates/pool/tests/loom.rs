//! Every interleaving of a few threads on a small pool, by loom.
//!
//! Panics are outside of what loom models: `src/tests.rs` has them.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p falconet-pool --release --test loom`; an ordinary build leaves this empty.

#![allow(unexpected_cfgs, reason = "`--cfg loom` is what this file is for")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![cfg(loom)]

use std::future::pending;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use falconet_pool::{Lease, Pool, Stats};
use loom::future::block_on;
use loom::thread;

/// Loom's condition variables do not time out: what this waits for must come.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

fn pool(size: usize) -> Pool<usize> {
    Pool::new((0..size).collect()).unwrap()
}

/// Everything is back, and nothing twice.
fn assert_whole(stats: Stats, size: usize) {
    assert_eq!((stats.idle, stats.leased), (size, 0), "{stats:?}");
}

#[test]
fn a_resource_is_lent_to_one_at_a_time_and_comes_back_once() {
    loom::model(|| {
        let pool = pool(1);
        let borrower = |pool: Pool<usize>| move || pool.try_acquire().map(|mut lease| *lease += 1).is_some();
        let other = thread::spawn(borrower(pool.clone()));
        let served = usize::from(borrower(pool.clone())()) + usize::from(other.join().unwrap());
        assert!(served >= 1);
        assert_whole(pool.stats(), 1);
        assert_eq!(*pool.try_acquire().unwrap(), served, "no increment is lost");
    });
}

#[test]
fn a_blocked_thread_misses_no_return() {
    loom::model(|| {
        let pool = pool(1);
        let lease = pool.try_acquire().unwrap();
        let waiter = {
            let pool = pool.clone();
            thread::spawn(move || *pool.acquire(far()).unwrap())
        };
        drop(lease);
        assert_eq!(waiter.join().unwrap(), 0);
        assert_whole(pool.stats(), 1);
    });
}

#[test]
fn a_waiting_task_misses_no_return() {
    loom::model(|| {
        let pool = pool(1);
        let lease = pool.try_acquire().unwrap();
        let returner = thread::spawn(move || drop(lease));
        let got = block_on(pool.acquire_async(pending::<()>())).map(|lease| *lease);
        assert_eq!(got.ok(), Some(0));
        returner.join().unwrap();
        assert_whole(pool.stats(), 1);
    });
}

#[test]
fn a_cancelled_task_takes_nobody_s_turn() {
    let mut bounded = loom::model::Builder::new();
    // Three threads: all interleavings would take minutes, those with two preemptions take a second.
    bounded.preemption_bound = Some(2);
    bounded.check(|| {
        let pool = pool(1);
        let lease = pool.try_acquire().unwrap();
        let canceller = {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut acquire = Box::pin(pool.acquire_async(pending::<()>()));
                let polled = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                drop(acquire);
                matches!(polled, Poll::Ready(Ok(_)))
            })
        };
        let returner = thread::spawn(move || drop(lease));
        assert!(block_on(pool.acquire_async(pending::<()>())).is_ok());
        canceller.join().unwrap();
        returner.join().unwrap();
        assert_whole(pool.stats(), 1);
    });
}

#[test]
fn a_refresh_and_a_return_leave_one_generation() {
    loom::model(|| {
        let pool = pool(1);
        let lease = pool.try_acquire().unwrap();
        let returner = thread::spawn(move || drop(lease));
        pool.refresh(vec![10]).unwrap();
        returner.join().unwrap();
        assert_whole(pool.stats(), 1);
        let fresh: Lease<usize> = pool.try_acquire().unwrap();
        assert_eq!((*fresh, fresh.generation()), (10, 1));
    });
}

#[test]
fn a_rolling_refresh_keeps_what_it_has_beside_borrowers() {
    loom::model(|| {
        let pool = pool(1);
        let borrower = {
            let pool = pool.clone();
            thread::spawn(move || drop(pool.acquire(far()).unwrap()))
        };
        pool.refresh_rolling(|| 10);
        borrower.join().unwrap();
        assert_whole(pool.stats(), 1);
        assert_eq!(*pool.try_acquire().unwrap(), 10);
    });
}
