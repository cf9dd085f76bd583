//! A file that a flag names for a report: proven writable before a run, written after it.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use crate::exit::Failure;

/// An open file that keeps what it held until a report replaces it.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
    /// Made by us and still empty: to be removed again unless a report is written.
    is_new: bool,
}

impl OutputFile {
    /// Opens the `path` that `flag` names for writing, creating it if need be.
    ///
    /// # Errors
    /// Exit code 2 if that is not possible.
    pub(crate) fn open(flag: &str, path: PathBuf) -> Result<Self, Failure> {
        let create_new = File::options().write(true).create_new(true).open(&path);
        let opened = match create_new {
            Ok(file) => Ok((file, true)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                File::options().write(true).open(&path).map(|file| (file, false))
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok((file, is_new)) => Ok(Self { path, file, is_new }),
            Err(error) => {
                let allowed = format_args!("a path that can be written ({error})");
                Err(Failure::wrong_value(flag, path.display(), allowed))
            }
        }
    }

    /// Replaces the content by `report`, as JSON.
    ///
    /// # Errors
    /// Exit code 1, for example if the disk is full.
    pub(crate) fn write_json(self, report: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_string_pretty(report)
            .map_err(|error| Failure::run(format!("cannot write the report as JSON: {error}")))?;
        text.push('\n');
        self.write(&text)
    }

    /// Replaces the content by `text`.
    ///
    /// # Errors
    /// Exit code 1, for example if the disk is full.
    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        let result = self.replace(text);
        self.is_new &= result.is_err();
        result.map_err(|error| {
            Failure::run(format!(
                "cannot write {}: {error}",
                Failure::shown(&self.path.to_string_lossy())
            ))
        })
    }

    fn replace(&mut self, text: &str) -> io::Result<()> {
        // Pipes and terminals have no length to cut.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_new {
            // An empty file says less than none; if it cannot be removed, that is all that is lost.
            drop(std::fs::remove_file(&self.path));
        }
    }
}
