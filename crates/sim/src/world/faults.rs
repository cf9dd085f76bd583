//! Trouble: what can befall nodes and links between two moments of a run.

use std::time::Duration;

use falconet_raptorcast::ConfigError;

use super::World;
use crate::thread::Role;

impl World {
    /// Ends the process of a node: its memory is gone, and what is sent to it is lost.
    pub fn crash(&mut self, node: usize) {
        self.nodes[node].crash();
    }

    /// Starts a new process on a node that has crashed, with the disk of the last one or with an empty one.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] cannot occur: the options are those that the node was first started with.
    pub fn restart(&mut self, node: usize, keeps_disk: bool) -> Result<(), ConfigError> {
        let now = self.read(node as u16, self.now);
        self.nodes[node].restart(&self.config, &self.common, (node, now), keeps_disk)?;
        if self.nodes[node].publishes.is_some() {
            self.offer_record(node);
        }
        self.plan(node as u16, Role::Data, self.now);
        Ok(())
    }

    /// Stops all threads of a node for a while; what arrives meanwhile waits in its sockets, as far as they hold it.
    pub fn freeze(&mut self, node: usize, length: Duration) {
        self.nodes[node].frozen_until = self.now + length;
    }

    /// Whether a node is stopped at the moment.
    #[must_use]
    pub fn is_frozen(&self, node: usize) -> bool {
        self.nodes[node].frozen_until > self.now
    }

    /// Whether a node has a process.
    #[must_use]
    pub fn is_up(&self, node: usize) -> bool {
        self.nodes[node].is_up
    }

    /// Loses this share of what goes from one node to another, beside what the link loses; 0 ends it, 1 cuts it off.
    pub fn set_loss(&mut self, from: usize, to: usize, share: f64) {
        let pair = (from as u16, to as u16);
        if share > 0.0 {
            self.extra_loss.insert(pair, share);
        } else {
            self.extra_loss.remove(&pair);
        }
    }

    /// The share of the datagrams from one node to another that [`World::set_loss`] has lost since.
    #[must_use]
    pub fn loss(&self, from: usize, to: usize) -> f64 {
        self.extra_loss
            .get(&(from as u16, to as u16))
            .copied()
            .unwrap_or_default()
    }

    /// Sets the wall clock of a node this far ahead of the true time, or behind it.
    pub fn set_skew(&mut self, node: usize, nanos: i64) {
        self.nodes[node].skew = nanos;
    }

    /// Has a node renew its session with another now.
    pub fn rekey(&mut self, node: usize, peer: usize) {
        let number = node as u16;
        let now = self.read(number, self.now);
        self.nodes[node]
            .endpoint
            .rekey(now, falconet_transport::PeerId(peer as u32));
        self.flush_endpoint(number, self.now);
    }
}
