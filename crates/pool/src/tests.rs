use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use crate::{Pool, PoolError, TimedOut};

fn pool(size: usize) -> Pool<usize> {
    Pool::new((0..size).collect()).unwrap()
}

#[derive(Default)]
struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_pool_of_nothing_is_refused() {
    assert_eq!(Pool::<u8>::new(vec![]).err(), Some(PoolError::Empty));
}

#[test]
fn a_lease_comes_back_once() {
    let pool = pool(2);
    let (first, second) = (pool.try_acquire().unwrap(), pool.try_acquire().unwrap());
    assert!(pool.try_acquire().is_none());
    drop(first);
    assert_eq!((pool.stats().idle, pool.stats().leased), (1, 1));
    drop(second);
    assert_eq!(
        (pool.stats().idle, pool.stats().leased, pool.stats().peak),
        (2, 0, 2)
    );
}

#[test]
fn a_stale_lease_is_dropped_when_it_comes_back() {
    let pool = pool(2);
    let stale = pool.try_acquire().unwrap();
    pool.refresh(vec![10, 11]).unwrap();
    let fresh = pool.try_acquire().unwrap();
    assert_eq!((stale.generation(), fresh.generation()), (0, 1));
    drop(stale);
    drop(fresh);
    let all = [pool.try_acquire().unwrap(), pool.try_acquire().unwrap()];
    assert!(all.iter().all(|lease| **lease >= 10));
    assert!(pool.try_acquire().is_none());
    assert_eq!(pool.stats().stale, 1);
    assert_eq!(pool.refresh(vec![1]), Err(PoolError::Size { given: 1, size: 2 }));
}

#[test]
fn a_rolling_refresh_keeps_the_capacity_and_one_more_alive() {
    let alive = Arc::new(());
    let pool = Pool::new(vec![alive.clone(), alive.clone(), alive.clone()]).unwrap();
    let lent = pool.try_acquire().unwrap();
    pool.refresh_rolling(|| {
        assert!(Arc::strong_count(&alive) <= 1 + 3 + 1, "size and one");
        assert!(pool.stats().idle >= 2);
        alive.clone()
    });
    assert_eq!(pool.stats().idle, 3);
    drop(lent);
    assert_eq!((pool.stats().idle, pool.stats().stale), (3, 1));
}

#[test]
fn a_lease_that_ends_in_a_panic_is_discarded() {
    let pool = pool(2);
    let lease = pool.try_acquire().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(move || {
        let _lease = lease;
        panic!("on purpose");
    }));
    assert!(outcome.is_err());
    assert_eq!((pool.stats().panicked, pool.stats().idle), (1, 1));
}

#[test]
fn a_blocked_thread_gets_what_comes_back() {
    let pool = pool(1);
    let lease = pool.try_acquire().unwrap();
    assert_eq!(pool.acquire(Instant::now()).err(), Some(TimedOut));
    let waiter = std::thread::spawn({
        let pool = pool.clone();
        move || *pool.acquire(Instant::now() + Duration::from_secs(60)).unwrap()
    });
    drop(lease);
    assert_eq!(waiter.join().unwrap(), 0);
}

#[test]
fn a_waiting_task_is_woken_and_a_cancelled_one_passes_the_wake_on() {
    let pool = pool(1);
    let lease = pool.try_acquire().unwrap();
    let wakes = [Arc::new(CountWakes::default()), Arc::new(CountWakes::default())];
    let wakers = [wakes[0].clone().into(), wakes[1].clone().into()];
    let mut cancelled = Box::pin(pool.acquire_async(pending::<()>()));
    let mut patient = pin!(pool.acquire_async(pending::<()>()));
    assert!(
        cancelled
            .as_mut()
            .poll(&mut Context::from_waker(&wakers[0]))
            .is_pending()
    );
    assert!(
        patient
            .as_mut()
            .poll(&mut Context::from_waker(&wakers[1]))
            .is_pending()
    );
    drop(lease);
    assert_eq!(wakes.each_ref().map(|w| w.0.load(Ordering::SeqCst)), [1, 0]);
    drop(cancelled);
    assert_eq!(wakes[1].0.load(Ordering::SeqCst), 1);
    let outcome = patient.as_mut().poll(&mut Context::from_waker(&wakers[1]));
    assert!(matches!(outcome, Poll::Ready(Ok(_))));
}

#[test]
fn a_task_gives_up_with_its_timer() {
    let pool = pool(1);
    let _lease = pool.try_acquire().unwrap();
    let wakes: std::task::Waker = Arc::new(CountWakes::default()).into();
    let mut acquire = pin!(pool.acquire_async(ready(())));
    let outcome = acquire.as_mut().poll(&mut Context::from_waker(&wakes));
    assert!(matches!(outcome, Poll::Ready(Err(TimedOut))));
    assert_eq!(pool.stats().waits, 1);
}

#[test]
fn statistics_tell_what_leases_cost() {
    let pool = pool(2);
    let (first, second) = (pool.try_acquire().unwrap(), pool.try_acquire().unwrap());
    assert_eq!(pool.acquire(Instant::now()).err(), Some(TimedOut));
    drop((first, second));
    drop(pool.acquire(Instant::now()).unwrap());
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.waits, stats.peak), (3, 1, 2));
    assert_eq!(
        (stats.stale, stats.panicked, stats.leased, stats.idle),
        (0, 0, 0, 2)
    );
}

#[test]
fn a_rolling_refresh_lets_readers_in_while_it_makes_a_resource() {
    let pool = pool(2);
    let reader = pool.clone();
    pool.refresh_rolling(|| {
        // Neither blocked nor empty: what is slow to make is made without the lock.
        let lease = reader.try_acquire().expect("capacity during a refresh");
        *lease + 10
    });
    assert_eq!((pool.stats().idle, pool.stats().leased), (2, 0));
}
