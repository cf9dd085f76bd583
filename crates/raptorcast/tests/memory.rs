//! The one number that bounds a node's memory for incomplete messages, against what the system says it uses.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentitySecret, NetworkId, Now, Signer};
use falconet_raptorcast::{
    Engine, EngineConfig, Epoch, MAX_PAYLOAD_LEN, Recipients, Round, Sender, Stake, Validator, ValidatorSet,
};

const EPOCH: Epoch = Epoch::new(1);
const HOSTILE: u8 = 5;
const MESSAGES_EACH: u32 = 3;
const LIMIT: usize = 48 << 20;
/// Trees of finished messages, queues, the allocator's own waste.
const SLACK: usize = 16 << 20;

fn secret(id: u8) -> Arc<IdentitySecret> {
    Arc::new(IdentitySecret::from_bytes([id + 1; 32]))
}

fn engine(id: u8, set: &Arc<ValidatorSet>) -> Engine {
    let config = EngineConfig::new(NetworkId::from_name("memory")).with_message_bytes(LIMIT);
    let mut engine = Engine::new(config, secret(id), [id; 32]).unwrap();
    engine.set_epoch(EPOCH, Arc::clone(set));
    engine
}

/// Resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Everything but the last symbols that would complete it, in the order in which a leader sends, each chunk also with
/// one flipped bit now and then.
fn hold_back(leader: &mut Engine, id: u8, set: &ValidatorSet, round: u32, now: Now) -> Vec<(Sender, Bytes)> {
    let payload = Bytes::from(vec![id; MAX_PAYLOAD_LEN]);
    let report = leader.broadcast(now, EPOCH, Round::from(round), payload).unwrap();
    let receiver = set.index_of(&secret(HOSTILE).identity()).unwrap();
    let mut chunks = Vec::new();
    while let Some(transmit) = leader.poll_transmit() {
        let Recipients::One(hop) = transmit.to else {
            unreachable!()
        };
        let from = if hop == receiver {
            secret(id).identity()
        } else {
            set.get(hop).unwrap().identity
        };
        for chunk in transmit.chunks {
            if chunks.len() % 64 == 0 {
                let mut damaged = chunk.to_vec();
                damaged[1_000] ^= 1;
                chunks.push((Sender::Validator(from), damaged.into()));
            }
            chunks.push((Sender::Validator(from), Bytes::copy_from_slice(&chunk)));
        }
    }
    chunks.truncate(usize::from(report.source_symbols) - 1);
    chunks
}

#[test]
fn hostile_leaders_fill_the_cache_and_not_the_memory() {
    let members = (0..=HOSTILE).map(|id| Validator {
        identity: secret(id).identity(),
        stake: Stake::new(1),
    });
    let set = Arc::new(ValidatorSet::new(members.collect()).unwrap());
    let now = Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_800_000_000),
    };
    let mut receiver = engine(HOSTILE, &set);
    // What leaders need is not the receiver's: taken before the first measurement, and kept by the allocator.
    let mut leaders: Vec<_> = (0..HOSTILE).map(|id| engine(id, &set)).collect();
    for (id, leader) in leaders.iter_mut().enumerate() {
        drop(hold_back(leader, id as u8, &set, 1, now));
    }
    let before = resident();
    let mut most = 0;
    for round in 2..2 + MESSAGES_EACH {
        for (id, leader) in leaders.iter_mut().enumerate() {
            let chunks = hold_back(leader, id as u8, &set, round, now);
            for batch in chunks.chunks(44) {
                receiver.handle_chunks(now, batch, |_, _| {});
                receiver.handle_timeout(now.after(Duration::from_millis(1)));
                while receiver.poll_transmit().is_some() {}
            }
            drop(chunks);
            assert!(receiver.occupancy().bytes <= LIMIT);
            most = most.max(resident().saturating_sub(before));
        }
    }
    assert_eq!(receiver.stats().delivered, 0);
    assert!(
        receiver.stats().expired > 0,
        "the cache was full: {:?}",
        receiver.occupancy()
    );
    assert!(most > LIMIT / 8, "the messages were held: {most} bytes");
    assert!(
        most <= LIMIT + SLACK,
        "{most} bytes resident for a limit of {LIMIT}"
    );
}
