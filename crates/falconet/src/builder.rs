//! Describing a node, and checking the description once.

use std::net::SocketAddr;
use std::time::Duration;

use falconet_crypto::{NetworkId, Suite};
use falconet_dataplane::{DataplaneConfig, LinkEmulation, Rate};
use falconet_raptorcast::{Epoch, Validator, ValidatorSet};

use crate::error::StartError;
use crate::keys::NodeKeys;
use crate::node::Node;
use crate::peer::Peer;

/// Bytes of UDP header, and of the IP header by family.
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// Bytes of the authenticated lane's frame (docs/spec/framing.md#overhead).
const DATAGRAM_OVERHEAD: usize = 32;

/// A node to be started; each setter states its default.
#[must_use = "nothing happens before start"]
pub struct NodeBuilder {
    pub(crate) keys: NodeKeys,
    pub(crate) network: NetworkId,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) listen_plain: Option<SocketAddr>,
    pub(crate) rate: Rate,
    pub(crate) suites: Vec<Suite>,
    pub(crate) link: Option<LinkEmulation>,
    pub(crate) chunk_size: usize,
    pub(crate) path_mtu: usize,
    pub(crate) redundancy: f64,
    pub(crate) relay_messages: u32,
    pub(crate) timestamp_window: Duration,
    pub(crate) warm_up: Option<usize>,
    pub(crate) validators: Option<(u32, Vec<Validator>)>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) thread_prefix: String,
    pub(crate) kept_deliveries: usize,
    pub(crate) kept_messages: usize,
}

impl NodeBuilder {
    pub(crate) fn new(keys: NodeKeys) -> Self {
        Self {
            keys,
            network: NetworkId::from_name("falconet"),
            listen: None,
            listen_plain: None,
            rate: Rate::BitsPerSecond(1_000_000_000),
            suites: vec![Suite::ChaCha20Poly1305],
            link: None,
            chunk_size: 1_440,
            path_mtu: 1_500,
            redundancy: 2.5,
            relay_messages: 2,
            timestamp_window: Duration::from_secs(10),
            warm_up: None,
            validators: None,
            peers: Vec::new(),
            thread_prefix: "fn".to_owned(),
            kept_deliveries: 32,
            kept_messages: 4_096,
        }
    }

    /// The network: part of every signature, so that nothing of one network is valid in another. Default: the id of
    /// the name `falconet`.
    pub fn network(mut self, network: NetworkId) -> Self {
        self.network = network;
        self
    }

    /// Address of the authenticated lane; port 0 lets the system choose. Default: none.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Address of the plain lane; port 0 lets the system choose. Default: none.
    pub fn listen_plain(mut self, address: SocketAddr) -> Self {
        self.listen_plain = Some(address);
        self
    }

