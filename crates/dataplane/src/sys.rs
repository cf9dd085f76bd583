//! The few system calls that no crate wraps, each behind a safe function.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

/// A socket of which the runtime this is called in tells readiness, and only of `interest`.
pub(crate) fn watch(
    socket: std::net::UdpSocket,
    interest: tokio::io::Interest,
) -> std::io::Result<tokio::io::unix::AsyncFd<std::net::UdpSocket>> {
    // SAFETY: the descriptor is owned by `socket`, which moves into the `AsyncFd` and always gives the same one.
    unsafe { tokio::io::unix::AsyncFd::register_with_interest(socket, interest) }.map_err(Into::into)
}

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

    /// Whether the kernel hands datagrams of one flow and length over as one aggregate.
    pub(crate) fn set_receive_offload(socket: &impl AsRawFd, on: bool) -> io::Result<()> {
        set_int(socket, libc::SOL_UDP, libc::UDP_GRO, usize::from(on))
    }

    /// Attaches a classic-BPF filter to a socket.
    pub(crate) fn attach_filter(socket: &impl AsRawFd, program: &[libc::sock_filter]) -> io::Result<()> {
        attach(socket, libc::SO_ATTACH_FILTER, program)
    }

    /// Attaches a classic-BPF program that chooses among the sockets of `socket`'s port.
    pub(crate) fn attach_selector(socket: &impl AsRawFd, program: &[libc::sock_filter]) -> io::Result<()> {
        attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, program)
    }

    fn attach(socket: &impl AsRawFd, name: i32, program: &[libc::sock_filter]) -> io::Result<()> {
        let length = u16::try_from(program.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog {
            len: length,
            // The kernel copies it and writes nothing.
            filter: program.as_ptr().cast_mut(),
        };
        let size = libc::socklen_t::try_from(size_of::<libc::sock_fprog>()).map_err(io::Error::other)?;
        let pointer = (&raw const program).cast();
        // SAFETY: `pointer` and `size` describe one sock_fprog, whose pointer and length describe the
        // instructions of a slice that outlives the call.
        let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, pointer, size) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Datagrams that the kernel has dropped on a socket, by its filter or for want of room, modulo 2^32.
    pub(crate) fn kernel_drops(socket: &impl AsRawFd) -> io::Result<u32> {
        // linux/sock_diag.h, SK_MEMINFO_DROPS of SK_MEMINFO_VARS.
        const DROPS: usize = 8;
        let mut values = [0_u32; DROPS + 1];
        let mut size = libc::socklen_t::try_from(size_of_val(&values)).map_err(io::Error::other)?;
        let pointer = values.as_mut_ptr().cast();
        let (fd, name) = (socket.as_raw_fd(), libc::SO_MEMINFO);
        // SAFETY: `pointer` and `size` describe writable memory, of which the kernel writes at most `size`.
        let done = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, pointer, &mut size) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(values[DROPS])
        }
    }

    /// Gives the calling thread this nice value.
    pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
        // SAFETY: takes no pointers; 0 names the calling thread.
        let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Keeps the calling thread on this processor.
    pub(crate) fn pin_to(processor: usize) -> io::Result<()> {
        // Bits in the set; CPU_SET would index past its end.
        if processor >= 8 * size_of::<libc::cpu_set_t>() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: all zeroes are an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `processor` is within the set.
        unsafe { libc::CPU_SET(processor, &mut set) };
        // SAFETY: the set outlives the call; 0 names the calling thread.
        let done = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
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
