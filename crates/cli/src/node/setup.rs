//! From a configuration to what a node is built of. Everything that a file can get wrong is found here.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use falconet::{
    IdentityKey, LaneAddresses, NetworkId, Node, NodeBuilder, NodeKeys, Now, OwnRecord, Peer, PeerRecord,
    Policy, Suite, Validator,
};

use super::config::{Config, PeerEntry, PolicyName, Record, Schedule, SuiteName, Validators, read};
use super::event::unix;
use crate::exit::Failure;
use crate::payload::PayloadSource;

/// Hexadecimal text of the largest record is shorter.
const MAX_RECORD_FILE: u64 = 4_096;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What a configuration comes to.
pub(super) struct Setup {
    pub(super) builder: NodeBuilder,
    pub(super) identity: IdentityKey,
    pub(super) peers: Vec<Peer>,
    pub(super) validators: Option<(u32, Vec<Validator>)>,
    pub(super) lead: Option<Lead>,
}

/// Who broadcasts what, and when.
pub(super) struct Lead {
    pub(super) leaders: Vec<IdentityKey>,
    pub(super) interval: Duration,
    pub(super) payloads: PayloadSource,
    pub(super) count: Option<u64>,
}

impl Setup {
    /// # Errors
    /// Exit code 2, and one line that names the key of the file that is wrong.
    pub(super) fn new(config: &Config) -> Result<Self, Failure> {
        let keys = NodeKeys::load(&config.at(&config.identity), &config.at(&config.transport))
            .map_err(|error| Failure::usage(format!("identity, transport: {error}")))?;
        if config.listen.is_none() && config.listen_plain.is_none() {
            return Err(Failure::usage(
                "listen, listen_plain: the node needs at least one of them",
            ));
        }
        let identity = keys.identity();
        let network = NetworkId::from_name(&config.network);
        let peers = peers(config, network, identity)?;
        config.record.as_ref().map(own_record).transpose()?;
        let validators = config.validators.as_ref().map(validators).transpose()?;
        Ok(Self {
            builder: builder(keys, config, network)?,
            lead: config
                .schedule
                .as_ref()
                .map(|schedule| lead(config, schedule))
                .transpose()?,
            identity,
            peers,
            validators,
        })
    }
}

fn builder(keys: NodeKeys, config: &Config, network: NetworkId) -> Result<NodeBuilder, Failure> {
    if config
        .redundancy
        .is_some_and(|redundancy| !(1.0..=8.0).contains(&redundancy))
    {
        return Err(Failure::usage("redundancy: allowed: 1 to 8, as 2.5"));
    }
    let mut builder = Node::builder(keys)
        .network(network)
        .suites(&suites(&config.suites));
    builder = apply(builder, config.listen, NodeBuilder::listen);
    builder = apply(builder, config.listen_plain, NodeBuilder::listen_plain);
    builder = apply(builder, config.rate, |builder, pace| builder.rate(pace.0.into()));
    builder = apply(builder, config.peer_rate, |builder, pace| {
        builder.peer_rate(pace.0.into())
    });
    builder = apply(builder, config.chunk_size, NodeBuilder::chunk_size);
    builder = apply(builder, config.path_mtu, NodeBuilder::path_mtu);
    builder = apply(builder, config.redundancy, NodeBuilder::redundancy);
    builder = apply(
        builder,
        config.relayed_payloads_per_second,
        NodeBuilder::relayed_payloads_per_second,
    );
    builder = apply(builder, config.timestamp_window, |builder, window| {
        builder.timestamp_window(window.0)
    });
    builder = apply(builder, config.warm_up, |builder, size| builder.warm_up(size.0));
    builder = apply(builder, config.handshake_threads, NodeBuilder::handshake_threads);
    builder = apply(builder, config.name.as_deref(), NodeBuilder::name);
    builder = apply(builder, config.state.as_deref(), |builder, path| {
        builder.state(config.at(path))
    });
    if config.accept_unknown {
        builder = builder.accept_unknown();
    }
    Ok(builder)
}

