//! WireGuard's handshake, Noise `IKpsk2`, as pure functions over consuming types.
//!
//! Nothing here holds a socket, a clock, a lock or a source of randomness. No message makes anything
//! allocate: messages are fixed arrays, tables have their size from the start, and every random byte
//! comes from the generator the caller passes. The rules are in `docs/spec/handshake.md`.
//!
//! A received message walks through types, and each step is only reachable through the one before:
//!
//! ```text
//!  responder   datagram -Message::parse-> Initiation -check_mac1-> Mac1Checked<Initiation>
//!                                                                     | (mac2, budgets: no key used yet)
//!                                                                     | identify        1 DH
//!                                                                     v
//!              92 bytes + SessionKeys <-respond (2 DH)- Verified <-verify- Identified
//!
//!  initiator   PendingInitiation::new -> 148 bytes
//!              datagram -Message::parse-> Response -check_mac1-> Mac1Checked<Response>
//!                                                                     | &PendingInitiation::open_response
//!                                                                     v
//!                                                                 SessionKeys
//! ```
//!
//! [`PendingInitiation::open_response`] borrows: a forged response leaves the pending handshake as it
//! was. Whatever is derived once is kept: [`LocalStatic`] and [`PeerStatic`] hold the initial hashes of
//! each suite, the mac keys, and the static-static secret, so that a responder spends one
//! Diffie-Hellman before it knows that the message is genuine.
//!
//! # Provided
//!
//! - mutual authentication, forward secrecy and identity hiding as the Noise specification grades
//!   `IKpsk2`; for suite 0 these are WireGuard's, whose handshake is formally verified;
//! - silence: nothing is answered without a valid mac1, which takes knowing our public key;
//! - cookies, so that under load a source must prove that it receives at its address and port;
//! - [`Admission`]: budgets by class and source that are spent before any key is used;
//! - zeroized chaining keys, ephemerals and session keys.
//!
//! # Not provided
//!
//! - protection from replayed initiations: the caller compares [`Verified::timestamp`] with the
//!   greatest it has seen from that peer before it responds;
//! - timers, retries and the cache of cookies: `falconet-transport` has them;
//! - a formal proof for suite 1: it differs in the AEAD and in the name that is hashed.
//!
//! # Example
//!
//! ```
//! use falconet_crypto::{Suite, Tai64N, TransportSecret};
//! use falconet_handshake::{LocalStatic, Message, PeerStatic, PendingInitiation, SessionIndex};
//! use rand_chacha::ChaCha20Rng;
//! use rand_core::SeedableRng;
//! use std::time::Duration;
//!
//! let mut rng = ChaCha20Rng::seed_from_u64(1);
//! let alice = LocalStatic::new(TransportSecret::generate(&mut rng));
//! let bob = LocalStatic::new(TransportSecret::generate(&mut rng));
//! let to_bob = PeerStatic::new(&alice, *bob.public(), None).unwrap();
//! let to_alice = PeerStatic::new(&bob, *alice.public(), None).unwrap();
//!
//! let now = Tai64N::from_unix(Duration::from_secs(1_700_000_000));
//! let suite = Suite::ChaCha20Poly1305;
//! let (pending, initiation) =
//!     PendingInitiation::new(&alice, &to_bob, suite, SessionIndex::new(1), now, None, &mut rng)?;
//!
//! // Bob:
//! let Message::Initiation(message) = Message::parse(&initiation)? else { unreachable!() };
//! let identified = message.check_mac1(&bob)?.identify(&bob)?;
//! assert_eq!(identified.peer_key(), alice.public());
//! let verified = identified.verify(&to_alice)?;
//! assert_eq!(verified.timestamp(), now);
//! let (bobs, response) = verified.respond(&to_alice, SessionIndex::new(2), &mut rng)?;
//!
//! // Alice:
//! let Message::Response(message) = Message::parse(&response)? else { unreachable!() };
//! let alices = pending.open_response(&alice, &to_bob, &message.check_mac1(&alice)?)?;
//! assert_eq!(alices.send, bobs.receive);
//! assert_eq!(alices.receive, bobs.send);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod cookie;
mod discard;
mod initiator;
mod key_log;
mod keys;
mod mac;
mod message;
mod noise;
mod responder;
mod session;

#[cfg(test)]
mod tests;

pub use admission::{
    Admission, AdmissionOptions, CheckedOptions, Class, Decision, Evidence, OptionsError, Refusal,
};
pub use cookie::{COOKIE_LIFETIME, Cookie, CookieJar};
pub use discard::{Discard, HandshakeError};
pub use falconet_crypto::SessionIndex;
pub use initiator::PendingInitiation;
pub use keys::{LocalStatic, PeerStatic};
pub use mac::{Mac1, Mac1Checked, MacProtected};
pub use message::{
    COOKIE_REPLY_LEN, CookieReply, INITIATION_LEN, Initiation, Message, RESPONSE_LEN, Response,
};
pub use responder::{Identified, Verified};
pub use session::{Role, SessionKeys};
