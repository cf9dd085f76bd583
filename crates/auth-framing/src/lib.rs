//! The frame around every authenticated datagram: 16 bytes of header, 16 bytes of tag.
//!
//! A [`Sealer`] and an [`Opener`] hold one direction of one session each. Both work in place on the
//! caller's buffer, allocate nothing, read no clock and draw no randomness; what they enforce is
//! written down in `docs/spec/framing.md`.
//!
//! ```text
//!  datagram    0         4          8          16                 16+n        32+n
//!              | type,   | receiver | counter  | plaintext, in    | tag       |
//!              | 3 zeros | index    |          | place encrypted  |           |
//!
//!  received --Header::parse--> Header --find the session--> Opener::open --> Opened
//!                 |                                            |
//!                 v                                            v
//!              Discard                             Discard (window untouched)
//! ```
//!
//! The order in [`Opener::open`] is fixed: counter limit, replay window, tag, and only then is the
//! counter marked. A forged datagram therefore costs at most one tag check and changes nothing.
//!
//! # Provided
//!
//! - confidentiality and authenticity of each datagram under the session's key;
//! - at most one delivery of each counter, and of none older than [`REPLAY_WINDOW`] counters;
//! - a counter that never repeats under one key, and a stop at each suite's message limit.
//!
//! # Not provided
//!
//! - no order, no retransmission, and no padding: the length of the plaintext is visible;
//! - no meaning of the plaintext, and no timers: `falconet-transport` has both;
//! - no lookup from receiver index to session.
//!
//! # Example
//!
//! ```
//! use falconet_auth_framing::{HEADER_LEN, Header, OVERHEAD, Opener, Sealer, SessionIndex};
//! use falconet_crypto::{SecretBytes, Suite};
//!
//! let key = SecretBytes::new([7; 32]);
//! let mut sealer = Sealer::new(Suite::ChaCha20Poly1305, &key, SessionIndex::new(42));
//! let mut opener = Opener::new(Suite::ChaCha20Poly1305, &key);
//!
//! let mut datagram = vec![0; 5 + OVERHEAD];
//! datagram[HEADER_LEN..HEADER_LEN + 5].copy_from_slice(b"hello");
//! sealer.seal(&mut datagram)?;
//!
//! let header = Header::parse(&datagram)?;
//! assert_eq!(header.receiver, SessionIndex::new(42));
//! let opened = opener.open(header, &mut datagram)?;
//! assert_eq!(&datagram[HEADER_LEN..HEADER_LEN + opened.len], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counter;
mod discard;
mod header;
mod open;
mod replay;
mod seal;

#[cfg(test)]
mod tests;

pub use counter::{Counter, Limits};
pub use discard::Discard;
pub use falconet_crypto::SessionIndex;
pub use header::{HEADER_LEN, Header, MESSAGE_TYPE_DATA, OVERHEAD, TAG_LEN};
pub use open::{Opened, Opener};
pub use replay::REPLAY_WINDOW;
pub use seal::{SealError, Sealer};
