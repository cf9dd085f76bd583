//! Asking: when a message lacks a few symbols for too long, those who may have them are asked
//! (`docs/spec/broadcast.md#repair`).

use std::time::Instant;

use bytes::Bytes;
use rand_core::Rng;

use super::outstanding::MAX_ASKED;
use super::{MAX_REPAIR_REQUESTS, MAX_REPAIR_SYMBOLS, RepairRequest, Wanted};
use crate::engine::Engine;
use crate::events::{Class, Recipients, Transmit};
use crate::geometry::Geometry;
use crate::ids::{MessageId, NodeIndex, SymbolIndex};
use crate::merkle::Hash;
use crate::message::{Receiving, State};

impl Engine {
    /// Looks at this message again after a while, if it is incomplete then.
    pub(crate) fn schedule_repair(&mut self, now: Instant, id: MessageId) {
        // Those of messages that are gone leave by themselves when they are due; hostile ones must not heap up.
        if self.repairs_due.len() >= 4 * self.config.message_slots {
            self.repairs_due.pop_first();
        }
        self.repairs_due.insert((now + self.config.repair_after, id));
    }

    /// Asks for what is missing of messages that have waited long enough.
    pub(crate) fn ask_for_repairs(&mut self, now: Instant) {
        while let Some(&(due, id)) = self.repairs_due.first() {
            if due > now {
                return;
            }
            self.repairs_due.pop_first();
            if self.ask_for(id) {
                self.schedule_repair(now, id);
            }
        }
    }

    /// Asks for one message; whether it may be asked for again.
    // docs/spec/broadcast.md#repair
    fn ask_for(&mut self, id: MessageId) -> bool {
        let others = self.may_be_asked(id);
        let Some(message) = self.cache.get_mut(id) else {
            return false;
        };
        let (geometry, root) = (message.geometry, message.commitment.root);
        let State::Receiving(receiving) = &mut message.state else {
            return false;
        };
        receiving.outstanding.rounds += 1;
        let round = receiving.outstanding.rounds;
        let has_most = 2 * receiving.held() >= u32::from(geometry.source_symbols);
        if has_most && !others.is_empty() {
            let peers = peers_for(receiving, geometry.source_symbols).min(others.len());
            let first = self.emission_starts.next_u32() as usize;
            for turn in 0..peers {
                let peer = others[(first + turn) % others.len()];
                let wanted = choose(receiving, &geometry, (turn, peers), round);
                if wanted.iter(geometry.symbols).next().is_none() {
                    continue;
                }
                receiving
                    .outstanding
                    .add(peer, wanted.clone(), MAX_REPAIR_SYMBOLS);
                self.stats.repairs_asked += 1;
                self.relays.push_lone(request(id, root, peer, wanted));
            }
        }
        round < MAX_REPAIR_REQUESTS
    }

    /// Members but the author and ourselves.
    fn may_be_asked(&self, id: MessageId) -> Vec<NodeIndex> {
        let Some(epoch) = self.epochs.get(id.epoch) else {
            return Vec::new();
        };
        let members = epoch.set.iter().map(|(node, _)| node);
        members
            .filter(|node| *node != id.author && Some(*node) != epoch.own)
            .collect()
    }
}

/// How many peers to ask: twice as many as could do, for some will lack the same symbols.
fn peers_for(receiving: &Receiving, source: u16) -> usize {
    let missing = (0..source).filter(|symbol| !receiving.has(SymbolIndex::new(*symbol)));
    let missing = missing.count() as u32;
    // With two more than K the decoder has hardly ever failed; with all source symbols there is nothing to solve.
    let enough = (u32::from(source) + 2).saturating_sub(receiving.held());
    let needed = enough.clamp(1, missing.max(1));
    ((2 * needed.div_ceil(u32::from(MAX_REPAIR_SYMBOLS))) as usize).min(MAX_ASKED)
}

/// What to ask the peer whose turn it is for. Who has decoded has the source symbols; who has not may have any.
fn choose(receiving: &Receiving, geometry: &Geometry, (turn, peers): (usize, usize), round: u8) -> Wanted {
    let is_any = round > 1 && turn % 2 == 1;
    let span = if is_any {
        geometry.symbols
    } else {
        geometry.source_symbols
    };
    let start = SymbolIndex::new((turn * usize::from(span) / peers) as u16);
    Wanted::from(start, geometry.symbols, |symbol| {
        (is_any || symbol.number() < geometry.source_symbols) && !receiving.has(symbol)
    })
}

fn request(id: MessageId, root: Hash, peer: NodeIndex, wanted: Wanted) -> Transmit {
    let request = RepairRequest {
        id,
        root,
        count: MAX_REPAIR_SYMBOLS,
        wanted,
    };
    Transmit {
        id,
        to: Recipients::One(peer),
        class: Class::Relay,
        chunks: vec![Bytes::from(request.encode())],
    }
}
