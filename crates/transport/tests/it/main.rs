//! Endpoints against each other in virtual time.

mod network;
mod session;
