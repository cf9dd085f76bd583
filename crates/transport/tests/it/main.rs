//! Endpoints against each other in virtual time.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.
#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.

/// Whether the nodes of a network have others compute their Diffie-Hellmans: see `tests/offloaded`.
const OFFLOADED: bool = false;

mod admission;
mod caps;
mod claims;
mod clock;
mod dial_back;
mod hostile;
mod key_log;
mod limits;
mod model;
mod network;
mod records;
mod rollout;
mod secrets;
mod session;
mod strangers;
mod timers;
