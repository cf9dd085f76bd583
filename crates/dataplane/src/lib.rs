//! The threads that own the sockets: batches, segmentation offload, pacing, priorities.
//!
//! What it is for: carrying datagrams between the network and the engines of a node so that heavy or
//! hostile traffic never holds up the traffic that matters. The engines are `falconet-transport`'s
//! `Sessions`, which lives on the dataplane thread, and `Handshakes`, which lives on the handshake thread.
//!
//! ```text
//!   embedder --Sender--> [queue a class] --> scheduler --> pacer --> seal --> GSO groups --> sockets
//!                                                ^                                |  (or a delay line)
//!   Completion <------- told of each part --------'--------------------------------'
//!
//!   sockets --GRO--> every datagram judged --> opened in place --> Consumer (one batch a turn)
//!      |                  | types 1-3, where the kernel does not steer them
//!      | types 1-3        v
//!      '---------> handshake thread --> new sessions, back by a bounded queue
//! ```
//!
//! The loop's order, the queues and their bounds, and every reason for a drop are in
//! docs/spec/threads.md.
//!
//! # Provided
//! - Two threads a [`Dataplane`], no global state: two of them in a process never notice each other.
//! - Every queue is bounded by entries and bytes; whatever is dropped is counted by reason ([`Stats`]).
//! - Nothing received and no failed send ends a thread. A consumer that is [`Full`] loses its batch.
//! - Classes keep a guaranteed share ([`Class`]), peers take turns, and old datagrams expire.
//! - [`Rate`] counts bytes on the wire, and late wakeups lose no bandwidth.
//! - Shutdown joins both threads and tells every open [`Completion`].
//!
//! # Not provided
//! - Reliability or order: a datagram that left may be lost, doubled or overtaken.
//! - Path MTU discovery: [`DataplaneConfig::with_mtu`] is told, and longer datagrams are the embedder's.
//! - Steering and filters in the kernel on systems other than Linux: there junk and handshakes pass through
//!   the dataplane thread's socket, within its budget.
//!
//! ```
//! use falconet_dataplane::{Class, DataplaneConfig, Rate};
//!
//! let config = DataplaneConfig::new()
//!     .with_listen("127.0.0.1:0".parse()?)
//!     .with_rate(Rate::BitsPerSecond(200_000_000))
//!     .with_class_weight(Class::Control, 2);
//! assert!(config.check().is_ok());
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

mod bans;
mod buffers;
mod class_queue;
mod clock;
mod config;
mod data_thread;
mod dataplane;
mod delay_line;
mod drop_reason;
mod egress;
mod emission;
#[cfg(target_os = "linux")]
mod filter;
mod handshake_thread;
mod histogram;
mod inbound;
mod judge;
mod kernel_bans;
mod kernel_drops;
mod outgoing;
mod pacer;
mod parked;
mod payloads;
mod peer_pacers;
mod receive;
mod report;
mod scheduler;
mod sender;
mod socket;
mod sockets;
mod stats;
mod steering;
mod sys;
mod timer;
mod unit;
mod wake;

pub use bans::Ban;
pub use config::{ConfigError, DataplaneConfig, LinkEmulation, Placement, Rate};
pub use dataplane::{Dataplane, StartError};
pub use handshake_thread::{HandshakeLog, StoredMark};
pub use histogram::Histogram;
pub use inbound::{Consumer, Consumers, Full, Inbound};
pub use outgoing::{Class, Completion, Outgoing, Recipients};
pub use sender::{Closed, Sender, TrySendError};
pub use stats::{LaneStats, QueueStats, Stats, ThreadStats};
