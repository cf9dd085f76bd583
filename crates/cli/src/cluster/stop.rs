//! A clean end on SIGINT.

use tokio::sync::watch;

/// Tells the parts of a run that the user wants it to end.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    requested: watch::Receiver<bool>,
}

impl Stop {
    /// Requested by the first SIGINT; a second one ends the process at once. Needs a tokio runtime.
    pub(crate) fn on_interrupt() -> Self {
        let (request, requested) = watch::channel(false);
        tokio::spawn(async move {
            // Without a handler SIGINT ends the process as usual, so an error needs no handling.
            while tokio::signal::ctrl_c().await.is_ok() {
                if request.send_replace(true) {
                    std::process::exit(130);
                }
            }
        });
        Self { requested }
    }

    /// Whether the run is to end.
    pub(crate) fn is_requested(&self) -> bool {
        *self.requested.borrow()
    }

    /// Resolves when the run is to end.
    pub(crate) async fn requested(&mut self) {
        if self.requested.wait_for(|requested| *requested).await.is_err() {
            // The watching task is gone: nobody will ever ask.
            std::future::pending::<()>().await;
        }
    }
}
