//! Key files: made once, for the owner's eyes only.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output};

use falconet_crypto::keyfile::{load_identity, load_transport, load_transport_file};
use falconet_crypto::{IdentityKey, Signer, TransportPublicKey};

fn keygen(folder: &Path, arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_falconet");
    Command::new(binary)
        .arg("keygen")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The public key on the line of this kind.
fn printed<'a>(stdout: &'a str, kind: &str) -> &'a str {
    let line = stdout.lines().find(|line| line.starts_with(kind)).unwrap();
    line.split_whitespace().nth(1).unwrap()
}

#[test]
fn both_keys_are_made_and_their_public_keys_printed() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(&keygen(folder.path(), &[]));

    let identity: IdentityKey = printed(&text, "identity").parse().unwrap();
    let transport: TransportPublicKey = printed(&text, "transport").parse().unwrap();
    assert_eq!(
        load_identity(&folder.path().join("identity.key"))
            .unwrap()
            .identity(),
        identity
    );
    assert_eq!(
        load_transport(&folder.path().join("transport.key"))
            .unwrap()
            .public(),
        transport
    );
}

#[test]
fn only_what_is_named_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(&keygen(folder.path(), &["--transport", "next.key"]));
    assert_eq!(text.lines().count(), 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(
        !load_transport_file(&folder.path().join("next.key"))
            .unwrap()
            .disposable
    );
}

#[test]
fn a_disposable_key_is_marked_and_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let output = keygen(folder.path(), &["--disposable", "--transport", "test.key"]);
    stdout(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("never use it in production"));
    assert!(
        load_transport_file(&folder.path().join("test.key"))
            .unwrap()
            .disposable
    );
}

#[cfg(unix)]
#[test]
fn nobody_but_the_owner_can_read_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    stdout(&keygen(folder.path(), &[]));
    for name in ["identity.key", "transport.key"] {
        let mode = std::fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn what_exists_is_kept_and_nothing_else_is_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("transport.key"), "precious").unwrap();
    let output = keygen(folder.path(), &[]);

    assert_eq!(output.status.code(), Some(2));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(
        line.starts_with("error: --transport transport.key is not allowed"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("transport.key")).unwrap(),
        "precious"
    );
    assert!(!folder.path().join("identity.key").exists());
}

#[test]
fn contradictions_and_folders_that_are_missing_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["--identity", "a.key", "--transport", "a.key"][..], 2),
        (&["--identity", "a.key", "--disposable"], 2),
        (&["--identity", "no/such/a.key"], 1),
    ] {
        let output = keygen(folder.path(), arguments);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), line.lines().count()),
            (Some(code), 1),
            "{line}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
    }
}
