//! The lines of a key file.

use std::fmt::Write;

use zeroize::Zeroizing;

use super::{Corruption, KeyPurpose};
use crate::{IdentitySecret, KEY_LEN, Signer, TransportSecret, blake2s, ct_eq};

const MAGIC: &str = "falconet key file, version ";
const VERSION: &str = "1";
/// Bytes of the checksum.
const CHECKSUM_LEN: usize = 8;
/// More than any key file has, so that neither writing nor reading one moves its buffer and leaves a
/// copy of the secret behind.
pub(super) const MAX_LEN: usize = 512;

/// What a sound key file holds.
pub(super) enum Content {
    Identity(IdentitySecret),
    Transport(TransportSecret),
}

impl Content {
    pub(super) fn purpose(&self) -> KeyPurpose {
        match self {
            Content::Identity(_) => KeyPurpose::Identity,
            Content::Transport(_) => KeyPurpose::Transport,
        }
    }
}

pub(super) fn encode_identity(secret: &IdentitySecret) -> Zeroizing<String> {
    encode(
        "purpose: identity\n",
        &secret.identity().to_string(),
        secret.expose(),
    )
}

pub(super) fn encode_transport(secret: &TransportSecret, disposable: bool) -> Zeroizing<String> {
    let head = if disposable {
        "purpose: transport\ndisposable: yes\n"
    } else {
        "purpose: transport\ndisposable: no\n"
    };
    encode(head, &secret.public().to_string(), secret.expose())
}

fn encode(head: &str, public: &str, secret: &[u8; KEY_LEN]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(MAX_LEN));
    for part in [MAGIC, VERSION, "\n", head, "public: ", public, "\nsecret: "] {
        text.push_str(part);
    }
    push_hex(&mut text, secret);
    text.push('\n');
    let checksum = checksum(text.as_bytes());
    text.push_str("checksum: ");
    push_hex(&mut text, &checksum);
    text.push('\n');
    debug_assert!(text.len() <= MAX_LEN);
    text
}

pub(super) fn parse(bytes: &[u8]) -> Result<Content, Corruption> {
    let mut lines = Lines::new(bytes)?;
    let purpose = match lines.field("purpose")? {
        "identity" => KeyPurpose::Identity,
        "transport" => KeyPurpose::Transport,
        _ => return Err(lines.malformed("purpose")),
    };
    let disposable = match purpose {
        KeyPurpose::Identity => false,
        KeyPurpose::Transport => match lines.field("disposable")? {
            "yes" => true,
            "no" => false,
            _ => return Err(lines.malformed("disposable")),
        },
    };
    let public = lines.field("public")?;
    let secret = lines.hex::<KEY_LEN>("secret")?;
    lines.check()?;

    let (content, derived) = match purpose {
        KeyPurpose::Identity => {
            let secret = IdentitySecret::from_bytes(*secret);
            let derived = secret.identity().to_string();
            (Content::Identity(secret), derived)
        }
        KeyPurpose::Transport => {
            let secret = TransportSecret::from_bytes(*secret).with_disposable(disposable);
            let derived = secret.public().to_string();
            (Content::Transport(secret), derived)
        }
    };
    if derived == public {
        Ok(content)
    } else {
        Err(Corruption::PublicKey)
    }
}

/// Walks through the lines of a file.
struct Lines<'a> {
    all: &'a str,
    rest: &'a str,
    line: usize,
}

impl<'a> Lines<'a> {
    /// Takes the first line, which says that this is a key file and of which version.
    fn new(bytes: &'a [u8]) -> Result<Self, Corruption> {
        let magic = MAGIC.as_bytes();
        if !bytes.starts_with(&magic[..magic.len().min(bytes.len())]) {
            return Err(Corruption::NotAKeyFile);
        }
        if !bytes.is_ascii() {
            // Some line is not what was written; which one does not matter.
            return Err(Corruption::Checksum);
        }
        let all = std::str::from_utf8(bytes).map_err(|_| Corruption::Checksum)?;
        let mut lines = Self {
            all,
            rest: all,
            line: 0,
        };
        match lines.next()?.strip_prefix(MAGIC) {
            Some(VERSION) => Ok(lines),
            Some(_) => Err(Corruption::UnknownVersion),
            None => Err(Corruption::NotAKeyFile),
        }
    }

    fn next(&mut self) -> Result<&'a str, Corruption> {
        let (line, rest) = self.rest.split_once('\n').ok_or(Corruption::Truncated)?;
        self.rest = rest;
        self.line += 1;
        Ok(line)
    }

    fn field(&mut self, name: &'static str) -> Result<&'a str, Corruption> {
        let line = self.next()?;
        line.strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(": "))
            .ok_or_else(|| self.malformed(name))
    }

    fn hex<const N: usize>(&mut self, name: &'static str) -> Result<Zeroizing<[u8; N]>, Corruption> {
        let digits = self.field(name)?;
        parse_hex(digits).ok_or_else(|| self.malformed(name))
    }

    /// Takes the last line, which must match all before it.
    fn check(&mut self) -> Result<(), Corruption> {
        let covered = &self.all[..self.all.len() - self.rest.len()];
        let found = self.hex::<CHECKSUM_LEN>("checksum")?;
        if !self.rest.is_empty() {
            Err(Corruption::TrailingData)
        } else if ct_eq(&*found, &checksum(covered.as_bytes())) {
            Ok(())
        } else {
            Err(Corruption::Checksum)
        }
    }

    fn malformed(&self, field: &'static str) -> Corruption {
        Corruption::Malformed {
            line: self.line,
            field,
        }
    }
}

fn checksum(covered: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut checksum = [0; CHECKSUM_LEN];
    checksum.copy_from_slice(&blake2s(&[covered])[..CHECKSUM_LEN]);
    checksum
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

/// Lower-case digits only: there is one text for a secret.
fn parse_hex<const N: usize>(digits: &str) -> Option<Zeroizing<[u8; N]>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = Zeroizing::new([0; N]);
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}
