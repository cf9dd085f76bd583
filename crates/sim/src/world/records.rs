//! Records: what nodes say of themselves, and what they keep of others.

use std::net::SocketAddr;

use falconet_crypto::Signer;
use falconet_transport::{Capabilities, Event, Lane, LaneAddresses, PeerRecord, RecordContent};

use super::World;
use crate::node::{Disk, address, identity_secret, network};

/// How long a record is in force: longer than any run.
const VALIDITY_MS: u64 = 30 * 24 * 3_600 * 1_000;
/// What a path of Ethernet frames carries over IPv4.
const MAX_DATAGRAM: u16 = 1_472;

impl World {
    /// Gives a node other addresses, from now on; nobody is told, and those that it had are nobody's. Shift 0 is where
    /// all nodes begin.
    pub fn move_address(&mut self, node: usize, shift: u8) {
        self.nodes[node].address_shift = u16::from(shift);
    }

    /// What [`World::move_address`] has last set.
    #[must_use]
    pub fn address_shift(&self, node: usize) -> u8 {
        self.nodes[node].address_shift as u8
    }

    /// Has a node sign a record with its present addresses, and offer it in its sessions; later processes of the node
    /// do so when they start.
    pub fn publish_record(&mut self, node: usize, serves_authenticated: bool) {
        self.nodes[node].publishes = Some(serves_authenticated);
        self.offer_record(node);
    }

    pub(super) fn offer_record(&mut self, node: usize) {
        let now = self.read(node as u16, self.now);
        let disk = &mut self.nodes[node].disk;
        // docs/spec/state.md#record
        let sequence = disk.record_sequence.map_or(0, |last| last + 1).max(now.unix_ms());
        disk.record_sequence = Some(sequence);
        let Some(record) = self.record(node, sequence) else {
            return;
        };
        // It names the node's own key: nothing else is refused.
        let _ = self.nodes[node].endpoint.set_record(now, &record);
        self.flush_endpoint(node as u16, self.now);
    }

    /// The record that a node would sign with this sequence; `None` if it publishes none.
    pub(crate) fn record(&self, node: usize, sequence: u64) -> Option<PeerRecord> {
        let serves = self.nodes[node].publishes?;
        let lanes = self.nodes[node].lanes;
        let now = self.read(node as u16, self.now);
        let at = |lane| match address(node, lane, self.nodes[node].address_shift) {
            SocketAddr::V4(v4) => LaneAddresses {
                v4: Some(v4),
                v6: None,
            },
            SocketAddr::V6(_) => LaneAddresses::default(),
        };
        let signer = identity_secret(self.config.seed, node);
        let content = RecordContent {
            identity: signer.identity(),
            transport_key: *self.common.transport_keys.get(node)?,
            sequence,
            expiry_ms: now.unix_ms() + VALIDITY_MS,
            authenticated: if serves {
                at(Lane::Authenticated)
            } else {
                LaneAddresses::default()
            },
            plain: if lanes.has_plain() {
                at(Lane::Plain)
            } else {
                LaneAddresses::default()
            },
            capabilities: if serves {
                Capabilities::AUTHENTICATED_LANE
            } else {
                Capabilities::default()
            },
            suites: 0b11,
            max_datagram: MAX_DATAGRAM,
            max_chunk: self.config.chunk.bytes() as u16,
        };
        PeerRecord::sign(content, &network(), &*signer).ok()
    }
}

impl Disk {
    /// Keeps what an embedder is told to persist.
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::Connected { peer, .. } => {
                self.seen.insert(peer.0);
            }
            Event::RecordAccepted { peer, record } => {
                let serves = record
                    .content()
                    .capabilities
                    .contains(Capabilities::AUTHENTICATED_LANE);
                if !serves {
                    self.seen.remove(&peer.0);
                }
                self.records.insert(peer.0, (**record).clone());
            }
            _ => {}
        }
    }
}
