//! The 16-byte header; layout in `docs/spec/framing.md#data-message`.

use crate::{Counter, Discard, SessionIndex};

/// Bytes before the plaintext.
pub const HEADER_LEN: usize = 16;
/// Bytes after the plaintext.
pub const TAG_LEN: usize = falconet_crypto::TAG_LEN;
/// What the frame adds to a plaintext: header and tag. No padding is added.
/// `docs/spec/framing.md#overhead`.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;
/// First byte of a data message.
pub const MESSAGE_TYPE_DATA: u8 = 4;

/// A parsed data header. The datagram it came from is at least [`OVERHEAD`] bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The receiver's name for the session.
    pub receiver: SessionIndex,
    /// The datagram's counter, not yet checked against anything.
    pub counter: Counter,
}

impl Header {
    /// Reads the header of `datagram`; `docs/spec/framing.md#parse`.
    ///
    /// # Errors
    ///
    /// [`Discard::Truncated`], [`Discard::NotData`] or [`Discard::ReservedBytes`].
    #[inline]
    pub fn parse(datagram: &[u8]) -> Result<Self, Discard> {
        if datagram.len() < OVERHEAD {
            return Err(Discard::Truncated);
        }
        let &[
            kind,
            r0,
            r1,
            r2,
            i0,
            i1,
            i2,
            i3,
            c0,
            c1,
            c2,
            c3,
            c4,
            c5,
            c6,
            c7,
            ..,
        ] = datagram
        else {
            return Err(Discard::Truncated);
        };
        if kind != MESSAGE_TYPE_DATA {
            return Err(Discard::NotData);
        }
        if [r0, r1, r2] != [0; 3] {
            return Err(Discard::ReservedBytes);
        }
        Ok(Self {
            receiver: SessionIndex::from_le_bytes([i0, i1, i2, i3]),
            counter: Counter::new(u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7])),
        })
    }

    /// The header as it stands on the wire; the inverse of [`Header::parse`].
    #[inline]
    pub fn encode(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = MESSAGE_TYPE_DATA;
        bytes[4..8].copy_from_slice(&self.receiver.to_le_bytes());
        bytes[8..].copy_from_slice(&self.counter.value().to_le_bytes());
        bytes
    }
}
