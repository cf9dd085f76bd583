//! Whose a plain address is, where several peers claim it; `docs/spec/session.md#record-claims`.

use super::Sessions;
use crate::PeerId;
use std::collections::HashMap;
use std::net::SocketAddr;

/// One peer an address: as many entries as peers at most.
#[derive(Default)]
pub(super) struct PlainAddresses {
    holders: HashMap<SocketAddr, PeerId>,
    /// Some peer has claimed what another one holds: whoever leaves an address may have to pass it on.
    are_contested: bool,
}

impl PlainAddresses {
    pub(super) fn holder(&self, address: SocketAddr) -> Option<PeerId> {
        self.holders.get(&address).copied()
    }

    /// Configuration says so: the address is `peer`'s, whoever claimed it before.
    pub(super) fn assign(&mut self, address: SocketAddr, peer: PeerId) {
        self.are_contested |= self.holders.insert(address, peer).is_some();
    }

    /// A record says so, which anybody may have signed: the address is `peer`'s if it is nobody else's.
    fn claim(&mut self, address: SocketAddr, peer: PeerId) {
        self.are_contested |= *self.holders.entry(address).or_insert(peer) != peer;
    }
}

impl Sessions {
    /// A record of `peer` says where it is on the plain lane.
    pub(super) fn move_plain(&mut self, peer: PeerId, address: Option<SocketAddr>) {
        let Some(state) = self.peer_mut(peer) else { return };
        let former = std::mem::replace(&mut state.plain_address, address);
        if former == address {
            return;
        }
        if let Some(former) = former {
            self.leave_plain(peer, former);
        }
        if let Some(address) = address {
            self.plain.claim(address, peer);
        }
    }

    /// `peer` is no longer at `address`: if others claim it, it is the first one's now.
    pub(super) fn leave_plain(&mut self, peer: PeerId, address: SocketAddr) {
        if self.plain.holder(address) != Some(peer) {
            return;
        }
        self.plain.holders.remove(&address);
        if !self.plain.are_contested {
            return;
        }
        let is_there = |slot: &usize| {
            let state = self.peers.get(*slot).and_then(Option::as_deref);
            state.is_some_and(|state| state.plain_address == Some(address))
        };
        let next = (0..self.peers.len()).find(is_there);
        if let Some(next) = next.and_then(|slot| u32::try_from(slot).ok()) {
            self.plain.assign(address, PeerId(next));
        }
    }
}
