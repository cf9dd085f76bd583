//! The published experiment: one leader, a payload every interval, and how long it takes to each receiver.

use std::time::Duration;

use bytes::Bytes;
use falconet_raptorcast::{Event, Round};
use rand_core::Rng;

use crate::config::WorldConfig;
use crate::digest::Fingerprint;
use crate::seed;
use crate::stages::Stages;
use crate::time::Time;
use crate::world::{Report, World, WorldError};

/// The node that broadcasts; it stands in the first site.
const LEADER: usize = 0;
/// How long after the last broadcast a payload may still come.
const GRACE: Duration = Duration::from_secs(10);

/// What is broadcast, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Payloads.
    pub messages: u32,
    /// From one to the next.
    pub interval: Duration,
    /// Bytes of each.
    pub payload_len: usize,
}

/// One payload at one receiver.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Which payload, from 0.
    pub message: u32,
    /// Where.
    pub node: usize,
    /// In which site.
    pub site: usize,
    /// From before encoding until it was delivered.
    pub latency: Duration,
    /// What that is the sum of.
    pub stages: Stages,
    /// Bytes on the wire that the node had not received yet do not count; symbols that it had.
    pub symbols: u32,
}

/// What one run gave.
#[derive(Clone, Debug)]
pub struct Run {
    /// Every payload that came whole.
    pub samples: Vec<Sample>,
    /// Payloads that did not come, of receivers that count.
    pub lost: u64,
    /// Payloads that came altered.
    pub corrupt: u64,
    /// Sites that hold a receiver that counts.
    pub sites: Vec<String>,
    /// Bytes that the leader put on the wire for one payload.
    pub leader_bytes: u64,
    /// Bytes that a receiver put on the wire for one payload, on average.
    pub relay_bytes: u64,
    /// CPU time that a payload cost all nodes together, the setting up of sessions left out.
    pub cpu: Duration,
    /// Datagrams and chunks that found a queue full.
    pub dropped: u64,
    /// The digest of all that happened.
    pub fingerprint: Fingerprint,
}

/// Runs the experiment. Receivers in the leader's own site are left out of the statistics, as in the published
/// tables, unless there is no other site. `progress` hears of the virtual time that has passed, from 0 to 1.
///
/// # Errors
///
/// [`WorldError`] if the description is no network, or none that such payloads can be broadcast in.
pub fn run(
    mut config: WorldConfig,
    schedule: Schedule,
    mut progress: impl FnMut(f64),
) -> Result<Run, WorldError> {
    config.payload_len = schedule.payload_len;
    let settled = Time::START + config.settling();
    let mut experiment = Experiment::new(World::new(config)?, schedule);
    experiment.world.run_until(settled);
    let before = experiment.snapshot();
    let rounds = f64::from(schedule.messages) + 1.0;
    for message in 0..schedule.messages {
        experiment.broadcast(message);
        let next = settled + schedule.interval * (message + 1);
        experiment.advance(next);
        progress(f64::from(message + 1) / rounds);
    }
    let end = experiment.world.now() + GRACE;
    while experiment.is_missing_some() && experiment.world.now() < end {
        let step = experiment.world.now() + Duration::from_millis(100);
        experiment.advance(step);
    }
    progress(1.0);
    Ok(experiment.finish(&before))
}

struct Experiment {
    world: World,
    schedule: Schedule,
    payloads: Vec<(Time, Bytes)>,
    samples: Vec<Sample>,
    corrupt: u64,
    /// Sites whose receivers count.
    counts: Vec<bool>,
}

/// What had been spent before the first broadcast.
struct Snapshot {
    bytes: Vec<u64>,
    busy: Duration,
}

impl Experiment {
    fn new(world: World, schedule: Schedule) -> Self {
        let topology = &world.config().topology;
        let sites = topology.sites().len();
        let leaders = topology.site(LEADER);
        let occupied = |site| (0..topology.nodes()).any(|node| node != LEADER && topology.site(node) == site);
        let others = (0..sites).any(|site| site != leaders && occupied(site));
        let counts = (0..sites)
            .map(|site| occupied(site) && !(others && site == leaders))
            .collect();
        Self {
            world,
            schedule,
            payloads: Vec::new(),
            samples: Vec::new(),
            corrupt: 0,
            counts,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let nodes = self.world.config().topology.nodes();
        Snapshot {
            bytes: (0..nodes).map(|node| self.world.wire_bytes(node)).collect(),
            busy: self.world.busy(),
        }
    }

    fn broadcast(&mut self, message: u32) {
        let mut payload = vec![0; self.schedule.payload_len];
        let seed = self.world.config().seed;
        seed::generator(seed, "payload", &[u64::from(message)]).fill_bytes(&mut payload);
        let payload = Bytes::from(payload);
        self.payloads.push((self.world.now(), payload.clone()));
        let epoch = self.world.epoch();
        self.world
            .broadcast(LEADER, epoch, Round::from(message + 1), payload);
    }

    fn advance(&mut self, until: Time) {
        self.world.run_until(until);
        while let Some(report) = self.world.poll_report() {
            match report {
                Report::Delivered {
                    node,
                    at,
                    delivery,
                    stages,
                } => {
                    let message = delivery.round.number() as u32 - 1;
                    let (started, payload) = &self.payloads[message as usize];
                    let site = self.world.config().topology.site(node);
                    if !self.counts[site] {
                        continue;
                    }
                    if delivery.payload != *payload {
                        self.corrupt += 1;
                        continue;
                    }
                    let (latency, symbols) = (at.since(*started), delivery.symbols_received);
                    self.samples.push(Sample {
                        message,
                        node,
                        site,
                        latency,
                        stages,
                        symbols,
                    });
                }
                Report::Cast { event, .. } if matches!(*event, Event::Tainted(_)) => self.corrupt += 1,
                _ => {}
            }
        }
    }

    fn expected(&self) -> u64 {
        let topology = &self.world.config().topology;
        let receivers =
            (0..topology.nodes()).filter(|&node| node != LEADER && self.counts[topology.site(node)]);
        receivers.count() as u64 * u64::from(self.schedule.messages)
    }

    fn is_missing_some(&self) -> bool {
        (self.samples.len() as u64 + self.corrupt) < self.expected()
    }

    fn finish(self, before: &Snapshot) -> Run {
        let nodes = self.world.config().topology.nodes();
        let messages = u64::from(self.schedule.messages.max(1));
        let sent = |node: usize| (self.world.wire_bytes(node) - before.bytes[node]) / messages;
        let relayed: u64 = (0..nodes).filter(|node| *node != LEADER).map(sent).sum();
        let names = self.world.config().topology.sites().iter().zip(&self.counts);
        Run {
            lost: self
                .expected()
                .saturating_sub(self.samples.len() as u64 + self.corrupt),
            corrupt: self.corrupt,
            sites: names
                .filter(|(_, counts)| **counts)
                .map(|(name, _)| name.clone())
                .collect(),
            leader_bytes: sent(LEADER),
            relay_bytes: relayed / (nodes as u64 - 1),
            cpu: (self.world.busy() - before.busy) / messages as u32,
            dropped: (0..nodes).map(|node| self.world.dropped(node)).sum(),
            fingerprint: self.world.fingerprint(),
            samples: self.samples,
        }
    }
}
