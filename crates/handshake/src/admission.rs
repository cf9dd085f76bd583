//! Admission: which initiations may cost a Diffie-Hellman, decided before any key is used.
//!
//! ```text
//!  Mac1Checked<Initiation> + source address
//!      | mac2 valid?
//!      +-- yes -> limit of its source -> recorded budget (if recorded) -> proved budget -> Admit
//!      |               | over                                               | over
//!      |               v                                                    v
//!      |             Drop                                                 Drop
//!      +-- no --> unproved budget (unless under load) -> Admit
//!                      | over
//!                      v
//!                  cookie-reply budget, sampled -> CookieReply or Drop
//! ```
//!
//! Responses to our own initiations never come here: their receiver index names a pending handshake, and
//! a flood of strangers must not use up their turn. The rules are in
//! `docs/spec/handshake.md#admission-order`.
//!
//! One [`Admission`] belongs to one engine, whatever the number of threads that work for it. All of its memory is taken when it is built.

use crate::admission::limiter::{HandedClock, Limiter, limiter};
use crate::admission::replies::ReplyBudget;
use crate::admission::sources::SourceTable;
use falconet_crypto::Now;
use rand_core::CryptoRng;
use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

mod limiter;
mod options;
mod refusal;
mod replies;
mod sources;

#[cfg(test)]
mod tests;

pub use options::{AdmissionOptions, CheckedOptions, OptionsError};
pub use refusal::Refusal;

/// What is known about an initiation before any key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The source proved its address: [`crate::CookieJar::mac2_valid`].
    pub mac2_valid: bool,
    /// The source address stands in a known validator's record. It may be spoofed until mac2 proves it.
    pub recorded: bool,
    /// This thread is past its share of a core, so that every source has to prove its address first.
    pub under_load: bool,
}

/// The budget that an admitted initiation was charged to, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A recorded address, proved by mac2.
    Recorded,
    /// An address proved by mac2.
    Proved,
    /// An address that nothing vouches for.
    Unproved,
}

/// What to do with an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on to [`crate::Mac1Checked::identify`].
    Admit(Class),
    /// Answer with [`crate::CookieJar::reply`] and forget the message.
    CookieReply,
    /// Drop it and count the reason.
    Drop(Refusal),
}

/// Budgets of one engine; [`AdmissionOptions::build`] makes one.
pub struct Admission {
    clock: HandedClock,
    start: Instant,
    recorded: Limiter,
    proved: Limiter,
    unproved: Limiter,
    sources: SourceTable,
    recorded_replies: ReplyBudget,
    replies: ReplyBudget,
}

impl Admission {
    /// Decides on one initiation from `from`, in the order of `docs/spec/handshake.md#admission-order`.
    ///
    /// Allocates nothing. A refused message has spent nothing of a class better than its own.
    pub fn admit(
        &mut self,
        now: Now,
        from: SocketAddr,
        evidence: Evidence,
        rng: &mut impl CryptoRng,
    ) -> Decision {
        self.clock.set(now.instant.saturating_duration_since(self.start));
        if evidence.mac2_valid {
            self.admit_proved(from, evidence.recorded)
        } else if !evidence.under_load && self.unproved.check().is_ok() {
            Decision::Admit(Class::Unproved)
        } else {
            self.reply(evidence.recorded, rng)
        }
    }

    /// How often a source was forgotten to make room for another, since the start.
    pub fn evicted_sources(&self) -> u64 {
        self.sources.evicted()
    }

    /// `docs/spec/handshake.md#admission-classes`: a recorded address has its own budget first, and shares
    /// that of the proved ones after.
    fn admit_proved(&mut self, from: SocketAddr, recorded: bool) -> Decision {
        if !self.sources.admits(from.ip(), &self.clock) {
            Decision::Drop(Refusal::SourceLimit)
        } else if recorded && self.recorded.check().is_ok() {
            Decision::Admit(Class::Recorded)
        } else if self.proved.check().is_ok() {
            Decision::Admit(Class::Proved)
        } else {
            Decision::Drop(Refusal::ProvedBudget)
        }
    }

    fn reply(&mut self, recorded: bool, rng: &mut impl CryptoRng) -> Decision {
        let budget = if recorded {
            &mut self.recorded_replies
        } else {
            &mut self.replies
        };
        match budget.spend(&self.clock, rng) {
            Ok(()) => Decision::CookieReply,
            Err(refusal) => Decision::Drop(refusal),
        }
    }

    fn new(options: &AdmissionOptions, now: Now, rng: &mut impl CryptoRng) -> Self {
        let clock = HandedClock::default();
        let proved = options.proved_on_all_threads();
        Self {
            recorded: limiter(options.recorded, options.recorded, &clock),
            proved: limiter(proved, proved, &clock),
            unproved: limiter(options.unproved, options.unproved, &clock),
            sources: SourceTable::new(options.sources, options.per_source, rng),
            recorded_replies: ReplyBudget::new(options.recorded_replies, &clock),
            replies: ReplyBudget::new(options.replies, &clock),
            start: now.instant,
            clock,
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("evicted_sources", &self.evicted_sources())
            .finish_non_exhaustive()
    }
}
