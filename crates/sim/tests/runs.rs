//! Whole runs of small networks.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use std::time::{Duration, Instant};

use falconet_sim::latency::{Run, Schedule, run};
use falconet_sim::statistics::{overhead, summarise};
use falconet_sim::{Costs, LaneUse, Link, Loss, Topology, WorldConfig, WorldError};

const SCHEDULE: Schedule = Schedule {
    messages: 3,
    interval: Duration::from_millis(500),
    payload_len: 100_000,
};

#[expect(clippy::disallowed_methods, reason = "the one instant that a run needs")]
fn config(nodes: usize, lanes: LaneUse, seed: u64) -> WorldConfig {
    let topology = Topology::buckets(nodes, 5, Duration::from_millis(20));
    WorldConfig::new(topology, lanes, Costs::reference().unwrap(), seed, Instant::now())
}

fn ran(config: WorldConfig) -> Run {
    run(config, SCHEDULE, |_| {}).unwrap()
}

/// Guards the engines as well: whatever they draw from the system's entropy or order by its hasher shows here.
#[test]
fn one_seed_is_one_run_and_another_seed_is_another() {
    let fingerprint = |seed| {
        let mut config = config(7, LaneUse::Auth, seed);
        config.link.loss = Loss::Independent(0.05);
        config.link.jitter = Duration::from_millis(3);
        ran(config).fingerprint
    };
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}

#[test]
fn every_receiver_gets_every_payload_no_sooner_than_light_brings_it() {
    let run = ran(config(10, LaneUse::Auth, 1));
    // Two of the ten stand in the leader's bucket.
    assert_eq!(
        (run.samples.len(), run.lost, run.corrupt, run.dropped),
        (3 * 8, 0, 0, 0)
    );
    for sample in &run.samples {
        let floor = Duration::from_millis(20) * sample.site as u32;
        assert!(sample.latency > floor, "{sample:?}");
        assert!(sample.latency < floor + Duration::from_millis(200), "{sample:?}");
        assert_eq!(sample.stages.total(), sample.latency, "{sample:?}");
    }
}

#[test]
fn authentication_costs_a_few_percent_at_most_on_the_same_seeds() {
    let [auth, plain] = [LaneUse::Auth, LaneUse::Plain].map(|lanes| ran(config(10, lanes, 1)));
    let (mean, _) = overhead(&plain.samples, &auth.samples).unwrap();
    assert!(mean.value > 0.0 && mean.value < 3.0, "{mean:?}");
    // 32 bytes a datagram.
    let ratio = auth.leader_bytes as f64 / plain.leader_bytes as f64;
    assert!((1.01..1.03).contains(&ratio), "{ratio}");
}

#[test]
fn modelled_ciphers_give_the_same_latencies() {
    let real = summarise(&ran(config(10, LaneUse::Auth, 1)).samples).unwrap();
    let mut modelled = config(10, LaneUse::Auth, 1);
    modelled.model_crypto = true;
    let modelled = summarise(&ran(modelled).samples).unwrap();
    let ratio = modelled.mean.value / real.mean.value;
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn a_fifth_of_the_datagrams_lost_loses_no_payload() {
    let mut config = config(10, LaneUse::Auth, 1);
    config.link.loss = Loss::Independent(0.2);
    let run = ran(config);
    assert_eq!((run.lost, run.corrupt), (0, 0));
}

#[test]
fn half_the_rate_takes_longer() {
    let mean = |rate| {
        let mut config = config(10, LaneUse::Plain, 1);
        config.link = Link {
            rate,
            ..Link::default()
        };
        summarise(&ran(config).samples).unwrap().mean.value
    };
    assert!(mean(100_000_000) > mean(1_000_000_000) + 10.0);
}

#[test]
fn shared_cores_are_slower_than_own_ones() {
    let mean = |cores| {
        let mut config = config(10, LaneUse::Auth, 1);
        // All in one place: everybody decodes at the same time.
        config.topology = Topology::buckets(10, 1, Duration::ZERO);
        config.shared_cores = cores;
        summarise(&ran(config).samples).unwrap().mean.value
    };
    assert!(mean(Some(1)) > 1.5 * mean(None));
}

#[test]
fn a_description_that_is_no_network_is_refused() {
    let lonely = config(1, LaneUse::Auth, 1);
    assert!(matches!(run(lonely, SCHEDULE, |_| {}), Err(WorldError::Nodes(1))));
    let mut uneven = config(4, LaneUse::Auth, 1);
    uneven.stakes.pop();
    let error = run(uneven, SCHEDULE, |_| {}).unwrap_err().to_string();
    assert_eq!(error, "stakes has 3 entries for 4 nodes");
    for payload_len in [0, (3 << 20) + 1] {
        let schedule = Schedule {
            payload_len,
            ..SCHEDULE
        };
        let error = run(config(4, LaneUse::Auth, 1), schedule, |_| {}).unwrap_err();
        assert!(matches!(error, WorldError::Payload(_)), "{error}");
    }
}
