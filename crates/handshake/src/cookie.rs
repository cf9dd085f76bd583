//! Cookies: proof that a source receives at the address and port it sends from.

use crate::mac::{MacProtected, write_mac2};
use crate::message::TYPE_COOKIE_REPLY;
use crate::{COOKIE_REPLY_LEN, CookieReply, LocalStatic, Mac1Checked, RESPONSE_LEN};
use falconet_crypto::{Now, SecretBytes, blake2s_mac, xchacha_seal};
use rand_core::CryptoRng;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// How long a cookie secret is current, and how long the holder of a cookie should use it.
///
/// WireGuard's constant. The secret stays accepted for as long again, so a cookie is good for at least
/// this long on the side that made it.
pub const COOKIE_LIFETIME: Duration = Duration::from_secs(120);

/// A cookie: goes as a key into mac2 of what its holder sends to the peer that issued it.
///
/// `Clone`, because it is kept by address and outlives sessions; still zeroized and redacted.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Cookie([u8; 16]);

impl Cookie {
    pub(crate) fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Fills mac2 of a response of ours, for an initiator that answered the last one with this cookie.
    pub fn stamp_response(&self, response: &mut [u8; RESPONSE_LEN]) {
        write_mac2(response, Some(self));
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(..)")
    }
}

/// The rotating secret behind the cookies we issue; `docs/spec/handshake.md#cookie`.
///
/// Stateless towards sources: a cookie is a MAC of address and port, so nothing is stored for anybody.
pub struct CookieJar {
    current: SecretBytes,
    previous: Option<SecretBytes>,
    rotated: Instant,
}

impl CookieJar {
    /// A jar with a fresh secret.
    pub fn new(now: Now, rng: &mut impl CryptoRng) -> Self {
        Self {
            current: fresh(rng),
            previous: None,
            rotated: now.instant,
        }
    }

    /// Replaces the secret if it is [`COOKIE_LIFETIME`] old; the one before is kept for as long again.
    /// Call it before the other methods, as often as you like; `docs/spec/handshake.md#cookie-rotation`.
    pub fn rotate(&mut self, now: Now, rng: &mut impl CryptoRng) {
        let age = now.instant.saturating_duration_since(self.rotated);
        if age < COOKIE_LIFETIME {
            return;
        }
        let retired = std::mem::replace(&mut self.current, fresh(rng));
        self.previous = (age < 2 * COOKIE_LIFETIME).then_some(retired);
        self.rotated = now.instant;
    }

    /// Whether the sender of `message` has proved that it receives at `from`: its mac2 was made with a
    /// cookie for that address and port. `docs/spec/handshake.md#mac2`.
    pub fn mac2_valid<M: MacProtected>(&self, message: &Mac1Checked<M>, from: SocketAddr) -> bool {
        message.has_mac2()
            && [Some(&self.current), self.previous.as_ref()]
                .into_iter()
                .flatten()
                .any(|secret| message.mac2_matches(&cookie_for(secret, from)))
    }

    /// The cookie reply to `message`: 64 bytes, fewer than any message it answers.
    /// `docs/spec/handshake.md#cookie-reply`.
    pub fn reply<M: MacProtected>(
        &self,
        local: &LocalStatic,
        message: &Mac1Checked<M>,
        from: SocketAddr,
        rng: &mut impl CryptoRng,
    ) -> [u8; COOKIE_REPLY_LEN] {
        let mut nonce = [0; 24];
        rng.fill_bytes(&mut nonce);
        let mut cookie = cookie_for(&self.current, from);
        let tag = xchacha_seal(
            local.cookie_key(),
            &nonce,
            message.mac1().as_bytes(),
            &mut cookie.0,
        );

        let mut reply = [0; COOKIE_REPLY_LEN];
        reply[0] = TYPE_COOKIE_REPLY;
        reply[CookieReply::RECEIVER..CookieReply::NONCE].copy_from_slice(&message.sender().to_le_bytes());
        reply[CookieReply::NONCE..CookieReply::COOKIE].copy_from_slice(&nonce);
        reply[CookieReply::COOKIE..CookieReply::COOKIE_TAG].copy_from_slice(cookie.as_bytes());
        reply[CookieReply::COOKIE_TAG..].copy_from_slice(&tag);
        reply
    }
}

impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieJar")
            .field("rotated", &self.rotated)
            .finish_non_exhaustive()
    }
}

fn fresh(rng: &mut impl CryptoRng) -> SecretBytes {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    let secret = SecretBytes::new(bytes);
    bytes.zeroize();
    secret
}

/// MAC of address and port under the jar's secret. An IPv4-mapped IPv6 address counts as IPv4, so that
/// a dual-stack socket and an IPv4 socket agree.
fn cookie_for(secret: &SecretBytes, from: SocketAddr) -> Cookie {
    let port = from.port().to_be_bytes();
    Cookie(match from.ip().to_canonical() {
        IpAddr::V4(ip) => blake2s_mac(secret.expose(), &[&ip.octets(), &port]),
        IpAddr::V6(ip) => blake2s_mac(secret.expose(), &[&ip.octets(), &port]),
    })
}
