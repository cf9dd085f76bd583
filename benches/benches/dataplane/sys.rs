//! The one system call that no crate wraps.
#![allow(unsafe_code)]

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// `linux/ethtool.h`: ETHTOOL_SGRO, _SGSO, _STSO, _SSG, _STXCSUM.
pub(crate) const OFFLOADS: [u32; 5] = [0x2c, 0x24, 0x1f, 0x19, 0x17];
/// `linux/sockios.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Switches an offload of `device` off, in the network namespace of `socket`.
pub(crate) fn switch_off(socket: &UdpSocket, device: &str, offload: u32) -> io::Result<()> {
    let mut value = Value {
        command: offload,
        data: 0,
    };
    // SAFETY: all zeroes are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request
        .ifr_name
        .iter_mut()
        .take(libc::IFNAMSIZ - 1)
        .zip(device.bytes())
    {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: `request` names a device by a terminated string and points to a `Value`, which both outlive the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
