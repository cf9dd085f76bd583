//! Configuration, checked once at start.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use falconet_crypto::key_log::KeyLogFile;

use crate::handshake_thread::{HandshakeLog, HandshakeOptions, MAX_THREADS};
use crate::outgoing::Class;
use crate::scheduler::ClassLimits;

/// Bits per second on the wire: UDP payload, UDP and IP headers, and Ethernet's preamble, header, check
/// sequence and gap (docs/spec/threads.md#wire-bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// At most this many bits in a second.
    BitsPerSecond(u64),
    /// No pacing.
    Unlimited,
}

/// A user-space link in front of each socket: one-way delay by destination and random loss by datagram.
#[derive(Clone)]
pub struct LinkEmulation {
    /// One-way delay to an address; called on the dataplane thread once a group.
    pub delay: Arc<dyn Fn(SocketAddr) -> Duration + Send + Sync>,
    /// Share of datagrams that are lost, 0.0..=1.0.
    pub loss: f64,
    /// Seed of the loss; two runs that send the same lose the same.
    pub seed: u64,
}

impl fmt::Debug for LinkEmulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkEmulation")
            .field("loss", &self.loss)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// Addresses, rate and bounds of one dataplane; checked by `Dataplane::start`.
#[derive(Clone, Debug)]
pub struct DataplaneConfig {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) listen_plain: Option<SocketAddr>,
    pub(crate) device: Option<String>,
    pub(crate) rate: Rate,
    pub(crate) peer_rate: Rate,
    pub(crate) link: Option<LinkEmulation>,
    pub(crate) socket_buffer: usize,
    pub(crate) mtu: usize,
    pub(crate) thread_prefix: String,
    pub(crate) segmentation: bool,
    pub(crate) aggregation: bool,
    pub(crate) kernel_steering: bool,
    pub(crate) kernel_filter: bool,
    pub(crate) data_thread: Placement,
    pub(crate) handshake_thread: Placement,
    pub(crate) handshakes: HandshakeOptions,
    pub(crate) classes: [ClassLimits; Class::COUNT],
}

/// Where and how urgently a thread runs; Linux only, ignored elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Placement {
    /// The processor it stays on; `None` leaves that to the system.
    pub processor: Option<usize>,
    /// Its nice value, -20 (most urgent, needs privilege) to 19.
    pub nice: i32,
}

/// Nice value of the handshake thread: it yields to what carries blocks, and is not starved.
const HANDSHAKE_NICE: i32 = 5;
/// What every socket asks for as receive and send buffer: three 2 MB broadcasts at redundancy 2.5.
const DEFAULT_SOCKET_BUFFER: usize = 16 << 20;
/// Linux thread names have 15 bytes; the suffixes `-data` and `-hs` take up to 5.
const MAX_THREAD_PREFIX: usize = 10;

impl Default for DataplaneConfig {
    fn default() -> Self {
        DataplaneConfig {
            listen: None,
            listen_plain: None,
            device: None,
            rate: Rate::BitsPerSecond(1_000_000_000),
            peer_rate: Rate::Unlimited,
            link: None,
            socket_buffer: DEFAULT_SOCKET_BUFFER,
            mtu: 1500,
            thread_prefix: "fn".to_owned(),
            segmentation: true,
            aggregation: true,
            kernel_steering: true,
            kernel_filter: true,
            data_thread: Placement::default(),
            handshake_thread: Placement {
                processor: None,
                nice: HANDSHAKE_NICE,
            },
            handshakes: HandshakeOptions::default(),
            classes: [
                class_limits(4, 65_536, 64, 10),
                class_limits(4, 65_536, 64, 10),
                class_limits(1, 16_384, 16, 5),
                class_limits(1, 4_096, 4, 2),
            ],
        }
    }
}

fn class_limits(weight: u64, entries: usize, mebibytes: usize, age_seconds: u64) -> ClassLimits {
    ClassLimits {
        weight,
        entries,
        bytes: mebibytes << 20,
        max_age: Duration::from_secs(age_seconds),
    }
}

impl DataplaneConfig {
    /// No socket, 1 Gbit/s, no link emulation, MTU 1500.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Address of the authenticated lane's socket; port 0 lets the system choose. Default: none.
    #[must_use]
    pub fn with_listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Address of the plain lane's socket; port 0 lets the system choose. Default: none.
    #[must_use]
    pub fn with_listen_plain(mut self, address: SocketAddr) -> Self {
        self.listen_plain = Some(address);
        self
    }

    /// The one network device that the sockets send and receive by, on Linux; elsewhere the start fails with it.
    /// Default: any, as the routes say.
    #[must_use]
    pub fn with_device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Pacing of everything this dataplane sends, in bits a second on the wire. Default: 1 Gbit/s, because
    /// a burst of 2 MB at line rate into an internet path is its own loss.
    #[must_use]
    pub fn with_rate(mut self, rate: Rate) -> Self {
        self.rate = rate;
        self
    }

