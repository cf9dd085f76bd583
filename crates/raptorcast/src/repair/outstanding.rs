//! What we have asked for: only that is accepted from somebody who is not a symbol's first hop.

use super::Wanted;
use crate::ids::{NodeIndex, SymbolIndex};

/// Peers asked at a time.
pub(super) const MAX_ASKED: usize = 32;

/// The requests of ours for one message. At most [`MAX_ASKED`] in each of two rounds.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    requests: Vec<Request>,
    /// How often we have asked.
    pub(super) rounds: u8,
}

#[derive(Debug)]
struct Request {
    peer: NodeIndex,
    wanted: Wanted,
    /// Answers that may still come.
    remaining: u8,
}

impl Outstanding {
    pub(super) fn add(&mut self, peer: NodeIndex, wanted: Wanted, count: u8) {
        self.requests.push(Request {
            peer,
            wanted,
            remaining: count,
        });
    }

    /// Whether we have asked this peer for this symbol, and not yet had as many as we asked for.
    // docs/spec/chunk.md#repair-answer
    pub(crate) fn covers(&self, peer: NodeIndex, symbol: SymbolIndex, symbols: u16) -> bool {
        self.requests
            .iter()
            .any(|request| request.covers(peer, symbol, symbols))
    }

    /// Takes an answer off what may still come.
    pub(crate) fn take(&mut self, peer: NodeIndex, symbol: SymbolIndex, symbols: u16) {
        let mut requests = self.requests.iter_mut();
        if let Some(request) = requests.find(|request| request.covers(peer, symbol, symbols)) {
            request.remaining -= 1;
        }
    }

    /// Bytes it takes at most.
    pub(crate) const fn memory() -> usize {
        2 * MAX_ASKED * size_of::<Request>()
    }
}

impl Request {
    fn covers(&self, peer: NodeIndex, symbol: SymbolIndex, symbols: u16) -> bool {
        self.peer == peer && self.remaining > 0 && self.wanted.contains(symbol, symbols)
    }
}
