//! Small clusters over real sockets, through the binary that people run.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `falconet cluster` with three nodes and a report, and gives both.
fn cluster(arguments: &[&str]) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let output = Command::new(env!("CARGO_BIN_EXE_falconet"))
        .args(["cluster", "--nodes", "3", "--interval", "50ms", "--json"])
        .arg(&json)
        .args(arguments)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&json).unwrap_or_default();
    (output, serde_json::from_str(&text).unwrap_or(Value::Null))
}

#[track_caller]
fn intact(arguments: &[&str], lanes: &[&str], count: u64) -> Value {
    let (output, report) = cluster(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    let names: Vec<_> = report["lanes"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(names, lanes);
    for lane in lanes {
        let lane = &report["lanes"][lane];
        assert_eq!(
            (&lane["count"], &lane["lost"], &lane["corrupt"]),
            (&count.into(), &0.into(), &0.into())
        );
    }
    report
}

fn file(folder: &Path, content: &[u8]) -> String {
    let path = folder.join("payload.bin");
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn one_byte_arrives_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    let payload = file(folder.path(), b"!");
    for (mode, lanes) in [("both", &["auth", "plain"][..]), ("mixed", &["mixed"])] {
        intact(
            &["--payload", &payload, "--rounds", "2", "--lanes", mode],
            lanes,
            4,
        );
    }
}

#[test]
fn a_file_of_many_symbols_arrives_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..100_000_u32)
        .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
        .collect();
    let payload = file(folder.path(), &content);
    for (mode, lanes) in [("both", &["auth", "plain"][..]), ("mixed", &["mixed"])] {
        let report = intact(
            &["--payload", &payload, "--rounds", "2", "--lanes", mode],
            lanes,
            4,
        );
        assert_eq!(report["config"]["payload_bytes"], 400_000);
    }
}

#[test]
fn the_largest_file_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let payload = file(folder.path(), &vec![0xa5; 3 * 1024 * 1024]);
    intact(
        &["--payload", &payload, "--rounds", "1", "--lanes", "mixed"],
        &["mixed"],
        2,
    );
}

#[test]
fn the_other_suite_carries_payloads_too() {
    intact(
        &[
            "--size", "64KiB", "--rounds", "2", "--lanes", "auth", "--suite", "aes",
        ],
        &["auth"],
        4,
    );
}

#[test]
fn payloads_arrive_over_links_that_lose_and_delay() {
    let arguments = "--size 256KiB --rounds 3 --lanes auth --loss 0.1 --bucket-ms 5 --buckets 3 --rate 1Gbps";
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    let report = intact(&arguments, &["auth"], 6);
    // Node 2 is two buckets away from the leader, and node 1 one: nothing can arrive before that.
    let lane = &report["lanes"]["auth"];
    assert!(
        lane["p50_ms"].as_f64().unwrap() >= 5.0 && lane["max_ms"].as_f64().unwrap() >= 10.0,
        "{lane}"
    );
}

#[test]
fn the_report_has_the_promised_shape_and_the_frame_costs_32_bytes() {
    let report = intact(
        &["--size", "200000", "--rounds", "3", "--seed", "9"],
        &["auth", "plain"],
        6,
    );
    for lane in ["auth", "plain"] {
        let lane = &report["lanes"][lane];
        for field in [
            "mean_ms", "std_ms", "p50_ms", "p70_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms",
        ] {
            assert!(
                lane[field].as_f64().is_some_and(|ms| ms >= 0.0),
                "{field}: {lane}"
            );
        }
        assert!(lane["p50_ms"].as_f64() <= lane["p99_ms"].as_f64());
        assert!(lane["redundancy"].as_f64().unwrap() >= 2.5);
        assert!(lane["datagrams_per_payload"].as_f64().unwrap() >= 300.0);
        assert!(lane["cluster_bytes_per_payload"].as_f64() >= lane["bytes_per_payload"].as_f64());
    }
    let overhead = |lane: &str| {
        report["lanes"][lane]["overhead_bytes_per_datagram"]
            .as_f64()
            .unwrap()
    };
    assert!(
        (overhead("auth") - overhead("plain") - 32.0).abs() < 0.01,
        "{report}"
    );
    let config = &report["config"];
    assert_eq!(
        (&config["nodes"], &config["seed"], &config["lanes"]),
        (&3.into(), &9.into(), &"both".into())
    );
}

#[test]
fn the_table_has_a_row_a_lane_and_fits_a_terminal() {
    let (output, _) = cluster(&["--size", "2kB", "--rounds", "2"]);
    let table = String::from_utf8(output.stdout).unwrap();
    for lane in ["auth ", "plain"] {
        let is_row = |line: &&str| line.starts_with(lane) && line.split_whitespace().nth(1) == Some("4");
        assert_eq!(table.lines().filter(is_row).count(), 1, "{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_with_what_was_measured() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let mut child = Command::new(env!("CARGO_BIN_EXE_falconet"))
        .args([
            "cluster",
            "--nodes",
            "2",
            "--size",
            "1kB",
            "--rounds",
            "1000000",
            "--interval",
            "20ms",
        ])
        .args(["--lanes", "plain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines();
    progress
        .find(|line| line.as_ref().is_ok_and(|line| line.contains("round")))
        .unwrap()
        .unwrap();
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    assert!(
        progress
            .last()
            .unwrap()
            .unwrap()
            .starts_with("error: interrupted")
    );

    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .any(|line| line.starts_with("plain"))
    );
}
