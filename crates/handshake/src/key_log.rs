//! What a key log says of a handshake; `docs/spec/keys.md#key-log`.

use crate::{LocalStatic, PeerStatic, PendingInitiation};
use falconet_crypto::{Disposable, SecretBytes, TransportSecret, key_log::KeyLogLine};

impl LocalStatic {
    /// Leave to log keys, if our static key is disposable.
    pub fn disposable(&self) -> Option<Disposable> {
        self.secret().disposable()
    }

    /// The lines of a handshake with `peer` under our key `ephemeral`, in the order in which they are read;
    /// none if our static key is not disposable.
    pub fn key_log_lines(
        &self,
        peer: &PeerStatic,
        ephemeral: &TransportSecret,
    ) -> impl Iterator<Item = KeyLogLine> + use<> {
        let lines = self.disposable().map(|disposable| {
            let has_psk = *peer.psk() != SecretBytes::new([0; 32]);
            [
                KeyLogLine::local_static(self.secret()),
                Some(KeyLogLine::remote_static(disposable, peer.key())),
                Some(KeyLogLine::local_ephemeral(disposable, ephemeral)),
                has_psk.then(|| KeyLogLine::preshared_key(disposable, peer.psk())),
            ]
        });
        lines.into_iter().flatten().flatten()
    }
}

impl PendingInitiation {
    /// As [`LocalStatic::key_log_lines`], for this initiation to `peer`.
    pub fn key_log_lines(
        &self,
        local: &LocalStatic,
        peer: &PeerStatic,
    ) -> impl Iterator<Item = KeyLogLine> + use<> {
        local.key_log_lines(peer, self.ephemeral())
    }
}