/// Sets what the file sets; the library's default stays where it says nothing.
fn apply<T>(
    builder: NodeBuilder,
    value: Option<T>,
    set: impl FnOnce(NodeBuilder, T) -> NodeBuilder,
) -> NodeBuilder {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

/// Suite 0 is every node's fallback, so it is always among them.
fn suites(names: &[SuiteName]) -> Vec<Suite> {
    let mut suites: Vec<_> = names
        .iter()
        .map(|name| match name {
            SuiteName::Chacha => Suite::ChaCha20Poly1305,
            SuiteName::Aes => Suite::Aes256Gcm,
        })
        .collect();
    if !suites.contains(&Suite::ChaCha20Poly1305) {
        suites.push(Suite::ChaCha20Poly1305);
    }
    suites
}

/// The peers of the file, the node itself left out, so that all nodes of a network can share a list.
fn peers(config: &Config, network: NetworkId, own: IdentityKey) -> Result<Vec<Peer>, Failure> {
    let mut seen = HashSet::new();
    let mut peers = Vec::new();
    for (number, entry) in (1..).zip(&config.peers) {
        let wrong = |why: String| Failure::usage(format!("peers: entry {number}: {why}"));
        let peer = peer(config, network, entry).map_err(wrong)?;
        if !seen.insert(peer.identity()) {
            return Err(wrong(format!("the peer {} is there twice", peer.identity())));
        }
        if peer.identity() != own {
            peers.push(peer);
        }
    }
    Ok(peers)
}

fn peer(config: &Config, network: NetworkId, entry: &PeerEntry) -> Result<Peer, String> {
    let mut peer = match (&entry.record, entry.identity) {
        (Some(path), None) => {
            if entry.transport.is_some() || entry.address.is_some() || entry.plain.is_some() {
                return Err("transport, address and plain come from its record".to_owned());
            }
            let record = record(&config.at(path), network)
                .map_err(|why| format!("record {}: {why}", path.display()))?;
            Peer::from_record(&record)
        }
        (None, Some(identity)) => described(Peer::new(identity.0), entry)?,
        _ => return Err("it needs either a record or an identity".to_owned()),
    };
    if let Some(policy) = entry.policy {
        peer = peer.with_policy(policy.into());
    }
    if let Some(persistent) = entry.persistent {
        peer = peer.with_persistent(persistent);
    }
    if let Some(interval) = entry.keepalive {
        peer = peer.with_keepalive(interval.0);
    }
    Ok(peer)
}

fn described(mut peer: Peer, entry: &PeerEntry) -> Result<Peer, String> {
    peer = match (entry.transport, entry.address) {
        (Some(key), Some(address)) => peer.with_authenticated(key.0, address),
        (Some(key), None) => peer.with_transport_key(key.0),
        (None, Some(_)) => return Err("an address needs the transport key of who is there".to_owned()),
        (None, None) => peer,
    };
    if let Some(address) = entry.plain {
        peer = peer.with_plain(address);
    }
    if entry.suites.contains(&SuiteName::Aes) {
        peer = peer.with_suites(&[Suite::Aes256Gcm]);
    }
    Ok(peer)
}

/// A record file: hexadecimal text, as `[record] file` writes it.
fn record(path: &Path, network: NetworkId) -> Result<PeerRecord, String> {
    let text = read(path, MAX_RECORD_FILE)?;
    let bytes = hex::decode(text.trim()).map_err(|error| format!("it is not hexadecimal: {error}"))?;
    let record = PeerRecord::decode(&bytes).map_err(|error| error.to_string())?;
    let now = Now {
        instant: Instant::now(),
        unix: unix(),
    };
    record.verify(&network, now).map_err(|error| error.to_string())
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Plain => Self::Plain,
            PolicyName::Prefer => Self::Prefer,
            PolicyName::Require => Self::Require,
            PolicyName::PlainUntilSeen => Self::PlainUntilSeen,
        }
    }
}

fn validators(set: &Validators) -> Result<(u32, Vec<Validator>), Failure> {
    let mut seen = HashSet::new();
    let members = set.members.iter().map(|member| {
        let identity = member.identity.0;
        if !seen.insert(identity) {
            return Err(Failure::usage(format!(
                "validators: the member {identity} is there twice"
            )));
        }
        Ok(Validator {
            identity,
            stake: member.stake.0,
        })
    });
    Ok((set.epoch, members.collect::<Result<_, _>>()?))
}

/// What the node's record is to say.
pub(super) fn own_record(record: &Record) -> Result<OwnRecord, Failure> {
    let mut own = OwnRecord::new();
    if !record.authenticated.is_empty() {
        own = own.with_authenticated(addresses("record.authenticated", &record.authenticated)?);
    }
    if !record.plain.is_empty() {
        own = own.with_plain(addresses("record.plain", &record.plain)?);
    }
    if let Some(days) = record.days {
        own = own.with_validity(DAY * u32::from(days.max(1)));
    }
    if !record.serves_authenticated {
        own = own.without_authenticated_lane();
    }
    Ok(own)
}

fn addresses(key: &str, list: &[SocketAddr]) -> Result<LaneAddresses, Failure> {
    let mut addresses = LaneAddresses::default();
    for address in list {
        let is_second = match address {
            SocketAddr::V4(v4) => addresses.v4.replace(*v4).is_some(),
            SocketAddr::V6(v6) => addresses.v6.replace(*v6).is_some(),
        };
        if is_second {
            let allowed = "at most one IPv4 and one IPv6 address";
            return Err(Failure::usage(format!("{key}: allowed: {allowed}")));
        }
    }
    Ok(addresses)
}

fn lead(config: &Config, schedule: &Schedule) -> Result<Lead, Failure> {
    if schedule.leaders.is_empty() {
        return Err(Failure::usage(
            "schedule.leaders: it is empty, so nobody would ever broadcast",
        ));
    }
    let payloads = match (&schedule.payload, schedule.size) {
        (Some(path), None) => PayloadSource::load("schedule.payload", config.at(path))?,
        (None, Some(size)) => PayloadSource::Generated {
            size: size.0,
            seed: schedule.seed,
        },
        _ => return Err(Failure::usage("schedule: it needs either payload or size")),
    };
    Ok(Lead {
        leaders: schedule.leaders.iter().map(|leader| leader.0).collect(),
        interval: schedule.interval.0,
        payloads,
        count: schedule.count,
    })
}
