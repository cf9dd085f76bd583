//! Banned addresses in the filters of the sockets.

use std::net::{Ipv4Addr, UdpSocket};

use falconet_transport::IndexKey;

/// Handles of the filtered sockets; none where the kernel does not filter, and then bans are kept in user space alone.
#[derive(Debug, Default)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) struct KernelBans {
    /// The data socket and the handshake socket.
    pub(crate) steered: Option<(UdpSocket, UdpSocket, IndexKey)>,
    pub(crate) plain: Option<UdpSocket>,
}

impl KernelBans {
    /// Puts `banned` in front of every filter, in the place of those that were there.
    #[cfg(target_os = "linux")]
    pub(crate) fn apply(&self, banned: &[Ipv4Addr]) {
        use crate::filter;
        use crate::sys::attach_filter;

        let attach = |socket: &UdpSocket, filter: Vec<libc::sock_filter>| {
            let mut program = filter::barring(banned);
            program.extend(filter);
            if let Err(error) = attach_filter(socket, &program) {
                tracing::info!(%error, "bans are kept in user space alone");
            }
        };
        if let Some((data, handshakes, key)) = &self.steered {
            attach(data, filter::data(*key));
            attach(handshakes, filter::handshakes(*key));
        }
        if let Some(plain) = &self.plain {
            attach(plain, filter::plain());
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn apply(&self, _banned: &[Ipv4Addr]) {}
}
