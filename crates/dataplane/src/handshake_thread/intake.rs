//! Reading the handshake thread's own socket, many messages a call.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use falconet_transport::Lane;
use quinn_udp::{RecvMeta, UdpSocketState};
use tokio::io::Interest;

use super::queues::MAX_HANDSHAKE;
use crate::socket::canonical;
use crate::stats::Counters;

/// Messages of one receive call: as many as `quinn-udp` takes.
const BATCH: usize = 32;
/// Longer than any message, so that what is too long is seen to be.
const BUFFER: usize = 256;

/// The socket that the kernel steers messages of types 1-3 to.
pub(crate) struct Intake {
    socket: tokio::net::UdpSocket,
    state: UdpSocketState,
    buffers: Vec<[u8; BUFFER]>,
    metas: [RecvMeta; BATCH],
}

impl Intake {
    pub(crate) fn new(socket: tokio::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // An aggregate would not fit the buffers, and no honest peer's messages come as one. A kernel
        // without receive offload has nothing to switch off.
        #[cfg(target_os = "linux")]
        let _ = crate::sys::set_receive_offload(&socket, false);
        Ok(Self {
            socket,
            state,
            buffers: vec![[0; BUFFER]; BATCH],
            metas: [RecvMeta::default(); BATCH],
        })
    }

    /// Reads once; returns how many messages there were, 0 if none or on an error, which is counted.
    pub(super) fn fill(&mut self, counters: &mut Counters) -> usize {
        let mut buffers = self.buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; BATCH] = std::array::from_fn(|_| {
            let buffer = buffers.next().map(|buffer| &mut buffer[..]);
            IoSliceMut::new(buffer.unwrap_or_default())
        });
        let (socket, state, metas) = (&self.socket, &self.state, &mut self.metas);
        let read = socket.try_io(Interest::READABLE, || {
            state.recv(socket.into(), &mut slices, metas)
        });
        read.unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::WouldBlock {
                counters.note_receive_error();
            }
            0
        })
    }

    /// Message `index` of the last [`Intake::fill`]; an error if it is longer than any message.
    pub(super) fn message(
        &self,
        index: usize,
        counters: &mut Counters,
    ) -> Result<(SocketAddr, &[u8]), &'static str> {
        let (Some(meta), Some(buffer)) = (self.metas.get(index), self.buffers.get(index)) else {
            return Err("handshake_length");
        };
        counters.note_received(Lane::Authenticated, 1, meta.len);
        let message = buffer
            .get(..meta.len)
            .filter(|message| message.len() <= MAX_HANDSHAKE);
        message
            .map(|message| (canonical(meta.addr), message))
            .ok_or("handshake_length")
    }

    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_recv_ready(cx).map(drop)
    }
}
