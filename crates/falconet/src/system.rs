//! What a node takes from the system: threads and what the kernel does for its sockets.

use falconet_dataplane::{DataplaneConfig, Placement};

/// Names, places and shares of a node's threads.
#[derive(Clone, Debug)]
#[must_use = "give it to the builder"]
pub struct ThreadOptions {
    pub(crate) prefix: String,
    pub(crate) handshake_threads: usize,
    dataplane: Placement,
    handshake: Option<Placement>,
    handshake_cpu: f64,
}

impl Default for ThreadOptions {
    fn default() -> Self {
        Self {
            prefix: "fn".to_owned(),
            handshake_threads: 1,
            dataplane: Placement::default(),
            handshake: None,
            handshake_cpu: 0.5,
        }
    }
}

impl ThreadOptions {
    /// Threads named `fn-data`, `fn-hs`, `fn-cast` and `fn-disk`, on any processor, the handshake thread niced by 5 and
    /// kept to half a core.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prefix of the thread names, at most 10 bytes. Default: `fn`.
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Where the dataplane thread runs. Default: anywhere, nice 0.
    pub fn with_dataplane(mut self, placement: Placement) -> Self {
        self.dataplane = placement;
        self
    }

    /// Where the handshake threads run. Default: anywhere, nice 5.
    pub fn with_handshake(mut self, placement: Placement) -> Self {
        self.handshake = Some(placement);
        self
    }

    /// Threads that compute handshakes, 1 to 64. Default: 1.
    pub fn with_handshake_threads(mut self, count: usize) -> Self {
        self.handshake_threads = count;
        self
    }

    /// Processor time that each handshake thread may take, as a share of a core, 0.01 to 1. Default: 0.5. Above it
    /// initiations are sampled at random (docs/spec/threads.md#handshake-cpu).
    pub fn with_handshake_cpu(mut self, share: f64) -> Self {
        self.handshake_cpu = share;
        self
    }

    pub(crate) fn apply(&self, config: DataplaneConfig) -> DataplaneConfig {
        let config = config
            .with_thread_prefix(self.prefix.clone())
            .with_data_thread(self.dataplane)
            .with_handshake_threads(self.handshake_threads)
            .with_handshake_cpu(self.handshake_cpu);
        match self.handshake {
            Some(placement) => config.with_handshake_thread(placement),
            None => config,
        }
    }
}

/// What a node's sockets use of the kernel; where it offers less, they do without.
#[derive(Clone, Debug)]
#[must_use = "give it to the builder"]
pub struct SocketOptions {
    steering: bool,
    filter: bool,
    aggregation: bool,
    segmentation: bool,
    buffer: Option<usize>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            steering: true,
            filter: true,
            aggregation: true,
            segmentation: true,
            buffer: None,
        }
    }
}

impl SocketOptions {
    /// Everything that the kernel offers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether handshake messages go to a socket of their own (docs/spec/threads.md#steering). Default: yes.
    pub fn with_steering(mut self, on: bool) -> Self {
        self.steering = on;
        self
    }

    /// Whether the kernel drops what cannot be valid (docs/spec/threads.md#kernel-filter). Default: yes; off gives every
    /// datagram its own reason in [`crate::Stats::discards`].
    pub fn with_filter(mut self, on: bool) -> Self {
        self.filter = on;
        self
    }

    /// Whether the kernel may hand over datagrams as aggregates (GRO). Default: yes; off denies a spoofer of a peer's
    /// address the chance that a filter drops good datagrams together with his.
    pub fn with_aggregation(mut self, on: bool) -> Self {
        self.aggregation = on;
        self
    }

    /// Whether groups leave by segmentation offload (GSO). Default: yes.
    pub fn with_segmentation(mut self, on: bool) -> Self {
        self.segmentation = on;
        self
    }

    /// Bytes to ask for as send and receive buffer of each socket. Default: 16 MiB.
    pub fn with_buffer(mut self, bytes: usize) -> Self {
        self.buffer = Some(bytes);
        self
    }

    pub(crate) fn apply(&self, config: DataplaneConfig) -> DataplaneConfig {
        let config = config
            .with_kernel_steering(self.steering)
            .with_kernel_filter(self.filter)
            .with_aggregation(self.aggregation)
            .with_segmentation(self.segmentation);
        match self.buffer {
            Some(bytes) => config.with_socket_buffer(bytes),
            None => config,
        }
    }
}
