//! Sleeping to within some 100 us without burning the core.
//!
//! `tokio::time::sleep` rounds to whole milliseconds, which at 1 Gbit/s is 80 datagrams.

#[cfg(target_os = "linux")]
pub(crate) use timerfd::Timer;

#[cfg(not(target_os = "linux"))]
pub(crate) use portable::Timer;

#[cfg(target_os = "linux")]
mod timerfd {
    use std::io;
    use std::task::{Context, Poll, ready};
    use std::time::Instant;

    use tokio::io::unix::AsyncFd;

    use crate::sys::TimerFd;

    /// A timer for one deadline at a time, readable when it has passed.
    #[derive(Debug)]
    pub(crate) struct Timer {
        fd: AsyncFd<TimerFd>,
        armed: Option<Instant>,
    }

    impl Timer {
        /// Must be called inside the runtime.
        pub(crate) fn new() -> io::Result<Timer> {
            let fd = TimerFd::new()?.register()?;
            Ok(Timer { fd, armed: None })
        }

        /// Sets the deadline. One that is set to come earlier stays, and only ends the wait early: moving a
        /// deadline ahead of the clock, as every datagram does, then costs nothing.
        pub(crate) fn arm(&mut self, now: Instant, deadline: Instant) -> io::Result<()> {
            if !self.armed.is_some_and(|armed| now < armed && armed <= deadline) {
                self.fd.get_ref().set(deadline.saturating_duration_since(now))?;
                self.armed = Some(deadline);
            }
            Ok(())
        }

        /// Ready once after the deadline has passed. A stale expiry only ends the wait early.
        pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            loop {
                let Ok(mut guard) = ready!(self.fd.poll_read_ready(cx)) else {
                    return Poll::Ready(());
                };
                if guard.try_io(|fd| fd.get_ref().take_expiry()).is_ok() {
                    self.armed = None;
                    return Poll::Ready(());
                }
            }
        }
    }
}

#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", allow(dead_code))]
mod portable {
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::{Duration, Instant};

    /// Waits shorter than this are slept on the thread, in steps: the runtime would round them up.
    const FINE: Duration = Duration::from_millis(2);
    /// One such step; it bounds how long a received datagram waits meanwhile.
    const STEP: Duration = Duration::from_micros(100);

    /// A timer for one deadline at a time: coarse by the runtime, then by short naps of the thread.
    #[derive(Debug, Default)]
    pub(crate) struct Timer {
        deadline: Option<Instant>,
        coarse: Option<Pin<Box<tokio::time::Sleep>>>,
    }

    impl Timer {
        /// Must be called inside the runtime.
        pub(crate) fn new() -> io::Result<Timer> {
            Ok(Timer::default())
        }

        /// Sets the deadline.
        pub(crate) fn arm(&mut self, now: Instant, deadline: Instant) -> io::Result<()> {
            if self.deadline != Some(deadline) {
                self.deadline = Some(deadline);
                let wait = deadline.saturating_duration_since(now);
                self.coarse = wait
                    .checked_sub(FINE)
                    .map(|coarse| Box::pin(tokio::time::sleep(coarse)));
            }
            Ok(())
        }

        /// Ready once after the deadline has passed.
        pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let Some(deadline) = self.deadline else {
                return Poll::Pending;
            };
            if let Some(coarse) = &mut self.coarse {
                if coarse.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.coarse = None;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.deadline = None;
                return Poll::Ready(());
            }
            std::thread::sleep(left.min(STEP));
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::{Duration, Instant};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    // A macro, since the two timers share no trait: the product needs only one of them.
    macro_rules! waits_out_its_deadlines {
        ($timer:ty) => {
            runtime().block_on(async {
                let mut timer = <$timer>::new().unwrap();
                for wait in [0, 50, 700, 5_000].map(Duration::from_micros) {
                    let start = Instant::now();
                    timer.arm(start, start + wait).unwrap();
                    poll_fn(|cx| timer.poll_expired(cx)).await;
                    assert!(start.elapsed() >= wait, "{wait:?}");
                    // An earlier deadline takes the place of a later one.
                    let start = Instant::now();
                    timer
                        .arm(start, start + Duration::from_secs(3_600))
                        .unwrap();
                    timer.arm(start, start + wait).unwrap();
                    poll_fn(|cx| timer.poll_expired(cx)).await;
                    assert!(start.elapsed() >= wait, "{wait:?}");
                }
            })
        };
    }

    #[test]
    fn never_early() {
        waits_out_its_deadlines!(super::Timer);
    }

    #[test]
    fn never_early_on_other_systems() {
        waits_out_its_deadlines!(super::portable::Timer);
    }
}
