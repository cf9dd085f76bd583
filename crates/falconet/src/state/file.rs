//! Reading the state file, and replacing it as a whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use falconet_crypto::{IdentityKey, NetworkId};
use thiserror::Error;

use super::format::{self, StateFormatError};
use super::memory::Memory;

/// Why the state file cannot be used. It is never replaced or repaired by the node: docs/spec/state.md#healing
/// says what an operator can do.
#[derive(Debug, Error)]
#[error("state file {}: {problem}", path.display())]
pub struct StateError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: StateProblem,
}

/// What is wrong with a state file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateProblem {
    /// It cannot be read, or not be written to.
    #[error("cannot {action} it: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, a device or a pipe.
    #[error("it is no regular file")]
    NotAFile,
    /// Another node that runs uses it.
    #[error("a running node uses it")]
    InUse,
    /// It is longer than any state.
    #[error("it is longer than any state file, {0} bytes")]
    TooLong(u64),
    /// Its content is not this node's.
    #[error("{0}; move it away to start without what it held (docs/spec/state.md#healing)")]
    Content(#[from] StateFormatError),
}

/// Where the encodings go.
pub(super) trait Storage: Send {
    /// Replaces what is stored by `bytes`, as a whole or not at all, and survives a power failure once it
    /// has returned.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A file that is always either the former or the latter.
pub(super) struct StateFile(PathBuf);

impl StateFile {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The memory in the file; `None` if there is no file.
    pub(super) fn load(
        &self,
        identity: IdentityKey,
        network: NetworkId,
    ) -> Result<Option<Memory>, StateError> {
        let wrong = |problem| StateError {
            path: self.0.clone(),
            problem,
        };
        let io = |action| move |source| StateProblem::Io { action, source };
        // Looked at before it is opened: opening a pipe would wait for a writer. A link is refused, since replacing would
        // put a file in its place and leave the target to come back as an older state.
        let metadata = match fs::symlink_metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(io("find")).map_err(wrong)?,
        };
        if !metadata.is_file() {
            return Err(wrong(StateProblem::NotAFile));
        }
        if metadata.len() > format::MAX_LEN as u64 {
            return Err(wrong(StateProblem::TooLong(metadata.len())));
        }
        let file = File::open(&self.0).map_err(io("open")).map_err(wrong)?;
        let mut bytes = Vec::new();
        file.take(format::MAX_LEN as u64)
            .read_to_end(&mut bytes)
            .map_err(io("read"))
            .map_err(wrong)?;
        let memory = format::decode(&bytes, identity, network);
        memory.map(Some).map_err(|error| wrong(error.into()))
    }

    /// A first write, so that a node that could not store anything does not start.
    pub(super) fn try_out(&mut self, memory: &Memory) -> Result<(), StateError> {
        let written = self.replace(&format::encode(memory));
        written.map_err(|source| StateError {
            path: self.0.clone(),
            problem: StateProblem::Io {
                action: "write",
                source,
            },
        })
    }

    /// Keeps a second node from using the same state: two of them would sign two payloads for one round.
    /// The lock is held as long as the file lives, and goes with the process however that ends.
    pub(super) fn lock(&self) -> Result<File, StateError> {
        let wrong = |problem| StateError {
            path: self.0.clone(),
            problem,
        };
        let open = || owner_only().create(true).open(self.beside(".lock")?);
        let file = open().map_err(|source| {
            wrong(StateProblem::Io {
                action: "lock",
                source,
            })
        })?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(wrong(StateProblem::InUse)),
            Err(TryLockError::Error(source)) => Err(wrong(StateProblem::Io {
                action: "lock",
                source,
            })),
        }
    }

    /// A hidden name next to the file; always the same, so that what crashes leave behind does not add up.
    fn beside(&self, ending: &str) -> io::Result<PathBuf> {
        let name = self.0.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(ending);
        Ok(self.0.with_file_name(hidden))
    }
}

impl Storage for StateFile {
    /// docs/spec/state.md#replace
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.beside(".tmp")?;
        // What a crash has left behind, with whatever mode or target it has.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = owner_only().create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, &self.0)?;
        sync_directory(&self.0)
    }
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the new name itself survive a power failure.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
