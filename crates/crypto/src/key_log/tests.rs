use std::fs;

use super::*;
use crate::keyfile;

/// The secret with these bytes, disposable or not, as its file has it.
fn loaded(disposable: bool) -> TransportSecret {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let secret = TransportSecret::from_bytes([0xfb; KEY_LEN]);
    match disposable {
        true => keyfile::create_disposable_transport(&path, &secret).unwrap(),
        false => keyfile::create_transport(&path, &secret).unwrap(),
    }
    keyfile::load_transport(&path).unwrap()
}

#[test]
fn only_a_file_makes_a_key_disposable() {
    assert_eq!(TransportSecret::from_bytes([1; KEY_LEN]).disposable(), None);
    assert_eq!(loaded(false).disposable(), None);
    assert!(KeyLogLine::local_static(&loaded(false)).is_none());
    assert!(KeyLogLine::local_static(&loaded(true)).is_some());
}

#[test]
fn lines_are_those_that_wireshark_reads() {
    let secret = loaded(true);
    let disposable = secret.disposable().unwrap();
    // 32 bytes 0xfb in base64: 3 bytes are "+/v7", the last two "+/s=".
    let key = format!("{}+/s=", "+/v7".repeat(10));
    let local = KeyLogLine::local_static(&secret).unwrap();
    assert_eq!(local.expose(), format!("LOCAL_STATIC_PRIVATE_KEY = {key}"));
    let ephemeral = KeyLogLine::local_ephemeral(disposable, &secret);
    assert_eq!(ephemeral.expose(), format!("LOCAL_EPHEMERAL_PRIVATE_KEY = {key}"));
    let remote = KeyLogLine::remote_static(disposable, &TransportPublicKey::from_bytes([0; KEY_LEN]));
    assert_eq!(
        remote.expose(),
        format!("REMOTE_STATIC_PUBLIC_KEY = {}=", "A".repeat(43))
    );
    let psk = KeyLogLine::preshared_key(disposable, &SecretBytes::new([0xff; KEY_LEN]));
    assert_eq!(psk.expose(), format!("PRESHARED_KEY = {}8=", "/".repeat(42)));
}

#[test]
fn a_line_is_redacted_and_zeroized() {
    fn is_zeroized_on_drop<T: ZeroizeOnDrop>() {}
    is_zeroized_on_drop::<KeyLogLine>();
    let mut line = KeyLogLine::local_static(&loaded(true)).unwrap();
    assert_eq!(format!("{line:?}{line:#?}"), "KeyLogLine(..)KeyLogLine(..)");
    line.zeroize();
    assert_eq!(line.expose(), "");
}

#[test]
fn a_file_is_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.log");
    let line = KeyLogLine::local_static(&loaded(true)).unwrap();
    for times in 1..=3 {
        KeyLogFile::open(&path).unwrap().append(&line).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n", line.expose()).repeat(times));
    }
}

#[test]
fn two_nodes_that_log_to_one_file_tear_no_line_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.log");
    let write = || {
        let line = KeyLogLine::local_static(&loaded(true)).unwrap();
        let mut file = KeyLogFile::open(&path).unwrap();
        (0..2000).for_each(|_| file.append(&line).unwrap());
    };
    std::thread::scope(|scope| {
        scope.spawn(write);
        scope.spawn(write);
    });
    let line = KeyLogLine::local_static(&loaded(true)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4000);
    assert!(text.lines().all(|found| found == line.expose()));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &std::path::Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_new_file_is_its_owners_and_an_exposed_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.log");
        KeyLogFile::open(&path).unwrap();
        assert_eq!(mode(&path) & 0o077, 0);
        for exposed in [0o640, 0o604, 0o620, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(exposed)).unwrap();
            let error = KeyLogFile::open(&path).unwrap_err();
            assert!(
                matches!(error, KeyLogError::Exposed { mode, .. } if mode == exposed),
                "{error}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn links_and_what_is_no_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        KeyLogFile::open(&target).unwrap();
        symlink(&target, &link).unwrap();
        let dangling = folder.path().join("dangling");
        symlink(folder.path().join("nothing"), &dangling).unwrap();
        for path in [&link, &dangling, &folder.path().to_owned()] {
            let error = KeyLogFile::open(path).unwrap_err();
            assert!(matches!(error, KeyLogError::NotAFile { .. }), "{error}");
        }
        assert!(!folder.path().join("nothing").exists());
        let nowhere = KeyLogFile::open(&folder.path().join("no/such/folder")).unwrap_err();
        assert!(matches!(nowhere, KeyLogError::Io { action: "create", .. }));
    }
}
