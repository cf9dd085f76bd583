//! Wrong use ends with exit code 2 and one line that names the flag, the value and what is allowed.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Command, Output};

fn falconet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_falconet"))
        .args(arguments)
        .output()
        .unwrap()
}

/// The one line that a wrong command line gets.
#[track_caller]
fn refusal(arguments: &[&str]) -> String {
    let output = falconet(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(
        output.stdout.is_empty(),
        "{arguments:?}: nothing starts before all is checked"
    );
    stderr.trim_end().to_owned()
}

#[test]
fn every_flag_refuses_wrong_values_by_name() {
    for (flag, values, allowed) in [
        (
            "--nodes",
            ["1", "101", "-1", "ten", "2.5"],
            "a whole number from 2 to 100",
        ),
        (
            "--size",
            ["0", "3145729", "3.1MiB", "-1", "big"],
            "1 byte to 3MiB",
        ),
        (
            "--rounds",
            ["0", "1000001", "-1", "x", "1e3"],
            "a whole number from 1 to 1000000",
        ),
        ("--interval", ["0s", "5", "2h", "-1s", "soon"], "1ms to 1h"),
        (
            "--lanes",
            ["none", "AUTH", "auth,plain", "0", "-"],
            "auth, plain, both or mixed",
        ),
        ("--suite", ["rot13", "AES", "0", "both", "-"], "chacha or aes"),
        (
            "--bucket-ms",
            ["-1", "1001", "x", "1.5", "20ms"],
            "a whole number of milliseconds from 0 to 1000",
        ),
        (
            "--buckets",
            ["0", "101", "-1", "x", "1.0"],
            "a whole number from 1 to 100",
        ),
        (
            "--loss",
            ["-0.1", "0.6", "1", "NaN", "10%"],
            "a share from 0 to 0.5",
        ),
        (
            "--rate",
            ["0", "1", "-1Gbps", "500Gbps", "fast"],
            "1Mbps to 400Gbps",
        ),
        (
            "--seed",
            ["-1", "18446744073709551616", "x", "0x1", "1.0"],
            "a whole number from 0 to",
        ),
    ] {
        for value in values {
            let line = refusal(&["cluster", flag, value]);
            let expected = format!("error: {flag} {value} is not allowed; allowed: {allowed}");
            assert!(line.starts_with(&expected), "{line}");
        }
    }
}

#[test]
fn an_empty_or_missing_value_is_asked_for() {
    for arguments in [
        &["cluster", "--nodes"][..],
        &["cluster", "--nodes", ""],
        &["cluster", "--nodes="],
    ] {
        assert_eq!(
            refusal(arguments),
            "error: --nodes needs a value; allowed: a whole number from 2 to 100"
        );
    }
}

#[test]
fn rules_across_flags_are_checked() {
    assert!(refusal(&["cluster", "--nodes", "3", "--buckets", "4"]).starts_with("error: --buckets 4 is not"));
    assert!(refusal(&["cluster", "--bucket-ms", "1000"]).starts_with("error: --bucket-ms 1000 is not"));
    let line = refusal(&["cluster", "--size", "1MB", "--payload", "x"]);
    assert!(line.contains("--size") && line.contains("--payload"), "{line}");
}

#[test]
fn payloads_that_cannot_be_broadcast_are_refused_before_any_node_starts() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, large) = (folder.path().join("empty"), folder.path().join("large"));
    std::fs::write(&empty, "").unwrap();
    // Sparse: reading it all would take a while, and need not happen.
    std::fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let missing = folder.path().join("missing");
    for (path, why) in [
        (empty.as_path(), "it has 0 bytes"),
        (large.as_path(), "it has 1099511627776 bytes"),
        (missing.as_path(), "No such file"),
        (folder.path(), "it is a directory"),
        (std::path::Path::new("/dev/zero"), "it is not a regular file"),
    ] {
        let line = refusal(&["cluster", "--payload", path.to_str().unwrap()]);
        assert!(
            line.starts_with(&format!("error: --payload {}", path.display())),
            "{line}"
        );
        assert!(line.contains("1 byte to 3 MiB") && line.contains(why), "{line}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_any_node_starts() {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        folder.path().join("no/such/folder.json"),
        folder.path().to_owned(),
    ] {
        let line = refusal(&["cluster", "--json", path.to_str().unwrap()]);
        assert!(
            line.starts_with(&format!("error: --json {} is not allowed", path.display())),
            "{line}"
        );
    }
}

#[test]
fn unknown_words_are_named_and_line_breaks_do_not_break_the_line() {
    assert!(refusal(&["cluster", "--nodse", "3"]).contains("--nodse"));
    assert!(refusal(&["launch"]).contains("launch"));
    assert!(refusal(&["cluster", "--lanes", "a\nb"]).contains(r#""a\nb""#));
}

#[test]
fn help_and_version_succeed_on_standard_output() {
    for arguments in [
        &["--help"][..],
        &["cluster", "--help"],
        &["keygen", "--help"],
        &["help", "cluster"],
    ] {
        let output = falconet(arguments);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{arguments:?}"
        );
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .contains("Usage: falconet"),
            "{arguments:?}"
        );
    }
    let version = falconet(&["--version"]);
    let expected = format!("falconet {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(version.stdout).unwrap(), expected);
}

#[test]
fn no_command_shows_the_help_and_fails() {
    let output = falconet(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("Usage: falconet")
    );
}
