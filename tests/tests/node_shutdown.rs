//! What a node leaves behind when it is shut down or dropped: nothing. Alone in its process, which it counts in.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cast;

use std::fs;

use cast::{BOTH, Setup, broadcast_arrives, eventually, payload, stop};

/// Names that no other thread of this process has.
const PREFIX: &str = "quits";

/// The node threads that run now.
fn node_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // A thread may end while we look.
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .map(|name| name.trim().to_owned())
        .filter(|name| name.starts_with(PREFIX))
        .collect()
}

/// The descriptors that are open now, by what they are.
fn descriptors() -> Vec<String> {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let kind = |target: String| target.split([':', '[']).next().unwrap_or_default().to_owned();
    let targets = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    let mut kinds: Vec<_> = targets
        .map(|target| kind(target.to_string_lossy().into_owned()))
        .collect();
    kinds.sort();
    kinds
}

async fn run_nodes(drops: bool) {
    let mut setup = Setup::new(&[BOTH; 2]);
    setup.build = Box::new(|_, builder| builder.name(PREFIX));
    let mut members = setup.start().await;
    broadcast_arrives(&mut members, 0, 1, &payload(10_000, 1)).await;
    assert!(
        node_threads().len() >= 2 * 3,
        "three threads a node: {:?}",
        node_threads()
    );
    // One that is stopped in the middle of its work stops as well.
    let late = members[1].node.broadcast(1, payload(3 << 20, 1));
    let _ = tokio::time::timeout(std::time::Duration::from_millis(1), late).await;
    if drops {
        drop(members);
    } else {
        stop(members).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_and_drop_leave_no_thread_and_no_descriptor() {
    // The runtime opens its own on first use.
    run_nodes(false).await;
    let before = descriptors();
    for drops in [false, true] {
        run_nodes(drops).await;
        assert_eq!(
            node_threads(),
            Vec::<String>::new(),
            "threads are joined, not left to end"
        );
        eventually("the descriptors are closed", || descriptors() == before).await;
    }
}
