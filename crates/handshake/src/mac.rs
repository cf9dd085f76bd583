//! mac1 and mac2: who may cost us a Diffie-Hellman, and from where.

use crate::message::array;
use crate::{Cookie, Discard, Initiation, LocalStatic, RESPONSE_LEN, Response, SessionIndex};
use falconet_crypto::{blake2s_mac, ct_eq};
use std::ops::Deref;

/// Length of mac1 and of mac2, in bytes.
pub(crate) const MAC_LEN: usize = 16;

/// The mac1 of a message we sent: a cookie reply to it is bound to these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac1([u8; MAC_LEN]);

impl Mac1 {
    /// The mac1 of a response of ours, to keep for [`crate::CookieReply::open`].
    pub fn of_response(response: &[u8; RESPONSE_LEN]) -> Self {
        Self(array(response, Response::MAC1))
    }

    pub(crate) fn of(message: &[u8]) -> Self {
        Self(array(message, message.len() - 2 * MAC_LEN))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; MAC_LEN] {
        &self.0
    }
}

/// A message that ends in mac1 and mac2: [`Initiation`] or [`Response`].
pub trait MacProtected: private::Bytes {
    /// The index its sender chose, which a cookie reply must name.
    fn sender(&self) -> SessionIndex;
}

mod private {
    /// Seals the trait: the layout is known for our two messages only.
    pub trait Bytes {
        fn message(&self) -> &[u8];
    }
}

impl private::Bytes for Initiation {
    fn message(&self) -> &[u8] {
        self.bytes()
    }
}

impl MacProtected for Initiation {
    fn sender(&self) -> SessionIndex {
        Self::sender(self)
    }
}

impl private::Bytes for Response {
    fn message(&self) -> &[u8] {
        self.bytes()
    }
}

impl MacProtected for Response {
    fn sender(&self) -> SessionIndex {
        Self::sender(self)
    }
}

/// Proof that mac1 was checked: only the checker builds it.
#[derive(Debug)]
pub struct Mac1Checked<M>(M);

impl<M> Deref for Mac1Checked<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M: MacProtected> Mac1Checked<M> {
    pub(crate) fn mac1(&self) -> Mac1 {
        Mac1::of(self.0.message())
    }

    /// Whether the sender put a mac2 into the message at all.
    pub fn has_mac2(&self) -> bool {
        !ct_eq(&self.mac2(), &[0; MAC_LEN])
    }

    /// Whether mac2 was made with `cookie`; `docs/spec/handshake.md#mac2`.
    pub(crate) fn mac2_matches(&self, cookie: &Cookie) -> bool {
        let (covered, _) = self.0.message().split_at(self.0.message().len() - MAC_LEN);
        ct_eq(&blake2s_mac(cookie.as_bytes(), &[covered]), &self.mac2())
    }

    fn mac2(&self) -> [u8; MAC_LEN] {
        let message = self.0.message();
        array(message, message.len() - MAC_LEN)
    }
}

impl Initiation {
    /// Checks that the sender knows our public key; `docs/spec/handshake.md#mac1`.
    ///
    /// # Errors
    ///
    /// [`Discard::Mac1`].
    pub fn check_mac1(self, local: &LocalStatic) -> Result<Mac1Checked<Self>, Discard> {
        check_mac1(self, local)
    }
}

impl Response {
    /// Checks that the sender knows our public key; `docs/spec/handshake.md#mac1`.
    ///
    /// # Errors
    ///
    /// [`Discard::Mac1`].
    pub fn check_mac1(self, local: &LocalStatic) -> Result<Mac1Checked<Self>, Discard> {
        check_mac1(self, local)
    }
}

fn check_mac1<M: MacProtected>(message: M, local: &LocalStatic) -> Result<Mac1Checked<M>, Discard> {
    let bytes = message.message();
    let (covered, _) = bytes.split_at(bytes.len() - 2 * MAC_LEN);
    let expected = blake2s_mac(local.mac1_key(), &[covered]);
    if !ct_eq(&expected, Mac1::of(bytes).as_bytes()) {
        return Err(Discard::Mac1);
    }
    Ok(Mac1Checked(message))
}

/// Fills mac1 for the holder of `mac1_key`, and mac2 if there is a cookie (else zeros).
pub(crate) fn write_macs(message: &mut [u8], mac1_key: &[u8; 32], cookie: Option<&Cookie>) {
    let mac1_at = message.len() - 2 * MAC_LEN;
    let (covered, macs) = message.split_at_mut(mac1_at);
    macs[..MAC_LEN].copy_from_slice(&blake2s_mac(mac1_key, &[covered]));
    write_mac2(message, cookie);
}

pub(crate) fn write_mac2(message: &mut [u8], cookie: Option<&Cookie>) {
    let (covered, mac2) = message.split_at_mut(message.len() - MAC_LEN);
    match cookie {
        Some(cookie) => mac2.copy_from_slice(&blake2s_mac(cookie.as_bytes(), &[covered])),
        None => mac2.fill(0),
    }
}
