//! Text form of public keys: bech32m (BIP-350), prefix `fid` for identities and `ftk` for transport
//! keys.
//!
//! The checksum finds every error of up to four characters and misses one in 2^30 of the worse ones;
//! the prefix keeps a key of one kind from being configured as the other. There is one text for a
//! key and one key for a text, so that texts may be compared and searched for.
//!
//! Rules: `docs/spec/keys.md#key-text`, `docs/spec/keys.md#key-text-canonical`.

use std::{fmt, str::FromStr};

use bech32::{
    Bech32m, Hrp,
    primitives::decode::{CheckedHrpstring, CheckedHrpstringError},
};

use crate::{IdentityKey, KEY_LEN, TransportPublicKey};

const IDENTITY_PREFIX: &str = "fid";
const TRANSPORT_PREFIX: &str = "ftk";

impl fmt::Display for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&encode(IDENTITY_PREFIX, self.as_bytes())?)
    }
}

impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for IdentityKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        parse(IDENTITY_PREFIX, text).map(Self::from_bytes)
    }
}

impl fmt::Display for TransportPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&encode(TRANSPORT_PREFIX, self.as_bytes())?)
    }
}

impl fmt::Debug for TransportPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TransportPublicKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        parse(TRANSPORT_PREFIX, text).map(Self::from_bytes)
    }
}

/// Why a text is not a public key of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextError {
    /// Not prefix, `1`, letters and digits of the bech32 alphabet.
    #[error("not a public key: expected `{expected}1` and 58 letters and digits")]
    Malformed {
        /// The prefix that was wanted.
        expected: &'static str,
    },
    /// Looks like a key, but a character is wrong, missing or too many.
    #[error("the checksum does not match: the key has a typo")]
    Checksum,
    /// A sound text with another prefix.
    #[error("the key starts with `{found}1`, expected `{expected}1`")]
    WrongKind {
        /// The prefix that was wanted.
        expected: &'static str,
        /// The prefix of the text.
        found: String,
    },
    /// A sound text that does not hold 32 bytes.
    #[error("the key has the wrong length: expected 32 bytes")]
    Length,
    /// The right key, but not in its one text form: upper case, or padding that is not zero.
    #[error("the key is not in canonical form: expected `{canonical}`")]
    NotCanonical {
        /// How the key is written.
        canonical: String,
    },
}

fn encode(prefix: &str, key: &[u8; KEY_LEN]) -> Result<String, fmt::Error> {
    let prefix = Hrp::parse(prefix).map_err(|_| fmt::Error)?;
    bech32::encode::<Bech32m>(prefix, key).map_err(|_| fmt::Error)
}

fn parse(expected: &'static str, text: &str) -> Result<[u8; KEY_LEN], KeyTextError> {
    let checked = CheckedHrpstring::new::<Bech32m>(text).map_err(|error| match error {
        CheckedHrpstringError::Checksum(_) => KeyTextError::Checksum,
        _ => KeyTextError::Malformed { expected },
    })?;
    let found = checked.hrp().to_lowercase();
    if found != expected {
        return Err(KeyTextError::WrongKind { expected, found });
    }
    let bytes: Vec<u8> = checked.byte_iter().take(KEY_LEN + 1).collect();
    let key = <[u8; KEY_LEN]>::try_from(bytes).map_err(|_| KeyTextError::Length)?;
    match encode(expected, &key) {
        Ok(canonical) if canonical == text => Ok(key),
        Ok(canonical) => Err(KeyTextError::NotCanonical { canonical }),
        Err(_) => Err(KeyTextError::Malformed { expected }),
    }
}

#[cfg(test)]
mod tests;
