//! The processor time of the calling thread.
#![allow(unsafe_code)]

use std::time::Duration;

/// Processor time that the calling thread has used, user and system; `None` where there is no such clock.
#[cfg(unix)]
pub(super) fn thread_cpu() -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a writable timespec that outlives the call.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    (done == 0).then(|| Duration::new(seconds, nanos))
}

#[cfg(not(unix))]
pub(super) fn thread_cpu() -> Option<Duration> {
    None
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_sleep_does_not() {
        let before = thread_cpu().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let slept = thread_cpu().unwrap() - before;
        assert!(slept < Duration::from_millis(25), "{slept:?}");
        let mut spun = 0_u64;
        while thread_cpu().unwrap() - before < slept + Duration::from_millis(2) {
            spun = std::hint::black_box(spun + 1);
        }
        assert!(spun > 0);
    }
}
