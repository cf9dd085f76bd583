//! The arrows of the design, read from `cargo metadata`, and the spec anchors, read from the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each crate may depend on inside the workspace (docs/architecture.md, "Crates").
const ARROWS: &[(&str, &[&str])] = &[
    ("crypto", &[]),
    ("pool", &[]),
    ("handshake", &["crypto"]),
    ("auth-framing", &["crypto"]),
    ("transport", &["crypto", "handshake", "auth-framing"]),
    ("raptorcast", &["crypto", "pool"]),
    ("dataplane", &["crypto", "transport", "pool"]),
    (
        "falconet",
        &["crypto", "transport", "dataplane", "raptorcast", "pool"],
    ),
    ("sim", &["crypto", "transport", "raptorcast"]),
    ("cli", &["crypto", "falconet", "sim"]),
];

/// Crates without socket, thread, runtime or clock.
const SANS_IO: &[&str] = &["crypto", "handshake", "auth-framing", "transport"];
const IO_CRATES: &[&str] = &["tokio", "socket2", "quinn-udp", "libc", "crossbeam-channel"];

/// Other implementations: tests and benches run against them, the product never links them.
const PEERS: &[&str] = &["boringtun", "snow", "reed-solomon-simd", "quinn"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the root")
        .to_path_buf()
}

/// Folder name of each workspace package with the names of its normal dependencies.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
            "--locked",
        ])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| (folder(package), normal_dependencies(package)))
        .collect()
}

fn folder(package: &serde_json::Value) -> String {
    let manifest = Path::new(package["manifest_path"].as_str().expect("manifest path"));
    let folder = manifest
        .parent()
        .and_then(Path::file_name)
        .expect("a package has a folder");
    folder.to_string_lossy().into_owned()
}

fn normal_dependencies(package: &serde_json::Value) -> BTreeSet<String> {
    let all = package["dependencies"].as_array().expect("dependencies");
    all.iter()
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn crates_depend_only_along_the_arrows() {
    let dependencies = dependencies();
    for (name, allowed) in ARROWS {
        let ours = dependencies[*name].iter().filter_map(|dependency| {
            let short = dependency.strip_prefix("falconet-").unwrap_or(dependency);
            (dependency == "falconet" || short != dependency).then_some(short)
        });
        for dependency in ours {
            assert!(
                allowed.contains(&dependency),
                "crates/{name} must not depend on crates/{dependency}"
            );
        }
    }
}

#[test]
fn every_crate_of_the_workspace_has_its_arrows_stated() {
    for name in dependencies()
        .keys()
        .filter(|name| !["benches", "tests"].contains(&name.as_str()))
    {
        assert!(
            ARROWS.iter().any(|(known, _)| known == name),
            "crates/{name} is not in ARROWS"
        );
    }
}

#[test]
fn protocol_crates_do_no_io_and_the_product_links_no_peer() {
    for (name, dependencies) in dependencies() {
        for dependency in &dependencies {
            let is_product = ARROWS.iter().any(|(known, _)| *known == name);
            assert!(
                !(is_product && PEERS.contains(&dependency.as_str())),
                "crates/{name} ships {dependency}"
            );
            let is_sans_io = SANS_IO.contains(&name.as_str());
            assert!(
                !(is_sans_io && IO_CRATES.contains(&dependency.as_str())),
                "crates/{name} uses {dependency}"
            );
        }
    }
}

#[test]
fn every_spec_anchor_is_cited_and_every_citation_exists() {
    let anchors = spec_anchors();
    let cited = citations();
    let uncited: Vec<_> = anchors.difference(&cited).collect();
    let dangling: Vec<_> = cited.difference(&anchors).collect();
    assert!(uncited.is_empty(), "rules that no code cites: {uncited:#?}");
    assert!(dangling.is_empty(), "citations without a rule: {dangling:#?}");
}

/// `page.md#anchor` of each `<a id="anchor">` in docs/spec.
fn spec_anchors() -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for page in files(&root().join("docs/spec"), "md") {
        let text = std::fs::read_to_string(&page).expect("a spec page is text");
        let name = page.file_name().expect("a file").to_string_lossy().into_owned();
        for tail in text.split("<a id=\"").skip(1) {
            let anchor = tail.split('"').next().expect("split yields a part");
            anchors.insert(format!("{name}#{anchor}"));
        }
    }
    anchors
}

/// `page.md#anchor` of each citation in the crates' sources.
fn citations() -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    for source in files(&root().join("crates"), "rs") {
        let text = std::fs::read_to_string(&source).expect("a source is text");
        for tail in text.split("docs/spec/").skip(1) {
            let end = tail
                .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.#".contains(c)))
                .unwrap_or(tail.len());
            let citation = tail[..end].trim_end_matches('.');
            if citation.contains(".md#") {
                cited.insert(citation.to_owned());
            }
        }
    }
    cited
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|have| have == extension) {
            found.push(path);
        }
    }
    found
}
