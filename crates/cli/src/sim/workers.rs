//! Jobs on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs every job, as many at once as there are cores; the results come in the order of the jobs.
pub(crate) fn run<J: Sync, R: Send>(jobs: &[J], work: impl Fn(usize, &J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    let workers = std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .min(jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { return };
                    let result = work(number, job);
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..50).rev().collect();
        let doubled = run(&jobs, |_, job| {
            std::thread::sleep(std::time::Duration::from_micros(*job));
            2 * job
        });
        assert_eq!(doubled, (0..50).rev().map(|job| 2 * job).collect::<Vec<u64>>());
    }
}
