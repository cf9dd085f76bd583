//! Why a chunk was dropped. Each reason is counted, and its label is the name of the metric.

macro_rules! discards {
    ($($(#[$doc:meta])* $name:ident = $label:literal,)*) => {
        /// Why a chunk was dropped, cheapest check first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Discard {
            $($(#[$doc])* $name,)*
        }

        impl Discard {
            /// Every reason, in the order of the checks.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The label of the metric that counts this reason.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }
        }
    };
}

discards! {
    /// Longer than the chunk size of the network.
    Oversized = "oversized",
    /// Ends before its header, signature, proof or symbol does.
    Truncated = "truncated",
    /// Goes on after its symbol.
    TrailingBytes = "trailing_bytes",
    /// The first byte is not a chunk's.
    NotAChunk = "not_a_chunk",
    /// A version of the format that we do not accept.
    Version = "version",
    /// A mode that is not known, or not served by this engine.
    Mode = "mode",
    /// A payload of 0 bytes or above 3 MiB.
    PayloadLength = "payload_length",
    /// A symbol size of 0.
    SymbolSize = "symbol_size",
    /// More symbols than 2^15, or fewer than the payload needs.
    SymbolCount = "symbol_count",
    /// The index is not below the count.
    SymbolIndex = "symbol_index",
    /// Made too long ago, or too far in the future.
    Timestamp = "timestamp",
    /// No validator set is known for the epoch.
    Epoch = "epoch",
    /// Too far from the local round, or of a round that is over.
    Round = "round",
    /// The author is not in the set of the epoch.
    Author = "author",
    /// Another validator leads the round, says the schedule.
    NotLeader = "not_leader",
    /// Our own message came back.
    OwnMessage = "own_message",
    /// Nobody knows who sent it.
    UnknownSender = "unknown_sender",
    /// The sender is not in the set of the epoch.
    SenderNotInSet = "sender_not_in_set",
    /// This sender may not send this symbol.
    WrongSender = "wrong_sender",
    /// The symbol was here before.
    Duplicate = "duplicate",
    /// A repair request that asks for none, or for too many.
    RepairCount = "repair_count",
    /// A repair request that no session vouches for.
    RepairLane = "repair_lane",
    /// A repair request for a message that is not known here.
    RepairUnknown = "repair_unknown",
    /// A repair request past what this peer may cost us.
    RepairBudget = "repair_budget",
    /// The message is decoded, and the symbol is not ours to relay.
    AlreadyDecoded = "already_decoded",
    /// The message was dropped before: tainted, expired or evicted; or it is no newer than one of its author's that had
    /// to be forgotten.
    Abandoned = "abandoned",
    /// The author committed to something else in the same round.
    Equivocation = "equivocation",
    /// The proof does not lead to the signed root.
    Proof = "proof",
    /// This sender's session has brought more bad proofs and signatures than can be forgiven.
    BadSender = "bad_sender",
    /// No signature check is left in the budget of this sender, or of the author.
    VerificationBudget = "verification_budget",
    /// The signature is not the author's.
    Signature = "signature",
    /// The signed geometry is not what the payload length and the set imply.
    Geometry = "geometry",
    /// More different signatures on one commitment than are kept.
    TooManySignatures = "too_many_signatures",
}
