//! `falconet node`: processes that talk to each other, are killed, frozen and told to change.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod daemon;

use daemon::{Daemon, Network};
use serde_json::Value;

#[test]
fn every_node_delivers_what_the_others_publish_and_stops_when_told_to() {
    let network = Network::new(3);
    let mut nodes: Vec<_> = (0..3).map(|number| network.start(number, "")).collect();
    for node in &mut nodes {
        node.wait_for(2, "connected");
    }
    for node in &mut nodes {
        node.wait_for(4, "delivered");
    }
    for node in &mut nodes {
        node.signal("TERM");
        assert!(node.ended().success());
        assert_eq!(node.last()["event"], "stopped");
    }
    let published: Vec<_> = nodes.iter().flat_map(|node| node.all("published")).collect();
    for node in &nodes {
        for delivered in node.all("delivered") {
            let same =
                |one: &&Value| one["round"] == delivered["round"] && one["sha256"] == delivered["sha256"];
            assert!(published.iter().any(|one| same(&one)) || delivered["latency_ms"].is_f64());
            assert_eq!(delivered["bytes"], 40_000);
            assert!(
                network
                    .identities
                    .iter()
                    .any(|identity| delivered["author"] == **identity)
            );
        }
        let delivered = node.all("delivered");
        let mut rounds: Vec<_> = delivered
            .iter()
            .map(|one| one["round"].as_u64().unwrap())
            .collect();
        rounds.sort_unstable();
        rounds.dedup();
        assert_eq!(rounds.len(), delivered.len(), "nothing is delivered twice");
        assert!(!node.log().contains("ERROR"), "{}", node.log());
    }
}

#[test]
fn a_killed_node_comes_back_and_signs_no_round_twice() {
    let network = Network::new(3);
    let state = "state = \"node.state\"\n";
    let mut steady: Vec<_> = (0..2).map(|number| network.start(number, state)).collect();
    let mut first = network.start(2, state);
    first.wait_for(2, "published");
    first.signal("KILL");
    first.ended();
    for node in &mut steady {
        node.forget();
    }
    let mut second = network.start(2, state);
    second.wait_for(2, "delivered");
    second.wait_for(2, "published");
    for node in &mut steady {
        node.wait_until("a payload of the one that came back", |line| {
            line["event"] == "delivered" && line["author"] == *network.identities[2]
        });
    }
    let rounds = |node: &Daemon| -> Vec<_> {
        node.all("published")
            .iter()
            .map(|one| one["round"].as_u64().unwrap())
            .collect()
    };
    let last = rounds(&first).into_iter().max().unwrap();
    assert!(rounds(&second).iter().all(|&round| round > last));
    assert!(second.all("publish_failed").is_empty());
}

#[test]
fn a_frozen_node_goes_on_when_it_thaws() {
    let network = Network::new(3);
    let mut nodes: Vec<_> = (0..3).map(|number| network.start(number, "")).collect();
    nodes[2].wait_for(1, "delivered");
    nodes[2].signal("STOP");
    nodes[0].forget();
    nodes[0].wait_for(3, "published");
    nodes[2].signal("CONT");
    nodes[2].forget();
    nodes[2].wait_for(2, "delivered");
    nodes[0].wait_until("a payload of the one that thawed", |line| {
        line["event"] == "delivered" && line["author"] == *network.identities[2]
    });
}

#[test]
fn a_hangup_adds_peers_and_a_wrong_file_changes_nothing() {
    let network = Network::new(3);
    let whole = network.config(0, "");
    network.write(0, &network.without_peer(&whole, 1));
    let mut node = network.start_as_written(0);
    let mut others: Vec<_> = (1..3).map(|number| network.start(number, "")).collect();
    node.wait_for(1, "connected");

    network.write(0, &format!("{whole}\nnonsense = 1\n"));
    node.signal("HUP");
    let failed = node.wait_for(1, "reload_failed").pop().unwrap();
    assert!(failed["error"].as_str().unwrap().contains("line "), "{failed}");

    network.write(0, &whole);
    node.signal("HUP");
    let reloaded = node.wait_for(1, "reloaded").pop().unwrap();
    assert_eq!(reloaded["peers_added"], 1);
    node.wait_for(2, "connected");
    others[0].wait_for(2, "connected");
}

