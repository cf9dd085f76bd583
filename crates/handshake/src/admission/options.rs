//! What an operator can set about admission.

use crate::Admission;
use crate::admission::sources::WAYS;
use falconet_crypto::Now;
use rand_core::CryptoRng;
use std::num::NonZeroU32;
use thiserror::Error;

/// Rates and sizes of one engine's admission; a rate is also the burst of its budget, so a
/// budget that was idle admits one second's worth at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionOptions {
    pub(super) unproved: NonZeroU32,
    pub(super) proved: NonZeroU32,
    pub(super) recorded: NonZeroU32,
    pub(super) per_source: NonZeroU32,
    pub(super) replies: NonZeroU32,
    pub(super) recorded_replies: NonZeroU32,
    pub(super) sources: usize,
    threads: NonZeroU32,
}

impl Default for AdmissionOptions {
    fn default() -> Self {
        Self {
            unproved: rate(300),
            proved: rate(300),
            recorded: rate(300),
            per_source: rate(20),
            replies: rate(20_000),
            recorded_replies: rate(1_000),
            sources: 4_096,
            threads: NonZeroU32::MIN,
        }
    }
}

impl AdmissionOptions {
    /// Most entries that the table of sources may have: about 8 MiB.
    pub const MAX_SOURCES: usize = 65_536;

    /// Initiations a second from sources that proved nothing. Default 300: a few per
    /// cent of a core.
    #[must_use]
    pub fn with_unproved_per_second(self, unproved: NonZeroU32) -> Self {
        Self { unproved, ..self }
    }

    /// Initiations a second from sources that proved their address by mac2, for each of
    /// [`AdmissionOptions::with_threads`]. Default 300.
    #[must_use]
    pub fn with_proved_per_second(self, proved: NonZeroU32) -> Self {
        Self { proved, ..self }
    }

    /// Initiations a second reserved for proved addresses in known validators' records. Default 300: a
    /// network of 300 validators restarts at once.
    #[must_use]
    pub fn with_recorded_per_second(self, recorded: NonZeroU32) -> Self {
        Self { recorded, ..self }
    }

    /// Initiations a second from one proved IPv4 address or IPv6 /64. Default 20: several nodes behind one
    /// address, each at its fastest retransmission.
    #[must_use]
    pub fn with_per_source_per_second(self, per_source: NonZeroU32) -> Self {
        Self { per_source, ..self }
    }

    /// Cookie replies a second. Default 20,000: about 15 Mbit/s with all headers.
    #[must_use]
    pub fn with_cookie_replies_per_second(self, replies: NonZeroU32) -> Self {
        Self { replies, ..self }
    }

    /// Cookie replies a second to recorded addresses, apart from the others. Default 1,000.
    #[must_use]
    pub fn with_recorded_cookie_replies_per_second(self, recorded_replies: NonZeroU32) -> Self {
        Self {
            recorded_replies,
            ..self
        }
    }

    /// Sources whose limit is remembered, in entries. Default 4,096: about 0.5 MiB.
    #[must_use]
    pub fn with_sources(self, sources: usize) -> Self {
        Self { sources, ..self }
    }

    /// Threads that share the Diffie-Hellmans of this admission: the budget of proved sources is theirs
    /// together, `docs/spec/handshake.md#admission-threads`. Default 1.
    #[must_use]
    pub fn with_threads(self, threads: NonZeroU32) -> Self {
        Self { threads, ..self }
    }

    /// The budget of proved sources on all threads; `docs/spec/handshake.md#admission-threads`.
    pub(super) fn proved_on_all_threads(&self) -> NonZeroU32 {
        self.proved.saturating_mul(self.threads)
    }

    /// The admission of one engine; `rng` draws the key of its table.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] names the field that is wrong.
    pub fn build(self, now: Now, rng: &mut impl CryptoRng) -> Result<Admission, OptionsError> {
        Ok(self.check()?.build(now, rng))
    }

    /// Checks the options by themselves, before there is a clock or a generator to build with.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] names the field that is wrong.
    pub fn check(self) -> Result<CheckedOptions, OptionsError> {
        if self.per_source > self.proved {
            return Err(OptionsError::PerSource {
                per_source: self.per_source,
                proved: self.proved,
            });
        }
        if !(WAYS..=Self::MAX_SOURCES).contains(&self.sources) {
            return Err(OptionsError::Sources {
                sources: self.sources,
            });
        }
        Ok(CheckedOptions(self))
    }
}

/// Options that fit together: only [`AdmissionOptions::check`] makes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedOptions(AdmissionOptions);

impl CheckedOptions {
    /// The admission of one engine; `rng` draws the key of its table.
    pub fn build(&self, now: Now, rng: &mut impl CryptoRng) -> Admission {
        Admission::new(&self.0, now, rng)
    }
}

/// Which option is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// One source alone could use up the budget of all.
    #[error("per_source_per_second is {per_source}; it must not exceed proved_per_second ({proved})")]
    PerSource {
        /// The value given.
        per_source: NonZeroU32,
        /// The budget it exceeds.
        proved: NonZeroU32,
    },
    /// The table of sources has no useful or no affordable size.
    #[error(
        "sources is {sources}; it must be between {WAYS} and {}",
        AdmissionOptions::MAX_SOURCES
    )]
    Sources {
        /// The value given.
        sources: usize,
    },
}

/// A default, known not to be zero.
fn rate(per_second: u32) -> NonZeroU32 {
    NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN)
}
