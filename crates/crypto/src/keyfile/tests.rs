use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{KEY_LEN, NetworkId, Purpose, Signer};

mod corrupt;

fn identity() -> IdentitySecret {
    IdentitySecret::from_bytes([0x11; KEY_LEN])
}

fn transport() -> TransportSecret {
    TransportSecret::from_bytes([0x22; KEY_LEN])
}

/// A folder with the path of a file that is not there yet.
fn scratch() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.key");
    (folder, path)
}

fn names_in(folder: &TempDir) -> Vec<String> {
    fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn identity_round_trip() {
    let (folder, path) = scratch();
    create_identity(&path, &identity()).unwrap();
    let loaded = load_identity(&path).unwrap();
    assert_eq!(loaded.identity(), identity().identity());
    let network = NetworkId::from_name("a");
    let signature = loaded.sign(Purpose::Chunk, &network, &[b"x"]).unwrap();
    assert_eq!(
        identity()
            .identity()
            .verify(Purpose::Chunk, &network, &[b"x"], &signature),
        Ok(())
    );
    assert_eq!(names_in(&folder), ["node.key"]);
}

#[test]
fn transport_round_trip() {
    let (folder, path) = scratch();
    create_transport(&path, &transport()).unwrap();
    let loaded = load_transport_file(&path).unwrap();
    assert_eq!(loaded.secret.public(), transport().public());
    assert!(!loaded.disposable);
    assert_eq!(load_transport(&path).unwrap().expose(), transport().expose());
    assert_eq!(names_in(&folder), ["node.key"]);
}

#[test]
fn only_disposable_keys_are_disposable() {
    let (_folder, path) = scratch();
    create_disposable_transport(&path, &transport()).unwrap();
    let loaded = load_transport_file(&path).unwrap();
    assert!(loaded.disposable);
    assert_eq!(loaded.secret.public(), transport().public());
}

#[test]
fn files_stay_below_the_buffer_that_reads_them() {
    for text in [
        format::encode_identity(&identity()),
        format::encode_transport(&transport(), false),
        format::encode_transport(&transport(), true),
    ] {
        assert!(text.len() < format::MAX_LEN);
        // Growing would have left a copy of the secret behind.
        assert_eq!(text.capacity(), format::MAX_LEN);
    }
}

#[test]
fn nothing_is_ever_overwritten() {
    let (folder, path) = scratch();
    create_identity(&path, &identity()).unwrap();
    let before = fs::read(&path).unwrap();
    for result in [
        create_identity(&path, &IdentitySecret::from_bytes([5; KEY_LEN])),
        create_transport(&path, &transport()),
        create_disposable_transport(&path, &transport()),
    ] {
        assert!(matches!(result, Err(KeyFileError::Exists { .. })), "{result:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(names_in(&folder), ["node.key"]);
}

#[test]
fn one_of_many_creators_wins() {
    let (folder, path) = scratch();
    let won = std::thread::scope(|scope| {
        let creators: Vec<_> = (0..8u8)
            .map(|n| {
                let path = &path;
                scope.spawn(move || {
                    let secret = TransportSecret::from_bytes([n; KEY_LEN]);
                    create_transport(path, &secret).is_ok().then(|| secret.public())
                })
            })
            .collect();
        creators
            .into_iter()
            .filter_map(|creator| creator.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(won, [load_transport(&path).unwrap().public()]);
    assert_eq!(names_in(&folder), ["node.key"]);
}

#[test]
fn wrong_purpose_names_both() {
    let (_folder, path) = scratch();
    create_identity(&path, &identity()).unwrap();
    let error = load_transport(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("holds an identity key, expected a transport key"),
        "{error}"
    );

    let (_folder, path) = scratch();
    create_transport(&path, &transport()).unwrap();
    assert!(matches!(
        load_identity(&path),
        Err(KeyFileError::WrongPurpose {
            expected: KeyPurpose::Identity,
            found: KeyPurpose::Transport,
            ..
        })
    ));
}

#[test]
fn folders_and_missing_files() {
    let (folder, path) = scratch();
    assert!(matches!(load_identity(&path), Err(KeyFileError::Io { .. })));
    assert!(matches!(
        load_identity(folder.path()),
        Err(KeyFileError::NotAFile { .. })
    ));
    let nowhere = folder.path().join("no/such/folder/key");
    assert!(matches!(
        create_identity(&nowhere, &identity()),
        Err(KeyFileError::Io { .. })
    ));
    assert!(matches!(
        create_identity(folder.path(), &identity()),
        Err(KeyFileError::Exists { .. })
    ));
    let error = load_identity(&path).unwrap_err().to_string();
    assert!(error.contains("node.key: cannot open"), "{error}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn created_for_the_owner_only() {
        let (_folder, path) = scratch();
        create_transport(&path, &transport()).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }

    #[test]
    fn refused_if_others_may_read_or_write() {
        let (_folder, path) = scratch();
        create_transport(&path, &transport()).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o602, 0o601, 0o644, 0o660, 0o777] {
            set_mode(&path, mode);
            match load_transport(&path) {
                Err(KeyFileError::Exposed { mode: found, .. }) => assert_eq!(found, mode),
                other => panic!("{mode:o}: {other:?}"),
            }
        }
        let error = load_transport(&path).unwrap_err().to_string();
        assert!(
            error.contains("mode 0777") && error.contains("chmod 600"),
            "{error}"
        );
        for mode in [0o600, 0o400] {
            set_mode(&path, mode);
            assert!(load_transport(&path).is_ok());
        }
    }

    #[test]
    fn links_are_followed_but_never_written_through() {
        let (folder, path) = scratch();
        create_transport(&path, &transport()).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(load_transport(&link).is_ok());

        let dangling = folder.path().join("dangling");
        symlink(folder.path().join("target"), &dangling).unwrap();
        assert!(matches!(
            create_transport(&dangling, &transport()),
            Err(KeyFileError::Exists { .. })
        ));
        assert!(!folder.path().join("target").exists());
    }
}
