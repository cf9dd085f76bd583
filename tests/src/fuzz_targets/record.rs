//! Peer records: only one encoding of each, and nothing verifies that its identity did not sign.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use falconet_crypto::{IdentitySecret, NetworkId, Now, Signer, TransportPublicKey};
use falconet_transport::{Capabilities, LaneAddresses, MAX_RECORD_LEN, PeerRecord, RecordContent};

use super::Script;

static SIGNER: LazyLock<IdentitySecret> = LazyLock::new(|| IdentitySecret::from_bytes([5; 32]));

fn network() -> NetworkId {
    NetworkId::from_name("fuzz")
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    }
}

/// Runs one input.
pub fn run(input: &[u8]) {
    decode(input);
    let mut script = Script::new(input);
    let content = content(&mut script);
    let record = PeerRecord::sign(content, &network(), &*SIGNER).expect("our own identity");
    let genuine = record.encode();
    let mut altered = genuine.clone();
    script.patch(&mut altered);
    let is_fresh = record.content().expiry_ms > now().unix_ms();
    let verified = PeerRecord::decode(&altered)
        .ok()
        .and_then(|claim| claim.verify(&network(), now()).ok());
    assert_eq!(
        verified.is_some(),
        altered == genuine && is_fresh,
        "verified if and only if genuine and fresh"
    );
    if let Some(verified) = verified {
        assert_eq!(verified, record);
        assert!(!verified.supersedes(&record));
        let other = NetworkId::from_name("another");
        let elsewhere = PeerRecord::decode(&genuine)
            .expect("it decoded before")
            .verify(&other, now());
        assert!(elsewhere.is_err(), "valid in two networks");
    }
}

/// What decodes encodes to the same bytes, and gives a peer without a panic.
fn decode(bytes: &[u8]) {
    let Ok(claim) = PeerRecord::decode(bytes) else {
        return;
    };
    assert!(bytes.len() <= MAX_RECORD_LEN);
    let Ok(record) = claim.verify(&network(), now()) else {
        return;
    };
    assert_eq!(record.encode(), bytes);
    assert_eq!(
        record.content().identity,
        SIGNER.identity(),
        "somebody else's signature was forged"
    );
    let _ = record.peer_config();
}

/// A content that may be signed.
fn content(script: &mut Script<'_>) -> RecordContent {
    let present = script.byte();
    RecordContent {
        identity: SIGNER.identity(),
        suites: u16::from(script.byte()) << 1 | 1,
        capabilities: Capabilities::from_bits(u32::from(script.byte())),
        sequence: u64::from(script.byte()),
        // Around now: expired ones must be refused.
        expiry_ms: (now().unix_ms() - 128).wrapping_add(u64::from(script.byte())),
        max_datagram: 1472,
        max_chunk: 1440,
        transport_key: TransportPublicKey::from_bytes([6; 32]),
        authenticated: addresses(present, script),
        plain: addresses(present >> 2, script),
    }
}

fn addresses(present: u8, script: &mut Script<'_>) -> LaneAddresses {
    let port = u16::from(script.byte()) + 1;
    let v4 = SocketAddrV4::new([192, 0, 2, script.byte()].into(), port);
    let v6 = SocketAddrV6::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(), port, 0, 0);
    LaneAddresses {
        v4: (present & 1 != 0).then_some(v4),
        v6: (present & 2 != 0).then_some(v6),
    }
}

/// Records with each set of addresses, as bytes and as scripts, fresh and expired, altered in each field.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for present in 0..16 {
        let script = [present, 1, 1, 9, 255, 7, 7, 7, 7, 0];
        seeds.push(script.to_vec());
        let content = content(&mut Script::new(&script));
        let record = PeerRecord::sign(content, &network(), &*SIGNER).expect("our own identity");
        seeds.push(record.encode());
    }
    let fields = [0u8, 1, 2, 4, 8, 10, 12, 44, 76, 84, 92, 93, 97, 99, 150, 200];
    seeds.extend(fields.map(|field| vec![15, 1, 1, 9, 255, 7, 7, 7, 7, 1, field, 1]));
    seeds.push(vec![1, 1, 1, 9, 0, 7, 7, 7, 7, 0]);
    seeds
}
