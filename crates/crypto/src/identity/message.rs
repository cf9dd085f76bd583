//! The bytes that an identity signs.

use crate::{IdentityKey, KEY_LEN, NetworkId};

/// Messages up to this size are encoded on the stack; a chunk's has about 130 bytes.
const INLINE_LEN: usize = 512;

/// What a signature is for. A signature for one purpose is never valid for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The Merkle root of a broadcast message.
    Chunk,
    /// A peer record.
    Record,
    /// A certificate over a block range.
    Certificate,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Purpose; 3] = [Purpose::Chunk, Purpose::Record, Purpose::Certificate];

    /// The label that starts the signed message. No label is a prefix of another, so that two
    /// purposes never share a message.
    #[must_use]
    pub fn label(self) -> &'static [u8] {
        match self {
            Purpose::Chunk => b"falconet/chunk/1",
            Purpose::Record => b"falconet/record/1",
            Purpose::Certificate => b"falconet/certificate/1",
        }
    }
}

/// The bytes that are signed: label, network id, the signer's key, then the fields, joined without
/// lengths (`docs/spec/keys.md#signed-message`).
///
/// Public so that a remote signer can be built on it. Small messages live on the stack.
pub struct SignedMessage(Bytes);

#[expect(clippy::large_enum_variant, reason = "being on the stack is the point")]
enum Bytes {
    Inline { buffer: [u8; INLINE_LEN], len: usize },
    Heap(Vec<u8>),
}

impl SignedMessage {
    /// Joins the parts.
    #[must_use]
    pub fn encode(purpose: Purpose, network: &NetworkId, signer: &IdentityKey, fields: &[&[u8]]) -> Self {
        let label = purpose.label();
        let head = label.len() + network.as_bytes().len() + KEY_LEN;
        let len = head + fields.iter().map(|field| field.len()).sum::<usize>();
        let parts = [label, network.as_bytes(), signer.as_bytes()]
            .into_iter()
            .chain(fields.iter().copied());
        Self(if len <= INLINE_LEN {
            Bytes::inline(len, parts)
        } else {
            Bytes::Heap(parts.flatten().copied().collect())
        })
    }

    /// The bytes to sign.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline { buffer, len } => &buffer[..*len],
            Bytes::Heap(bytes) => bytes,
        }
    }
}

impl Bytes {
    fn inline<'a>(len: usize, parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut buffer = [0; INLINE_LEN];
        let mut rest = &mut buffer[..len];
        for part in parts {
            let (here, after) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = after;
        }
        Self::Inline { buffer, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(fields: &[&[u8]]) -> SignedMessage {
        let network = NetworkId::from_bytes([2; 32]);
        SignedMessage::encode(
            Purpose::Record,
            &network,
            &IdentityKey::from_bytes([3; 32]),
            fields,
        )
    }

    #[test]
    fn parts_in_order() {
        let mut expected = b"falconet/record/1".to_vec();
        expected.extend([2; 32]);
        expected.extend([3; 32]);
        expected.extend(b"onetwo");
        assert_eq!(encode(&[b"one", b"", b"two"]).as_bytes(), expected);
    }

    #[test]
    fn stack_and_heap_encode_alike() {
        for len in [0, 1, 430, 431, 432, 5000] {
            let field = vec![9; len];
            let message = encode(&[&field]);
            assert_eq!(message.as_bytes().len(), 17 + 64 + len);
            assert!(message.as_bytes()[17 + 64..].iter().all(|byte| *byte == 9));
        }
    }

    #[test]
    fn no_label_is_a_prefix_of_another() {
        for a in Purpose::ALL {
            for b in Purpose::ALL {
                assert!(a == b || !a.label().starts_with(b.label()));
            }
        }
    }
}
