//! `falconet sim` as a user runs it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output};

fn falconet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_falconet"))
        .args(arguments)
        .output()
        .unwrap()
}

fn latency(more: &[&str]) -> Output {
    let small = [
        "sim",
        "latency",
        "--nodes",
        "6",
        "--buckets",
        "3",
        "--size",
        "100KiB",
        "--messages",
        "3",
    ];
    falconet(&[&small[..], more].concat())
}

fn stdout(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn read_json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn both_lanes_are_measured_on_the_same_seeds_and_reported_three_ways() {
    let folder = tempfile::tempdir().unwrap();
    let (json, page) = (folder.path().join("r.json"), folder.path().join("r.html"));
    let output = latency(&[
        "--json",
        json.to_str().unwrap(),
        "--report",
        page.to_str().unwrap(),
    ]);
    let table = stdout(&output);
    assert!(table.lines().any(|line| line.starts_with("auth ")), "{table}");
    assert!(table.contains("authentication adds"), "{table}");
    assert!(
        !table.contains("published"),
        "another geometry is not compared: {table}"
    );

    let report = read_json(&json);
    for lane in ["auth", "plain"] {
        let lane = &report["lanes"][lane];
        // Four receivers are outside the leader's bucket.
        assert_eq!(lane["latency"]["count"], 12, "{lane}");
        assert_eq!((&lane["lost"], &lane["corrupt"]), (&0.into(), &0.into()));
        assert!(lane["latency"]["mean"]["value"].as_f64().unwrap() > 20.0);
    }
    assert!(report["overhead"]["mean_percent"]["value"].as_f64().unwrap() > 0.0);

    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    for outside in ["<script", "http:", "https:", "src=", "@import"] {
        assert!(
            !page.contains(outside),
            "the page loads or runs something: {outside}"
        );
    }
}

#[test]
fn a_seed_names_a_run() {
    let digest = |seed: &str| {
        let table = stdout(&latency(&["--lanes", "auth", "--loss", "0.1", "--seed", seed]));
        table.split("digest ").nth(1).unwrap().to_owned()
    };
    assert_eq!(digest("5"), digest("5"));
    assert_ne!(digest("5"), digest("6"));
}

#[test]
fn a_matrix_and_a_table_of_costs_can_be_files() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = folder.path().join("matrix.csv");
    std::fs::write(&matrix, "site,here,there\nhere,0,100\nthere,100,0\n").unwrap();
    let run = |more: &[&str]| {
        falconet(
            &[
                &[
                    "sim",
                    "latency",
                    "--nodes",
                    "4",
                    "--size",
                    "10kB",
                    "--messages",
                    "2",
                ][..],
                more,
            ]
            .concat(),
        )
    };
    let table = stdout(&run(&["--topology", matrix.to_str().unwrap()]));
    assert!(table.contains("2 sites of"), "{table}");

    let wrong = folder.path().join("costs.json");
    std::fs::write(&wrong, "{}").unwrap();
    let output = run(&["--costs", wrong.to_str().unwrap()]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        line.contains("--costs") && line.contains("missing field"),
        "{line}"
    );
}

#[test]
fn what_is_not_allowed_is_named_with_what_is() {
    for (arguments, expected) in [
        (
            &["--nodes", "1"][..],
            "--nodes 1 is not allowed; allowed: a whole number from 2 to 4096",
        ),
        (
            &["--lanes", "mixed"],
            "--lanes mixed is not allowed; allowed: auth, plain, or auth,plain",
        ),
        (
            &["--rate", "unlimited"],
            "--rate unlimited is not allowed; allowed: 1Mbps to 400Gbps",
        ),
        (
            &["--redundancy", "0.99"],
            "--redundancy 0.99 is not allowed; allowed: 1 to 8",
        ),
        (
            &["--topology", "regions", "--buckets", "3"],
            "--buckets is for --topology buckets alone",
        ),
        (
            &["--topology", "/nowhere/at/all"],
            "--topology /nowhere/at/all is not allowed; allowed: a readable file",
        ),
        (
            &["--topology", "/dev/zero"],
            "--topology /dev/zero is not allowed; allowed: a readable file of at most 1 MiB (it is no regular file)",
        ),
        (&["--costs", "/"], "(it is no regular file)"),
        (
            &["--nodes", "4", "--buckets", "5"],
            "--buckets 5 is not allowed; allowed: at most --nodes, 4",
        ),
    ] {
        let output = falconet(&[&["sim", "latency"][..], arguments].concat());
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        assert!(line.contains(expected), "{arguments:?}: {line}");
        assert!(
            output.stdout.is_empty(),
            "{arguments:?}: nothing starts before all is checked"
        );
    }
}
