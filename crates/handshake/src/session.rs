//! What a finished handshake yields.

use crate::SessionIndex;
use falconet_crypto::{SecretBytes, Suite};
use std::fmt;

/// Which side of the handshake we were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// We sent message 1.
    Initiator,
    /// We sent message 2; the session is confirmed by the first datagram that opens.
    Responder,
}

/// The result of a handshake: one key a direction, and both names of the session.
///
/// The keys are zeroized on drop. `docs/spec/handshake.md#transport-keys`.
pub struct SessionKeys {
    /// AEAD of both directions.
    pub suite: Suite,
    /// Our side of the handshake.
    pub role: Role,
    /// The index we chose: datagrams to us carry it.
    pub local_index: SessionIndex,
    /// The index the peer chose: datagrams to it carry this one.
    pub remote_index: SessionIndex,
    /// Key for what we send.
    pub send: SecretBytes,
    /// Key for what we receive.
    pub receive: SecretBytes,
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKeys")
            .field("suite", &self.suite)
            .field("role", &self.role)
            .field("local_index", &self.local_index)
            .field("remote_index", &self.remote_index)
            .finish_non_exhaustive()
    }
}
