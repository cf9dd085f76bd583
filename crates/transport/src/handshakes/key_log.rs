//! Lines for a key log, which only exist for a disposable transport key; `docs/spec/keys.md#key-log`.

use super::Handshakes;
use crate::PeerId;
use falconet_crypto::{TransportPublicKey, TransportSecret, key_log::KeyLogLine};
use falconet_handshake::{PeerStatic, PendingInitiation};
use std::collections::VecDeque;
use std::sync::Arc;

/// Lines that wait to be written: those of 64 handshakes with a preshared key.
const MAX_LINES: usize = 256;
/// Lines of one handshake, at most.
const LINES: usize = 4;

/// Why no keys are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key log is only for a transport key whose file was made as disposable (keygen --disposable); this node's, \
     {key}, was not"
)]
pub struct KeyLogRefused {
    /// The transport key of the node.
    pub key: TransportPublicKey,
}

/// Leave to log the keys of the node with one transport key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyLogLeave(TransportPublicKey);

impl KeyLogLeave {
    pub(crate) fn ask(secret: &TransportSecret) -> Result<Self, KeyLogRefused> {
        let key = secret.public();
        match secret.disposable() {
            Some(_) => Ok(Self(key)),
            None => Err(KeyLogRefused { key }),
        }
    }

    /// Whether it was given to the node with this key.
    pub(super) fn is_for(self, key: &TransportPublicKey) -> bool {
        self.0 == *key
    }
}

/// Lines that wait. There is none of these unless keys are logged.
#[derive(Default)]
pub(super) struct KeyLog {
    lines: VecDeque<KeyLogLine>,
    left_out: u64,
}

impl KeyLog {
    fn push(&mut self, lines: impl Iterator<Item = KeyLogLine>) {
        if self.lines.len() + LINES > MAX_LINES {
            self.left_out += 1;
            return;
        }
        self.lines.extend(lines);
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl Handshakes {
    /// The next line for a [`falconet_crypto::key_log::KeyLogFile`], with
    /// [`TransportConfig::with_key_log`](crate::TransportConfig::with_key_log) only. A handshake's lines are there
    /// with the datagram that they are about.
    pub fn poll_key_log(&mut self) -> Option<KeyLogLine> {
        self.key_log.as_mut()?.lines.pop_front()
    }

    pub(super) fn log_initiation(&mut self, initiation: &PendingInitiation, statics: &PeerStatic) {
        if let Some(log) = &mut self.key_log {
            log.push(initiation.key_log_lines(&self.local, statics));
        }
    }

    /// `ephemeral` are the bytes of the key that `peer` will be answered under.
    pub(super) fn log_answer(&mut self, peer: PeerId, ephemeral: &[u8; 32]) {
        let statics = self.contact(peer).map(|contact| Arc::clone(&contact.statics));
        if let (Some(log), Some(statics)) = (&mut self.key_log, statics) {
            let ephemeral = TransportSecret::from_bytes(*ephemeral);
            log.push(self.local.key_log_lines(&statics, &ephemeral));
        }
    }
}
