//! TAI64N timestamps, as WireGuard's first message carries them.

use std::time::Duration;

/// Bytes of a TAI64N label.
pub const TAI64N_LEN: usize = 12;

/// Second 0 of the Unix epoch in TAI64: 2^62 + 10 (<https://cr.yp.to/libtai/tai64.html>).
const UNIX_EPOCH: u64 = 0x4000_0000_0000_000a;
const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// A TAI64N label: 8 bytes of seconds and 4 of nanoseconds, big-endian, so that the order of the
/// bytes is the order of time.
///
/// As in WireGuard, leap seconds are not applied: the label only has to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tai64N([u8; TAI64N_LEN]);

impl Tai64N {
    /// The label of a time since the Unix epoch.
    #[must_use]
    pub fn from_unix(since_epoch: Duration) -> Self {
        Self::from_parts(
            UNIX_EPOCH.saturating_add(since_epoch.as_secs()),
            since_epoch.subsec_nanos(),
        )
    }

    /// A label as received. Any 12 bytes are accepted: a label is compared, never interpreted.
    #[must_use]
    pub fn from_bytes(bytes: [u8; TAI64N_LEN]) -> Self {
        Self(bytes)
    }

    /// The 12 bytes of the wire.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; TAI64N_LEN] {
        &self.0
    }

    /// The next representable label after this one: strictly greater, except after the very last.
    #[must_use]
    pub fn next(self) -> Self {
        let (seconds, nanos) = self.parts();
        match nanos.checked_add(1) {
            Some(nanos) if nanos < NANOS_PER_SECOND => Self::from_parts(seconds, nanos),
            _ => match seconds.checked_add(1) {
                Some(seconds) => Self::from_parts(seconds, 0),
                None => Self([0xff; TAI64N_LEN]),
            },
        }
    }

    fn from_parts(seconds: u64, nanos: u32) -> Self {
        let mut bytes = [0; TAI64N_LEN];
        bytes[..8].copy_from_slice(&seconds.to_be_bytes());
        bytes[8..].copy_from_slice(&nanos.to_be_bytes());
        Self(bytes)
    }

    fn parts(self) -> (u64, u32) {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.0;
        (
            u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            u32::from_be_bytes([i, j, k, l]),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_label() {
        let label = Tai64N::from_unix(Duration::new(1, 2));
        assert_eq!(hex::encode(label.as_bytes()), "400000000000000b00000002");
    }

    #[test]
    fn next_carries_into_seconds() {
        let last = Tai64N::from_unix(Duration::new(5, 999_999_999));
        assert_eq!(last.next(), Tai64N::from_unix(Duration::from_secs(6)));
    }

    #[test]
    fn the_last_label_has_no_successor() {
        let last = Tai64N::from_bytes([0xff; TAI64N_LEN]);
        assert_eq!(last.next(), last);
        assert_eq!(Tai64N::from_unix(Duration::MAX).next().next().parts().0, u64::MAX);
    }

    proptest! {
        #[test]
        fn order_of_labels_is_order_of_time(a in 0u64..1 << 40, n in 0u32..1_000_000_000,
                                            b in 0u64..1 << 40, m in 0u32..1_000_000_000) {
            let (s, t) = (Duration::new(a, n), Duration::new(b, m));
            prop_assert_eq!(s.cmp(&t), Tai64N::from_unix(s).cmp(&Tai64N::from_unix(t)));
        }

        #[test]
        fn next_is_greater_also_for_foreign_labels(bytes: [u8; TAI64N_LEN]) {
            prop_assume!(bytes != [0xff; TAI64N_LEN] && bytes[..8] != [0xff; 8]);
            let label = Tai64N::from_bytes(bytes);
            prop_assert!(label.next() > label);
        }
    }
}
