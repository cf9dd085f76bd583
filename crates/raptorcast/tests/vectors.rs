//! The published vectors of `docs/spec/chunk.md`: small messages, chunk by chunk, and geometries.
//!
//! `FALCONET_BLESS=1 cargo test -p falconet-raptorcast` writes the file anew.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentitySecret, NetworkId, Now, Signer};
use falconet_raptorcast::{
    Assignment, ChunkSize, ChunkView, Engine, EngineConfig, Epoch, Geometry, HEADER_LEN, MessageId,
    NodeIndex, Recipients, Redundancy, RepairRequest, Round, Stake, SymbolIndex, Validator, ValidatorSet,
    Wanted,
};
use serde_json::{Value, json};

const NETWORK: &str = "falconet-vectors";
const EPOCH: Epoch = Epoch::new(7);
const UNIX_MS: u64 = 1_800_000_000_123;

fn set(stakes: &[u128]) -> ValidatorSet {
    let members = stakes.iter().enumerate().map(|(id, stake)| Validator {
        identity: IdentitySecret::from_bytes([id as u8 + 1; 32]).identity(),
        stake: Stake::new(*stake),
    });
    ValidatorSet::new(members.collect()).unwrap()
}

/// All chunks of a broadcast by the holder of the secret `01 01 .. 01`.
fn message(stakes: &[u128], len: usize, by_key: bool) -> Value {
    let set = Arc::new(set(stakes));
    let secret = IdentitySecret::from_bytes([1; 32]);
    let payload: Bytes = (0..len).map(|i| (i * 31 + 7) as u8).collect();
    let config = EngineConfig::new(NetworkId::from_name(NETWORK)).with_author_by_key(by_key);
    let mut engine = Engine::new(config, Arc::new(secret), [0; 32]).unwrap();
    engine.set_epoch(EPOCH, Arc::clone(&set));
    let now = Now {
        instant: Instant::now(),
        unix: Duration::from_millis(UNIX_MS),
    };
    engine
        .broadcast(now, EPOCH, Round::from(42), payload.clone())
        .unwrap();
    let mut chunks = Vec::new();
    while let Some(transmit) = engine.poll_transmit() {
        let Recipients::One(hop) = transmit.to else {
            panic!("a proposal goes to one first hop")
        };
        chunks.extend(transmit.chunks.into_iter().map(|chunk| (hop, chunk)));
    }
    chunks.sort_by_key(|(_, chunk)| ChunkView::parse(chunk).unwrap().header.index);
    let members = set.iter().map(|(_, member)| {
        json!({ "identity": hex::encode(member.identity.as_bytes()), "stake": member.stake.units().to_string() })
    });
    json!({
        "network": NETWORK,
        "author_secret": hex::encode([1; 32]),
        "set": members.collect::<Vec<_>>(),
        "epoch": EPOCH.number(), "round": 42, "timestamp_ms": UNIX_MS,
        "chunk_size": 1440, "redundancy_hundredths": 250,
        "payload": hex::encode(&payload),
        "chunks": chunks.iter().map(|(hop, chunk)| {
            json!({ "first_hop": hop.number(), "chunk": hex::encode(chunk) })
        }).collect::<Vec<_>>(),
    })
}

/// The numbers of a message, and the first hops of its first symbols.
fn geometry(nodes: usize, len: usize, chunk: u16, hundredths: u16) -> Value {
    let set = set(&(1..=nodes as u128).map(|stake| stake << 64).collect::<Vec<_>>());
    let (author, chunk_size) = (NodeIndex::new(0), ChunkSize::new(chunk).unwrap());
    let redundancy = Redundancy::from_hundredths(hundredths).unwrap();
    let geometry = Geometry::for_set(len, chunk_size, HEADER_LEN, redundancy, (&set, author)).unwrap();
    let id = MessageId {
        epoch: EPOCH,
        round: Round::from(42),
        author,
    };
    let assignment = Assignment::derive(&NetworkId::from_name(NETWORK), id, &set, &geometry, redundancy);
    let first_hops: Vec<_> = assignment
        .iter()
        .take(16)
        .map(|(_, node)| node.number())
        .collect();
    json!({
        "validators": nodes, "payload_len": len, "chunk_size": chunk, "redundancy_hundredths": hundredths,
        "symbol_size": geometry.symbol_size, "source_symbols": geometry.source_symbols,
        "symbols": geometry.symbols, "depth": geometry.depth, "chunk_len": geometry.chunk_len(),
        "first_hops_of_symbols_0_to_15": first_hops,
    })
}

/// A request for every other symbol from the fifth on.
fn repair_request() -> Value {
    let request = RepairRequest {
        id: MessageId {
            epoch: EPOCH,
            round: Round::from(42),
            author: NodeIndex::new(3),
        },
        root: [0xab; 20],
        count: 64,
        wanted: Wanted::from(SymbolIndex::new(5), 300, |symbol| symbol.number() % 2 == 1),
    };
    let wanted: Vec<_> = request.wanted.iter(300).map(|symbol| symbol.number()).collect();
    json!({
        "epoch": EPOCH.number(), "round": 42, "author": 3, "root": hex::encode(request.root), "count": 64,
        "first_of_window": 5, "symbols": 300, "wanted_in_order": wanted,
        "datagram": hex::encode(request.encode()),
    })
}

fn vectors() -> Value {
    json!({
        "about": "Vectors for docs/spec/chunk.md. Byte strings are hexadecimal. In `geometry`, validator i of n \
                  (from 0) has the identity secret of 32 bytes i + 1 and the stake (i + 1) * 2^64, and member 0 \
                  of the set is the author.",
        "messages": [
            message(&[10, 20, 30], 1, false),
            message(&[10, 20, 30], 1, true),
            message(&[1, 1, 0, 340_282_366_920_938_463_463_374_607_431_768_211_455], 3_000, false),
        ],
        "repair_request": repair_request(),
        "geometry": [
            geometry(2, 1, 1440, 250),
            geometry(10, 65_536, 1420, 250),
            geometry(100, 2_000_000, 1440, 250),
            geometry(100, 2 << 20, 1440, 250),
            geometry(100, 3 << 20, 1440, 250),
            geometry(200, 1_000_000, 8900, 300),
        ],
    })
}

#[test]
fn the_published_vectors_are_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/vectors/chunk.json");
    let computed = vectors();
    if std::env::var_os("FALCONET_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&computed).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let published: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(
        published == computed,
        "docs/spec/vectors/chunk.json differs from what the code makes"
    );
}
