//! Key files: one secret a file, for its owner's eyes only.
//!
//! ```text
//! falconet key file, version 1
//! purpose: transport
//! disposable: no
//! public: ftk1...
//! secret: 64 hexadecimal digits
//! checksum: 16 hexadecimal digits
//! ```
//!
//! The file is mode 0600 from its first moment, appears under its name complete or not at all, and
//! never replaces another file. Loading refuses a file that others may read, that is meant for
//! another purpose, or that is not exactly what was written. The checksum (BLAKE2s over all lines
//! before it) finds accidents, it does not authenticate.
//!
//! Rules: `docs/spec/keys.md#key-file`, `docs/spec/keys.md#key-file-write`,
//! `docs/spec/keys.md#key-file-access`.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{IdentitySecret, TransportSecret};

use format::Content;

mod file;
mod format;

/// Writes the secret of an identity to a new file.
///
/// # Errors
/// [`KeyFileError::Exists`] if there is anything at `path`; [`KeyFileError::Io`] if the file cannot
/// be written. Nothing is left behind then.
pub fn create_identity(path: &Path, secret: &IdentitySecret) -> Result<(), KeyFileError> {
    file::create(path, &format::encode_identity(secret))
}

/// Reads the secret of an identity.
///
/// # Errors
/// See [`KeyFileError`].
pub fn load_identity(path: &Path) -> Result<IdentitySecret, KeyFileError> {
    match load(path)? {
        Content::Identity(secret) => Ok(secret),
        other => Err(wrong_purpose(path, KeyPurpose::Identity, &other)),
    }
}

/// Writes a transport secret to a new file.
///
/// # Errors
/// As [`create_identity`].
pub fn create_transport(path: &Path, secret: &TransportSecret) -> Result<(), KeyFileError> {
    file::create(path, &format::encode_transport(secret, false))
}

/// Writes a transport secret to a new file that marks it as disposable: one that may be revealed to
/// a debugging tool, by a key log, since nothing of value was ever sent under it
/// (`docs/spec/keys.md#disposable`).
///
/// # Errors
/// As [`create_identity`].
pub fn create_disposable_transport(path: &Path, secret: &TransportSecret) -> Result<(), KeyFileError> {
    file::create(path, &format::encode_transport(secret, true))
}

/// Reads a transport secret, disposable or not.
///
/// # Errors
/// See [`KeyFileError`].
pub fn load_transport(path: &Path) -> Result<TransportSecret, KeyFileError> {
    load_transport_file(path).map(|file| file.secret)
}

/// Reads a transport secret and whether its file marks it as disposable.
///
/// # Errors
/// See [`KeyFileError`].
pub fn load_transport_file(path: &Path) -> Result<TransportKeyFile, KeyFileError> {
    match load(path)? {
        Content::Transport(secret) => Ok(TransportKeyFile {
            disposable: secret.disposable().is_some(),
            secret,
        }),
        other => Err(wrong_purpose(path, KeyPurpose::Transport, &other)),
    }
}

/// What the file of a transport key holds.
#[derive(Debug)]
#[non_exhaustive]
pub struct TransportKeyFile {
    /// The secret.
    pub secret: TransportSecret,
    /// Whether it was made to be revealed: see [`create_disposable_transport`].
    pub disposable: bool,
}

/// What the key in a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPurpose {
    /// Ed25519 secret of an identity.
    Identity,
    /// X25519 transport secret.
    Transport,
}

impl fmt::Display for KeyPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyPurpose::Identity => "an identity key",
            KeyPurpose::Transport => "a transport key",
        })
    }
}

/// Why a key file was not written or not read. Never says anything of the secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// There is something at the path already.
    #[error("{}: exists already, and a key file is never overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, a pipe, a device.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Others than the owner may read or write the file (Unix).
    #[error(
        "{}: mode {mode:04o} lets others than its owner at the secret; run `chmod 600` on it, \
         and replace the key if others may have read it",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A sound key file for something else.
    #[error("{}: holds {found}, expected {expected}", path.display())]
    WrongPurpose {
        /// The file.
        path: PathBuf,
        /// What was wanted.
        expected: KeyPurpose,
        /// What the file is for.
        found: KeyPurpose,
    },
    /// Not what was written.
    #[error("{}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: Corruption,
    },
}

/// In which way a key file is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Corruption {
    /// The first line is not that of a key file.
    #[error("not a falconet key file")]
    NotAKeyFile,
    /// A key file of a version that this program does not know.
    #[error("a key file of another version; this program reads version 1")]
    UnknownVersion,
    /// Ends before the checksum.
    #[error("truncated")]
    Truncated,
    /// Goes on after the checksum.
    #[error("something follows the checksum")]
    TrailingData,
    /// A line is not what belongs there.
    #[error("line {line} is not a valid `{field}` line")]
    Malformed {
        /// Number of the line, from 1.
        line: usize,
        /// The field that belongs there.
        field: &'static str,
    },
    /// A line was altered.
    #[error("the checksum does not match: a line was altered")]
    Checksum,
    /// The public key is not that of the secret.
    #[error("the public key is not that of the secret")]
    PublicKey,
}

fn load(path: &Path) -> Result<Content, KeyFileError> {
    let bytes = file::read(path)?;
    format::parse(bytes.as_slice()).map_err(|reason| KeyFileError::Corrupt {
        path: path.to_owned(),
        reason,
    })
}

fn wrong_purpose(path: &Path, expected: KeyPurpose, content: &Content) -> KeyFileError {
    KeyFileError::WrongPurpose {
        path: path.to_owned(),
        expected,
        found: content.purpose(),
    }
}

#[cfg(test)]
mod tests;
