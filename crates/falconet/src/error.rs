//! What can go wrong, one enum an operation.

use std::net::SocketAddr;

use falconet_crypto::IdentityKey;
use thiserror::Error;

use crate::entropy::EntropyError;

/// Why a node did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Neither lane has an address.
    #[error("no address to listen on: call listen or listen_plain")]
    NoListenAddress,
    /// The network-wide chunk size does not fit this node's path.
    #[error(
        "a chunk of {chunk} bytes makes a packet of {packet} bytes on {address}, above the path MTU of {mtu}: \
         lower the network's chunk size or raise the MTU"
    )]
    ChunkTooLarge {
        /// The network's chunk size in bytes.
        chunk: usize,
        /// What it comes to with frame, UDP and IP headers.
        packet: usize,
        /// The address whose family decides the header size.
        address: SocketAddr,
        /// The path MTU that was configured.
        mtu: usize,
    },
    /// A chunk size that no network can have.
    #[error("a chunk size of {0} bytes: 512 to 9,000 are possible")]
    ChunkSize(usize),
    /// A redundancy that no network can have.
    #[error("a redundancy of {0}: 1 to 8 are possible")]
    Redundancy(f64),
    /// A socket or a thread could not be had.
    #[error(transparent)]
    Dataplane(#[from] falconet_dataplane::StartError),
    /// Options of the broadcast that do not fit together, or no thread for it.
    #[error("broadcast: {0}")]
    Broadcast(Box<dyn std::error::Error + Send + Sync>),
    /// The validators are no set.
    #[error(transparent)]
    Validators(#[from] falconet_raptorcast::SetError),
    /// A peer that cannot be added.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// No randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Why a peer was not added.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// It is the node itself.
    #[error("{0} is this node itself")]
    Ourselves(IdentityKey),
    /// It has been added before.
    #[error("the peer {0} was added before")]
    Duplicate(IdentityKey),
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

/// Why a payload was not broadcast. Everything but `Stopped` is found before any work is done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BroadcastError {
    /// A round that does not fit the header's 48 bits.
    #[error("round {0} is above 2^48 - 1")]
    RoundTooLarge(u64),
    /// The node was given no validators yet.
    #[error("no validator set: call validators or set_validators")]
    NoValidators,
    /// What the engine refuses: an empty or oversized payload, a round used before, an author outside the set.
    #[error(transparent)]
    Refused(#[from] falconet_raptorcast::BroadcastError),
    /// The node has stopped, or its queue of own broadcasts is full.
    #[error("the node has stopped or is too busy to take a broadcast")]
    Stopped,
}

/// Why a message was not taken for sending.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// Nothing to send; an empty datagram is the protocol's keepalive.
    #[error("an empty message cannot be sent")]
    Empty,
    /// Longer than a chunk.
    #[error("a message of {len} bytes does not fit a datagram: at most {max}; broadcast it instead")]
    TooLarge {
        /// Its length.
        len: usize,
        /// The longest that fits.
        max: usize,
    },
    /// Nobody of this identity was added.
    #[error("no peer {0} was added")]
    UnknownPeer(IdentityKey),
    /// The queue to the dataplane is full; wait with `send`, or drop the message.
    #[error("the send queue is full")]
    Full,
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}
