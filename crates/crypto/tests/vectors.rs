//! The published vectors for a second implementer: `docs/spec/vectors/keys.json`.
//!
//! They are also the snapshot that holds the formats of this crate byte for byte.
#![expect(clippy::unwrap_used, reason = "a vector that cannot be read fails the test")]

use std::{fs, path::Path};

use falconet_crypto::{
    AeadKey, IdentityKey, IdentitySecret, NetworkId, Purpose, SecretBytes, Signature, SignedMessage, Signer,
    Suite, TransportPublicKey, TransportSecret, keyfile,
};
use serde_json::Value;

fn vectors() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/vectors/keys.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn text<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field]
        .as_str()
        .unwrap_or_else(|| panic!("{field} in {vector}"))
}

fn bytes(vector: &Value, field: &str) -> Vec<u8> {
    hex::decode(text(vector, field)).unwrap()
}

fn array<const N: usize>(vector: &Value, field: &str) -> [u8; N] {
    bytes(vector, field).try_into().unwrap()
}

/// Every vector of one section; a section that is empty tests nothing and fails.
fn each(section: &str, check: impl Fn(&Value)) {
    let all = vectors();
    let section = all[section].as_array().unwrap();
    assert!(!section.is_empty());
    section.iter().for_each(check);
}

fn purpose(vector: &Value) -> Purpose {
    match text(vector, "purpose") {
        "chunk" => Purpose::Chunk,
        "record" => Purpose::Record,
        "certificate" => Purpose::Certificate,
        other => panic!("no purpose {other}"),
    }
}

#[test]
fn key_text() {
    each("key_text", |vector| {
        let (key, expected) = (array(vector, "bytes"), text(vector, "text"));
        match text(vector, "kind") {
            "identity" => {
                assert_eq!(IdentityKey::from_bytes(key).to_string(), expected);
                assert_eq!(expected.parse(), Ok(IdentityKey::from_bytes(key)));
            }
            "transport" => {
                assert_eq!(TransportPublicKey::from_bytes(key).to_string(), expected);
                assert_eq!(expected.parse(), Ok(TransportPublicKey::from_bytes(key)));
            }
            other => panic!("no kind {other}"),
        }
    });
    each("key_text_refused", |vector| {
        let refused = text(vector, "text");
        assert!(refused.parse::<IdentityKey>().is_err(), "{refused}");
        assert!(refused.parse::<TransportPublicKey>().is_err(), "{refused}");
    });
}

#[test]
fn key_files() {
    let folder = tempfile::tempdir().unwrap();
    each("key_file", |vector| {
        let path = folder.path().join(text(vector, "name"));
        let secret = array(vector, "secret");
        let transport = TransportSecret::from_bytes(secret);
        match (text(vector, "purpose"), vector["disposable"].as_bool()) {
            ("identity", None) => {
                keyfile::create_identity(&path, &IdentitySecret::from_bytes(secret)).unwrap();
            }
            ("transport", Some(false)) => keyfile::create_transport(&path, &transport).unwrap(),
            ("transport", Some(true)) => {
                keyfile::create_disposable_transport(&path, &transport).unwrap();
            }
            other => panic!("no purpose {other:?}"),
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text(vector, "text"));
    });
}

#[test]
fn network_ids() {
    each("network_id", |vector| {
        let id = NetworkId::from_name(text(vector, "name"));
        assert_eq!(id, NetworkId::from_bytes(array(vector, "id")));
    });
}

#[test]
fn signatures() {
    each("signature", |vector| {
        let secret = IdentitySecret::from_bytes(array(vector, "secret"));
        let network = NetworkId::from_bytes(array(vector, "network"));
        let fields: Vec<Vec<u8>> = vector["fields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|field| hex::decode(field.as_str().unwrap()).unwrap())
            .collect();
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        let identity = secret.identity();
        let message = SignedMessage::encode(purpose(vector), &network, &identity, &fields);
        assert_eq!(hex::encode(message.as_bytes()), text(vector, "message"));
        let signature = Signature::from_bytes(array(vector, "signature"));
        assert_eq!(secret.sign(purpose(vector), &network, &fields), Ok(signature));
        assert_eq!(
            identity.verify(purpose(vector), &network, &fields, &signature),
            Ok(())
        );
    });
}

#[test]
fn seals() {
    each("seal", |vector| {
        let suite = u8::try_from(vector["suite"].as_u64().unwrap()).ok();
        let suite = suite.and_then(Suite::from_id).unwrap();
        let key = AeadKey::new(suite, &SecretBytes::new(array(vector, "key")));
        let counter = vector["counter"].as_u64().unwrap();
        let mut data = bytes(vector, "plaintext");
        let tag = key.seal(counter, b"", &mut data);
        assert_eq!(hex::encode([&data[..], &tag].concat()), text(vector, "sealed"));
        key.open(counter, b"", &mut data, &tag).unwrap();
        assert_eq!(data, bytes(vector, "plaintext"));
    });
}
