//! What is configured about handshakes.

use std::sync::{Arc, Mutex};

use falconet_crypto::key_log::KeyLogFile;

use super::HandshakeLog;

/// Most handshake threads.
pub(crate) const MAX_THREADS: usize = 64;

/// The part of the configuration that the handshake threads read; setters and defaults are those of
/// [`crate::DataplaneConfig`].
#[derive(Clone, Debug)]
pub(crate) struct HandshakeOptions {
    pub(crate) threads: usize,
    /// Processor time that each of them may take, as a share of a core.
    pub(crate) cpu: f64,
    pub(crate) log: Option<Arc<dyn HandshakeLog>>,
    pub(crate) key_log: Option<Arc<Mutex<KeyLogFile>>>,
}

impl Default for HandshakeOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            cpu: 0.5,
            log: None,
            key_log: None,
        }
    }
}
