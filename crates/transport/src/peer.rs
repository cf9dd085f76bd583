//! What the embedder says of a peer.

use falconet_crypto::{IdentityKey, SecretBytes, Suite, TransportPublicKey};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Dense local handle of a configured peer, chosen by the embedder from `0..max_peers`.
///
/// It never travels: on the wire a peer is its transport key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct PeerId(pub u32);

impl PeerId {
    pub(crate) const fn slot(self) -> usize {
        self.0 as usize
    }
}

/// Which of the two UDP lanes a datagram travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lane {
    /// Handshakes and sealed data.
    Authenticated,
    /// Bare datagrams, as a node without sessions sends and expects them.
    Plain,
}

/// Which lane a peer is spoken to on while a network moves to the authenticated lane;
/// `docs/spec/rollout.md#policy`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// Only the plain lane, also if there is a session.
    Plain,
    /// The session if there is one; without, plain at once, and dial on.
    #[default]
    Prefer,
    /// Only sessions: what cannot be sealed waits; plain datagrams of this peer are refused.
    Require,
    /// `Prefer` until the first session ever, `Require` from then on.
    PlainUntilSeen,
}

/// What the embedder knows of a peer. Start from [`PeerConfig::default`] and the `with_*` setters, or
/// from a verified record ([`crate::PeerRecord::peer_config`]).
#[derive(Clone, Debug, Default)]
pub struct PeerConfig {
    /// Its Noise static key; `None` for a peer that only speaks plain.
    pub transport_key: Option<TransportPublicKey>,
    /// The identity that the embedder attributes to the peer.
    pub identity: Option<IdentityKey>,
    /// Where it listens on the authenticated lane.
    pub address: Option<SocketAddr>,
    /// Where it listens, and sends from, on the plain lane.
    pub plain_address: Option<SocketAddr>,
    /// Default [`Policy::Prefer`].
    pub policy: Policy,
    /// Dialled in advance and for ever, and renewed without traffic; default false.
    pub persistent: bool,
    /// Suites of its record besides suite 0; empty means suite 0 only.
    pub suites: Vec<Suite>,
    /// Preshared key mixed into the handshake; both sides must have it.
    pub psk: Option<Arc<SecretBytes>>,
    /// Whether authenticated datagrams may move the peer's address. `None`: only if not persistent.
    pub roaming: Option<bool>,
    /// Send something at least this often while there is a session, for NATs; default none, usual 25 s.
    pub keepalive: Option<Duration>,
    /// A plain WireGuard peer: plaintexts that start with an IP version nibble are handed out as
    /// [`crate::Content::Other`]; default false, then they are discarded.
    pub wireguard: bool,
    /// A session with this peer existed in an earlier run: [`Policy::PlainUntilSeen`] is already
    /// sticky. The embedder persists it from [`crate::Event::Connected`]; default false.
    pub seen: bool,
    /// Sequence of the newest record of this peer that was seen, in this run or an earlier one; only a
    /// higher one is taken. [`crate::Event::RecordAccepted`] says what to persist.
    pub record_sequence: Option<u64>,
}

impl PeerConfig {
    /// A peer that is spoken to on the authenticated lane.
    #[must_use]
    pub fn new(transport_key: TransportPublicKey) -> Self {
        Self {
            transport_key: Some(transport_key),
            ..Self::default()
        }
    }

    /// Whether it is to have a session at all times, so that it needs a place of its own among them.
    pub(crate) fn needs_place(&self) -> bool {
        self.persistent && self.transport_key.is_some() && self.policy != Policy::Plain
    }

    /// Sets [`PeerConfig::identity`].
    #[must_use]
    pub fn with_identity(mut self, identity: IdentityKey) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets [`PeerConfig::address`].
    #[must_use]
    pub fn with_address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Sets [`PeerConfig::plain_address`].
    #[must_use]
    pub fn with_plain_address(mut self, address: SocketAddr) -> Self {
        self.plain_address = Some(address);
        self
    }

    /// Sets [`PeerConfig::policy`].
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets [`PeerConfig::persistent`].
    #[must_use]
    pub fn with_persistent(mut self, persistent: bool) -> Self {
        self.persistent = persistent;
        self
    }

    /// Sets [`PeerConfig::suites`].
    #[must_use]
    pub fn with_suites(mut self, suites: Vec<Suite>) -> Self {
        self.suites = suites;
        self
    }

    /// Sets [`PeerConfig::psk`].
    #[must_use]
    pub fn with_psk(mut self, psk: Arc<SecretBytes>) -> Self {
        self.psk = Some(psk);
        self
    }

    /// Sets [`PeerConfig::roaming`].
    #[must_use]
    pub fn with_roaming(mut self, roaming: bool) -> Self {
        self.roaming = Some(roaming);
        self
    }

    /// Sets [`PeerConfig::keepalive`]; at least 1 s is used.
    #[must_use]
    pub fn with_keepalive(mut self, interval: Duration) -> Self {
        self.keepalive = Some(interval);
        self
    }

    /// Sets [`PeerConfig::wireguard`].
    #[must_use]
    pub fn with_wireguard(mut self, wireguard: bool) -> Self {
        self.wireguard = wireguard;
        self
    }

    /// Sets [`PeerConfig::record_sequence`].
    #[must_use]
    pub fn with_record_sequence(mut self, sequence: u64) -> Self {
        self.record_sequence = Some(sequence);
        self
    }

    /// Sets [`PeerConfig::seen`].
    #[must_use]
    pub fn with_seen(mut self, seen: bool) -> Self {
        self.seen = seen;
        self
    }
}

/// Why a peer was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddPeerError {
    /// The handle or the transport key is in use.
    #[error("the peer's handle or transport key is in use")]
    Duplicate,
    /// The handle is at or past [`crate::TransportConfig::with_max_peers`].
    #[error("more peers than the configuration allows")]
    TooMany,
    /// There are as many persistent peers as sessions: see [`crate::TransportConfig::with_max_sessions`].
    #[error("more persistent peers than sessions")]
    TooManyPersistent,
    /// The transport key is a point of low order.
    #[error("the peer's transport key is a point of low order")]
    LowOrderKey,
}
