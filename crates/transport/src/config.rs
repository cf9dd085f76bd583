//! Limits and choices of one node's transport.

use crate::PeerId;
use crate::handshakes::{KeyLogLeave, KeyLogRefused};
use falconet_crypto::{NetworkId, Suite, TransportSecret};
use falconet_handshake::{AdmissionOptions, CheckedOptions, OptionsError};

/// Sends of all peers that wait for a session: what bytes do not bound, small datagrams fill.
const MAX_BUFFERED_ENTRIES: usize = 65_536;

/// Limits and choices of one node's transport. All have defaults.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub(crate) max_peers: usize,
    pub(crate) max_datagram: usize,
    pub(crate) aes: bool,
    pub(crate) plain_strangers: bool,
    pub(crate) buffered: BufferLimits,
    pub(crate) admission: CheckedOptions,
    pub(crate) network: Option<NetworkId>,
    pub(crate) accept_unknown: bool,
    pub(crate) sessions: SessionLimits,
    pub(crate) offload: bool,
    pub(crate) key_log: Option<KeyLogLeave>,
}

/// Caps on sends that wait for a session; `docs/spec/session.md#buffered`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferLimits {
    pub(crate) peer_bytes: usize,
    pub(crate) peer_entries: usize,
    pub(crate) total_bytes: usize,
    pub(crate) total_entries: usize,
}

/// How many peers may have a session; `docs/spec/session.md#caps`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    pub(crate) known: usize,
    pub(crate) unknown: usize,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_peers: 16_384,
            max_datagram: 65_507,
            aes: true,
            plain_strangers: true,
            buffered: BufferLimits {
                peer_bytes: 128 << 10,
                peer_entries: 128,
                total_bytes: 64 << 20,
                total_entries: MAX_BUFFERED_ENTRIES,
            },
            admission: CheckedOptions::default(),
            network: None,
            accept_unknown: false,
            sessions: SessionLimits {
                known: 4096,
                unknown: 1024,
            },
            offload: false,
            key_log: None,
        }
    }
}

impl TransportConfig {
    /// Peers that can be configured, which is also the end of the handles; default 16,384.
    #[must_use]
    pub fn with_max_peers(mut self, peers: usize) -> Self {
        self.max_peers = peers;
        self
    }

    /// Longest datagram that is sealed, in bytes with its 32 bytes of frame; default 65,507 (what UDP
    /// over IPv4 carries).
    #[must_use]
    pub fn with_max_datagram(mut self, bytes: usize) -> Self {
        self.max_datagram = bytes;
        self
    }

    /// Whether suite 1 (AES-256-GCM) may be offered and accepted; default true.
    #[must_use]
    pub fn with_aes(mut self, allowed: bool) -> Self {
        self.aes = allowed;
        self
    }

    /// Whether plain datagrams of addresses that belong to no peer are handed on (without a sender);
    /// default true, because an unconfigured node of a mixed network speaks plain.
    #[must_use]
    pub fn with_plain_strangers(mut self, accepted: bool) -> Self {
        self.plain_strangers = accepted;
        self
    }

    /// What may wait for a session: bytes a peer (default 128 KiB), entries a peer (128), and bytes in
    /// all (64 MiB). In entries it is 65,536 in all.
    #[must_use]
    pub fn with_buffered(mut self, peer_bytes: usize, peer_entries: usize, total_bytes: usize) -> Self {
        self.buffered = BufferLimits {
            peer_bytes,
            peer_entries,
            total_bytes,
            total_entries: MAX_BUFFERED_ENTRIES,
        };
        self
    }

    /// Which initiations are worth a Diffie-Hellman: budgets by class, limits by source, cookie replies.
    /// Default [`AdmissionOptions::default`].
    ///
    /// # Errors
    ///
    /// [`OptionsError`] names the option that is wrong.
    pub fn with_admission(mut self, options: AdmissionOptions) -> Result<Self, OptionsError> {
        self.admission = options.check()?;
        Ok(self)
    }

    /// The network whose records are taken from peers in their sessions; default none, then none are.
    #[must_use]
    pub fn with_network(mut self, network: NetworkId) -> Self {
        self.network = Some(network);
        self
    }

    /// Whether peers are accepted that nobody has configured, by any transport key; default false. Their
    /// handles follow those of `max_peers`, one for each of the unknown sessions that there may be
    /// (`docs/spec/session.md#strangers`).
    #[must_use]
    pub fn with_accept_unknown(mut self, accepted: bool) -> Self {
        self.accept_unknown = accepted;
        self
    }

    /// How many configured peers, and apart from them how many unknown ones, may have a session at the same
    /// time, whatever the number of its keys; default 4,096 and 1,024, at least 1 each. Persistent peers
    /// are no more than the former. See `docs/spec/session.md#caps` for whose ends first.
    #[must_use]
    pub fn with_max_sessions(mut self, known: usize, unknown: usize) -> Self {
        self.sessions = SessionLimits {
            known: known.max(1),
            unknown: unknown.max(1),
        };
        self
    }

    /// Whether the Diffie-Hellmans of admitted initiations are handed out ([`crate::Handshakes::poll_work`])
    /// and computed by the embedder's threads, instead of at once; default false. See
    /// `docs/spec/session.md#offload`, and [`AdmissionOptions::with_threads`] for the budget that goes with it.
    #[must_use]
    pub fn with_offload(mut self, offload: bool) -> Self {
        self.offload = offload;
        self
    }

    /// Has the keys of handshakes handed out ([`crate::Handshakes::poll_key_log`]), so that tshark can read what
    /// was captured of the node with this transport key, and of no other; default off, and then nothing
    /// of them is kept. `docs/spec/keys.md#key-log`
    ///
    /// # Errors
    ///
    /// [`KeyLogRefused`] unless the key was loaded from a file that marks it as disposable.
    pub fn with_key_log(mut self, secret: &TransportSecret) -> Result<Self, KeyLogRefused> {
        self.key_log = Some(KeyLogLeave::ask(secret)?);
        Ok(self)
    }

    /// Whether a handle is one that this node has given to a peer that nobody has configured.
    pub(crate) fn is_stranger(&self, peer: PeerId) -> bool {
        (self.max_peers..self.max_peers + self.places()).contains(&peer.slot())
    }

    /// Places for peers that nobody has configured.
    pub(crate) fn places(&self) -> usize {
        match self.accept_unknown {
            true => self.sessions.unknown,
            false => 0,
        }
    }

    pub(crate) fn allows(&self, suite: Suite) -> bool {
        match suite {
            Suite::ChaCha20Poly1305 => true,
            Suite::Aes256Gcm => self.aes,
        }
    }
}
