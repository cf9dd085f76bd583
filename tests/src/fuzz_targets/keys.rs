//! Keys as text and as files: what is accepted is exactly what would be written.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{Seek, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;

use falconet_crypto::keyfile::{create_disposable_transport, create_identity, create_transport};
use falconet_crypto::keyfile::{load_identity, load_transport};
use falconet_crypto::{IdentityKey, IdentitySecret, Signer, TransportPublicKey, TransportSecret, blake2s};
use tempfile::NamedTempFile;

use super::Script;

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a temporary file"));
}

/// One key file of each kind.
static FILES: LazyLock<[Vec<u8>; 3]> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = |name: &str, create: &dyn Fn(&Path)| {
        let path = folder.path().join(name);
        create(&path);
        std::fs::read(path).expect("it was written")
    };
    let (identity, transport) = (
        IdentitySecret::from_bytes([1; 32]),
        TransportSecret::from_bytes([2; 32]),
    );
    [
        written("identity", &|path| {
            create_identity(path, &identity).expect("a new file")
        }),
        written("transport", &|path| {
            create_transport(path, &transport).expect("a new file")
        }),
        written("disposable", &|path| {
            create_disposable_transport(path, &transport).expect("a new file")
        }),
    ]
});

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    match script.byte() % 4 {
        0 => parse_text(&String::from_utf8_lossy(script.rest())),
        1 => alter_text(&mut script),
        2 => load(script.rest()),
        _ => alter_file(&mut script),
    }
}

fn parse_text(text: &str) {
    parse_as::<IdentityKey>(text);
    parse_as::<TransportPublicKey>(text);
}

fn parse_as<K: FromStr + Display>(text: &str) -> bool {
    let parsed = text.parse::<K>();
    if let Ok(key) = &parsed {
        assert_eq!(key.to_string(), text, "two texts for one key");
    }
    parsed.is_ok()
}

/// A key with up to four wrong characters is never taken for another key: that is what the checksum promises.
fn alter_text(script: &mut Script<'_>) {
    let genuine = IdentityKey::from_bytes(script.array()).to_string();
    assert!(parse_as::<IdentityKey>(&genuine), "a written key is read");
    assert!(
        !parse_as::<TransportPublicKey>(&genuine),
        "an identity was taken for a transport key"
    );
    let mut altered = genuine.clone().into_bytes();
    for _ in 0..script.byte() % 5 {
        let at = script.place(altered.len());
        altered[at] = script.byte() % 0x80;
    }
    let altered = String::from_utf8(altered).expect("ASCII");
    assert_eq!(parse_as::<IdentityKey>(&altered), altered == genuine);
    parse_as::<TransportPublicKey>(&altered);
}

/// A file that loads is, byte for byte, a file that would have been written for that secret.
fn load(bytes: &[u8]) {
    FILE.with_borrow_mut(|file| {
        file.rewind()
            .and_then(|()| file.as_file().set_len(0))
            .expect("our own file");
        file.write_all(bytes).expect("our own file");
        let (identity, transport) = (load_identity(file.path()), load_transport(file.path()));
        assert!(identity.is_err() || transport.is_err(), "one file holds two keys");
        let public = match (identity, transport) {
            (Ok(identity), _) => identity.identity().to_string(),
            (_, Ok(transport)) => transport.public().to_string(),
            _ => return,
        };
        let text = std::str::from_utf8(bytes).expect("a key file is ASCII");
        assert_eq!(
            text.lines()
                .filter(|line| *line == format!("public: {public}"))
                .count(),
            1
        );
        assert_eq!(with_checksum(bytes), bytes, "the checksum is wrong");
    });
}

fn alter_file(script: &mut Script<'_>) {
    let mut file = FILES[script.place(FILES.len())].clone();
    let repairs_checksum = script.byte() % 2 == 1;
    script.patch(&mut file);
    load(&if repairs_checksum {
        with_checksum(&file)
    } else {
        file
    });
}

/// The file with its last line made right, as somebody who edits it by hand might.
fn with_checksum(file: &[u8]) -> Vec<u8> {
    let last_line = file[..file.len().saturating_sub(1)]
        .iter()
        .rposition(|byte| *byte == b'\n');
    let lines = &file[..last_line.map_or(0, |end| end + 1)];
    let checksum: String = blake2s(&[lines])[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    [lines, format!("checksum: {checksum}\n").as_bytes()].concat()
}

/// Texts and files of each kind, sound and altered.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let (identity, transport) = (
        IdentityKey::from_bytes([1; 32]),
        TransportPublicKey::from_bytes([2; 32]),
    );
    for text in [
        identity.to_string(),
        transport.to_string(),
        identity.to_string().to_uppercase(),
    ] {
        seeds.push([&[0], text.as_bytes()].concat());
        seeds.push([&[0], &text.as_bytes()[..text.len() - 1]].concat());
    }
    for typos in 0..5 {
        seeds.push(
            [
                &[1],
                &[9; 32][..],
                &[typos, 4, b'q', 20, b'p', 40, b'z', 61, b'1'],
            ]
            .concat(),
        );
    }
    for (kind, file) in (0u8..).zip(FILES.iter()) {
        seeds.push([&[2], &file[..]].concat());
        seeds.extend([0u8, 27, 40, 60, 100, 150, 200].map(|at| vec![3, kind, 1, 1, at, 0, 2]));
    }
    seeds
}
