//! Sequences of operations on the engines of three honest validators and the wire between them.
//!
//! Whatever the wire does to chunks: a payload is handed out once, exactly as its author published it, and no honest
//! author is ever accused.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentityKey, IdentitySecret, NetworkId, Now, Signer};
use falconet_raptorcast::{
    Engine, EngineConfig, Epoch, Event, NodeIndex, Recipients, Round, Sender, Stake, Validator, ValidatorSet,
};

use super::Script;
pub use seeds::seeds;

mod seeds;

const NODES: usize = 3;
const MAX_FLIGHTS: usize = 2_048;
const MAX_OPERATIONS: usize = 300;
const MAX_PAYLOAD: usize = 12_000;

static SECRETS: LazyLock<[Arc<IdentitySecret>; NODES]> =
    LazyLock::new(|| [1, 2, 3].map(|byte| Arc::new(IdentitySecret::from_bytes([byte; 32]))));

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let mut cluster = Cluster::new(&mut script);
    for _ in 0..MAX_OPERATIONS {
        if script.is_over() {
            break;
        }
        cluster.step(&mut script);
    }
    cluster.finish();
}

struct Flight {
    from: usize,
    to: usize,
    chunk: Bytes,
}

struct Cluster {
    now: Now,
    set: Arc<ValidatorSet>,
    stakes: [u8; NODES],
    engines: [Engine; NODES],
    flights: Vec<Flight>,
    epoch: u32,
    round: u64,
    published: HashMap<(u32, u64, IdentityKey), Bytes>,
    /// Handed out since the node started.
    delivered: [Vec<(u32, u64, IdentityKey)>; NODES],
}

