//! The Diffie-Hellmans of admitted initiations, apart from every decision: for threads beside the engine's.
//!
//! ```text
//!              engine                          any thread
//!  admitted -> Work: identify ---------------> es, static key
//!  lookup   <- Finished <----------------------'
//!     | unknown key, and a place is free
//!     |        Work: meet -------------------> static-static
//!     |     <- Finished <----------------------'
//!  timestamp, index
//!     +------> Work: answer -----------------> ephemeral key, ee, se
//!  install  <- Finished <----------------------'
//! ```

use crate::PeerId;
use falconet_crypto::{LowOrderPoint, SecretBytes, Suite, TransportSecret};
use falconet_handshake::{
    Discard, Identified, Initiation, LocalStatic, Mac1Checked, PeerStatic, RESPONSE_LEN, SessionIndex,
    SessionKeys, Verified,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// What is left of an admitted initiation that costs Diffie-Hellmans, up to the engine's next decision;
/// `docs/spec/session.md#offload`.
///
/// It is computed with no state at all, on any thread, and handed back to
/// [`crate::Handshakes::handle_finished`]. One that is dropped instead is as if its initiation was lost.
pub struct Work {
    case: Case,
    step: Step,
}

/// The outcome of [`Work::run`], for [`crate::Handshakes::handle_finished`] of the engine it came from.
pub struct Finished {
    pub(super) case: Case,
    pub(super) outcome: Result<Outcome, Discard>,
}

/// The initiation that it is about.
pub(super) struct Case {
    pub(super) from: SocketAddr,
    pub(super) received: Instant,
    pub(super) suite: Suite,
    /// Its place among the results for the data plane, taken before the first Diffie-Hellman and given
    /// back when this is dropped, wherever that is.
    pub(super) _place: Place,
}

/// One of the places of [`Places`].
pub(super) struct Place(#[allow(dead_code)] Arc<()>); // It is counted by being there.

/// How many initiations are being worked on. Counted by what exists, so that none is lost with a thread.
#[derive(Default)]
pub(super) struct Places(Arc<()>);

impl Places {
    pub(super) fn take(&self) -> Place {
        Place(Arc::clone(&self.0))
    }

    pub(super) fn taken(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

#[allow(clippy::large_enum_variant)] // At most 64 exist.
pub(super) enum Step {
    Identify {
        local: Arc<LocalStatic>,
        initiation: Mac1Checked<Initiation>,
    },
    /// The initiator's key is not known: its static-static secret is not either.
    Meet {
        local: Arc<LocalStatic>,
        identified: Identified,
    },
    Answer {
        verified: Verified,
        answering: Answering,
        /// The bytes of the ephemeral key, from the engine's generator.
        ephemeral: SecretBytes,
    },
}

#[allow(clippy::large_enum_variant)] // As above.
pub(super) enum Outcome {
    Identified(Identified),
    Met(Identified, PeerStatic),
    Answered {
        answering: Answering,
        keys: SessionKeys,
        response: [u8; RESPONSE_LEN],
    },
}

/// Whom an answer is for. The statics say whether the handle still is that peer's when it is finished.
pub(super) struct Answering {
    pub(super) peer: PeerId,
    pub(super) statics: Arc<PeerStatic>,
    pub(super) index: SessionIndex,
    /// Which of the peer's accepted initiations this is, in the order of their timestamps.
    pub(super) turn: u64,
}

impl Work {
    pub(super) fn new(case: Case, step: Step) -> Self {
        Self { case, step }
    }

    /// Computes it: one Diffie-Hellman, or a key generation and two.
    #[must_use]
    pub fn run(self) -> Finished {
        Finished {
            case: self.case,
            outcome: self.step.run(),
        }
    }
}

impl Step {
    fn run(self) -> Result<Outcome, Discard> {
        match self {
            Self::Identify { local, initiation } => initiation.identify(&local).map(Outcome::Identified),
            Self::Meet { local, identified } => {
                let statics = PeerStatic::new(&local, *identified.peer_key(), None);
                let statics = statics.map_err(|LowOrderPoint| Discard::LowOrderPoint)?;
                Ok(Outcome::Met(identified, statics))
            }
            Self::Answer {
                verified,
                answering,
                ephemeral,
            } => {
                let ephemeral = TransportSecret::from_bytes(*ephemeral.expose());
                let (keys, response) =
                    verified.respond_with(&answering.statics, answering.index, &ephemeral)?;
                Ok(Outcome::Answered {
                    answering,
                    keys,
                    response,
                })
            }
        }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work(..)")
    }
}

impl std::fmt::Debug for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Finished(..)")
    }
}
