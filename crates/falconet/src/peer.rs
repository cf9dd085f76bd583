//! What a node knows of another before it has heard from it.

use std::net::SocketAddr;
use std::sync::Arc;

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
    authenticated: Option<(TransportPublicKey, Option<SocketAddr>)>,
    plain: Option<SocketAddr>,
    policy: Policy,
    suites: Vec<Suite>,
    psk: Option<Arc<SecretBytes>>,
    is_persistent: bool,
    record_sequence: Option<u64>,
}

impl Peer {
    /// A peer of which nothing but its identity is known: it can send to us, and nothing reaches it yet.
    pub fn new(identity: IdentityKey) -> Self {
        Self {
            identity,
            authenticated: None,
            plain: None,
            policy: Policy::default(),
            suites: Vec::new(),
            psk: None,
            is_persistent: true,
            record_sequence: None,
        }
    }

    /// What a peer's verified record says of it: keys, addresses of both lanes, suites. Its sequence is kept, so that
    /// only a newer record can take its place in a session.
    pub fn from_record(record: &PeerRecord) -> Self {
        let config = record.peer_config();
        Self {
            authenticated: config.transport_key.map(|key| (key, config.address)),
            plain: config.plain_address,
            suites: config.suites,
            record_sequence: config.record_sequence,
            ..Self::new(record.content().identity)
        }
    }

    /// Its transport key, and the address of its authenticated lane.
    #[must_use]
    pub fn with_authenticated(mut self, key: TransportPublicKey, address: SocketAddr) -> Self {
        self.authenticated = Some((key, Some(address)));
        self
    }

    /// Its transport key, when only the peer can dial us.
    #[must_use]
    pub fn with_transport_key(mut self, key: TransportPublicKey) -> Self {
        self.authenticated = Some((key, None));
        self
    }

    /// The address of its plain lane, from which it also sends: plain datagrams are attributed by it, as a hint.
    #[must_use]
    pub fn with_plain(mut self, address: SocketAddr) -> Self {
        self.plain = Some(address);
        self
    }

    /// Which lane it is spoken to on, and which it may speak on. Default: `Prefer`.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The suites that its record lists besides suite 0. Default: none, so that suite 0 is used.
    #[must_use]
    pub fn with_suites(mut self, suites: &[Suite]) -> Self {
        self.suites = suites.to_vec();
        self
    }

    /// A pre-shared key, mixed into every handshake with this peer. Default: none (all zeros, as in WireGuard).
    #[must_use]
    pub fn with_psk(mut self, psk: SecretBytes) -> Self {
        self.psk = Some(Arc::new(psk));
        self
    }

    /// Whether it is dialled in advance and for ever. Default: yes, as validators need; full nodes may idle out.
    #[must_use]
    pub fn with_persistent(mut self, is_persistent: bool) -> Self {
        self.is_persistent = is_persistent;
        self
    }

    /// The key that names it.
    pub fn identity(&self) -> IdentityKey {
        self.identity
    }

    /// Whether a session with it can be had by a node that has an authenticated lane itself.
    pub(crate) fn speaks_authenticated(&self) -> bool {
        self.authenticated.is_some() && self.policy != Policy::Plain
    }

    /// As the transport takes it. `has_authenticated_lane`: whether this node itself has one; without, all is plain.
    pub(crate) fn to_config(&self, has_authenticated_lane: bool) -> PeerConfig {
        let authenticated = self.authenticated.filter(|_| has_authenticated_lane);
        PeerConfig {
            transport_key: authenticated.map(|(key, _)| key),
            identity: Some(self.identity),
            address: authenticated.and_then(|(_, address)| address),
            plain_address: self.plain,
            policy: if authenticated.is_some() {
                self.policy
            } else {
                Policy::Plain
            },
            persistent: self.is_persistent,
            suites: self.suites.clone(),
            psk: self.psk.clone(),
            record_sequence: self.record_sequence,
            ..PeerConfig::default()
        }
    }
}
