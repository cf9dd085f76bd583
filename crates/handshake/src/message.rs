//! The three handshake messages on the wire; layouts in `docs/spec/handshake.md`.

use crate::{Cookie, Discard, Mac1, PeerStatic, SessionIndex};
use falconet_crypto::{Suite, xchacha_open};
use std::fmt;

/// Length of message 1, in bytes.
pub const INITIATION_LEN: usize = 148;
/// Length of message 2, in bytes.
pub const RESPONSE_LEN: usize = 92;
/// Length of message 3, in bytes.
pub const COOKIE_REPLY_LEN: usize = 64;

pub(crate) const TYPE_INITIATION: u8 = 1;
pub(crate) const TYPE_RESPONSE: u8 = 2;
pub(crate) const TYPE_COOKIE_REPLY: u8 = 3;

/// A datagram that has the shape of a handshake message. Nothing in it is trusted.
#[derive(Debug)]
pub enum Message {
    /// Type 1, initiator to responder.
    Initiation(Initiation),
    /// Type 2, responder to initiator.
    Response(Response),
    /// Type 3, in place of an answer when the other side is under load.
    CookieReply(CookieReply),
}

impl Message {
    /// Checks length, type, suite and reserved bytes; `docs/spec/handshake.md#parse`.
    ///
    /// # Errors
    ///
    /// [`Discard::Length`], [`Discard::Type`], [`Discard::ReservedBytes`] or [`Discard::UnknownSuite`].
    pub fn parse(datagram: &[u8]) -> Result<Self, Discard> {
        match *datagram.first().ok_or(Discard::Length)? {
            TYPE_INITIATION => {
                let bytes: [u8; INITIATION_LEN] = exactly(datagram)?;
                let suite = parse_suite(&bytes)?;
                Ok(Self::Initiation(Initiation { suite, bytes }))
            }
            TYPE_RESPONSE => {
                let bytes: [u8; RESPONSE_LEN] = exactly(datagram)?;
                let suite = parse_suite(&bytes)?;
                Ok(Self::Response(Response { suite, bytes }))
            }
            TYPE_COOKIE_REPLY => {
                let bytes: [u8; COOKIE_REPLY_LEN] = exactly(datagram)?;
                if bytes[1..4] != [0; 3] {
                    return Err(Discard::ReservedBytes);
                }
                Ok(Self::CookieReply(CookieReply { bytes }))
            }
            _ => Err(Discard::Type),
        }
    }
}

/// Message 1: the initiator's ephemeral key, its encrypted static key and an encrypted timestamp.
pub struct Initiation {
    suite: Suite,
    bytes: [u8; INITIATION_LEN],
}

impl Initiation {
    pub(crate) const SENDER: usize = 4;
    pub(crate) const EPHEMERAL: usize = 8;
    pub(crate) const STATIC: usize = 40;
    pub(crate) const STATIC_TAG: usize = 72;
    pub(crate) const TIMESTAMP: usize = 88;
    pub(crate) const TIMESTAMP_TAG: usize = 100;
    pub(crate) const MAC1: usize = 116;

    /// The suite the initiator asks for.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The index the initiator chose for the session.
    pub fn sender(&self) -> SessionIndex {
        index(&self.bytes, Self::SENDER)
    }

    pub(crate) fn bytes(&self) -> &[u8; INITIATION_LEN] {
        &self.bytes
    }
}

/// Message 2: the responder's ephemeral key and an encrypted nothing, which proves who it is.
pub struct Response {
    suite: Suite,
    bytes: [u8; RESPONSE_LEN],
}

impl Response {
    pub(crate) const SENDER: usize = 4;
    pub(crate) const RECEIVER: usize = 8;
    pub(crate) const EPHEMERAL: usize = 12;
    pub(crate) const EMPTY_TAG: usize = 44;
    pub(crate) const MAC1: usize = 60;

    /// The suite, which must be the initiation's.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The index the responder chose for the session.
    pub fn sender(&self) -> SessionIndex {
        index(&self.bytes, Self::SENDER)
    }

    /// The index of the initiation that this answers.
    pub fn receiver(&self) -> SessionIndex {
        index(&self.bytes, Self::RECEIVER)
    }

    pub(crate) fn bytes(&self) -> &[u8; RESPONSE_LEN] {
        &self.bytes
    }
}

/// Message 3: a cookie, encrypted under the sender's public key and bound to the mac1 it answers.
pub struct CookieReply {
    bytes: [u8; COOKIE_REPLY_LEN],
}

impl CookieReply {
    pub(crate) const RECEIVER: usize = 4;
    pub(crate) const NONCE: usize = 8;
    pub(crate) const COOKIE: usize = 32;
    pub(crate) const COOKIE_TAG: usize = 48;

    /// The sender index of the message that this answers.
    pub fn receiver(&self) -> SessionIndex {
        index(&self.bytes, Self::RECEIVER)
    }

    /// Opens the cookie that `peer` sent in answer to our message with `mac1`.
    ///
    /// Works for both of our messages: a responder under load is answered at message 1
    /// ([`crate::PendingInitiation::open_cookie_reply`]), an initiator under load at message 2.
    /// `docs/spec/handshake.md#cookie-reply`.
    ///
    /// # Errors
    ///
    /// [`Discard::BadCookie`] if it was not made with that mac1 in hand.
    pub fn open(&self, peer: &PeerStatic, mac1: &Mac1) -> Result<Cookie, Discard> {
        let mut cookie: [u8; 16] = array(&self.bytes, Self::COOKIE);
        let nonce: [u8; 24] = array(&self.bytes, Self::NONCE);
        let tag: [u8; 16] = array(&self.bytes, Self::COOKIE_TAG);
        xchacha_open(peer.cookie_key(), &nonce, mac1.as_bytes(), &mut cookie, &tag)
            .map_err(|_| Discard::BadCookie)?;
        Ok(Cookie::new(cookie))
    }
}

impl fmt::Debug for Initiation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiation")
            .field("suite", &self.suite)
            .field("sender", &self.sender())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("suite", &self.suite)
            .field("sender", &self.sender())
            .field("receiver", &self.receiver())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CookieReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieReply")
            .field("receiver", &self.receiver())
            .finish_non_exhaustive()
    }
}

/// The `N` bytes of `message` from `at`; both are constants of a layout, so they fit.
pub(crate) fn array<const N: usize>(message: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&message[at..at + N]);
    field
}

fn index(message: &[u8], at: usize) -> SessionIndex {
    SessionIndex::from_le_bytes(array(message, at))
}

fn exactly<const N: usize>(datagram: &[u8]) -> Result<[u8; N], Discard> {
    datagram.try_into().map_err(|_| Discard::Length)
}

/// The first reserved byte is the suite, the other two stay zero; `docs/spec/handshake.md#suite-byte`.
fn parse_suite(message: &[u8]) -> Result<Suite, Discard> {
    if message[2..4] != [0; 2] {
        return Err(Discard::ReservedBytes);
    }
    Suite::from_id(message[1]).ok_or(Discard::UnknownSuite)
}
