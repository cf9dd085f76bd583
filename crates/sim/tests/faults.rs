//! Sessions and payloads while nodes and links fail.

use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_raptorcast::{Event, ExpiryReason, Round};
use falconet_sim::{Costs, LaneUse, Report, Time, Topology, World, WorldConfig};

const NODES: usize = 5;

#[expect(clippy::disallowed_methods, reason = "the one instant that a run needs")]
#[allow(clippy::unwrap_used, reason = "a panic is the report")]
fn config(lanes: LaneUse) -> WorldConfig {
    let topology = Topology::buckets(NODES, NODES, Duration::from_millis(20));
    let mut config = WorldConfig::new(topology, lanes, Costs::reference().unwrap(), 7, Instant::now());
    config.payload_len = 20_000;
    config
}

#[allow(clippy::unwrap_used, reason = "a panic is the report")]
fn world(lanes: LaneUse) -> World {
    World::new(config(lanes)).unwrap()
}

fn run_for(world: &mut World, length: Duration) {
    let end = world.now() + length;
    world.run_until(end);
}

fn settled(lanes: LaneUse) -> World {
    let mut world = world(lanes);
    world.run_until(Time::START + Duration::from_secs(4));
    world
}

fn all_connected(world: &World) -> bool {
    (0..NODES).all(|a| (0..NODES).all(|b| a == b || world.is_connected(a, b)))
}

/// Who delivers what node 0 broadcasts in `round`.
fn deliveries(world: &mut World, round: u32) -> Vec<usize> {
    let epoch = world.epoch();
    while world.poll_report().is_some() {}
    world.broadcast(
        0,
        epoch,
        Round::from(round),
        Bytes::from(vec![round as u8; 20_000]),
    );
    run_for(world, Duration::from_secs(2));
    let mut nodes = Vec::new();
    while let Some(report) = world.poll_report() {
        if let Report::Delivered { node, delivery, .. } = report {
            assert_eq!(delivery.payload, vec![round as u8; 20_000]);
            nodes.push(node);
        }
    }
    nodes.sort_unstable();
    nodes
}

#[test]
fn all_nodes_have_sessions_with_all_and_hear_all() {
    let mut world = settled(LaneUse::Auth);
    assert!(all_connected(&world));
    assert_eq!(deliveries(&mut world, 1), [1, 2, 3, 4]);
}

/// seeds.md A: one-sided restarts; the survivor's sessions are to nobody until the newcomer dials.
#[test]
fn a_restart_with_or_without_its_disk_heals_within_twenty_seconds() {
    for keeps_disk in [true, false] {
        let mut world = settled(LaneUse::Auth);
        world.crash(3);
        run_for(&mut world, Duration::from_secs(5));
        assert_eq!(deliveries(&mut world, 1), [1, 2, 4]);
        world.restart(3, keeps_disk).unwrap();
        run_for(&mut world, Duration::from_secs(20));
        assert!(all_connected(&world), "keeps_disk {keeps_disk}");
        assert_eq!(deliveries(&mut world, 2), [1, 2, 3, 4]);
    }
}

#[test]
fn a_restart_without_disk_whose_clock_has_gone_back_heals_by_the_peers_own_dials() {
    let mut world = settled(LaneUse::Auth);
    world.crash(3);
    world.set_skew(3, -3_600_000_000_000);
    run_for(&mut world, Duration::from_secs(1));
    world.restart(3, false).unwrap();
    // The peers refuse its timestamps, and dial it back.
    run_for(&mut world, Duration::from_secs(20));
    assert!(all_connected(&world));
}

#[test]
fn a_partition_longer_than_a_session_heals_by_itself() {
    let mut world = settled(LaneUse::Auth);
    for other in 0..4 {
        world.set_loss(4, other, 1.0);
        world.set_loss(other, 4, 1.0);
    }
    run_for(&mut world, Duration::from_secs(400));
    assert!(!world.is_connected(4, 0) && world.is_connected(1, 0));
    for other in 0..4 {
        world.set_loss(4, other, 0.0);
        world.set_loss(other, 4, 0.0);
    }
    run_for(&mut world, Duration::from_secs(20));
    assert!(all_connected(&world));
    assert_eq!(deliveries(&mut world, 1), [1, 2, 3, 4]);
}

#[test]
fn a_node_that_was_frozen_takes_up_where_it_was() {
    let mut world = settled(LaneUse::Auth);
    world.freeze(2, Duration::from_secs(180));
    run_for(&mut world, Duration::from_secs(200));
    assert!(!world.is_frozen(2));
    assert!(all_connected(&world));
    assert_eq!(deliveries(&mut world, 1), [1, 2, 3, 4]);
}

#[test]
fn a_payload_of_which_too_little_arrives_is_given_up_with_its_reason() {
    let mut world = settled(LaneUse::Plain);
    for from in 0..4 {
        world.set_loss(from, 4, 0.9);
    }
    assert_eq!(deliveries(&mut world, 1), [1, 2, 3]);
    run_for(&mut world, Duration::from_secs(20));
    let mut reasons = Vec::new();
    while let Some(report) = world.poll_report() {
        if let Report::Cast { node, event, .. } = report
            && let Event::Expired(expiry) = *event
        {
            reasons.push((node, expiry.reason));
        }
    }
    assert_eq!(reasons, [(4, ExpiryReason::TimedOut)]);
}

#[test]
fn a_rekey_storm_loses_no_payload() {
    let mut world = settled(LaneUse::Auth);
    for round in 1..=5 {
        for node in 0..NODES {
            (0..NODES)
                .filter(|peer| *peer != node)
                .for_each(|peer| world.rekey(node, peer));
        }
        assert_eq!(deliveries(&mut world, round), [1, 2, 3, 4]);
    }
}

#[test]
fn a_node_with_a_new_address_is_lost_until_its_record_says_so_or_may_roam() {
    let config = |roams| {
        let mut config = config(LaneUse::Auth);
        config.roams[3] = roams;
        config
    };
    let mut silent = World::new(config(false)).unwrap();
    silent.run_until(Time::START + Duration::from_secs(4));
    silent.move_address(3, 1);
    assert_eq!(deliveries(&mut silent, 1), [1, 2, 4]);
    silent.publish_record(3, true);
    run_for(&mut silent, Duration::from_secs(20));
    assert!(all_connected(&silent));
    assert_eq!(deliveries(&mut silent, 2), [1, 2, 3, 4]);

    let mut roaming = World::new(config(true)).unwrap();
    roaming.run_until(Time::START + Duration::from_secs(4));
    roaming.move_address(3, 1);
    // Others follow with the first datagram that it sends them.
    let epoch = roaming.epoch();
    roaming.broadcast(3, epoch, Round::from(1), Bytes::from(vec![9; 20_000]));
    run_for(&mut roaming, Duration::from_secs(1));
    assert_eq!(deliveries(&mut roaming, 2), [1, 2, 3, 4]);
}

#[test]
fn every_counter_is_looked_at_and_every_table_has_room() {
    let mut world = settled(LaneUse::Auth);
    world.watch_counters();
    assert_eq!(deliveries(&mut world, 1), [1, 2, 3, 4]);
    assert!(world.watched_counters() > 100);
    assert_eq!(world.take_reused_counters(), []);
    for node in 0..NODES {
        let tables = world.tables(node);
        assert!(tables.iter().all(|table| table.used <= table.cap), "{tables:?}");
        let used = |name| tables.iter().find(|table| table.name == name).unwrap().used;
        // The author remembers its own in another place.
        let remembered = usize::from(node != 0);
        assert_eq!((used("holders"), used("remembered_messages")), (4, remembered));
    }
}
