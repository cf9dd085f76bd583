//! Limits and choices of one node's transport.

use falconet_crypto::Suite;

/// Limits and choices of one node's transport. All have defaults.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub(crate) max_peers: usize,
    pub(crate) max_datagram: usize,
    pub(crate) aes: bool,
    pub(crate) plain_strangers: bool,
    pub(crate) buffered: BufferLimits,
    pub(crate) budgets: Budgets,
}

/// Caps on sends that wait for a session; `docs/spec/session.md#buffered`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferLimits {
    pub(crate) peer_bytes: usize,
    pub(crate) peer_entries: usize,
    pub(crate) total_bytes: usize,
}

/// Admission of initiations, a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budgets {
    pub(crate) without_cookie: u32,
    pub(crate) with_cookie: u32,
    pub(crate) cookie_replies: u32,
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
            },
            budgets: Budgets {
                without_cookie: 300,
                with_cookie: 300,
                cookie_replies: 20_000,
            },
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
    /// all (64 MiB).
    #[must_use]
    pub fn with_buffered(mut self, peer_bytes: usize, peer_entries: usize, total_bytes: usize) -> Self {
        self.buffered = BufferLimits {
            peer_bytes,
            peer_entries,
            total_bytes,
        };
        self
    }

    /// Initiations answered a second, without and with a valid cookie (default 300 and 300).
    #[must_use]
    pub fn with_initiation_budgets(mut self, without_cookie: u32, with_cookie: u32) -> Self {
        self.budgets.without_cookie = without_cookie;
        self.budgets.with_cookie = with_cookie;
        self
    }

    /// Cookie replies a second; default 20,000.
    #[must_use]
    pub fn with_cookie_replies(mut self, replies: u32) -> Self {
        self.budgets.cookie_replies = replies;
        self
    }

    pub(crate) fn allows(&self, suite: Suite) -> bool {
        match suite {
            Suite::ChaCha20Poly1305 => true,
            Suite::Aes256Gcm => self.aes,
        }
    }
}
