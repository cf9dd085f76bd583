//! Threads that compute Diffie-Hellmans beside the handshake thread (docs/spec/threads.md#handshake-threads).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use falconet_crypto::Now;
use falconet_transport::{Finished, Handshakes, Work};

use super::sys;
use crate::config::DataplaneConfig;
use crate::dataplane::place;
use crate::wake::Wake;

/// Initiations under way, which the engine keeps to; so neither queue is ever full.
const WORKS: usize = 64;

/// The threads beside the handshake thread, if any; dropping it ends and joins them.
pub(crate) struct Crew {
    /// `None` without threads, and while the crew is dropped.
    works: Option<Sender<Work>>,
    finished: Receiver<Finished>,
    /// Processor time of each, in nanoseconds.
    cpu: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Starts all handshake threads but the first, which `wake` wakes.
    pub(crate) fn start(config: &DataplaneConfig, wake: &Arc<Wake>) -> io::Result<Self> {
        let (works, queue) = bounded(WORKS);
        let (results, finished) = bounded(WORKS);
        let count = config.handshakes.threads - 1;
        let mut crew = Self {
            works: (count > 0).then_some(works),
            finished,
            cpu: Vec::new(),
            threads: Vec::new(),
        };
        for number in 1..=count {
            let cpu = Arc::new(AtomicU64::new(0));
            let member = Member {
                works: queue.clone(),
                finished: results.clone(),
                cpu: Arc::clone(&cpu),
                wake: Arc::clone(wake),
            };
            let placement = config.handshake_thread;
            let name = format!("{}-hs{number}", config.thread_prefix);
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                place(placement);
                member.run();
            })?;
            crew.cpu.push(cpu);
            crew.threads.push(thread);
        }
        Ok(crew)
    }

    /// Hands out what there is to compute, or computes it here if there is nobody else.
    pub(super) fn hand_out(
        &self,
        now: Now,
        handshakes: &mut Handshakes,
        refused: &mut impl FnMut(&'static str),
    ) {
        while let Some(work) = handshakes.poll_work() {
            match &self.works {
                // A full queue or a dead thread drops it, as if the initiation was lost.
                Some(works) => drop(works.try_send(work)),
                None => finish(now, handshakes, work.run(), refused),
            }
        }
    }

    /// Goes on with what was computed; returns how many there were.
    pub(super) fn take_in(
        &self,
        now: Now,
        handshakes: &mut Handshakes,
        refused: &mut impl FnMut(&'static str),
    ) -> usize {
        let finished = self.finished.try_iter().take(WORKS);
        finished
            .map(|finished| finish(now, handshakes, finished, refused))
            .count()
    }

    pub(super) fn has_news(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Processor time of all of them so far.
    pub(super) fn cpu(&self) -> Duration {
        let each = self.cpu.iter().map(|cpu| cpu.load(Ordering::Relaxed));
        Duration::from_nanos(each.sum())
    }
}

fn finish(now: Now, handshakes: &mut Handshakes, finished: Finished, refused: &mut impl FnMut(&'static str)) {
    if let Err(reason) = handshakes.handle_finished(now, finished) {
        refused(reason.label());
    }
}

impl Drop for Crew {
    /// At most what is queued is computed before they end: some milliseconds.
    fn drop(&mut self) {
        self.works = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a handshake thread has panicked");
            }
        }
    }
}

/// One thread of the crew.
struct Member {
    works: Receiver<Work>,
    finished: Sender<Finished>,
    cpu: Arc<AtomicU64>,
    wake: Arc<Wake>,
}

impl Member {
    /// Runs until the crew is dropped.
    fn run(self) {
        while let Ok(work) = self.works.recv() {
            // Nobody takes it any more when the crew is being dropped.
            let _ = self.finished.try_send(work.run());
            self.wake.wake();
            let cpu = sys::thread_cpu().unwrap_or_default();
            let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
            self.cpu.store(nanos, Ordering::Relaxed);
        }
    }
}
