//! Replays the corpus of every fuzz target, and what lies next to it: every truncation of every entry, and a flipped bit
//! in every byte of it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use falconet_tests::fuzz_targets::{TARGETS, Target};

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The corpus of a target, by file name.
fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz_folder().join("corpus").join(target.name);
    let mut entries: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    entries.sort();
    entries
}

/// Runs one input; a failure says how to get it again.
fn check(target: &Target, entry: &str, change: &str, input: &[u8]) {
    let run = AssertUnwindSafe(|| (target.run)(input));
    if catch_unwind(run).is_err() {
        panic!(
            "target {}, entry {entry}, {change}: {}",
            target.name,
            hex::encode(input)
        );
    }
}

fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let entries = corpus(target);
    assert!(entries.len() >= 10, "{name} has no corpus");
    for (entry, bytes) in &entries {
        check(target, entry, "as it is", bytes);
        for len in 0..bytes.len() {
            check(target, entry, "truncated", &bytes[..len]);
        }
        let mut flipped = bytes.clone();
        for at in 0..bytes.len() {
            // Another bit at each place and in each entry, so that all are met.
            let bit = 1 << ((at + bytes.len()) % 8);
            flipped[at] ^= bit;
            check(target, entry, "with one bit flipped", &flipped);
            flipped[at] ^= bit;
        }
    }
}

#[test]
fn handshake_messages() {
    replay("handshake");
}

#[test]
fn data_frames() {
    replay("frame");
}

#[test]
fn chunks() {
    replay("chunk");
}

#[test]
fn peer_records() {
    replay("record");
}

#[test]
fn keys() {
    replay("keys");
}

#[test]
fn operations_on_endpoints() {
    replay("endpoint");
}

#[test]
fn operations_on_engines() {
    replay("engine");
}

#[test]
fn each_target_has_its_program_and_its_corpus() {
    let names = |folder: &str| {
        let entries = fs::read_dir(fuzz_folder().join(folder)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    };
    let mut targets: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    targets.sort_unstable();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
}
