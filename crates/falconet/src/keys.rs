//! The two keys of a node.

use std::path::Path;
use std::sync::Arc;

use falconet_crypto::keyfile::{self, KeyFileError};
use falconet_crypto::{IdentityKey, IdentitySecret, Signer, TransportPublicKey, TransportSecret};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::entropy::{self, EntropyError};

/// The keys of one node: the identity that signs, and the transport key of its sessions.
///
/// They are made separately and rotate separately. The identity may live elsewhere: any [`Signer`] will do.
pub struct NodeKeys {
    signer: Arc<dyn Signer>,
    transport: TransportSecret,
}

impl NodeKeys {
    /// Keys from a signer (in this process or remote) and a transport secret.
    pub fn new(signer: Arc<dyn Signer>, transport: TransportSecret) -> Self {
        Self { signer, transport }
    }

    /// Two new keys from the system's entropy, kept nowhere: for tests and short-lived nodes.
    ///
    /// # Errors
    /// If the system gives no entropy.
    pub fn generate() -> Result<Self, EntropyError> {
        let mut rng = ChaCha20Rng::from_seed(entropy::seed()?);
        let identity = IdentitySecret::generate(&mut rng);
        Ok(Self::new(Arc::new(identity), TransportSecret::generate(&mut rng)))
    }

    /// The two key files that `falconet keygen` makes.
    ///
    /// # Errors
    /// If a file is missing, readable by others, damaged, or of the other purpose.
    pub fn load(identity: &Path, transport: &Path) -> Result<Self, KeyFileError> {
        let signer = Arc::new(keyfile::load_identity(identity)?);
        Ok(Self::new(signer, keyfile::load_transport(transport)?))
    }

    /// The public key that names this node.
    pub fn identity(&self) -> IdentityKey {
        self.signer.identity()
    }

    /// The public key that its sessions are made with.
    pub fn transport_key(&self) -> TransportPublicKey {
        self.transport.public()
    }

    pub(crate) fn into_parts(self) -> (Arc<dyn Signer>, TransportSecret) {
        (self.signer, self.transport)
    }
}

impl std::fmt::Debug for NodeKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeKeys")
            .field("identity", &self.identity())
            .finish_non_exhaustive()
    }
}
