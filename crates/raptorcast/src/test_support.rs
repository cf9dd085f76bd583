//! A network in memory: engines, and chunks on their way between them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentityKey, IdentitySecret, NetworkId, Now, Signer};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::{
    Delivery, Discard, Engine, EngineConfig, Epoch, Event, NodeIndex, Recipients, Sender, Stake, Validator,
    ValidatorSet,
};

pub(crate) const EPOCH: Epoch = Epoch::new(7);

pub(crate) fn network() -> NetworkId {
    NetworkId::from_name("raptorcast-tests")
}

pub(crate) fn secret(id: u16) -> IdentitySecret {
    let mut bytes = [0x5a; 32];
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    IdentitySecret::from_bytes(bytes)
}

pub(crate) fn set_of(stakes: &[u128]) -> ValidatorSet {
    let members = stakes.iter().enumerate().map(|(id, stake)| Validator {
        identity: secret(id as u16).identity(),
        stake: Stake::new(*stake),
    });
    ValidatorSet::new(members.collect()).unwrap()
}

/// A set whose identities need no keys: quick to make, in the order of the list.
pub(crate) fn unsigned_set(stakes: &[u128]) -> ValidatorSet {
    let members = stakes.iter().enumerate().map(|(id, stake)| {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&(id as u16).to_be_bytes());
        Validator {
            identity: IdentityKey::from_bytes(bytes),
            stake: Stake::new(*stake),
        }
    });
    ValidatorSet::new(members.collect()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "any instant will do")]
pub(crate) fn start() -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_millis(1_800_000_000_123),
    }
}

pub(crate) fn payload(len: usize, seed: u8) -> Bytes {
    let mut bytes = vec![0; len];
    ChaCha20Rng::from_seed([seed; 32]).fill_bytes(&mut bytes);
    bytes.into()
}

/// A chunk between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) chunk: Bytes,
}

/// Engines of one set, by their numbers in it.
pub(crate) struct Cluster {
    pub(crate) set: Arc<ValidatorSet>,
    pub(crate) engines: Vec<Engine>,
    pub(crate) in_flight: Vec<InFlight>,
    pub(crate) events: Vec<Vec<Event>>,
    pub(crate) discards: Vec<(NodeIndex, Discard)>,
    pub(crate) now: Now,
    pub(crate) rng: ChaCha20Rng,
}

/// What the network does to a chunk.
pub(crate) struct Weather {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) is_reordering: bool,
}

pub(crate) const CALM: Weather = Weather {
    loss: 0.0,
    duplication: 0.0,
    is_reordering: false,
};

impl Cluster {
    pub(crate) fn new(stakes: &[u128]) -> Self {
        Self::with_config(stakes, |config| config)
    }

    pub(crate) fn with_config(stakes: &[u128], config: impl Fn(EngineConfig) -> EngineConfig) -> Self {
        let set = Arc::new(set_of(stakes));
        let mut engines: Vec<_> = (0..stakes.len())
            .map(|id| {
                let config = config(EngineConfig::new(network()));
                let mut engine = Engine::new(config, Arc::new(secret(id as u16)), [id as u8; 32]).unwrap();
                engine.set_epoch(EPOCH, Arc::clone(&set));
                (set.index_of(&secret(id as u16).identity()).unwrap(), engine)
            })
            .collect();
        engines.sort_by_key(|(index, _)| *index);
        Self {
            engines: engines.into_iter().map(|(_, engine)| engine).collect(),
            in_flight: Vec::new(),
            events: vec![Vec::new(); set.len()],
            discards: Vec::new(),
            set,
            now: start(),
            rng: ChaCha20Rng::from_seed([9; 32]),
        }
    }

    pub(crate) fn identity(&self, node: NodeIndex) -> IdentityKey {
        self.set.get(node).unwrap().identity
    }

    /// The secret of the member with this number.
    pub(crate) fn secret_of(&self, node: NodeIndex) -> IdentitySecret {
        (0..self.set.len() as u16)
            .map(secret)
            .find(|s| s.identity() == self.identity(node))
            .unwrap()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.set.len() as u16).map(NodeIndex::new)
    }

    /// Takes what a node wants to send.
    pub(crate) fn collect(&mut self, from: NodeIndex) {
        while let Some(transmit) = self.engines[from.as_usize()].poll_transmit() {
            let lengths: std::collections::BTreeSet<_> = transmit.chunks.iter().map(Bytes::len).collect();
            assert_eq!(lengths.len(), 1, "a run has chunks of one length");
            let recipients: Vec<_> = match transmit.to {
                Recipients::One(to) => vec![to],
                Recipients::AllBut { author } => self
                    .nodes()
                    .filter(|node| *node != author && *node != from)
                    .collect(),
            };
            for to in recipients {
                let chunks = transmit.chunks.iter();
                self.in_flight.extend(chunks.map(|chunk| InFlight {
                    from,
                    to,
                    chunk: chunk.clone(),
                }));
            }
        }
    }

    /// Hands one chunk to its receiver as if over an authenticated session.
    pub(crate) fn deliver(&mut self, chunk: InFlight) -> Result<(), Discard> {
        let sender = Sender::Validator(self.identity(chunk.from));
        let outcome = self.engines[chunk.to.as_usize()].handle_chunk(self.now, sender, chunk.chunk);
        if let Err(reason) = outcome {
            self.discards.push((chunk.to, reason));
        }
        outcome
    }

    /// Delivers everything, relays included, until nothing is in flight.
    pub(crate) fn run(&mut self, weather: &Weather) {
        for node in self.nodes() {
            self.collect(node);
        }
        while !self.in_flight.is_empty() {
            self.now = self.now.after(Duration::from_millis(1));
            let mut batch = std::mem::take(&mut self.in_flight);
            self.disturb(&mut batch, weather);
            for chunk in batch {
                let _ = self.deliver(chunk);
            }
            for node in self.nodes() {
                self.engines[node.as_usize()].handle_timeout(self.now.after(Duration::from_millis(1)));
                self.collect(node);
                self.poll_events(node);
            }
        }
    }

    fn disturb(&mut self, batch: &mut Vec<InFlight>, weather: &Weather) {
        let mut disturbed = Vec::with_capacity(batch.len());
        for chunk in batch.drain(..) {
            if self.chance(weather.duplication) {
                disturbed.push(chunk.clone());
            }
            if !self.chance(weather.loss) {
                disturbed.push(chunk);
            }
        }
        if weather.is_reordering {
            for last in (1..disturbed.len()).rev() {
                let other = self.rng.next_u64() % (last as u64 + 1);
                disturbed.swap(last, other as usize);
            }
        }
        *batch = disturbed;
    }

    fn chance(&mut self, probability: f64) -> bool {
        f64::from(self.rng.next_u32()) < probability * f64::from(u32::MAX)
    }

    pub(crate) fn poll_events(&mut self, node: NodeIndex) {
        while let Some(event) = self.engines[node.as_usize()].poll_event() {
            self.events[node.as_usize()].push(event);
        }
    }

    pub(crate) fn deliveries(&self, node: NodeIndex) -> Vec<&Delivery> {
        let events = self.events[node.as_usize()].iter();
        events
            .filter_map(|event| match event {
                Event::Delivered(delivery) => Some(delivery),
                _ => None,
            })
            .collect()
    }
}
