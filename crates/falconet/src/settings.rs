//! What a node is started with, checked once.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use falconet_crypto::{NetworkId, Suite};
use falconet_dataplane::{DataplaneConfig, LinkEmulation, Rate};
use falconet_raptorcast::{ChunkSize, EngineConfig, Epoch, Redundancy, Validator, ValidatorSet};
use falconet_transport::{AdmissionOptions, TransportConfig};

use crate::error::StartError;
use crate::own_record::OwnRecord;
use crate::peer::Peer;
use crate::system::{SocketOptions, ThreadOptions};

/// Bytes of UDP header, and of the IP header by family.
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// Bytes of the authenticated lane's frame (docs/spec/framing.md#overhead).
const DATAGRAM_OVERHEAD: usize = 32;

/// All that [`crate::NodeBuilder`] sets but the keys; defaults and units are told there.
pub(crate) struct Settings {
    pub(crate) network: NetworkId,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) listen_plain: Option<SocketAddr>,
    pub(crate) rate: Rate,
    pub(crate) peer_rate: Rate,
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
    pub(crate) state: Option<PathBuf>,
    pub(crate) record: Option<OwnRecord>,
    pub(crate) key_log: Option<PathBuf>,
    pub(crate) admission: AdmissionOptions,
    pub(crate) accepts_unknown: bool,
    pub(crate) max_sessions: (usize, usize),
    pub(crate) threads: ThreadOptions,
    pub(crate) sockets: SocketOptions,
    pub(crate) kept_deliveries: usize,
    pub(crate) kept_messages: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: NetworkId::from_name("falconet"),
            listen: None,
            listen_plain: None,
            rate: Rate::BitsPerSecond(1_000_000_000),
            peer_rate: Rate::Unlimited,
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
            state: None,
            record: None,
            key_log: None,
            admission: AdmissionOptions::default(),
            accepts_unknown: false,
            max_sessions: (4_096, 1_024),
            threads: ThreadOptions::default(),
            sockets: SocketOptions::default(),
            kept_deliveries: 32,
            kept_messages: 4_096,
        }
    }
}

impl Settings {
    /// A network-wide chunk that this node's path cannot carry would be lost at every send
    /// (docs/spec/chunk.md#chunk-size).
    pub(crate) fn check_chunk_fits(&self) -> Result<(), StartError> {
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
            .with_peer_rate(self.peer_rate)
            .with_link_emulation(self.link.clone())
            .with_mtu(self.path_mtu);
        if let Some(address) = self.listen {
            config = config.with_listen(address);
        }
        if let Some(address) = self.listen_plain {
            config = config.with_listen_plain(address);
        }
        self.sockets.apply(self.threads.apply(config))
    }

    pub(crate) fn transport_config(&self) -> Result<TransportConfig, StartError> {
        let threads = u32::try_from(self.threads.handshake_threads)
            .ok()
            .and_then(NonZeroU32::new);
        let config = TransportConfig::default()
            .with_aes(self.suites.contains(&Suite::Aes256Gcm))
            .with_accept_unknown(self.accepts_unknown)
            .with_max_sessions(self.max_sessions.0, self.max_sessions.1)
            .with_offload(self.threads.handshake_threads > 1)
            .with_network(self.network);
        let admission = self.admission.with_threads(threads.unwrap_or(NonZeroU32::MIN));
        Ok(config.with_admission(admission)?)
    }

    pub(crate) fn engine_config(&self) -> Result<EngineConfig, StartError> {
        let chunk = u16::try_from(self.chunk_size).ok().and_then(ChunkSize::new);
        let hundredths = (self.redundancy * 100.0).round();
        let redundancy = Redundancy::from_hundredths(hundredths as u16).filter(|_| hundredths.is_finite());
        Ok(EngineConfig::new(self.network)
            .with_chunk(chunk.ok_or(StartError::ChunkSize(self.chunk_size))?)
            .with_redundancy(redundancy.ok_or(StartError::Redundancy(self.redundancy))?)
            .with_relay_messages_per_second(self.relay_messages)
            .with_timestamp_window(self.timestamp_window))
    }

    pub(crate) fn validator_set(&self) -> Result<Option<(Epoch, ValidatorSet)>, StartError> {
        let Some((epoch, members)) = &self.validators else {
            return Ok(None);
        };
        Ok(Some((Epoch::new(*epoch), ValidatorSet::new(members.clone())?)))
    }
}
