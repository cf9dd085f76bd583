//! Why a data datagram was dropped.

use thiserror::Error;

/// Why a data datagram was dropped; [`Discard::label`] is the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Discard {
    /// Shorter than header and tag together.
    #[error("shorter than header and tag")]
    Truncated,
    /// The type byte is not 4.
    #[error("not a data message")]
    NotData,
    /// One of the three bytes after the type is not zero.
    #[error("reserved bytes are not zero")]
    ReservedBytes,
    /// The counter is at or past the suite's message limit.
    #[error("counter past the limit of the suite")]
    CounterLimit,
    /// This counter was already opened.
    #[error("counter seen before")]
    Replayed,
    /// The counter has fallen out of the replay window.
    #[error("counter older than the replay window")]
    TooOld,
    /// The tag does not authenticate header counter and ciphertext under this key.
    #[error("tag does not verify")]
    BadTag,
}

impl Discard {
    /// Every reason, for registering metrics up front.
    pub const ALL: [Self; 7] = [
        Self::Truncated,
        Self::NotData,
        Self::ReservedBytes,
        Self::CounterLimit,
        Self::Replayed,
        Self::TooOld,
        Self::BadTag,
    ];

    /// The metric label: stable, lower case, unique among the reasons of this crate.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NotData => "not_data",
            Self::ReservedBytes => "reserved_bytes",
            Self::CounterLimit => "counter_limit",
            Self::Replayed => "replayed",
            Self::TooOld => "too_old",
            Self::BadTag => "bad_tag",
        }
    }
}
