//! Describing a node.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use falconet_crypto::{NetworkId, Suite};
use falconet_dataplane::{LinkEmulation, Rate};
use falconet_raptorcast::Validator;
use falconet_transport::AdmissionOptions;

use crate::error::StartError;
use crate::keys::NodeKeys;
use crate::node::Node;
use crate::own_record::OwnRecord;
use crate::peer::Peer;
use crate::settings::Settings;
use crate::system::{SocketOptions, ThreadOptions};

/// A node to be started; each setter states its default.
#[must_use = "nothing happens before start"]
pub struct NodeBuilder {
    keys: NodeKeys,
    settings: Settings,
}

impl NodeBuilder {
    pub(crate) fn new(keys: NodeKeys) -> Self {
        Self {
            keys,
            settings: Settings::default(),
        }
    }

    /// The network: part of every signature, so that nothing of one network is valid in another. Default: the id of
    /// the name `falconet`.
    pub fn network(mut self, network: NetworkId) -> Self {
        self.settings.network = network;
        self
    }

    /// Address of the authenticated lane; port 0 lets the system choose. Default: none.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.settings.listen = Some(address);
        self
    }

    /// Address of the plain lane; port 0 lets the system choose. Default: none.
    pub fn listen_plain(mut self, address: SocketAddr) -> Self {
        self.settings.listen_plain = Some(address);
        self
    }

    /// Pacing of all that the node sends, in bits a second on the wire. Default: 1 Gbit/s, since a burst at line rate
    /// into an internet path is its own loss.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Pacing of what goes to each single peer, beside the node's. Default: none, since a first hop sends the same to
    /// everyone.
    pub fn peer_rate(mut self, rate: Rate) -> Self {
        self.settings.peer_rate = rate;
        self
    }

    /// The suites this node offers, the preferred one first. Suite 0 is always understood. Default: suite 0 alone.
    pub fn suites(mut self, suites: &[Suite]) -> Self {
        self.settings.suites = suites.to_vec();
        self
    }

    /// Delay and loss in user space in front of the sockets, for experiments. Default: none, at no cost.
    pub fn link_emulation(mut self, link: LinkEmulation) -> Self {
        self.settings.link = Some(link);
        self
    }

    /// The largest chunk in bytes, one number for the whole network. Default: 1,440 (IPv4 at MTU 1,500); 1,420 if any
    /// member is reached by IPv6, less for smaller paths.
    pub fn chunk_size(mut self, bytes: usize) -> Self {
        self.settings.chunk_size = bytes;
        self
    }

    /// The largest IP packet that this node's path carries, in bytes. Default: 1,500.
    pub fn path_mtu(mut self, bytes: usize) -> Self {
        self.settings.path_mtu = bytes;
        self
    }

    /// Symbols sent for each source symbol, one number for the whole network. Default: 2.5, which covers a third of
    /// the stake being silent, and loss.
    pub fn redundancy(mut self, redundancy: f64) -> Self {
        self.settings.redundancy = redundancy;
        self
    }

    /// Payloads of 3 MiB (or their bytes in smaller ones) that this node relays its part of for one author, a second.
    /// Default: 2. It bounds what a hostile leader can make others send.
    pub fn relayed_payloads_per_second(mut self, count: u32) -> Self {
        self.settings.relay_messages = count;
        self
    }

    /// How far the clock in a chunk may be from ours, and so how late a chunk may come. Default: 10 s.
    pub fn timestamp_window(mut self, window: Duration) -> Self {
        self.settings.timestamp_window = window;
        self
    }

    /// Prepares memory and the encoding plan for payloads of this many bytes before the first one comes; for 2 MiB that
    /// is about 18 MB. Default: nothing is prepared, and the first payload takes longer.
    pub fn warm_up(mut self, payload_len: usize) -> Self {
        self.settings.warm_up = Some(payload_len);
        self
    }

    /// The first validator set and its epoch. Default: none; nothing is broadcast or accepted before
    /// [`Node::set_validators`] then.
    pub fn validators(mut self, epoch: u32, set: Vec<Validator>) -> Self {
        self.settings.validators = Some((epoch, set));
        self
    }

    /// Peers known from the start; more can be added later with [`Node::add_peer`].
    pub fn peers(mut self, peers: impl IntoIterator<Item = Peer>) -> Self {
        self.settings.peers.extend(peers);
        self
    }

    /// The file that keeps what has to outlive a run: that our timestamps never go back, which initiations of peers were
    /// accepted, who had a session, the records in force, and the round that was broadcast last. Made if it is not
    /// there; never shared by two nodes (docs/spec/state.md).
    ///
    /// Default: none. Then a restart forgets all that: a validator can sign two payloads for one round, a peer that is
    /// `PlainUntilSeen` is spoken to in the clear again, old initiations and records of peers can be replayed to us
    /// once, and peers refuse our dials for as long as our clock was set back.
    pub fn state(mut self, path: impl AsRef<Path>) -> Self {
        self.settings.state = Some(path.as_ref().to_owned());
        self
    }

    /// Signs a record of this node at start and offers it in every session; a later one is published with
    /// [`Node::publish_record`]. Default: none is offered.
    pub fn record(mut self, record: OwnRecord) -> Self {
        self.settings.record = Some(record);
        self
    }

    /// Writes the secrets of this node's handshakes to a file, with which tshark decrypts captured traffic. Whoever has
    /// the file can read and forge that traffic: only for transport keys made with `falconet keygen --disposable`, any
    /// other is refused. Default: nothing is written.
    pub fn key_log(mut self, path: impl AsRef<Path>) -> Self {
        self.settings.key_log = Some(path.as_ref().to_owned());
        self
    }

    /// Which initiations are worth a Diffie-Hellman: budgets, limits by source, cookie replies. Default: the defaults
    /// of the options.
    pub fn admission(mut self, options: AdmissionOptions) -> Self {
        self.settings.admission = options;
        self
    }

    /// Lets peers have a session that were not added. Their messages come without a sender, their chunks count as a
    /// stranger's. Default: no, they are refused before the second Diffie-Hellman.
    pub fn accept_unknown(mut self) -> Self {
        self.settings.accepts_unknown = true;
        self
    }

    /// Peers that may have a session at a time, and strangers apart from them; at least 1 each, and a persistent peer
    /// never makes room for another. Default: 4,096 and 1,024.
    pub fn max_sessions(mut self, known: usize, unknown: usize) -> Self {
        self.settings.max_sessions = (known, unknown);
        self
    }

    /// Threads that compute handshakes. Default: 1, which is enough for some thousand handshakes a second.
    pub fn handshake_threads(mut self, count: usize) -> Self {
        self.settings.threads.handshake_threads = count;
        self
    }

    /// Names, places and shares of the threads. Replaces what [`NodeBuilder::name`] and
    /// [`NodeBuilder::handshake_threads`] have set. Default: the defaults of the options.
    pub fn threads(mut self, options: ThreadOptions) -> Self {
        self.settings.threads = options;
        self
    }

    /// What the sockets use of the kernel. Default: everything that it offers.
    pub fn sockets(mut self, options: SocketOptions) -> Self {
        self.settings.sockets = options;
        self
    }

    /// Prefix of the node's thread names, at most 10 bytes. Default: `fn`.
    pub fn name(mut self, thread_prefix: &str) -> Self {
        thread_prefix.clone_into(&mut self.settings.threads.prefix);
        self
    }

    /// Deliveries kept for a slow reader, at least 1; past that it loses the oldest. Default: 32 (at most 96 MiB).
    pub fn kept_deliveries(mut self, count: usize) -> Self {
        self.settings.kept_deliveries = count.max(1);
        self
    }

    /// Messages kept for a slow reader, at least 1; past that it loses the oldest. Default: 4,096 (at most 6 MiB).
    pub fn kept_messages(mut self, count: usize) -> Self {
        self.settings.kept_messages = count.max(1);
        self
    }

    /// Binds the sockets and starts the threads.
    ///
    /// # Errors
    /// [`StartError`] names the setting that is wrong, or what the system refused.
    pub async fn start(self) -> Result<Node, StartError> {
        self.settings.check_chunk_fits()?;
        Node::start(self.keys, self.settings).await
    }
}
