//! Starting with too few descriptors is an error at every point where they can run out, and leaves none behind. Alone
//! in its process, whose descriptors it uses up.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod nodes;

use std::fs::File;
use std::process::Command;

use falconet_dataplane::StartError;
use nodes::*;

const CHILD: &str = "FALCONET_FEW_DESCRIPTORS";

#[test]
fn running_out_of_descriptors_is_a_typed_error_that_leaves_none_behind() {
    if std::env::var_os(CHILD).is_some() {
        return use_them_up();
    }
    let this = std::env::current_exe().unwrap();
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 100; exec \"$0\" --nocapture"])
        .arg(this)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
}

fn use_them_up() {
    // Whatever is made once for the process.
    try_start(1, config()).unwrap().shutdown();
    let mut held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let (mut refused, mut needed) = (0, None);
    for left in 1..=60 {
        held.pop();
        match try_start(1, config()) {
            Ok(dataplane) => {
                dataplane.shutdown();
                needed.get_or_insert(left);
            }
            Err(StartError::Bind { .. } | StartError::Thread(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused >= 10 && needed.is_some(), "{refused} {needed:?}");
    let again = std::iter::from_fn(|| File::open("/dev/null").ok());
    assert_eq!(again.collect::<Vec<_>>().len(), 60, "every descriptor is back");
}
