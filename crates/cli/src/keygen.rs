//! `falconet keygen`: new keys in new files.

use std::path::{Path, PathBuf};

use falconet_crypto::keyfile::{self, KeyFileError};
use falconet_crypto::{IdentitySecret, Signer, TransportSecret};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::args::KeygenArgs;
use crate::exit::Failure;
use crate::output::{remark, say};

/// Makes the files that were asked for and prints their public keys, one a line: kind, key, path.
///
/// # Errors
/// Exit code 2 if a file exists already or flags contradict each other, 1 if the system refuses. A file
/// that exists is found before any other is made.
pub(crate) fn keygen(args: &KeygenArgs) -> Result<(), Failure> {
    let files = Files::from_args(args)?;
    for (flag, path) in [("--identity", &files.identity), ("--transport", &files.transport)] {
        if let Some(path) = path.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
            return Err(exists(flag, path));
        }
    }
    let mut rng = entropy()?;
    if let Some(path) = &files.identity {
        let secret = IdentitySecret::generate(&mut rng);
        keyfile::create_identity(path, &secret).map_err(|error| failure("--identity", path, &error))?;
        say(format_args!(
            "identity   {}  {}",
            secret.identity(),
            path.display()
        ));
    }
    if let Some(path) = &files.transport {
        let secret = TransportSecret::generate(&mut rng);
        let create = if args.disposable {
            keyfile::create_disposable_transport
        } else {
            keyfile::create_transport
        };
        create(path, &secret).map_err(|error| failure("--transport", path, &error))?;
        say(format_args!("transport  {}  {}", secret.public(), path.display()));
        if args.disposable {
            let path = path.display();
            remark(format_args!(
                "warning: {path} is disposable: its sessions may be revealed, never use it in production"
            ));
        }
    }
    Ok(())
}

/// Where each key goes, if it is made at all.
struct Files {
    identity: Option<PathBuf>,
    transport: Option<PathBuf>,
}

impl Files {
    fn from_args(args: &KeygenArgs) -> Result<Self, Failure> {
        let (identity, mut transport) = (args.identity.clone(), args.transport.clone());
        if identity.is_some() && identity == transport {
            let path = identity.unwrap_or_default();
            return Err(Failure::wrong_value(
                "--transport",
                path.display(),
                "another file than that of --identity",
            ));
        }
        if args.disposable && transport.is_none() {
            if identity.is_some() {
                let line =
                    "--disposable concerns transport keys, and none is made; allowed: with --transport FILE";
                return Err(Failure::usage(line));
            }
            transport = Some("transport.key".into());
        }
        if identity.is_none() && transport.is_none() {
            return Ok(Self {
                identity: Some("identity.key".into()),
                transport: Some("transport.key".into()),
            });
        }
        Ok(Self { identity, transport })
    }
}

fn failure(flag: &str, path: &Path, error: &KeyFileError) -> Failure {
    match error {
        KeyFileError::Exists { .. } => exists(flag, path),
        other => Failure::run(format!("{flag} {other}")),
    }
}

fn exists(flag: &str, path: &Path) -> Failure {
    let allowed = "a path at which no file exists yet, as keys are never overwritten";
    Failure::wrong_value(flag, path.display(), allowed)
}

fn entropy() -> Result<ChaCha20Rng, Failure> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| Failure::run(format!("the system gives no random bytes: {error}")))?;
    let rng = ChaCha20Rng::from_seed(seed);
    // Key material of the generator must not outlive it in our frame.
    zeroize::Zeroize::zeroize(&mut seed);
    Ok(rng)
}
