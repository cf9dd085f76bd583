//! All tests of networks once more, with the Diffie-Hellmans of initiations computed apart from the engines
//! and finished in any order; `docs/spec/session.md#offload`.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.
#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.
#![allow(clippy::duplicate_mod)] // The network of all these files is the same.

const OFFLOADED: bool = true;

#[path = "../it/admission.rs"]
mod admission;
#[path = "../it/caps.rs"]
mod caps;
#[path = "../it/claims.rs"]
mod claims;
#[path = "../it/clock.rs"]
mod clock;
#[path = "../it/dial_back.rs"]
mod dial_back;
#[path = "../it/hostile.rs"]
mod hostile;
#[path = "../it/limits.rs"]
mod limits;
#[path = "../it/model.rs"]
mod model;
#[path = "../it/network.rs"]
mod network;
mod races;
#[path = "../it/records.rs"]
mod records;
#[path = "../it/rollout.rs"]
mod rollout;
#[path = "../it/session.rs"]
mod session;
#[path = "../it/strangers.rs"]
mod strangers;
#[path = "../it/timers.rs"]
mod timers;
#[path = "../what_bit_others.rs"]
mod what_bit_others;
