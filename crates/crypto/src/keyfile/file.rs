//! Files that only their owner reads, that appear complete, and that replace nothing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use super::{KeyFileError, format::MAX_LEN};

/// Names tried for the temporary file, in case earlier attempts were killed half-way.
const TEMPORARY_NAMES: u32 = 64;

/// Writes `text` to a new file at `path`.
///
/// A temporary file next to it is written, synced and then hard-linked to its name, because a link,
/// other than a rename, fails if the name is taken.
pub(super) fn create(path: &Path, text: &str) -> Result<(), KeyFileError> {
    if path.symlink_metadata().is_ok() {
        return Err(KeyFileError::Exists {
            path: path.to_owned(),
        });
    }
    let temporary = Temporary::create(path)?;
    let mut file = &temporary.file;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(io_error(path, "write"))?;
    fs::hard_link(&temporary.path, path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists {
            path: path.to_owned(),
        },
        _ => io_error(path, "link the finished file to its name")(source),
    })?;
    drop(temporary);
    sync_directory(path)
}

/// Reads the file at `path`, after checking that only its owner can.
pub(super) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    // Looked at before it is opened, too: opening a pipe would wait for a writer.
    if !fs::metadata(path).map_err(io_error(path, "open"))?.is_file() {
        return Err(KeyFileError::NotAFile {
            path: path.to_owned(),
        });
    }
    let file = File::open(path).map_err(io_error(path, "open"))?;
    check_access(path, &file)?;
    // One byte more than a key file may have, so that a longer file fails as one. The buffer never
    // grows, hence leaves no copy behind.
    let mut bytes = Zeroizing::new(vec![0; MAX_LEN + 1]);
    let len = read_up_to(file, &mut bytes).map_err(io_error(path, "read"))?;
    bytes.truncate(len);
    Ok(bytes)
}

/// The unfinished file; it is removed again, whatever happens.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn create(target: &Path) -> Result<Self, KeyFileError> {
        let failed = io_error(target, "create");
        let Some(name) = target.file_name() else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        for attempt in 0..TEMPORARY_NAMES {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}-{attempt}.tmp", std::process::id()));
            let path = target.with_file_name(hidden);
            match owner_only().open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Best effort: what cannot be removed is hidden and readable by its owner only.
        let _ = fs::remove_file(&self.path);
    }
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn check_access(path: &Path, file: &File) -> Result<(), KeyFileError> {
    use std::os::unix::fs::PermissionsExt;

    let metadata = file.metadata().map_err(io_error(path, "inspect"))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        Ok(())
    } else {
        Err(KeyFileError::Exposed {
            path: path.to_owned(),
            mode,
        })
    }
}

#[cfg(not(unix))]
fn check_access(_: &Path, _: &File) -> Result<(), KeyFileError> {
    Ok(())
}

/// Makes the new name itself survive a power failure.
#[cfg(unix)]
fn sync_directory(path: &Path) -> Result<(), KeyFileError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(io_error(path, "sync the directory"))
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> Result<(), KeyFileError> {
    Ok(())
}

fn read_up_to(mut file: File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

fn io_error(path: &Path, action: &'static str) -> impl Fn(io::Error) -> KeyFileError {
    move |source| KeyFileError::Io {
        path: path.to_owned(),
        action,
        source,
    }
}
