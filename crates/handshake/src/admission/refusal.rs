//! Why an initiation was not admitted.

use thiserror::Error;

/// Why an initiation was not admitted; [`Refusal::label`] is the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This IPv4 address or IPv6 /64 sends more initiations than one source may.
    #[error("the source sends too many initiations")]
    SourceLimit,
    /// The sources that proved their address send more than this thread may work on.
    #[error("too many initiations from proved addresses")]
    ProvedBudget,
    /// A cookie reply was due, and chance gave it to another of the many sources that were due one.
    #[error("cookie reply not drawn")]
    ReplySampled,
    /// A cookie reply was due, and the cap on replies is reached.
    #[error("too many cookie replies")]
    ReplyBudget,
}

impl Refusal {
    /// Every reason, for registering metrics up front.
    pub const ALL: [Self; 4] = [
        Self::SourceLimit,
        Self::ProvedBudget,
        Self::ReplySampled,
        Self::ReplyBudget,
    ];

    /// The metric label: stable, lower case, distinct from those of [`crate::Discard`].
    pub const fn label(self) -> &'static str {
        match self {
            Self::SourceLimit => "source_limit",
            Self::ProvedBudget => "proved_budget",
            Self::ReplySampled => "cookie_reply_sampled",
            Self::ReplyBudget => "cookie_reply_budget",
        }
    }
}
