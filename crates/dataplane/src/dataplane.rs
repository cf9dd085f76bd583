//! Starting and stopping the threads.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::bounded;
use falconet_transport::{Handshakes, Lane, Sessions};

use crate::config::{ConfigError, DataplaneConfig};
use crate::data_thread::DataThread;
use crate::delay_line::DelayLine;
use crate::egress::Egress;
use crate::emission::Emission;
use crate::handshake_thread::{Exit, HandshakeThread, MESSAGES, TRANSMITS, queues};
use crate::inbound::Consumers;
use crate::pacer::Pacer;
use crate::receive::Receiver;
use crate::scheduler::Scheduler;
use crate::sender::{Sender, inbox};
use crate::socket::{Port, bind};
use crate::stats::{Counters, Published, Stats};
use crate::timer::Timer;
use crate::wake::Wake;

/// The running threads (dataplane, handshake). Dropping it, or [`Dataplane::shutdown`], stops and joins
/// them; both close their sockets, and senders get [`crate::Closed`] from then on.
#[derive(Debug)]
pub struct Dataplane {
    sender: Sender,
    local: Option<SocketAddr>,
    local_plain: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    wake: Arc<Wake>,
    /// Dropped to stop the handshake thread.
    stop_handshakes: Option<crossbeam_channel::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
    published: [Arc<Published>; 2],
}

impl Dataplane {
    /// Binds the sockets and starts the threads.
    ///
    /// # Errors
    /// A wrong configuration, an address that cannot be bound, or a thread that cannot be started; then
    /// nothing is left running.
    pub fn start(
        config: DataplaneConfig,
        handshakes: Handshakes,
        sessions: Sessions,
        consumers: Consumers,
    ) -> Result<Dataplane, StartError> {
        config.check()?;
        let sockets = Sockets::bind(&config)?;
        let wake = Arc::new(Wake::default());
        let (sender, inbox) = inbox(&config.classes, Arc::clone(&wake));
        let (inlet, outlet) = queues();
        let (to_sessions, from_handshakes) = bounded(MESSAGES);
        let (transmit_tx, handshake_transmits) = bounded(TRANSMITS);
        let (stop_handshakes, handshake_stop) = bounded(0);
        let exit = match sockets
            .authenticated
            .as_ref()
            .map(|(socket, _)| socket.try_clone())
        {
            None => Exit::None,
            Some(_) if config.link.is_some() => Exit::Dataplane(transmit_tx),
            Some(clone) => Exit::Socket(clone.map_err(StartError::Thread)?),
        };
        let mut dataplane = Dataplane {
            sender,
            local: sockets.authenticated.as_ref().map(|(_, address)| *address),
            local_plain: sockets.plain.as_ref().map(|(_, address)| *address),
            stop: Arc::new(AtomicBool::new(false)),
            wake: Arc::clone(&wake),
            stop_handshakes: Some(stop_handshakes),
            threads: Vec::new(),
            published: Default::default(),
        };
        let handshake_thread = HandshakeThread {
            handshakes,
            queues: outlet,
            to_sessions,
            stop: handshake_stop,
            exit,
            wake: Arc::clone(&wake),
            published: Arc::clone(&dataplane.published[1]),
            counters: Counters::default(),
            held: None,
        };
        // On an error the half that was started is stopped by `Drop`.
        dataplane.spawn(format!("{}-hs", config.thread_prefix), || handshake_thread.run())?;
        let (stop, published) = (Arc::clone(&dataplane.stop), Arc::clone(&dataplane.published[0]));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let guard = runtime.enter();
        let scheduler = Scheduler::new(config.classes);
        let data_thread = DataThread {
            sessions,
            consumers,
            inbox,
            handshakes: inlet,
            from_handshakes,
            handshake_transmits,
            egress: sockets.egress(&config).map_err(StartError::Thread)?,
            emission: Emission::new(scheduler, Pacer::new(config.rate), config.mtu),
            receiver: Receiver::new(),
            timer: Timer::new().map_err(StartError::Thread)?,
            wake,
            stop,
            counters: Counters::default(),
            published,
            held: VecDeque::new(),
        };
        drop(guard);
        dataplane.spawn(format!("{}-data", config.thread_prefix), move || {
            runtime.block_on(data_thread.run());
        })?;
        Ok(dataplane)
    }

    /// Where the authenticated lane listens, with the port the system chose.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Where the plain lane listens.
    #[must_use]
    pub fn local_plain_addr(&self) -> Option<SocketAddr> {
        self.local_plain
    }

    /// A handle that gives the threads work.
    #[must_use]
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// A snapshot of what both threads have counted; reads some 300 counters, disturbs nobody.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for published in &self.published {
            published.add_to(&mut stats);
        }
        stats
    }

    /// Stops and joins the threads; what is queued is dropped, and its completions told.
    pub fn shutdown(self) {}

    fn spawn(&mut self, name: String, body: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        let thread = std::thread::Builder::new().name(name).spawn(body);
        self.threads.push(thread.map_err(StartError::Thread)?);
        Ok(())
    }
}

impl Drop for Dataplane {
    /// docs/spec/threads.md#shutdown
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.stop_handshakes = None;
        self.wake.wake();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a dataplane thread has panicked");
            }
        }
    }
}

/// Why [`Dataplane::start`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A field of the configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A socket could not be bound.
    #[error("cannot bind {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A thread, its runtime or its timer could not be made.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// The bound sockets, each with its address.
struct Sockets {
    authenticated: Option<(std::net::UdpSocket, SocketAddr)>,
    plain: Option<(std::net::UdpSocket, SocketAddr)>,
}

impl Sockets {
    fn bind(config: &DataplaneConfig) -> Result<Sockets, StartError> {
        let open = |address: Option<SocketAddr>| {
            let Some(address) = address else {
                return Ok(None);
            };
            let socket = bind(address, config.socket_buffer);
            socket
                .and_then(|socket| socket.local_addr().map(|local| Some((socket, local))))
                .map_err(|source| StartError::Bind { address, source })
        };
        Ok(Sockets {
            authenticated: open(config.listen)?,
            plain: open(config.listen_plain)?,
        })
    }

    fn egress(self, config: &DataplaneConfig) -> io::Result<Egress> {
        let port = |lane, socket: Option<(std::net::UdpSocket, SocketAddr)>| {
            socket
                .map(|(socket, _)| Port::new(lane, socket, config.segmentation, config.mtu))
                .transpose()
        };
        Ok(Egress::new(
            port(Lane::Authenticated, self.authenticated)?,
            port(Lane::Plain, self.plain)?,
            config.link.clone().map(DelayLine::new),
        ))
    }
}
