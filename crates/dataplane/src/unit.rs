//! A GSO group on its way to the kernel.

use std::net::SocketAddr;

use falconet_transport::Lane;

/// Most segments in one group: 44 of 1,472 bytes fill a UDP datagram's 64 KiB.
pub(crate) const MAX_SEGMENTS: usize = 44;
/// Most bytes in one group: what one UDP send over IPv4 carries.
pub(crate) const MAX_UNIT_BYTES: usize = 65_507;

/// Datagrams of one length for one address, one behind the other; only the last may be shorter.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) lane: Lane,
    pub(crate) to: SocketAddr,
    segment: usize,
    bytes: Vec<u8>,
    sent: usize,
}

impl Unit {
    /// A group of the datagrams in `bytes`, each of `segment` bytes (at least 1).
    pub(crate) fn new(lane: Lane, to: SocketAddr, segment: usize, bytes: Vec<u8>) -> Unit {
        Unit {
            lane,
            to,
            segment: segment.max(1),
            bytes,
            sent: 0,
        }
    }

    /// Length of every datagram but the last.
    pub(crate) fn segment(&self) -> usize {
        self.segment
    }

    /// Datagrams that have not left.
    pub(crate) fn remaining_datagrams(&self) -> usize {
        self.remaining().len().div_ceil(self.segment)
    }

    /// The bytes of the datagrams that have not left.
    pub(crate) fn remaining(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// The next datagram alone.
    pub(crate) fn next_datagram(&self) -> &[u8] {
        let rest = self.remaining();
        rest.get(..self.segment).unwrap_or(rest)
    }

    /// `bytes` more have left or were given up.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.bytes.len());
    }

    /// Keeps the datagrams for which `keep` says so, each asked once in order; returns how many went.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut() -> bool) -> usize {
        let (mut read, mut write, mut lost) = (self.sent, self.sent, 0);
        while read < self.bytes.len() {
            let end = (read + self.segment).min(self.bytes.len());
            if keep() {
                self.bytes.copy_within(read..end, write);
                write += end - read;
            } else {
                lost += 1;
            }
            read = end;
        }
        self.bytes.truncate(write);
        lost
    }

    /// The buffer, for the next group.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(segments: usize, tail: usize) -> Unit {
        let mut bytes = Vec::new();
        for i in 0..segments {
            bytes.extend_from_slice(&[i as u8; 10]);
        }
        bytes.extend(std::iter::repeat_n(0xff, tail));
        Unit::new(Lane::Plain, "127.0.0.1:9".parse().unwrap(), 10, bytes)
    }

    #[test]
    fn losing_any_datagrams_leaves_a_valid_group() {
        let mut group = unit(4, 3);
        let mut verdicts = [true, false, true, false, true].into_iter();
        assert_eq!(group.retain(|| verdicts.next().unwrap()), 2);
        assert_eq!(group.remaining_datagrams(), 3);
        let mut expected = vec![0; 10];
        expected.extend([2; 10]);
        expected.extend([0xff; 3]);
        assert_eq!(group.remaining(), expected);
    }

    #[test]
    fn advances_datagram_by_datagram() {
        let mut group = unit(1, 3);
        assert_eq!(group.remaining_datagrams(), 2);
        assert_eq!(group.next_datagram(), [0; 10]);
        group.advance(10);
        assert_eq!(group.next_datagram(), [0xff; 3]);
        group.advance(3);
        assert_eq!(group.remaining_datagrams(), 0);
        assert!(group.next_datagram().is_empty());
    }
}
