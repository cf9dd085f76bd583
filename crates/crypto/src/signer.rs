//! Who signs: a secret in this process, or something remote.

use crate::{IdentityKey, NetworkId, Purpose, Signature};

/// Something that signs for an identity: a secret in this process
/// ([`IdentitySecret`](crate::IdentitySecret)), or a remote signer.
///
/// The interface hands over what is signed in its parts and not as opaque bytes: a signer sees the
/// purpose and the network, so that it can apply a policy (never sign two different roots of one
/// round, sign records only by hand, ...). The signature must be over the message that
/// [`SignedMessage`](crate::SignedMessage) encodes.
///
/// `sign` may block for as long as a round trip takes, hence it is never called on a thread that
/// serves sockets.
pub trait Signer: Send + Sync {
    /// The identity it signs for.
    fn identity(&self) -> IdentityKey;

    /// Signs the label of `purpose`, `network`, its own key, then `fields`.
    ///
    /// # Errors
    /// [`SignError::Refused`] if the signer's policy forbids it: do not ask again.
    /// [`SignError::Unavailable`] if it cannot be reached or answers badly: it may be asked again.
    fn sign(&self, purpose: Purpose, network: &NetworkId, fields: &[&[u8]]) -> Result<Signature, SignError>;
}

/// Why there is no signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The signer's policy forbids it.
    #[error("the signer refused: {0}")]
    Refused(String),
    /// The signer cannot be reached, or answers badly.
    #[error("the signer is unavailable: {0}")]
    Unavailable(String),
}
