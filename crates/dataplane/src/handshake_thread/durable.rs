//! What must be on disk before an initiation leaves.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use falconet_crypto::{Tai64N, TransportPublicKey};
use falconet_transport::{Handshakes, Transmit};

use crate::wake::Wake;

/// First byte of an initiation: the only message that carries a timestamp of ours.
pub(super) const INITIATION: u8 = 1;
/// Initiations that wait for their mark, one for each address; past that the oldest is dropped, which a retry
/// makes up for.
const MAX_HELD: usize = 1024;
/// How often a mark is asked for again that the log did not take.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often the log is told of what was accepted.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps what handshakes must remember from one run to the next; called on the handshake thread, so no call may
/// wait for a disk.
pub trait HandshakeLog: Send + Sync + fmt::Debug {
    /// The greatest timestamp of this transport key that an earlier run has accepted.
    fn greatest(&self, key: &TransportPublicKey) -> Option<Tai64N>;

    /// Begins to store `mark`, and calls [`StoredMark::note`] when that is done. Until then no initiation
    /// with a timestamp past the mark stored before leaves (docs/spec/threads.md#held-initiations).
    fn store_mark(&self, mark: Tai64N, stored: StoredMark);

    /// Takes note of the greatest timestamps accepted so far; all of them, at most once a second.
    fn store_timestamps(&self, timestamps: Vec<(TransportPublicKey, Tai64N)>);
}

/// The mark that is on disk, told to the handshake thread by whoever writes it.
#[derive(Clone)]
pub struct StoredMark {
    mark: Arc<Mutex<Option<Tai64N>>>,
    wake: Arc<Wake>,
}

impl StoredMark {
    pub(crate) fn new(wake: Arc<Wake>) -> Self {
        Self {
            mark: Arc::default(),
            wake,
        }
    }

    /// The mark is stored: it survives a power failure from now on.
    pub fn note(&self, mark: Tai64N) {
        let mut stored = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        *stored = stored.max(Some(mark));
        drop(stored);
        self.wake.wake();
    }

    fn get(&self) -> Option<Tai64N> {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StoredMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoredMark").field(&self.get()).finish()
    }
}

/// Holds initiations back until their mark is stored.
pub(super) struct Durable {
    log: Arc<dyn HandshakeLog>,
    stored: StoredMark,
    /// The last mark that was asked for, and when.
    asked: Option<(Tai64N, Instant)>,
    held: VecDeque<Transmit>,
    told: Told,
}

/// What the log knows of accepted initiations.
#[derive(Default)]
struct Told {
    accepted: u64,
    at: Option<Instant>,
    /// There may be more to tell, once it is time.
    is_due: bool,
}

impl Durable {
    pub(super) fn new(log: Arc<dyn HandshakeLog>, wake: Arc<Wake>) -> Self {
        Self {
            log,
            stored: StoredMark::new(wake),
            asked: None,
            held: VecDeque::new(),
            told: Told::default(),
        }
    }

    /// A peer was added: initiations that an earlier run has accepted are replays.
    pub(super) fn recall(&self, handshakes: &mut Handshakes, key: TransportPublicKey) {
        if let Some(greatest) = self.log.greatest(&key) {
            handshakes.raise_peer_timestamp(key, greatest);
        }
    }

    /// The next message that may leave. A cookie reply carries no timestamp and waits for nothing.
    pub(super) fn poll_transmit(&mut self, now: Instant, handshakes: &mut Handshakes) -> Option<Transmit> {
        let mark = handshakes.poll_timestamp_mark();
        self.ask(now, mark);
        // docs/spec/threads.md#held-initiations
        let may_leave = handshakes.last_timestamp() <= self.stored.get();
        if may_leave && let Some(held) = self.held.pop_front() {
            return Some(held);
        }
        loop {
            let transmit = handshakes.poll_transmit()?;
            if may_leave || transmit.datagram.first() != Some(&INITIATION) {
                return Some(transmit);
            }
            // Of several to one address only the last is worth sending.
            self.held.retain(|held| held.to != transmit.to);
            if self.held.len() >= MAX_HELD {
                self.held.pop_front();
            }
            self.held.push_back(transmit);
        }
    }

    /// Asks for `mark` to be stored, or once more for the last one.
    fn ask(&mut self, now: Instant, mark: Option<Tai64N>) {
        let again = self.asked.filter(|(mark, at)| {
            self.stored.get() < Some(*mark) && now.saturating_duration_since(*at) >= ASK_AGAIN
        });
        if let Some(mark) = mark.or(again.map(|(mark, _)| mark)) {
            self.asked = Some((mark, now));
            self.log.store_mark(mark, self.stored.clone());
        }
    }

    /// When to look again although nothing has happened.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let ask = self.asked.filter(|_| !self.held.is_empty());
        let tell = self.told.at.filter(|_| self.told.is_due);
        let deadlines = [
            ask.map(|(_, at)| at + ASK_AGAIN),
            tell.map(|at| at + TELL_INTERVAL),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Tells the log what was accepted since the last time, if it is time.
    pub(super) fn tell(&mut self, now: Instant, handshakes: &Handshakes) {
        let is_recent = |at| now.saturating_duration_since(at) < TELL_INTERVAL;
        self.told.is_due = self.told.at.is_some_and(is_recent);
        if !self.told.is_due {
            self.told.at = Some(now);
            self.tell_now(handshakes);
        }
    }

    /// As [`Durable::tell`], at once: for the last words of the thread.
    pub(super) fn tell_now(&mut self, handshakes: &Handshakes) {
        let accepted = handshakes.stats().accepted;
        if self.told.accepted != accepted {
            self.told.accepted = accepted;
            self.log.store_timestamps(handshakes.peer_timestamps().collect());
        }
    }
}
