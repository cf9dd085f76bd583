//! The record of this node: what it says of itself to its peers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use falconet_crypto::{IdentityKey, NetworkId, Signer, Suite, TransportPublicKey};
use falconet_transport::{Capabilities, LaneAddresses, PeerRecord, RecordContent};

use super::Node;
use crate::error::PublishError;
use crate::own_record::OwnRecord;
use crate::settings::Settings;
use crate::state::{State, StateHandle};
use crate::wiring::now;

/// Bytes of UDP and IP headers by family.
const IPV4_HEADERS: usize = 28;
const IPV6_HEADERS: usize = 48;

/// Signs this node's records, each with a higher sequence than any before.
pub(crate) struct Issuer {
    signer: Arc<dyn Signer>,
    network: NetworkId,
    transport_key: TransportPublicKey,
    suites: u16,
    path_mtu: usize,
    max_chunk: usize,
    state: Option<StateHandle>,
    /// Sequence of the last record.
    last: Mutex<Option<u64>>,
}

impl Issuer {
    pub(super) fn new(
        settings: &Settings,
        signer: Arc<dyn Signer>,
        transport_key: TransportPublicKey,
        state: Option<&State>,
    ) -> Self {
        let has_aes = settings.suites.contains(&Suite::Aes256Gcm);
        Self {
            signer,
            network: settings.network,
            transport_key,
            // Suite 0 is always understood.
            suites: if has_aes { 0b11 } else { 0b01 },
            path_mtu: settings.path_mtu,
            max_chunk: settings.chunk_size,
            state: state.and_then(State::handle),
            last: Mutex::new(state.and_then(|state| state.loaded().record_sequence)),
        }
    }

    pub(super) fn network(&self) -> &NetworkId {
        &self.network
    }

    /// Signs a record. Waits for the disk and for the signer.
    fn issue(&self, lanes: Lanes, validity_ms: u64) -> Result<PeerRecord, PublishError> {
        // Held until it is signed: two at a time would be two of one sequence.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        // The clock keeps a node whose state was lost above what its peers have seen (docs/spec/state.md#record).
        let sequence = last.map_or(0, |last| last.saturating_add(1)).max(now.unix_ms());
        if let Some(state) = &self.state {
            state
                .store_record_sequence(sequence)
                .map_err(PublishError::NotDurable)?;
        }
        *last = Some(sequence);
        let headers = if lanes.has_v6() {
            IPV6_HEADERS
        } else {
            IPV4_HEADERS
        };
        let capabilities = match lanes.authenticated {
            Some(_) => Capabilities::AUTHENTICATED_LANE,
            None => Capabilities::default(),
        };
        let content = RecordContent {
            identity: self.signer.identity(),
            transport_key: self.transport_key,
            sequence,
            expiry_ms: now.unix_ms().saturating_add(validity_ms),
            authenticated: lanes.authenticated.unwrap_or_default(),
            plain: lanes.plain,
            capabilities,
            suites: self.suites,
            max_datagram: u16::try_from(self.path_mtu.saturating_sub(headers)).unwrap_or(u16::MAX),
            max_chunk: u16::try_from(self.max_chunk).unwrap_or(u16::MAX),
        };
        Ok(PeerRecord::sign(content, &self.network, &*self.signer)?)
    }
}

/// The addresses of a record; no authenticated lane, no capability for it.
#[derive(Clone, Copy)]
struct Lanes {
    authenticated: Option<LaneAddresses>,
    plain: LaneAddresses,
}

impl Lanes {
    fn has_v6(&self) -> bool {
        self.plain.v6.is_some() || self.authenticated.is_some_and(|lane| lane.v6.is_some())
    }
}

impl Node {
    /// Signs a new record of this node, stores its sequence, and offers it in every session from now on: after a change
    /// of address, or well before the last one expires.
    ///
    /// A record that says that the node no longer serves the authenticated lane
    /// ([`OwnRecord::without_authenticated_lane`]) takes its peers' stickiness back: a rollback publishes it first.
    ///
    /// # Errors
    /// [`PublishError`]; then the last record stays in force.
    pub async fn publish_record(&self, record: OwnRecord) -> Result<PeerRecord, PublishError> {
        let lanes = self.lanes(&record)?;
        let issuer = Arc::clone(&self.issuer);
        let validity_ms = u64::try_from(record.validity.as_millis()).unwrap_or(u64::MAX);
        let issued = tokio::task::spawn_blocking(move || issuer.issue(lanes, validity_ms)).await;
        let record = issued.map_err(|_| PublishError::Stopped)??;
        let offered = record.clone();
        self.dataplane
            .sender()
            .with_sessions(move |now, sessions| {
                // It names our own key: nothing else is refused.
                let _ = sessions.set_record(now, &offered);
            })
            .map_err(|_| PublishError::Stopped)?;
        Ok(record)
    }

    fn lanes(&self, record: &OwnRecord) -> Result<Lanes, PublishError> {
        let authenticated = match (record.serves_authenticated, self.local_addr()) {
            (true, Some(local)) => Some(reachable(record.authenticated, local)?),
            _ => None,
        };
        let plain = self
            .local_plain_addr()
            .map(|local| reachable(record.plain, local));
        Ok(Lanes {
            authenticated,
            plain: plain.transpose()?.unwrap_or_default(),
        })
    }
}

/// What was said, or else where the lane listens. Only what a peer can send to (docs/spec/record.md#canonical).
fn reachable(said: Option<LaneAddresses>, local: SocketAddr) -> Result<LaneAddresses, PublishError> {
    let addresses = said.unwrap_or(match local {
        SocketAddr::V4(v4) => LaneAddresses {
            v4: Some(v4),
            v6: None,
        },
        SocketAddr::V6(v6) => LaneAddresses {
            v4: None,
            v6: Some(v6),
        },
    });
    let v4 = addresses.v4.map(SocketAddr::V4);
    let v6 = addresses.v6.map(SocketAddr::V6);
    let useless = |at: &SocketAddr| at.ip().is_unspecified() || at.ip().is_multicast() || at.port() == 0;
    match [v4, v6].into_iter().flatten().find(useless) {
        Some(address) => Err(PublishError::Unreachable(address)),
        None => Ok(addresses),
    }
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let identity: IdentityKey = self.signer.identity();
        f.debug_struct("Issuer")
            .field("identity", &identity)
            .finish_non_exhaustive()
    }
}
