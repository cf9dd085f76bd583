//! Chunks: the parser, and an engine that receives from strangers and from a hostile leader who signs whatever it likes.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_crypto::{IdentitySecret, NetworkId, Now, Purpose, Signer};
use falconet_raptorcast::{
    AuthorRef, ChunkSize, ChunkView, Engine, EngineConfig, Epoch, Event, Geometry, HASH_LEN, Header, Mode,
    NodeIndex, REPAIR_REQUEST, REPAIR_REQUEST_LEN, Redundancy, RepairRequest, Round, SIGNATURE_LEN, Sender,
    Stake, SymbolIndex, Tree, Validator, ValidatorSet, Version, leaf_hash, merkle_depth,
};

use super::Script;

const EPOCH: Epoch = Epoch::new(1);
const UNIX_MS: u64 = 1_700_000_000_000;
/// Symbols that a hostile leader makes; more would only be slow.
const MAX_SYMBOLS: u16 = 64;

static SECRETS: LazyLock<[Arc<IdentitySecret>; 3]> =
    LazyLock::new(|| [1, 2, 3].map(|byte| Arc::new(IdentitySecret::from_bytes([byte; 32]))));

static SET: LazyLock<Arc<ValidatorSet>> = LazyLock::new(|| {
    let members = SECRETS.iter().map(|secret| Validator {
        identity: secret.identity(),
        stake: Stake::new(10),
    });
    Arc::new(ValidatorSet::new(members.collect()).expect("three different members"))
});

fn network() -> NetworkId {
    NetworkId::from_name("fuzz")
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_millis(UNIX_MS),
    }
}

/// An engine of the second member; the first is the hostile leader.
fn receiver() -> Engine {
    let secret: Arc<dyn Signer> = SECRETS[1].clone();
    let mut engine =
        Engine::new(EngineConfig::new(network()), secret, [0; 32]).expect("the defaults fit together");
    engine.set_epoch(EPOCH, Arc::clone(&SET));
    engine
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    match script.byte() % 2 {
        0 => handle_anything(script.rest()),
        _ => follow_hostile_leader(&mut script),
    }
}

