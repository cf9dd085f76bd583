//! Keys, engines and chunks of a network in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentityKey, IdentitySecret, NetworkId, Now, Signer};
use falconet_raptorcast::{
    Engine, EngineConfig, Epoch, NodeIndex, Recipients, Sender, Stake, Validator, ValidatorSet,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

pub(crate) const VALIDATORS: usize = 100;
pub(crate) const EPOCH: Epoch = Epoch::new(1);

/// Keys and set of a network.
pub(crate) struct Network {
    secrets: Vec<Arc<IdentitySecret>>,
    pub(crate) set: Arc<ValidatorSet>,
}

impl Network {
    pub(crate) fn new() -> Self {
        Self::with(VALIDATORS)
    }

    /// A network of so many validators of equal stake.
    pub(crate) fn with(validators: usize) -> Self {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let secrets: Vec<_> = (0..validators)
            .map(|_| Arc::new(IdentitySecret::generate(&mut rng)))
            .collect();
        let members = secrets.iter().map(|secret| Validator {
            identity: secret.identity(),
            stake: Stake::new(1),
        });
        let set = Arc::new(ValidatorSet::new(members.collect()).expect("a set"));
        Self { secrets, set }
    }

    pub(crate) fn engine(&self, node: usize) -> Engine {
        // Nothing that bounds a hostile author is to be measured here.
        let config = EngineConfig::new(NetworkId::from_name("bench"))
            .with_verifications_per_validator(1_000_000)
            .with_decode_attempts_per_second(1_000_000)
            .with_relay_messages_per_second(1_000_000);
        let mut engine =
            Engine::new(config, self.secrets[node].clone(), [node as u8; 32]).expect("an engine");
        engine.set_epoch(EPOCH, Arc::clone(&self.set));
        engine
    }

    /// Every chunk that the leader emits, with the first hop that would relay it.
    pub(crate) fn chunks_as_first_hops_send_them(&self, leader: &mut Engine) -> Vec<(Sender, Bytes)> {
        let mut chunks = Vec::new();
        let receiver = self.set.index_of(&self.secrets[1].identity());
        while let Some(transmit) = leader.poll_transmit() {
            let Recipients::One(hop) = transmit.to else {
                unreachable!("a leader sends to first hops")
            };
            let sender = if Some(hop) == receiver {
                self.secrets[0].identity()
            } else {
                self.identity(hop)
            };
            chunks.extend(
                transmit
                    .chunks
                    .into_iter()
                    .map(|chunk| (Sender::Validator(sender), chunk)),
            );
        }
        chunks
    }

    fn identity(&self, node: NodeIndex) -> IdentityKey {
        self.set.get(node).expect("a member").identity
    }
}

pub(crate) fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_800_000_000),
    }
}

pub(crate) fn payload(length: usize) -> Bytes {
    let mut payload = vec![0; length];
    ChaCha20Rng::from_seed([1; 32]).fill_bytes(&mut payload);
    payload.into()
}

/// Fisher-Yates.
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut ChaCha20Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.next_u32() as usize % (last + 1));
    }
}