    /// Pacing of all that the node sends, in bits a second on the wire. Default: 1 Gbit/s, since a burst at line rate
    /// into an internet path is its own loss.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rate = rate;
        self
    }

    /// The suites this node offers, the preferred one first. Suite 0 is always understood. Default: suite 0 alone.
    pub fn suites(mut self, suites: &[Suite]) -> Self {
        self.suites = suites.to_vec();
        self
    }

    /// Delay and loss in user space in front of the sockets, for experiments. Default: none, at no cost.
    pub fn link_emulation(mut self, link: LinkEmulation) -> Self {
        self.link = Some(link);
        self
    }

    /// The largest chunk in bytes, one number for the whole network. Default: 1,440 (IPv4 at MTU 1,500); 1,420 if any
    /// member is reached by IPv6, less for smaller paths.
    pub fn chunk_size(mut self, bytes: usize) -> Self {
        self.chunk_size = bytes;
        self
    }

    /// The largest IP packet that this node's path carries, in bytes. Default: 1,500.
    pub fn path_mtu(mut self, bytes: usize) -> Self {
        self.path_mtu = bytes;
        self
    }

    /// Symbols sent for each source symbol, one number for the whole network. Default: 2.5, which covers a third of
    /// the stake being silent, and loss.
    pub fn redundancy(mut self, redundancy: f64) -> Self {
        self.redundancy = redundancy;
        self
    }

    /// Payloads of 3 MiB (or their bytes in smaller ones) that this node relays its part of for one author, a second.
    /// Default: 2. It bounds what a hostile leader can make others send.
    pub fn relayed_payloads_per_second(mut self, count: u32) -> Self {
        self.relay_messages = count;
        self
    }

    /// How far the clock in a chunk may be from ours, and so how late a chunk may come. Default: 10 s.
    pub fn timestamp_window(mut self, window: Duration) -> Self {
        self.timestamp_window = window;
        self
    }

    /// Prepares memory and the encoding plan for payloads of this many bytes before the first one comes; for 2 MiB that
    /// is about 18 MB. Default: nothing is prepared, and the first payload takes longer.
    pub fn warm_up(mut self, payload_len: usize) -> Self {
        self.warm_up = Some(payload_len);
        self
    }

    /// The first validator set and its epoch. Default: none; nothing is broadcast or accepted before
    /// [`Node::set_validators`] then.
    pub fn validators(mut self, epoch: u32, set: Vec<Validator>) -> Self {
        self.validators = Some((epoch, set));
        self
    }

    /// Peers known from the start; more can be added later with [`Node::add_peer`].
    pub fn peers(mut self, peers: impl IntoIterator<Item = Peer>) -> Self {
        self.peers.extend(peers);
        self
    }

    /// Prefix of the node's thread names, at most 10 bytes. Default: `fn`.
    pub fn name(mut self, thread_prefix: &str) -> Self {
        thread_prefix.clone_into(&mut self.thread_prefix);
        self
    }

    /// Deliveries kept for a slow reader, at least 1; past that it loses the oldest. Default: 32 (at most 96 MiB).
    pub fn kept_deliveries(mut self, count: usize) -> Self {
        self.kept_deliveries = count.max(1);
        self
    }

    /// Messages kept for a slow reader, at least 1; past that it loses the oldest. Default: 4,096 (at most 6 MiB).
    pub fn kept_messages(mut self, count: usize) -> Self {
        self.kept_messages = count.max(1);
        self
    }

    /// Binds the sockets and starts the threads.
    ///
    /// # Errors
    /// [`StartError`] names the setting that is wrong, or what the system refused.
    pub async fn start(self) -> Result<Node, StartError> {
        self.check_chunk_fits()?;
        Node::start(self)
    }

    /// A network-wide chunk that this node's path cannot carry would be lost at every send
    /// (docs/spec/chunk.md#chunk-size).
    fn check_chunk_fits(&self) -> Result<(), StartError> {
        let lanes = [(self.listen, DATAGRAM_OVERHEAD), (self.listen_plain, 0)];
        let mut listening = lanes
            .into_iter()
            .filter_map(|(address, frame)| Some((address?, frame)))
            .peekable();
        if listening.peek().is_none() {
            return Err(StartError::NoListenAddress);
        }
        for (address, frame) in listening {
            let ip_header = if address.is_ipv4() {
                IPV4_HEADER
            } else {
                IPV6_HEADER
            };
            let packet = self.chunk_size + frame + UDP_HEADER + ip_header;
            if packet > self.path_mtu {
                return Err(StartError::ChunkTooLarge {
                    chunk: self.chunk_size,
                    packet,
                    address,
                    mtu: self.path_mtu,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn dataplane_config(&self) -> DataplaneConfig {
        let mut config = DataplaneConfig::new()
            .with_rate(self.rate)
            .with_link_emulation(self.link.clone())
            .with_mtu(self.path_mtu)
            .with_thread_prefix(self.thread_prefix.clone());
        if let Some(address) = self.listen {
            config = config.with_listen(address);
        }
        if let Some(address) = self.listen_plain {
            config = config.with_listen_plain(address);
        }
        config
    }

    pub(crate) fn validator_set(&self) -> Result<Option<(Epoch, ValidatorSet)>, StartError> {
        let Some((epoch, members)) = &self.validators else {
            return Ok(None);
        };
        Ok(Some((Epoch::new(*epoch), ValidatorSet::new(members.clone())?)))
    }
}
