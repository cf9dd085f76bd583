//! A leader and a relay that break the rules: chunks that no honest node makes, for tests and benches that run nodes
//! against them.

use std::sync::Arc;

use bytes::Bytes;
use falconet_crypto::{IdentitySecret, NetworkId, Now, Purpose, Signer};
use falconet_raptorcast::{
    BroadcastError, ChunkView, Engine, EngineConfig, Epoch, HASH_LEN, NodeIndex, Recipients, Round,
    SIGNATURE_LEN, Tree, ValidatorSet, leaf_hash, merkle_depth,
};

/// A chunk, and the validator that is its first hop.
#[derive(Clone, Debug)]
pub struct Addressed {
    /// By its number in the set.
    pub to: NodeIndex,
    /// As it goes into a datagram.
    pub chunk: Bytes,
}

/// A member of the set that signs what it likes.
pub struct HostileLeader {
    secret: Arc<IdentitySecret>,
    network: NetworkId,
    epoch: Epoch,
    set: Arc<ValidatorSet>,
}

impl HostileLeader {
    /// The holder of `secret`, in this epoch of a network whose nodes have default settings.
    pub fn new(secret: IdentitySecret, network: NetworkId, epoch: Epoch, set: ValidatorSet) -> Self {
        Self {
            secret: Arc::new(secret),
            network,
            epoch,
            set: Arc::new(set),
        }
    }

    /// The set in which [`Addressed::to`] counts.
    pub fn set(&self) -> &ValidatorSet {
        &self.set
    }

    /// All chunks of a message as an honest leader would make them, in the order in which they would leave. Every call
    /// makes another message, also with the same round: `now` and the payload tell them apart.
    ///
    /// # Errors
    /// If no engine publishes such a payload in such a round.
    pub fn message(&self, now: Now, round: Round, payload: Bytes) -> Result<Vec<Addressed>, BroadcastError> {
        let mut engine = Engine::new(EngineConfig::new(self.network), self.secret.clone(), [7; 32])
            .map_err(|_| BroadcastError::UnknownEpoch(self.epoch))?;
        engine.set_epoch(self.epoch, Arc::clone(&self.set));
        engine.broadcast(now, self.epoch, round, payload)?;
        let mut all = Vec::new();
        while let Some(transmit) = engine.poll_transmit() {
            if let Recipients::One(to) = transmit.to {
                all.extend(transmit.chunks.into_iter().map(|chunk| Addressed { to, chunk }));
            }
        }
        Ok(all)
    }

    /// Alters the symbols for whose place `is_altered` holds, and commits to the result: every proof and the signature
    /// are good, and no payload has these symbols.
    pub fn recommit(&self, mut chunks: Vec<Addressed>, is_altered: impl Fn(usize) -> bool) -> Vec<Addressed> {
        let mut leaves = vec![[0; HASH_LEN]; chunks.len()];
        for addressed in &mut chunks {
            let Ok(view) = ChunkView::parse(&addressed.chunk) else {
                continue;
            };
            let (index, symbol_len) = (view.header.index.as_usize(), view.symbol.len());
            let mut chunk = addressed.chunk.to_vec();
            let start = chunk.len() - symbol_len;
            if is_altered(index) {
                chunk[start] ^= 0xff;
            }
            leaves[index] = leaf_hash(&chunk[start..]);
            addressed.chunk = chunk.into();
        }
        let depth = merkle_depth(leaves.len() as u16);
        let tree = Tree::build(&leaves, depth);
        let first = chunks
            .first()
            .and_then(|first| ChunkView::parse(&first.chunk).ok());
        let Some(header) = first.map(|view| view.header) else {
            return chunks;
        };
        let commitment = header.commitment_bytes();
        let fields: [&[u8]; 2] = [commitment.as_slice(), &tree.root()];
        // The secret is here: it signs everything.
        let Ok(signature) = self.secret.sign(Purpose::Chunk, &self.network, &fields) else {
            return chunks;
        };
        for addressed in &mut chunks {
            let mut chunk = addressed.chunk.to_vec();
            let Ok(view) = ChunkView::parse(&addressed.chunk) else {
                continue;
            };
            let at = header.encoded_len();
            chunk[at..at + SIGNATURE_LEN].copy_from_slice(signature.as_bytes());
            let proof = at + SIGNATURE_LEN;
            tree.write_proof(
                view.header.index,
                &mut chunk[proof..proof + HASH_LEN * usize::from(depth)],
            );
            addressed.chunk = chunk.into();
        }
        chunks
    }
}

/// The chunk with another last byte of its symbol: its proof leads elsewhere.
pub fn with_bad_proof(chunk: &[u8]) -> Bytes {
    let mut chunk = chunk.to_vec();
    if let Some(last) = chunk.last_mut() {
        *last ^= 0xff;
    }
    chunk.into()
}

/// The chunk under signature bytes that are no signature; `number` makes different ones.
pub fn with_bad_signature(chunk: &[u8], number: u64) -> Bytes {
    let mut chunk = chunk.to_vec();
    let header = ChunkView::parse(&chunk).map(|view| view.header.encoded_len());
    if let Ok(at) = header {
        for (byte, noise) in chunk[at..].iter_mut().zip(number.to_le_bytes()) {
            *byte ^= noise;
        }
        chunk[at + 8] ^= 0x55;
    }
    chunk.into()
}