    /// Pacing of what goes to each single peer, beside the node's, in bits a second on the wire. Default: unlimited,
    /// since a first hop sends the same to everyone.
    #[must_use]
    pub fn with_peer_rate(mut self, rate: Rate) -> Self {
        self.peer_rate = rate;
        self
    }

    /// Delay and loss in user space in front of the sockets. Default: none, at no cost.
    #[must_use]
    pub fn with_link_emulation(mut self, link: Option<LinkEmulation>) -> Self {
        self.link = link;
        self
    }

    /// Bytes to ask for as `SO_RCVBUF` and `SO_SNDBUF`. Default: 16 MiB; the system may clamp it, which is
    /// warned of and nothing worse.
    #[must_use]
    pub fn with_socket_buffer(mut self, bytes: usize) -> Self {
        self.socket_buffer = bytes;
        self
    }

    /// Bytes an IP packet on the path may have, 1280..=9000. Default: 1500. Longer datagrams are sent
    /// alone rather than as segments of a group.
    #[must_use]
    pub fn with_mtu(mut self, bytes: usize) -> Self {
        self.mtu = bytes;
        self
    }

    /// Prefix of the thread names, at most 10 bytes. Default: `fn` (threads `fn-data` and `fn-hs`).
    #[must_use]
    pub fn with_thread_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.thread_prefix = prefix.into();
        self
    }

    /// Whether groups leave by segmentation offload where the system has it. Default: yes; off is for
    /// measuring and for faulty drivers.
    #[must_use]
    pub fn with_segmentation(mut self, on: bool) -> Self {
        self.segmentation = on;
        self
    }

    /// Whether the kernel may hand over datagrams of one flow as one aggregate (GRO). Default: yes; off costs
    /// up to ten times as much a received datagram, and denies a spoofer of a peer's address the chance that
    /// a filter drops good datagrams together with his.
    #[must_use]
    pub fn with_aggregation(mut self, on: bool) -> Self {
        self.aggregation = on;
        self
    }

    /// Whether the kernel steers handshake messages to a socket of the handshake thread's own, where it can
    /// (docs/spec/threads.md#steering). Default: yes.
    #[must_use]
    pub fn with_kernel_steering(mut self, on: bool) -> Self {
        self.kernel_steering = on;
        self
    }

    /// Whether the kernel drops what cannot be valid, where it can; its drops are then counted as `kernel`
    /// (docs/spec/threads.md#kernel-filter). The authenticated lane's filter needs steering. Default: yes;
    /// off gives every datagram its own reason.
    #[must_use]
    pub fn with_kernel_filter(mut self, on: bool) -> Self {
        self.kernel_filter = on;
        self
    }

    /// Where the dataplane thread runs. Default: anywhere, nice 0. A processor that is not there is warned
    /// of and otherwise ignored.
    #[must_use]
    pub fn with_data_thread(mut self, placement: Placement) -> Self {
        self.data_thread = placement;
        self
    }

    /// Where the handshake thread runs. Default: anywhere, nice 5.
    #[must_use]
    pub fn with_handshake_thread(mut self, placement: Placement) -> Self {
        self.handshake_thread = placement;
        self
    }

    /// Threads that compute handshakes, 1..=64; with more than one the engine has to hand its work out
    /// (`TransportConfig::with_offload`). Default: 1.
    #[must_use]
    pub fn with_handshake_threads(mut self, count: usize) -> Self {
        self.handshakes.threads = count;
        self
    }

    /// Processor time that each handshake thread may take, as a share of a core, 0.01..=1.0. Default: 0.5.
    /// Above it initiations are sampled at random and the rest is counted as `handshake_sampled`
    /// (docs/spec/threads.md#handshake-cpu).
    #[must_use]
    pub fn with_handshake_cpu(mut self, share: f64) -> Self {
        self.handshakes.cpu = share;
        self
    }

    /// Where the secrets of handshakes go that the engine hands out
    /// (`TransportConfig::with_key_log`), before the message that they are of leaves. Default: nowhere.
    #[must_use]
    pub fn with_key_log(mut self, file: KeyLogFile) -> Self {
        self.handshakes.key_log = Some(Arc::new(Mutex::new(file)));
        self
    }

    /// Where handshakes keep what must outlive this run. Default: none; then a clock that goes back across a
    /// restart makes peers refuse our initiations, and initiations recorded before it can be replayed to us.
    #[must_use]
    pub fn with_handshake_log(mut self, log: Arc<dyn HandshakeLog>) -> Self {
        self.handshakes.log = Some(log);
        self
    }

    /// Weight of `class` when classes compete, 1..=1000. Default: Proposal 4, Relay 4, Regular 1,
    /// Control 1, so that each keeps at least a tenth.
    #[must_use]
    pub fn with_class_weight(mut self, class: Class, weight: u64) -> Self {
        self.classes[class.index()].weight = weight;
        self
    }

    /// Caps of the send queue of `class`, in datagrams (times recipients) and bytes (overhead of an entry
    /// counted). Defaults: 65,536 and 64 MiB for Proposal and Relay, 16,384 and 16 MiB for Regular, 4,096
    /// and 4 MiB for Control.
    #[must_use]
    pub fn with_class_caps(mut self, class: Class, entries: usize, bytes: usize) -> Self {
        self.classes[class.index()].entries = entries;
        self.classes[class.index()].bytes = bytes;
        self
    }

    /// Age past which a queued datagram of `class` is dropped instead of sent. Default: 10 s for Proposal
    /// and Relay, 5 s for Regular, 2 s for Control.
    #[must_use]
    pub fn with_class_age(mut self, class: Class, age: Duration) -> Self {
        self.classes[class.index()].max_age = age;
        self
    }

    /// Checks every field and what holds between them.
    ///
    /// # Errors
    /// Names the first field that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field, allowed| Err(ConfigError { field, allowed });
        if self.listen.is_none() && self.listen_plain.is_none() {
            return wrong("listen", "an address for at least one lane");
        }
        if self
            .listen
            .is_some_and(|a| a.port() != 0 && Some(a) == self.listen_plain)
        {
            return wrong("listen_plain", "an address other than the authenticated lane's");
        }
        for (field, rate) in [("rate", self.rate), ("peer_rate", self.peer_rate)] {
            if let Rate::BitsPerSecond(bits) = rate
                && !(100_000..=1_000_000_000_000).contains(&bits)
            {
                return wrong(field, "100 kbit/s to 1 Tbit/s, or unlimited");
            }
        }
        if let Some(link) = &self.link
            && !(0.0..=1.0).contains(&link.loss)
        {
            return wrong("loss", "0.0 to 1.0");
        }
        if !(1280..=9000).contains(&self.mtu) {
            return wrong("mtu", "1280 to 9000 bytes");
        }
        if self.thread_prefix.len() > MAX_THREAD_PREFIX || self.thread_prefix.contains('\0') {
            return wrong("thread_prefix", "at most 10 bytes, none of them zero");
        }
        for (field, placement) in [
            ("data_thread", self.data_thread),
            ("handshake_thread", self.handshake_thread),
        ] {
            if !(-20..=19).contains(&placement.nice) {
                return wrong(field, "a nice value of -20 to 19");
            }
        }
        if !(1..=MAX_THREADS).contains(&self.handshakes.threads) {
            return wrong("handshake_threads", "1 to 64");
        }
        if !(0.01..=1.0).contains(&self.handshakes.cpu) {
            return wrong("handshake_cpu", "0.01 to 1.0 of a core");
        }
        for class in &self.classes {
            if !(1..=1000).contains(&class.weight) {
                return wrong("class_weight", "1 to 1000");
            }
            if class.entries == 0 || class.bytes == 0 {
                return wrong("class_caps", "at least 1 entry and 1 byte");
            }
        }
        Ok(())
    }
}

