//! Key logs: what tshark needs to look into a captured handshake, for disposable transport keys only.
//!
//! ```text
//! LOCAL_STATIC_PRIVATE_KEY = base64 of 32 bytes
//! REMOTE_STATIC_PUBLIC_KEY = ...
//! LOCAL_EPHEMERAL_PRIVATE_KEY = ...
//! PRESHARED_KEY = ...
//! ```
//!
//! That is the format of Wireshark's preference `wg.keylog_file`. A line is only made with a [`Disposable`] in hand,
//! and that only comes with a key whose file says that it is one. Rules: `docs/spec/keys.md#key-log`,
//! `docs/spec/keys.md#key-log-file`.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{Disposable, KEY_LEN, SecretBytes, TransportPublicKey, TransportSecret};

mod file;

pub use file::{KeyLogError, KeyLogFile};

/// One line of a key log. It may hold a secret: zeroized on drop, redacted in `Debug`.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct KeyLogLine {
    /// With its end.
    text: String,
}

impl KeyLogLine {
    /// Our static key, if it is disposable.
    #[must_use]
    pub fn local_static(secret: &TransportSecret) -> Option<Self> {
        let disposable = secret.disposable()?;
        Some(Self::new(disposable, "LOCAL_STATIC_PRIVATE_KEY", secret.expose()))
    }

    /// The static key of whom a handshake is with.
    #[must_use]
    pub fn remote_static(disposable: Disposable, key: &TransportPublicKey) -> Self {
        Self::new(disposable, "REMOTE_STATIC_PUBLIC_KEY", key.as_bytes())
    }

    /// Our ephemeral key of a handshake.
    #[must_use]
    pub fn local_ephemeral(disposable: Disposable, secret: &TransportSecret) -> Self {
        Self::new(disposable, "LOCAL_EPHEMERAL_PRIVATE_KEY", secret.expose())
    }

    /// The preshared key of the handshake whose ephemeral key came before.
    #[must_use]
    pub fn preshared_key(disposable: Disposable, psk: &SecretBytes) -> Self {
        Self::new(disposable, "PRESHARED_KEY", psk.expose())
    }

    /// The line, without its end. Named so that every use can be found.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.trim_end()
    }

    fn with_end(&self) -> &str {
        &self.text
    }

    fn new(_: Disposable, name: &str, key: &[u8; KEY_LEN]) -> Self {
        // As long as it gets, so that no part of it is left behind by growing.
        let mut text = String::with_capacity(80);
        text.push_str(name);
        text.push_str(" = ");
        push_base64(&mut text, key);
        text.push('\n');
        Self { text }
    }
}

impl fmt::Debug for KeyLogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogLine(..)")
    }
}

/// RFC 4648, section 4.
fn push_base64(text: &mut String, bytes: &[u8; KEY_LEN]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, at| {
            word << 8 | u32::from(three.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at > three.len() { '=' } else { char::from(digit) });
        }
    }
}

#[cfg(test)]
mod tests;