#[test]
fn peers_can_come_from_records_and_a_later_record_reaches_them() {
    let network = Network::new(2);
    let record = |served: bool| format!("[record]\nfile = \"own.record\"\nserves_authenticated = {served}\n");
    let mut publisher = network.start(1, &record(true));
    publisher.wait_for(1, "record_published");

    let path = network.folder(1).join("own.record");
    let config = network.without_peer(&network.config(0, ""), 1);
    network.write(
        0,
        &format!("{config}\n[[peers]]\nrecord = \"{}\"\n", path.display()),
    );
    let mut reader = network.start_as_written(0);
    reader.wait_for(1, "connected");
    reader.wait_for(1, "delivered");

    network.write(1, &network.config(1, &record(false)));
    publisher.signal("HUP");
    let later = publisher.wait_for(2, "record_published").pop().unwrap();
    reader.wait_until("the record that takes the lane back", |line| {
        line["event"] == "record_accepted" && line["sequence"] == later["sequence"]
    });
}

#[test]
fn nodes_of_the_plain_lane_and_of_both_reach_each_other() {
    let network = Network::new(3);
    network.write(2, &network.plain_only(2));
    let mut old = network.start_as_written(2);
    let mut new: Vec<_> = (0..2)
        .map(|number| {
            network.write(
                number,
                &network.config(number, "stats = { interval = \"500ms\", peers = true }\n"),
            );
            network.start_as_written(number)
        })
        .collect();
    old.wait_for(4, "delivered");
    for node in &mut new {
        node.wait_until("a payload of the old node", |line| {
            line["event"] == "delivered" && line["author"] == *network.identities[2]
        });
        node.wait_until("datagrams on both lanes", |line| {
            let sent = |lane: &str| line[lane]["datagrams_sent"].as_u64().unwrap_or(0);
            line["event"] == "stats" && sent("authenticated") > 0 && sent("plain") > 0
        });
        assert!(
            node.all("connected")
                .iter()
                .all(|one| one["peer"] != *network.identities[2])
        );
    }
}

#[test]
fn a_check_starts_nothing_and_says_what_is_wrong_in_one_line() {
    let network = Network::new(2);
    let right = network.config(0, "");
    let checked = |text: &str| {
        network.write(0, text);
        let output = network.check(0);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(checked(&right), (Some(0), String::new()));

    let identity = &network.identities[1];
    let peer = format!("[[peers]]\nidentity = \"{identity}\"\n");
    for (text, part) in [
        (format!("colour = 1\n{right}"), "line 1: unknown field `colour`"),
        (right.replace(&**identity, "somebody"), "this is no identity"),
        (right.replace("identity.key", "absent.key"), "absent.key"),
        (right.replace("identity.key", "transport.key"), "transport.key"),
        (format!("rate = \"fast\"\n{right}"), "line 1: allowed: 1Mbps"),
        (format!("listen = \"localhost\"\n{right}"), "line"),
        (format!("redundancy = 90.0\n{right}"), "redundancy: allowed"),
        (format!("{right}\n{peer}"), "is there twice"),
        (
            format!("{right}\n[[peers]]\nrecord = \"none\"\n"),
            "record none: No such file",
        ),
        (
            format!("{right}\n[[peers]]\nplain = \"1.2.3.4:5\"\n"),
            "either a record or an identity",
        ),
        (
            right.replace("size = ", "payload = \"x\"\nsize = "),
            "either payload or size",
        ),
        (right.replace("stake = 1", "stake = -1"), "stake"),
        ("identity = ".to_owned(), "line 1"),
        ("\u{0}".repeat(100), "line 1"),
    ] {
        let (code, stderr) = checked(&text);
        assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{part}: {stderr}");
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn an_address_in_use_is_a_failure_to_start() {
    let network = Network::new(2);
    let mut first = network.start(0, "");
    first.wait_for(1, "started");
    let mut second = network.start_as_written(0);
    assert_eq!(second.ended().code(), Some(1));
    assert!(second.log().contains("did not start"), "{}", second.log());
}
