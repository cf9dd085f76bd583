//! The file that key log lines go to.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::KeyLogLine;

/// A key log on disk: only its owner can read it, and it is only ever added to.
/// `docs/spec/keys.md#key-log-file`
#[derive(Debug)]
pub struct KeyLogFile {
    path: PathBuf,
    file: File,
}

/// Why a key log was not opened, or a line not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyLogError {
    /// A link, a directory, a pipe, a device.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Others than the owner may read or write the file (Unix).
    #[error("{}: mode {mode:04o} lets others than its owner at the keys in it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
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
}

impl KeyLogFile {
    /// Opens the file at `path` to add to it, or makes a new one with mode 0600. Warns in any case that secrets
    /// are being written.
    ///
    /// # Errors
    /// [`KeyLogError`]. Nothing was written then.
    pub fn open(path: &Path) -> Result<Self, KeyLogError> {
        let file = match owner_only().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => reopen(path)?,
            other => other.map_err(io_error(path, "create"))?,
        };
        tracing::warn!(
            path = %path.display(),
            "KEY LOG: session secrets are written to this file, and whoever has it can read and forge this node's \
             traffic; never use this with a key of any worth"
        );
        let path = path.to_owned();
        Ok(Self { path, file })
    }

    /// Adds a line. It is in the file when this returns, so that a tool that follows it finds it.
    ///
    /// # Errors
    /// [`KeyLogError::Io`]; the file may end within a line then.
    pub fn append(&mut self, line: &KeyLogLine) -> Result<(), KeyLogError> {
        // In one call, so that the line of another node that logs to the same file cannot come between it and its end.
        let written = self.file.write_all(line.with_end().as_bytes());
        written.map_err(io_error(&self.path, "write"))
    }
}

/// Opens what is at `path` already, if it is a file that only its owner can read, and not a link to one.
fn reopen(path: &Path) -> Result<File, KeyLogError> {
    let not_a_file = || KeyLogError::NotAFile {
        path: path.to_owned(),
    };
    // Looked at before it is opened: opening a pipe would wait for a reader.
    let found = path.symlink_metadata().map_err(io_error(path, "inspect"))?;
    if !found.is_file() {
        return Err(not_a_file());
    }
    let file = owner_only().open(path).map_err(io_error(path, "open"))?;
    let opened = file.metadata().map_err(io_error(path, "inspect"))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        // Whatever was put in its place meanwhile is not what was looked at.
        if (found.dev(), found.ino()) != (opened.dev(), opened.ino()) {
            return Err(not_a_file());
        }
        let mode = opened.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            let path = path.to_owned();
            return Err(KeyLogError::Exposed { path, mode });
        }
    }
    if !opened.is_file() {
        return Err(not_a_file());
    }
    Ok(file)
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn io_error(path: &Path, action: &'static str) -> impl Fn(io::Error) -> KeyLogError {
    move |source| KeyLogError::Io {
        path: path.to_owned(),
        action,
        source,
    }
}
