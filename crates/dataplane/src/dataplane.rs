//! Starting and stopping the threads.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver as Queue, bounded};
use falconet_transport::{Handshakes, Sessions, ToSessions, Transmit};

use crate::bans::Bans;
use crate::config::{ConfigError, DataplaneConfig, Placement};
use crate::data_thread::DataThread;
use crate::emission::Emission;
use crate::handshake_thread::{Crew, HandshakeParts, HandshakeThread, Inlet, MESSAGES, TRANSMITS, queues};
use crate::inbound::Consumers;
use crate::kernel_bans::KernelBans;
use crate::kernel_drops::KernelDrops;
use crate::pacer::Pacer;
use crate::peer_pacers::PeerPacers;
use crate::receive::{Batches, Receiver};
use crate::sender::{Inbox, Sender, inbox};
use crate::sockets::Sockets;
use crate::stats::{Counters, Published, Stats, Timings, add};
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
    wakes: [Arc<Wake>; 2],
    threads: Vec<JoinHandle<()>>,
    /// Of the dataplane thread and of the handshake thread.
    published: [Arc<Published>; 2],
    timings: Arc<Timings>,
    kernel_drops: KernelDrops,
}

/// What the dataplane thread is made of.
struct DataParts {
    sessions: Sessions,
    consumers: Consumers,
    inbox: Inbox,
    inlet: Inlet,
    from_handshakes: Queue<ToSessions>,
    handshake_transmits: Queue<Transmit>,
    sockets: Sockets,
    kernel_bans: KernelBans,
    wake: Arc<Wake>,
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
        let sockets = Sockets::bind(&config, handshakes.index_key())?;
        let kernel_bans = sockets.kernel_bans(&config, handshakes.index_key());
        let kernel_bans = kernel_bans.map_err(StartError::Thread)?;
        let (wake, wake_handshakes) = (Arc::new(Wake::default()), Arc::new(Wake::default()));
        let (sender, inbox) = inbox(&config.classes, Arc::clone(&wake));
        let (inlet, outlet) = queues(Arc::clone(&wake_handshakes));
        let (to_sessions, from_handshakes) = bounded(MESSAGES);
        let (transmit_tx, handshake_transmits) = bounded(TRANSMITS);
        let mut dataplane = Dataplane {
            sender,
            local: sockets.authenticated.as_ref().map(|steered| steered.local),
            local_plain: sockets.plain.as_ref().map(|(_, address)| *address),
            stop: Arc::new(AtomicBool::new(false)),
            wakes: [Arc::clone(&wake), Arc::clone(&wake_handshakes)],
            threads: Vec::new(),
            published: Default::default(),
            timings: Arc::default(),
            kernel_drops: sockets.kernel_drops().map_err(StartError::Thread)?,
        };
        let runtime = runtime().map_err(StartError::Thread)?;
        let guard = runtime.enter();
        let parts = HandshakeParts {
            handshakes,
            queues: outlet,
            exit: sockets.exit(&config, transmit_tx).map_err(StartError::Thread)?,
            intake: sockets.handshakes().map_err(StartError::Thread)?,
            to_sessions,
            stop: Arc::clone(&dataplane.stop),
            timer: Timer::new().map_err(StartError::Thread)?,
            wake: wake_handshakes,
            wake_sessions: Arc::clone(&wake),
            published: Arc::clone(&dataplane.published[1]),
            options: config.handshakes.clone(),
            crew: Crew::start(&config, &dataplane.wakes[1]).map_err(StartError::Thread)?,
        };
        drop(guard);
        // On an error the half that was started is stopped by `Drop`.
        dataplane.spawn(format!("{}-hs", config.thread_prefix), move || {
            place(config.handshake_thread);
            runtime.block_on(HandshakeThread::new(parts).run());
        })?;
        dataplane.start_data_thread(
            config,
            DataParts {
                sessions,
                consumers,
                inbox,
                inlet,
                from_handshakes,
                handshake_transmits,
                sockets,
                kernel_bans,
                wake,
            },
        )?;
        Ok(dataplane)
    }

    fn start_data_thread(&mut self, config: DataplaneConfig, parts: DataParts) -> Result<(), StartError> {
        let runtime = runtime().map_err(StartError::Thread)?;
        let guard = runtime.enter();
        let counters = Counters::default();
        self.timings = Arc::clone(&counters.timings);
        let data_thread = DataThread {
            sessions: parts.sessions,
            consumers: parts.consumers,
            inbox: parts.inbox,
            handshakes: parts.inlet,
            from_handshakes: parts.from_handshakes,
            handshake_transmits: parts.handshake_transmits,
            egress: parts.sockets.egress(&config).map_err(StartError::Thread)?,
            emission: Emission::new(
                config.classes,
                Pacer::new(config.rate),
                PeerPacers::new(config.peer_rate),
                config.mtu,
            ),
            receiver: Receiver::new(config.aggregation),
            bans: Bans::new(parts.kernel_bans),
            batches: Batches::default(),
            timer: Timer::new().map_err(StartError::Thread)?,
            wake: parts.wake,
            stop: Arc::clone(&self.stop),
            counters,
            published: Arc::clone(&self.published[0]),
            handshakes_published: Arc::clone(&self.published[1]),
            charged: (0, 0),
            held: VecDeque::new(),
        };
        drop(guard);
        self.spawn(format!("{}-data", config.thread_prefix), move || {
            place(config.data_thread);
            runtime.block_on(data_thread.run());
        })
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

    /// A snapshot of what both threads have counted and the kernel has dropped; reads some 300 counters and
    /// makes a system call a socket, disturbs nobody.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for published in &self.published {
            published.add_to(&mut stats);
        }
        stats.data_thread = self.published[0].thread();
        stats.handshake_thread = self.published[1].thread();
        stats.sealing = self.timings.sealing.snapshot();
        stats.opening = self.timings.opening.snapshot();
        add(&mut stats.discards, "kernel", self.kernel_drops.total());
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
        for wake in &self.wakes {
            wake.wake();
        }
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

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Puts the calling thread where the configuration wants it; where the system refuses, it runs all the same.
pub(crate) fn place(placement: Placement) {
    #[cfg(target_os = "linux")]
    {
        let pinned = placement.processor.map_or(Ok(()), crate::sys::pin_to);
        let niced = match placement.nice {
            0 => Ok(()),
            nice => crate::sys::set_nice(nice),
        };
        if let Err(error) = pinned.and(niced) {
            tracing::warn!(%error, ?placement, "thread not placed as configured");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = placement;
}
