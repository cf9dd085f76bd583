//! The engines of Falconet in virtual time: what a hundred machines would do, on one.
//!
//! Every node of a run holds the same `transport` endpoint and the same `raptorcast` engine as a real node, and they
//! exchange real datagrams. What is modelled is everything below and around them: the wire, the kernel, the cores.
//!
//! ```text
//!        node                                                      node
//!   +-------------+   egress    +---------------------------+   ingress   +-------------+
//!   | raptorcast  | ----------> | delay by site, jitter,    | ----------> | dataplane   |
//!   | dataplane   |  paced, in  | loss, duplicates, MTU,    |  in order   | handshake   |
//!   | handshake   |  classes    | partitions                |  of arrival | raptorcast  |
//!   +-------------+             +---------------------------+             +-------------+
//!     each thread on a core: work is charged from a table of costs, and delays what comes after
//! ```
//!
//! - **Time is virtual.** Nothing reads a clock. A run is a function of its description and its seed; its
//!   [`Fingerprint`] is the same on every machine.
//! - **CPU time is charged, not measured.** [`Costs`] says what an operation takes; a table that was measured is
//!   committed, and another can be given.
//! - **Bandwidth is charged by whole frames**, 66 bytes beside the UDP payload, on the way out and on the way in.
//!
//! # Not modelled
//!
//! Congestion inside the network, the kernel's scheduling of threads, caches, and memory bandwidth that many cores
//! of one machine share.
//!
//! # Example
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use falconet_sim::{Costs, LaneUse, Topology, WorldConfig, latency, statistics};
//!
//! let topology = Topology::buckets(6, 3, Duration::from_millis(20));
//! let config = WorldConfig::new(topology, LaneUse::Auth, Costs::reference()?, 1, Instant::now());
//! let schedule = latency::Schedule { messages: 2, interval: Duration::from_secs(1), payload_len: 50_000 };
//! let run = latency::run(config, schedule, |_| {})?;
//! let summary = statistics::summarise(&run.samples).expect("payloads arrived");
//! assert!(summary.mean.value > 20.0, "the nearest receivers are 20 ms away");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chaos;
mod config;
mod costs;
mod counters;
mod digest;
mod egress;
pub mod latency;
mod link;
mod node;
mod seed;
mod stages;
pub mod statistics;
mod thread;
mod time;
mod topology;
mod world;

pub use config::{LaneUse, WorldConfig};
pub use costs::{Cost, Costs, CostsError};
pub use counters::Reuse;
pub use digest::Fingerprint;
pub use falconet_raptorcast::Redundancy;
pub use link::{Link, Loss, WIRE_OVERHEAD};
pub use stages::Stages;
pub use time::{Clock, Time};
pub use topology::{Topology, TopologyError};
pub use world::{Report, Table, World, WorldError};