impl Cluster {
    fn new(script: &mut Script<'_>) -> Self {
        let stakes = [0; NODES].map(|_| script.byte());
        let members = SECRETS.iter().zip(stakes).map(|(secret, stake)| Validator {
            identity: secret.identity(),
            // Not all may be without stake.
            stake: Stake::new(u128::from(stake) + 1),
        });
        let set = Arc::new(ValidatorSet::new(members.collect()).expect("three different members"));
        Self {
            now: Now {
                instant: Instant::now(),
                unix: Duration::from_secs(1_700_000_000),
            },
            engines: [0, 1, 2].map(|node| engine(node, 1, &set)),
            set,
            stakes,
            flights: Vec::new(),
            epoch: 1,
            round: 0,
            published: HashMap::new(),
            delivered: Default::default(),
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let byte = script.byte();
        let (node, operation) = (usize::from(byte) % NODES, usize::from(byte) / NODES);
        match operation % 11 {
            0 => self.broadcast(node, 1 + script.number() % MAX_PAYLOAD, script.byte()),
            1 | 2 => (0..=script.byte()).for_each(|_| self.deliver_next(0, |_| {})),
            3 => {
                let which = script.number();
                self.deliver_next(which, |_| {});
            }
            4 => self.lose(script),
            5 => self.duplicate(script.number()),
            6 => {
                let which = script.number();
                self.deliver_next(which, |flight| {
                    let mut chunk = flight.chunk.to_vec();
                    script.patch(&mut chunk);
                    flight.chunk = chunk.into();
                });
            }
            7 => {
                let which = script.number();
                self.deliver_next(which, |flight| flight.from = node);
            }
            8 => self.advance(script.byte()),
            9 => self.inject(node, script),
            _ => self.disturb(node, script),
        }
        self.collect();
    }

    /// The rare ones.
    fn disturb(&mut self, node: usize, script: &mut Script<'_>) {
        match script.byte() % 3 {
            0 => {
                self.engines[node] = engine(node, self.epoch, &self.set);
                // What it published last, it knows from its disk; what it delivered, it forgets.
                let last = Round::new(self.round).expect("few rounds");
                self.engines[node].resume_after(Epoch::new(self.epoch), last);
                self.delivered[node].clear();
            }
            1 => {
                self.epoch += 1;
                self.engines
                    .iter_mut()
                    .for_each(|engine| engine.set_epoch(Epoch::new(self.epoch), Arc::clone(&self.set)));
            }
            _ => {
                let round = self.round + u64::from(script.byte() % 4);
                self.engines[node].set_round(Round::new(round).expect("few rounds"));
            }
        }
    }

    fn broadcast(&mut self, node: usize, len: usize, filling: u8) {
        self.round += 1;
        let payload: Bytes = (0..len)
            .map(|at| filling.wrapping_mul((at / 64) as u8))
            .collect::<Vec<_>>()
            .into();
        let (epoch, round) = (
            Epoch::new(self.epoch),
            Round::new(self.round).expect("few rounds"),
        );
        if self.engines[node]
            .broadcast(self.now, epoch, round, payload.clone())
            .is_ok()
        {
            self.published
                .insert((self.epoch, self.round, SECRETS[node].identity()), payload);
            let again = self.engines[node].broadcast(self.now, epoch, round, Bytes::from_static(b"another"));
            assert!(again.is_err(), "two payloads for one round");
        }
    }

    fn take(&mut self, which: usize) -> Option<Flight> {
        let len = self.flights.len();
        // Swapping reorders too; the wire may.
        if len == 0 {
            None
        } else {
            Some(self.flights.swap_remove(which % len))
        }
    }

    fn lose(&mut self, script: &mut Script<'_>) {
        let (first, count) = (script.number(), script.byte());
        for _ in 0..count {
            drop(self.take(first));
        }
    }

    fn duplicate(&mut self, which: usize) {
        if !self.flights.is_empty() && self.flights.len() < MAX_FLIGHTS {
            let Flight { from, to, ref chunk } = self.flights[which % self.flights.len()];
            self.flights.push(Flight {
                from,
                to,
                chunk: chunk.clone(),
            });
        }
    }

    fn deliver_next(&mut self, which: usize, alter: impl FnOnce(&mut Flight)) {
        if let Some(mut flight) = self.take(which) {
            alter(&mut flight);
            self.deliver(flight);
        }
    }

    fn deliver(&mut self, flight: Flight) {
        let sender = Sender::Validator(SECRETS[flight.from].identity());
        let _ = self.engines[flight.to].handle_chunk(self.now, sender, flight.chunk);
    }

    /// Bytes of the script as a chunk, on the plain lane.
    fn inject(&mut self, node: usize, script: &mut Script<'_>) {
        let (hint, len) = (script.place(NODES), usize::from(script.byte()));
        let chunk = Bytes::copy_from_slice(script.bytes(len));
        let _ = self.engines[node].handle_chunk(self.now, Sender::Hint(SECRETS[hint].identity()), chunk);
    }

    fn advance(&mut self, time: u8) {
        // From nothing to 65 s: past every timer.
        self.now = self
            .now
            .after(Duration::from_millis(1) * u32::from(time) * u32::from(time));
        self.engines
            .iter_mut()
            .for_each(|engine| engine.handle_timeout(self.now));
    }

    fn collect(&mut self) {
        for from in 0..NODES {
            while let Some(transmit) = self.engines[from].poll_transmit() {
                let own = self.set.index_of(&SECRETS[from].identity());
                let reaches = |node: NodeIndex| match transmit.to {
                    Recipients::One(to) => to == node,
                    Recipients::AllBut { author } => author != node && Some(node) != own,
                };
                for to in 0..NODES {
                    let place = self.set.index_of(&SECRETS[to].identity()).expect("a member");
                    if reaches(place) && self.flights.len() < MAX_FLIGHTS {
                        let chunks = transmit.chunks.iter();
                        self.flights.extend(chunks.map(|chunk| Flight {
                            from,
                            to,
                            chunk: chunk.clone(),
                        }));
                    }
                }
            }
            while let Some(event) = self.engines[from].poll_event() {
                self.check(from, event);
            }
        }
    }

    fn check(&mut self, node: usize, event: Event) {
        match event {
            Event::Delivered(delivery) => {
                let name = (delivery.epoch.number(), delivery.round.number(), delivery.author);
                let published = self
                    .published
                    .get(&name)
                    .expect("a payload that nobody published");
                assert_eq!(*published, delivery.payload, "altered");
                assert_ne!(delivery.author, SECRETS[node].identity(), "its own came back");
                assert!(!self.delivered[node].contains(&name), "delivered twice");
                self.delivered[node].push(name);
            }
            Event::Tainted(taint) => panic!("an honest author is accused: {taint:?}"),
            Event::Equivocation(evidence) => panic!("an honest author is accused: {evidence:?}"),
            _ => {}
        }
    }

    /// The wire is good from now on: what is published now arrives everywhere.
    fn finish(&mut self) {
        self.flights.clear();
        // Past every window, budget and memory of what came before.
        self.now = self.now.after(Duration::from_secs(120));
        self.epoch += 1;
        for engine in &mut self.engines {
            engine.handle_timeout(self.now);
            engine.set_epoch(Epoch::new(self.epoch), Arc::clone(&self.set));
            engine.set_round(Round::new(self.round + 1).expect("few rounds"));
        }
        self.collect();
        self.flights.clear();
        self.broadcast(0, 3_000, 7);
        let name = (self.epoch, self.round, SECRETS[0].identity());
        for _ in 0..8 {
            self.collect();
            let count = self.flights.len();
            (0..count).for_each(|_| self.deliver_next(0, |_| {}));
            self.advance(2);
        }
        self.collect();
        for node in 1..NODES {
            let has_it = self.delivered[node].contains(&name);
            assert!(
                has_it,
                "a good wire, and node {node} has nothing (stakes {:?})",
                self.stakes
            );
            let occupancy = self.engines[node].occupancy();
            assert!(occupancy.incomplete <= 1, "{occupancy:?}");
        }
    }
}

fn engine(node: usize, epoch: u32, set: &Arc<ValidatorSet>) -> Engine {
    let secret: Arc<dyn Signer> = SECRETS[node].clone();
    let config = EngineConfig::new(NetworkId::from_name("fuzz"));
    let mut engine = Engine::new(config, secret, [node as u8; 32]).expect("the defaults fit together");
    engine.set_epoch(Epoch::new(epoch), Arc::clone(set));
    engine
}
