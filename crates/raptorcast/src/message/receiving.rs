//! The symbols of an incomplete message: whose turn each is, which are here, and who sent them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::assignment::Assignment;
use crate::bits::BitSet;
use crate::code::Decoder;
use crate::discard::Discard;
use crate::geometry::Geometry;
use crate::ids::{NodeIndex, SymbolIndex};
use crate::incoming::Member;
use crate::merkle::{Hash, VerifiedTree};
use crate::participation::Roll;
use crate::repair::Outstanding;
use crate::trace::{Arrival, Via};

/// The working state of an incomplete message.
#[derive(Debug)]
pub(crate) struct Receiving {
    assignment: Assignment,
    own: Option<NodeIndex>,
    pub(super) tree: VerifiedTree,
    pub(super) decoder: Decoder,
    /// Who sent how many, ascending.
    sources: Vec<(NodeIndex, u32)>,
    pub(crate) outstanding: Outstanding,
    /// Symbols that came as answers: no merit of their first hops.
    repaired: BitSet,
    /// Every arrival, if somebody wants to know; at most one a symbol.
    arrivals: Option<Vec<Arrival>>,
}

/// First hops and how many of their symbols are missing.
type Late = Vec<(NodeIndex, u32)>;

/// A chunk that has passed everything but the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// We are its first hop.
    Ours,
    /// Its first hop relayed it to us.
    Relayed,
    /// Somebody else answered our request with it.
    Repaired,
}

impl Admitted {
    const fn via(self) -> Via {
        match self {
            Self::Ours => Via::Author,
            Self::Relayed => Via::FirstHop,
            Self::Repaired => Via::Repair,
        }
    }
}

impl Receiving {
    pub(crate) fn new(
        root: Hash,
        geometry: &Geometry,
        assignment: Assignment,
        own: Option<NodeIndex>,
    ) -> Self {
        let tree = VerifiedTree::new(root, geometry.depth);
        Self {
            assignment,
            own,
            tree,
            decoder: Decoder::new(geometry),
            sources: Vec::new(),
            outstanding: Outstanding::default(),
            repaired: BitSet::new(usize::from(geometry.symbols)),
            arrivals: None,
        }
    }

    pub(crate) const fn held(&self) -> u32 {
        self.decoder.held()
    }

    /// Whether to try to decode now.
    pub(crate) fn is_due(&self) -> bool {
        self.decoder.is_due()
    }

    /// A symbol comes from the author only to its first hop, and from its first hop to everybody else.
    // docs/spec/chunk.md#accept
    pub(super) fn admit(
        &self,
        symbol: SymbolIndex,
        sender: Member,
        author: NodeIndex,
    ) -> Result<Admitted, Discard> {
        let hop = self.assignment.first_hop(symbol).ok_or(Discard::SymbolIndex)?;
        let (allowed, admitted) = if self.own == Some(hop) {
            (author, Admitted::Ours)
        } else {
            (hop, Admitted::Relayed)
        };
        let symbols = self.assignment.len() as u16;
        let is_answer = || sender.is_authenticated && self.outstanding.covers(sender.node, symbol, symbols);
        let admitted = match sender.node == allowed {
            true => admitted,
            false if is_answer() => Admitted::Repaired,
            false => return Err(Discard::WrongSender),
        };
        if self.decoder.has(symbol) {
            return Err(Discard::Duplicate);
        }
        Ok(admitted)
    }

    /// The hash of a symbol that is here.
    pub(super) fn leaf(&self, index: SymbolIndex) -> Option<Hash> {
        self.tree.leaf(index).filter(|_| self.decoder.has(index))
    }

    /// Counts for every other first hop which of its symbols are here.
    pub(super) fn call(&self, roll: &mut Roll) {
        let others = self.assignment.iter().filter(|(_, hop)| self.own != Some(*hop));
        others.for_each(|(symbol, hop)| roll.count(hop, self.was_relayed(symbol)));
    }

    /// Our symbols that have not come yet.
    pub(super) fn still_ours(&self) -> Vec<SymbolIndex> {
        let ours =
            |&(symbol, hop): &(SymbolIndex, NodeIndex)| self.own == Some(hop) && !self.decoder.has(symbol);
        self.assignment
            .iter()
            .filter(ours)
            .map(|(symbol, _)| symbol)
            .collect()
    }

    /// Remembers from now on which symbol comes when.
    pub(crate) fn start_trace(&mut self) {
        self.arrivals = Some(Vec::new());
    }

    /// The arrivals, if they are remembered, and the first hops some of whose symbols are not here.
    pub(super) fn trace(&self) -> Option<(Vec<Arrival>, Late)> {
        let arrivals = self.arrivals.clone()?;
        let mut late = BTreeMap::new();
        for (symbol, hop) in self.assignment.iter() {
            if self.own != Some(hop) && !self.was_relayed(symbol) {
                *late.entry(hop).or_insert(0) += 1;
            }
        }
        Some((arrivals, late.into_iter().collect()))
    }

    /// Whether a symbol is here, and not because we asked for it.
    fn was_relayed(&self, symbol: SymbolIndex) -> bool {
        self.decoder.has(symbol) && !self.repaired.contains(symbol.as_usize())
    }

    pub(crate) fn has(&self, symbol: SymbolIndex) -> bool {
        self.decoder.has(symbol)
    }

    /// A symbol that has not been given to the solver yet.
    pub(crate) fn waiting(&self, symbol: SymbolIndex) -> Option<&[u8]> {
        self.decoder.waiting(symbol)
    }

    /// Writes the proof of a symbol that is here.
    pub(crate) fn write_proof(&self, symbol: SymbolIndex, out: &mut [u8]) -> Option<()> {
        self.tree.write_proof(symbol, out)
    }

    /// Counts a new symbol for who sent it.
    pub(crate) fn count_source(
        &mut self,
        symbol: SymbolIndex,
        sender: NodeIndex,
        admitted: Admitted,
        after: Duration,
    ) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.push(Arrival {
                symbol,
                from: sender,
                via: admitted.via(),
                after,
            });
        }
        if admitted == Admitted::Repaired {
            self.repaired.insert(symbol.as_usize());
            self.outstanding
                .take(sender, symbol, self.assignment.len() as u16);
        }
        match self.sources.binary_search_by_key(&sender, |(node, _)| *node) {
            Ok(place) => self.sources[place].1 += 1,
            Err(place) => self.sources.insert(place, (sender, 1)),
        }
    }

    /// Who sent how many of the symbols that are here.
    pub(crate) fn sources(&self) -> Vec<(NodeIndex, u32)> {
        self.sources.clone()
    }
}
