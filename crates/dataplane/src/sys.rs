//! The few system calls that no crate wraps, each behind a safe function.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::size_of;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
    use std::time::Duration;

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A `timerfd` on the monotonic clock: precise to some 50 us, where the runtime's timers round to 1 ms.
    #[derive(Debug)]
    pub(crate) struct TimerFd(OwnedFd);

    impl TimerFd {
        pub(crate) fn new() -> io::Result<TimerFd> {
            let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
            // SAFETY: takes no pointers.
            let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: `fd` was just opened and has no other owner.
            Ok(TimerFd(unsafe { OwnedFd::from_raw_fd(fd) }))
        }

        /// The timer with its readiness told by the runtime this is called in.
        pub(crate) fn register(self) -> io::Result<AsyncFd<TimerFd>> {
            // SAFETY: the descriptor is owned by `self`, which moves into the `AsyncFd` and always gives
            // the same one.
            unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) }.map_err(Into::into)
        }

        /// Fires once, `after` from now; a zero wait fires at once.
        pub(crate) fn set(&self, after: Duration) -> io::Result<()> {
            let after = after.max(Duration::from_nanos(1));
            let zero = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let spec = libc::itimerspec {
                it_interval: zero,
                it_value: libc::timespec {
                    tv_sec: after.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                    tv_nsec: after.subsec_nanos().into(),
                },
            };
            // SAFETY: `spec` outlives the call; a null old value is allowed.
            let done = unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &spec, std::ptr::null_mut()) };
            if done < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        }

        /// Takes note of an expiry; `WouldBlock` if there was none.
        pub(crate) fn take_expiry(&self) -> io::Result<()> {
            let mut expiries = 0_u64;
            let buffer = (&raw mut expiries).cast();
            // SAFETY: `buffer` points to 8 writable bytes, which is what a timerfd writes.
            let read = unsafe { libc::read(self.0.as_raw_fd(), buffer, size_of::<u64>()) };
            if read < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        }
    }

    impl AsRawFd for TimerFd {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_raw_fd()
        }
    }

    /// Asks for a receive buffer past `net.core.rmem_max`, which needs `CAP_NET_ADMIN`.
    pub(crate) fn force_receive_buffer(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
        set_int(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
    }

    /// Asks for a send buffer past `net.core.wmem_max`, which needs `CAP_NET_ADMIN`.
    pub(crate) fn force_send_buffer(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
        set_int(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
    }

    /// The socket's path MTU discovery mode, `IP_PMTUDISC_*`.
    #[cfg(test)]
    pub(crate) fn path_mtu_discovery(socket: &impl AsRawFd, v6: bool) -> io::Result<i32> {
        let (level, name) = if v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER)
        } else {
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER)
        };
        let mut value: libc::c_int = -1;
        let mut length = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(4);
        let pointer = (&raw mut value).cast();
        // SAFETY: `pointer` and `length` describe one writable c_int.
        let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, pointer, &mut length) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(value)
        }
    }

    fn set_int(socket: &impl AsRawFd, level: i32, name: i32, value: usize) -> io::Result<()> {
        let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
        let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(4);
        let pointer = (&raw const value).cast();
        // SAFETY: `pointer` and `length` describe one readable c_int.
        let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, pointer, length) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}
