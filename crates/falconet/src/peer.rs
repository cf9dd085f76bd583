//! What a node knows of another before it has heard from it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use falconet_crypto::{IdentityKey, SecretBytes, Suite, TransportPublicKey};
use falconet_transport::{PeerConfig, PeerRecord, Policy};

/// A peer: its identity, and where and how each lane reaches it.
///
/// ```
/// use falconet::{IdentityKey, Peer, Policy};
/// # let identity = IdentityKey::from_bytes([7; 32]);
/// let peer = Peer::new(identity).with_plain("192.0.2.7:30303".parse().unwrap());
/// assert_eq!(peer.identity(), identity);
/// ```
#[derive(Clone, Debug)]
pub struct Peer {
    identity: IdentityKey,
    config: PeerConfig,
    pub(crate) forgets_sessions: bool,
}

impl Peer {
    /// A peer of which nothing but its identity is known: it can send to us, and nothing reaches it yet.
    pub fn new(identity: IdentityKey) -> Self {
        let config = PeerConfig::default().with_identity(identity);
        Self {
            identity,
            config: config.with_persistent(true),
            forgets_sessions: false,
        }
    }

    /// What a peer's verified record says of it: keys, addresses of both lanes, suites. Its sequence is kept, so that
    /// only a newer record can take its place in a session.
    pub fn from_record(record: &PeerRecord) -> Self {
        Self {
            config: record.peer_config().with_persistent(true),
            ..Self::new(record.content().identity)
        }
    }

    /// Its transport key, and the address of its authenticated lane.
    #[must_use]
    pub fn with_authenticated(mut self, key: TransportPublicKey, address: SocketAddr) -> Self {
        self.config.transport_key = Some(key);
        self.config.address = Some(address);
        self
    }

    /// Its transport key, when only the peer can dial us.
    #[must_use]
    pub fn with_transport_key(mut self, key: TransportPublicKey) -> Self {
        self.config.transport_key = Some(key);
        self.config.address = None;
        self
    }

    /// The address of its plain lane, from which it also sends: plain datagrams are attributed by it, as a hint.
    #[must_use]
    pub fn with_plain(mut self, address: SocketAddr) -> Self {
        self.config.plain_address = Some(address);
        self
    }

    /// Which lane it is spoken to on, and which it may speak on. Default: `Prefer`.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.config.policy = policy;
        self
    }

    /// The suites that its record lists besides suite 0. Default: none, so that suite 0 is used.
    #[must_use]
    pub fn with_suites(mut self, suites: &[Suite]) -> Self {
        self.config.suites = suites.to_vec();
        self
    }

    /// A pre-shared key, mixed into every handshake with this peer. Default: none (all zeros, as in WireGuard).
    #[must_use]
    pub fn with_psk(mut self, psk: SecretBytes) -> Self {
        self.config.psk = Some(Arc::new(psk));
        self
    }

    /// Whether it is dialled in advance and for ever. Default: yes, as validators need; full nodes may idle out.
    #[must_use]
    pub fn with_persistent(mut self, is_persistent: bool) -> Self {
        self.config.persistent = is_persistent;
        self
    }

    /// Whether its authenticated datagrams may move its address. Default: only if it is not persistent, since a
    /// validator is where its record says.
    #[must_use]
    pub fn with_roaming(mut self, roams: bool) -> Self {
        self.config.roaming = Some(roams);
        self
    }

    /// Sends something at least this often while there is a session, for a NAT in between. Default: never; 25 s is
    /// usual.
    #[must_use]
    pub fn with_keepalive(mut self, interval: Duration) -> Self {
        self.config.keepalive = Some(interval);
        self
    }

    /// Forgets that it ever had a session: `PlainUntilSeen` begins anew. The operator's way to take an upgrade of this
    /// peer back when it cannot say so itself (docs/spec/rollout.md#sticky); for one start, not for good.
    #[must_use]
    pub fn with_sessions_forgotten(mut self) -> Self {
        self.forgets_sessions = true;
        self
    }

    /// The key that names it.
    pub fn identity(&self) -> IdentityKey {
        self.identity
    }

    /// Whether a session with it can be had by a node that has an authenticated lane itself.
    pub(crate) fn speaks_authenticated(&self) -> bool {
        self.config.transport_key.is_some() && self.config.policy != Policy::Plain
    }

    /// As the transport takes it. `has_authenticated_lane`: whether this node itself has one; without, all is plain.
    pub(crate) fn to_config(&self, has_authenticated_lane: bool) -> PeerConfig {
        let mut config = self.config.clone();
        if !has_authenticated_lane {
            (config.transport_key, config.address) = (None, None);
        }
        if config.transport_key.is_none() {
            config.policy = Policy::Plain;
        }
        config
    }
}