/// A field of a [`DataplaneConfig`] is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: allowed is {allowed}")]
pub struct ConfigError {
    /// The field, named as its setter is, without `with_`.
    pub field: &'static str,
    /// What is allowed.
    pub allowed: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> DataplaneConfig {
        DataplaneConfig::new().with_listen("127.0.0.1:0".parse().unwrap())
    }

    fn wrong_field(config: &DataplaneConfig) -> &'static str {
        config.check().unwrap_err().field
    }

    #[test]
    fn each_wrong_field_is_named() {
        assert_eq!(good().check(), Ok(()));
        assert_eq!(wrong_field(&DataplaneConfig::new()), "listen");
        let address = "127.0.0.1:99".parse().unwrap();
        let twice = good().with_listen(address).with_listen_plain(address);
        assert_eq!(wrong_field(&twice), "listen_plain");
        assert_eq!(wrong_field(&good().with_rate(Rate::BitsPerSecond(0))), "rate");
        assert_eq!(
            wrong_field(&good().with_peer_rate(Rate::BitsPerSecond(0))),
            "peer_rate"
        );
        for loss in [-0.1, 1.1, f64::NAN] {
            let link = LinkEmulation {
                delay: Arc::new(|_| Duration::ZERO),
                loss,
                seed: 0,
            };
            assert_eq!(wrong_field(&good().with_link_emulation(Some(link))), "loss");
        }
        assert_eq!(wrong_field(&good().with_mtu(1279)), "mtu");
        assert_eq!(
            wrong_field(&good().with_thread_prefix("elevenbytes")),
            "thread_prefix"
        );
        let placement = Placement {
            processor: None,
            nice: 20,
        };
        assert_eq!(
            wrong_field(&good().with_handshake_thread(placement)),
            "handshake_thread"
        );
        for share in [0.0, 1.1, f64::NAN] {
            assert_eq!(wrong_field(&good().with_handshake_cpu(share)), "handshake_cpu");
        }
        for count in [0, 65] {
            assert_eq!(
                wrong_field(&good().with_handshake_threads(count)),
                "handshake_threads"
            );
        }
        assert_eq!(
            wrong_field(&good().with_class_weight(Class::Relay, 0)),
            "class_weight"
        );
        assert_eq!(
            wrong_field(&good().with_class_caps(Class::Relay, 0, 1)),
            "class_caps"
        );
    }
}
