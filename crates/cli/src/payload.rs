//! What is broadcast: a file of the user, or bytes that a seed determines.

use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::exit::Failure;

/// Bytes of a payload that can be broadcast (the upper end: docs/spec/chunk.md).
pub(crate) const PAYLOAD_BYTES: RangeInclusive<usize> = 1..=3 * 1024 * 1024;

/// SHA-256 of a payload.
pub(crate) type PayloadDigest = [u8; 32];

/// Where the payload of each round comes from.
#[derive(Debug, Clone)]
pub(crate) enum PayloadSource {
    /// The same file each round.
    File {
        /// As the user named it.
        path: PathBuf,
        /// Its content, read once.
        content: Bytes,
        /// Of the content.
        digest: PayloadDigest,
    },
    /// Pseudo-random bytes, different each round, the same for the same seed.
    Generated {
        /// Bytes a payload.
        size: usize,
        /// Determines all payloads.
        seed: u64,
    },
}

impl PayloadSource {
    /// Reads a file.
    ///
    /// The size is checked before a byte is read, so that a huge file costs nothing, and a device or pipe,
    /// which has no size, is refused unopened.
    ///
    /// # Errors
    /// Exit code 2, with the `flag` that named it: the file cannot be read, is not a regular file, is empty or too large.
    pub(crate) fn load(flag: &str, path: PathBuf) -> Result<Self, Failure> {
        let content = read(&path).map_err(|why| {
            let allowed = format_args!("a readable regular file of 1 byte to 3 MiB ({why})");
            Failure::wrong_value(flag, path.display(), allowed)
        })?;
        Ok(Self::File {
            path,
            digest: digest(&content),
            content: content.into(),
        })
    }

    /// Bytes of each payload.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::File { content, .. } => content.len(),
            Self::Generated { size, .. } => *size,
        }
    }

    /// The payload of a round, and its SHA-256.
    pub(crate) fn payload(&self, round: u64) -> (Bytes, PayloadDigest) {
        match self {
            Self::File { content, digest, .. } => (content.clone(), *digest),
            Self::Generated { size, seed } => {
                let mut rng = ChaCha8Rng::seed_from_u64(*seed);
                rng.set_stream(round);
                let mut content = vec![0; *size];
                rng.fill_bytes(&mut content);
                (Bytes::from(content.clone()), digest(&content))
            }
        }
    }
}

/// SHA-256 of `content`.
pub(crate) fn digest(content: &[u8]) -> PayloadDigest {
    Sha256::digest(content).into()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let check = |metadata: std::fs::Metadata| match usize::try_from(metadata.len()) {
        _ if metadata.is_dir() => Err("it is a directory".to_owned()),
        _ if !metadata.is_file() => Err("it is not a regular file".to_owned()),
        Ok(size) if PAYLOAD_BYTES.contains(&size) => Ok(size),
        _ => Err(format!("it has {} bytes", metadata.len())),
    };
    let say = |error: std::io::Error| error.to_string();

    // By name first: opening a named pipe would wait for its writer.
    check(std::fs::metadata(path).map_err(say)?)?;
    let file = File::open(path).map_err(say)?;
    let size = check(file.metadata().map_err(say)?)?;
    let mut content = Vec::with_capacity(size);
    // The file may still grow or shrink while it is read.
    file.take(*PAYLOAD_BYTES.end() as u64 + 1)
        .read_to_end(&mut content)
        .map_err(say)?;
    if content.len() == size {
        Ok(content)
    } else {
        Err("it changed while it was read".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(content: &[u8]) -> Result<PayloadSource, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        PayloadSource::load("--payload", file.path().to_owned())
    }

    #[test]
    fn files_of_one_byte_to_three_mebibytes_are_taken_and_no_others() {
        for size in [1, 2, 2_000_000, 3 * 1024 * 1024] {
            let content = vec![7; size];
            let (payload, sum) = load(&content).unwrap().payload(3);
            assert_eq!((&payload[..], sum), (&content[..], digest(&content)));
        }
        for (size, why) in [
            (0, "it has 0 bytes"),
            (3 * 1024 * 1024 + 1, "it has 3145729 bytes"),
        ] {
            let error = load(&vec![7; size]).unwrap_err().to_string();
            assert!(error.starts_with("--payload ") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn directories_devices_and_missing_files_are_refused() {
        let refused = |path: &str| {
            PayloadSource::load("--payload", path.into())
                .unwrap_err()
                .to_string()
        };
        assert!(refused("/tmp").contains("it is a directory"));
        assert!(refused("/dev/zero").contains("it is not a regular file"));
        assert!(refused("/nowhere/at/all").contains("No such file"));
    }

    #[test]
    fn a_seed_determines_all_payloads_and_each_round_differs() {
        let source = |seed| PayloadSource::Generated { size: 100, seed };
        assert_eq!(source(1).payload(4), source(1).payload(4));
        assert_ne!(source(1).payload(4), source(1).payload(5));
        assert_ne!(source(1).payload(4), source(2).payload(4));
        assert_eq!(source(1).payload(0).0.len(), 100);
    }
}
