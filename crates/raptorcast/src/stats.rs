//! Counters of an engine: plain fields, read by whoever exports them.

use crate::discard::Discard;

/// What an engine has done since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Messages we published.
    pub broadcasts: u64,
    /// Chunks handed in.
    pub chunks_received: u64,
    /// Chunks that carried a new valid symbol.
    pub chunks_accepted: u64,
    /// Bytes of those.
    pub bytes_accepted: u64,
    /// Symbols queued for rebroadcast.
    pub chunks_relayed: u64,
    /// Symbols not relayed because the queue was full.
    pub relays_dropped: u64,
    /// Symbols not relayed because their author's budget was spent.
    pub relays_over_budget: u64,
    /// Symbols not relayed because not all members are known to accept their version.
    pub relays_unknown_version: u64,
    /// Repair requests sent.
    pub repairs_asked: u64,
    /// Symbols sent to answer repair requests.
    pub repairs_answered: u64,
    /// Symbols taken as answers to repair requests.
    pub repairs_taken: u64,
    /// Signatures checked.
    pub signatures_checked: u64,
    /// Attempts to decode.
    pub decode_attempts: u64,
    /// Attempts put off because their author's budget was spent.
    pub decodes_postponed: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages whose re-encoding had another root.
    pub tainted: u64,
    /// Messages given up.
    pub expired: u64,
    /// Rounds in which an author signed two commitments.
    pub equivocations: u64,
    /// Events that nobody polled in time.
    pub events_dropped: u64,
    discards: Discards,
}

/// One counter a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Discards([u64; Discard::ALL.len()]);

impl Default for Discards {
    fn default() -> Self {
        Self([0; Discard::ALL.len()])
    }
}

impl Stats {
    /// Chunks dropped for this reason.
    pub fn discarded(&self, reason: Discard) -> u64 {
        self.discards.0[reason as usize]
    }

    /// Every reason that occurred, and how often.
    pub fn discards(&self) -> impl Iterator<Item = (Discard, u64)> {
        Discard::ALL
            .iter()
            .map(|&reason| (reason, self.discarded(reason)))
            .filter(|(_, count)| *count > 0)
    }

    pub(crate) fn count_discard(&mut self, reason: Discard) {
        self.discards.0[reason as usize] += 1;
    }
}
