//! What an author signed, and the signatures that we have checked.

use crate::events::SignedRoot;
use crate::header::CommitmentBytes;
use crate::ids::SymbolIndex;
use crate::limits::SIGNATURE_LEN;
use crate::merkle::Hash;

/// Different valid signatures kept for one commitment. Honest leaders make one.
const MAX_SIGNATURES: usize = 4;

/// What an author signed, and the signatures we have checked.
#[derive(Clone, Debug)]
pub(crate) struct Commitment {
    pub(crate) header: CommitmentBytes,
    pub(crate) root: Hash,
    signatures: Vec<[u8; SIGNATURE_LEN]>,
}

impl Commitment {
    pub(crate) fn new(header: CommitmentBytes, root: Hash, signature: [u8; SIGNATURE_LEN]) -> Self {
        Self {
            header,
            root,
            signatures: vec![signature],
        }
    }

    /// Whether exactly these signature bytes have been checked before.
    pub(crate) fn knows(&self, signature: &[u8; SIGNATURE_LEN]) -> bool {
        self.signatures.contains(signature)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.signatures.len() < MAX_SIGNATURES
    }

    pub(crate) fn learn(&mut self, signature: [u8; SIGNATURE_LEN]) {
        self.signatures.push(signature);
    }

    pub(crate) fn evidence(&self) -> SignedRoot {
        SignedRoot {
            header: self.header.as_slice().to_vec(),
            root: self.root,
            signature: self.signatures[0],
        }
    }

    /// Writes the header of this symbol and the signature to the front of a chunk.
    pub(crate) fn write_envelope(&self, index: SymbolIndex, chunk: &mut [u8]) {
        let header_len = self.header.write_header(index, chunk);
        chunk[header_len..header_len + SIGNATURE_LEN].copy_from_slice(&self.signatures[0]);
    }
}