/// What parses has the lengths that its header says, and is written back the same. Without the leader's signature it
/// leaves nothing behind.
fn handle_anything(bytes: &[u8]) {
    let mut lengths = Vec::new();
    if let Ok(view) = ChunkView::parse(bytes) {
        lengths.push(view.header.payload_len as usize);
        let header_len = view.header.encoded_len();
        let mut header = vec![0; header_len];
        view.header.encode(&mut header);
        assert_eq!(header, bytes[..header_len]);
        assert_eq!(
            header_len + SIGNATURE_LEN + view.proof.len() + view.symbol.len(),
            bytes.len()
        );
    }
    if let Ok(request) = RepairRequest::parse(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    let mut engine = receiver();
    let chunk = Bytes::copy_from_slice(bytes);
    let [leader, _, third] = SECRETS.each_ref().map(|secret| secret.identity());
    let senders = [
        Sender::Unknown,
        Sender::Hint(leader),
        Sender::Validator(leader),
        Sender::Validator(third),
    ];
    let mut taken = 0;
    for from in senders {
        taken += u32::from(engine.handle_chunk(now(), from, chunk.clone()).is_ok());
    }
    assert!(taken <= 1, "one symbol was taken twice");
    if taken == 0 {
        assert_eq!(
            engine.occupancy().incomplete,
            0,
            "a refused chunk left a message behind"
        );
        assert!(engine.poll_transmit().is_none() && engine.poll_event().is_none());
    }
    drain(&mut engine, &lengths);
}

/// A leader that signs headers and symbols that the script makes up, and sends them from anybody.
fn follow_hostile_leader(script: &mut Script<'_>) {
    let mut engine = receiver();
    let mut lengths = Vec::new();
    while !script.is_over() && lengths.len() < 4 {
        let message = HostileMessage::make(script);
        lengths.push(message.header.payload_len as usize);
        for _ in 0..=script.byte() % 96 {
            let index = script.place(usize::from(message.header.symbols.max(1))) as u16;
            let sender = SECRETS[script.place(SECRETS.len())].identity();
            let chunk = message.chunk(SymbolIndex::new(index));
            let _ = engine.handle_chunk(now(), Sender::Validator(sender), chunk);
        }
        drain(&mut engine, &lengths);
    }
    let occupancy = engine.occupancy();
    assert!(
        occupancy.incomplete + occupancy.remembered <= lengths.len(),
        "messages from nowhere"
    );
    engine.handle_timeout(now().after(Duration::from_secs(3600)));
    assert_eq!(
        engine.occupancy().incomplete,
        0,
        "an hour later something is still incomplete"
    );
}

/// Empties an engine; only payloads of these lengths may be delivered.
fn drain(engine: &mut Engine, lengths: &[usize]) {
    engine.handle_timeout(now().after(Duration::from_millis(2)));
    while let Some(transmit) = engine.poll_transmit() {
        assert!(!transmit.chunks.is_empty());
    }
    while let Some(event) = engine.poll_event() {
        if let Event::Delivered(delivery) = event {
            assert!(
                lengths.contains(&delivery.payload.len()),
                "a payload that nobody committed to"
            );
        }
    }
}

struct HostileMessage {
    header: Header,
    symbols: Vec<Vec<u8>>,
    tree: Tree,
    signature: [u8; SIGNATURE_LEN],
}

impl HostileMessage {
    fn make(script: &mut Script<'_>) -> Self {
        let header = header(script);
        let filling = script.byte();
        let symbol = |index: u16| {
            vec![
                if filling.is_multiple_of(2) {
                    filling
                } else {
                    index as u8
                };
                usize::from(header.symbol_size)
            ]
        };
        let symbols: Vec<_> = (0..header.symbols).map(symbol).collect();
        let leaves: Vec<_> = symbols.iter().map(|symbol| leaf_hash(symbol)).collect();
        let tree = Tree::build(&leaves, merkle_depth(header.symbols));
        let (commitment, root) = (header.commitment_bytes(), tree.root());
        let fields: [&[u8]; 2] = [commitment.as_slice(), &root];
        let signature = SECRETS[0]
            .sign(Purpose::Chunk, &network(), &fields)
            .expect("a local key signs");
        Self {
            header,
            symbols,
            tree,
            signature: *signature.as_bytes(),
        }
    }

    fn chunk(&self, index: SymbolIndex) -> Bytes {
        let header = Header { index, ..self.header };
        let mut bytes = vec![0; header.encoded_len()];
        header.encode(&mut bytes);
        bytes.extend(self.signature);
        let mut proof = vec![0; HASH_LEN * usize::from(merkle_depth(header.symbols))];
        if let Some(symbol) = self.symbols.get(index.as_usize()) {
            self.tree.write_proof(index, &mut proof);
            bytes.extend(proof);
            bytes.extend(symbol);
        }
        bytes.into()
    }
}

/// The geometry that the payload length implies, or another one.
fn header(script: &mut Script<'_>) -> Header {
    let changes = script.byte();
    let payload_len = 1 + script.number() % 20_000;
    let leader = SET.index_of(&SECRETS[0].identity()).unwrap_or(NodeIndex::new(0));
    let by_key = changes & 1 != 0;
    let author = if by_key {
        AuthorRef::Key(SECRETS[0].identity())
    } else {
        AuthorRef::Index(leader)
    };
    let header_len = if by_key {
        falconet_raptorcast::KEY_HEADER_LEN
    } else {
        falconet_raptorcast::HEADER_LEN
    };
    let geometry = Geometry::for_set(
        payload_len,
        ChunkSize::IPV4,
        header_len,
        Redundancy::DEFAULT,
        (&SET, leader),
    )
    .expect("a short payload");
    let unless = |flag: u8, right: u64, wrong: u64| if changes & flag == 0 { right } else { wrong };
    let symbol_size = unless(2, geometry.symbol_size.into(), u64::from(script.byte()) * 64) as u16;
    let symbols = unless(4, geometry.symbols.into(), script.number() as u64) as u16;
    Header {
        version: if changes & 128 == 0 {
            Version::V0
        } else {
            Version::V1
        },
        mode: Mode::Broadcast,
        epoch: Epoch::new(unless(8, 1, u64::from(script.byte())) as u32),
        round: Round::new(script.byte().into()).expect("a small round"),
        timestamp_ms: UNIX_MS + unless(16, 0, script.number() as u64),
        payload_len: unless(32, payload_len as u64, script.number() as u64) as u32,
        symbol_size,
        symbols: symbols.min(MAX_SYMBOLS),
        index: SymbolIndex::new(0),
        author: if changes & 64 == 0 {
            author
        } else {
            AuthorRef::Index(NodeIndex::new(script.byte().into()))
        },
    }
}

/// Genuine chunks as bytes and cut short, and a hostile leader that gets each field wrong.
pub fn seeds() -> Vec<Vec<u8>> {
    let request = [&[0, REPAIR_REQUEST], &[1; REPAIR_REQUEST_LEN - 1][..]].concat();
    let mut seeds = vec![request];
    for by_key in [0, 1] {
        let message = HostileMessage::make(&mut Script::new(&[by_key, 200, 0, 1, 1, 1, 1, 1, 1, 1]));
        let chunk = message.chunk(SymbolIndex::new(0));
        for len in [chunk.len(), chunk.len() - 1, 27, 57, 20] {
            seeds.push([&[0], &chunk[..len.min(chunk.len())]].concat());
        }
    }
    let deliveries: Vec<u8> = (0..40).flat_map(|index| [index, 0, index, 2]).collect();
    for changes in [0u8, 1, 2, 4, 8, 16, 32, 64] {
        for len in [[100, 0], [0, 40]] {
            let message = [&[1, changes][..], &len, &[9, 9, 0, 1, 5, 0, 7, 7, 0, 0, 79]].concat();
            seeds.push([&message[..], &deliveries].concat());
        }
    }
    seeds
}
