//! The signals of a daemon.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers that are installed.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Stop,
    Reload,
}

#[cfg(unix)]
impl Signals {
    /// # Errors
    /// If the system does not take a handler.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one; nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.terminate.recv() => Request::Stop,
            _ = self.hangup.recv() => Request::Reload,
        }
    }
}

/// Elsewhere there is only the interrupt.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// # Errors
    /// None here.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self)
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Request {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Request::Stop
    }
}
