//! What can go wrong, one enum an operation.

use std::net::SocketAddr;

use falconet_crypto::IdentityKey;
use thiserror::Error;

use crate::entropy::EntropyError;
use crate::state::StateError;

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
    /// The state file cannot be used; the error names it and says what to do.
    #[error(transparent)]
    State(#[from] StateError),
    /// The node's own record could not be published.
    #[error("own record: {0}")]
    Record(#[from] PublishError),
    /// A key log was asked for, and the transport key is not one that may be given away.
    #[error(transparent)]
    KeyLogRefused(#[from] falconet_transport::KeyLogRefused),
    /// The key log cannot be written.
    #[error(transparent)]
    KeyLog(#[from] falconet_crypto::key_log::KeyLogError),
    /// Admission options that do not fit together.
    #[error("admission: {0}")]
    Admission(#[from] falconet_transport::OptionsError),
}

/// Why a record of this node was not published.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The lane listens on an address that peers cannot send to, and no other was given.
    #[error("{0} is no address that peers can send to: say which is")]
    Unreachable(SocketAddr),
    /// Its sequence could not be stored, and without that it could be issued again with another content.
    #[error("its sequence could not be stored: {0}")]
    NotDurable(std::io::Error),
    /// It was not signed.
    #[error(transparent)]
    Record(#[from] falconet_transport::RecordError),
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

/// Why a peer was not added, or nothing could be said of it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// It is the node itself.
    #[error("{0} is this node itself")]
    Ourselves(IdentityKey),
    /// It has been added before.
    #[error("the peer {0} was added before")]
    Duplicate(IdentityKey),
    /// Nobody of this identity was added.
    #[error("no peer {0} was added")]
    Unknown(IdentityKey),
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
