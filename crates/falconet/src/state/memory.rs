//! What a node remembers, and how much of it at most.

use std::collections::BTreeMap;

use falconet_crypto::{IdentityKey, NetworkId, Tai64N, TransportPublicKey};
use falconet_raptorcast::{Epoch, Round};
use falconet_transport::{Capabilities, PeerRecord};

/// Peers that are remembered: as many as a node can have.
pub(crate) const MAX_PEERS: usize = 16_384;
/// Greatest timestamps that are remembered: of as many peers, and of as many keys that are no peers as the
/// engine remembers and takes in.
pub(crate) const MAX_TIMESTAMPS: usize = 24_576;

/// All that outlives a run (docs/spec/state.md#content).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) identity: IdentityKey,
    pub(crate) network: NetworkId,
    /// No timestamp of ours goes beyond it.
    pub(crate) mark: Option<Tai64N>,
    /// The last round that we broadcast in, or were about to.
    pub(crate) round: Option<(Epoch, Round)>,
    /// Sequence of the last record that we issued, or were about to.
    pub(crate) record_sequence: Option<u64>,
    /// The greatest timestamp accepted of each transport key.
    pub(crate) timestamps: BTreeMap<TransportPublicKey, Tai64N>,
    pub(crate) peers: BTreeMap<IdentityKey, PeerMemory>,
}

/// What is remembered of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerMemory {
    /// It had a session, and has not taken that back by a record (docs/spec/rollout.md#sticky).
    pub(crate) had_session: bool,
    /// The highest sequence of its records that was in force.
    pub(crate) sequence: Option<u64>,
    /// The encoding of that record, if it came in a session.
    pub(crate) record: Option<Vec<u8>>,
}

impl Memory {
    /// That of a node that starts for the first time.
    pub(crate) fn new(identity: IdentityKey, network: NetworkId) -> Self {
        Self {
            identity,
            network,
            mark: None,
            round: None,
            record_sequence: None,
            timestamps: BTreeMap::new(),
            peers: BTreeMap::new(),
        }
    }

    /// Raises the greatest timestamps. Past the cap those of keys that are not in `newer` go first, the
    /// oldest of them first (docs/spec/state.md#bounds).
    pub(crate) fn raise_timestamps(&mut self, newer: &[(TransportPublicKey, Tai64N)]) {
        let mut raised = BTreeMap::new();
        for (key, timestamp) in newer.iter().take(MAX_TIMESTAMPS) {
            let before = self.timestamps.remove(key);
            raised.insert(*key, before.map_or(*timestamp, |before| before.max(*timestamp)));
        }
        let room = MAX_TIMESTAMPS - raised.len();
        let mut kept: Vec<_> = std::mem::take(&mut self.timestamps).into_iter().collect();
        if kept.len() > room {
            kept.sort_by_key(|(_, timestamp)| std::cmp::Reverse(*timestamp));
            kept.truncate(room);
        }
        raised.extend(kept);
        self.timestamps = raised;
    }

    /// The peer has a session. False if there is no room for it.
    pub(crate) fn note_session(&mut self, peer: IdentityKey) -> bool {
        self.peer_mut(peer)
            .map(|memory| memory.had_session = true)
            .is_some()
    }

    /// A record of a peer is in force. False if there is no room for it.
    pub(crate) fn note_record(&mut self, record: &PeerRecord) -> bool {
        let content = record.content();
        let Some(memory) = self.peer_mut(content.identity) else {
            return false;
        };
        if memory.sequence < Some(content.sequence) {
            memory.sequence = Some(content.sequence);
            memory.record = Some(record.encode());
            // docs/spec/rollout.md#sticky: the peer itself has said that it no longer has sessions.
            memory.had_session &= content.capabilities.contains(Capabilities::AUTHENTICATED_LANE);
        }
        true
    }

    /// What the configuration says of a peer's records: a higher sequence takes the place of what was
    /// remembered. False if there is no room for it.
    pub(crate) fn note_configured(&mut self, peer: IdentityKey, sequence: u64, is_plain_only: bool) -> bool {
        let Some(memory) = self.peer_mut(peer) else {
            return false;
        };
        if memory.sequence < Some(sequence) {
            memory.sequence = Some(sequence);
            memory.record = None;
            memory.had_session &= !is_plain_only;
        }
        true
    }

    /// The operator wants it forgotten that the peer ever had a session.
    pub(crate) fn forget_session(&mut self, peer: &IdentityKey) {
        if let Some(memory) = self.peers.get_mut(peer) {
            memory.had_session = false;
        }
    }

    /// docs/spec/state.md#bounds: once full, peers that are not known yet stay so.
    fn peer_mut(&mut self, peer: IdentityKey) -> Option<&mut PeerMemory> {
        let has_room = self.peers.len() < MAX_PEERS;
        match self.peers.entry(peer) {
            std::collections::btree_map::Entry::Occupied(entry) => Some(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                has_room.then(|| entry.insert(PeerMemory::default()))
            }
        }
    }
}
