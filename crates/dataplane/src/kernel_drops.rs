//! What the kernel has dropped on our sockets, by its filters or for want of room.

use std::io;
use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};

/// Reads the drop counts of sockets from any thread. They are 32 bits wide in the kernel: a snapshot an hour
/// is enough to see every wrap at 1 million drops a second.
#[derive(Debug)]
pub(crate) struct KernelDrops(Mutex<Vec<Watched>>);

#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
struct Watched {
    socket: UdpSocket,
    last: u32,
    total: u64,
}

impl KernelDrops {
    /// Watches second handles of `sockets`, which keep them open.
    pub(crate) fn of<'a>(sockets: impl Iterator<Item = &'a UdpSocket>) -> io::Result<KernelDrops> {
        let watched = sockets.map(|socket| {
            Ok(Watched {
                socket: socket.try_clone()?,
                last: 0,
                total: 0,
            })
        });
        Ok(KernelDrops(Mutex::new(watched.collect::<io::Result<_>>()?)))
    }

    /// All drops since the sockets were opened; 0 where the system does not tell.
    pub(crate) fn total(&self) -> u64 {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.iter_mut().map(Watched::read).sum()
    }
}

impl Watched {
    fn read(&mut self) -> u64 {
        #[cfg(target_os = "linux")]
        if let Ok(drops) = crate::sys::kernel_drops(&self.socket) {
            self.total += u64::from(drops.wrapping_sub(self.last));
            self.last = drops;
        }
        self.total
    }
}
