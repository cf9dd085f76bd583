//! The embedder's handle, and the queue between it and the dataplane thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use falconet_crypto::Now;
use falconet_transport::{PeerConfig, PeerId, Sessions};
use tokio::sync::{Notify, oneshot};

use crate::bans::Ban;
use crate::outgoing::{Class, Cost, Outgoing};
use crate::scheduler::ClassLimits;
use crate::wake::Wake;

/// Most [`Outgoing`]s that wait for the dataplane thread, in each class
/// (docs/spec/threads.md#queue-bounds).
pub(crate) const SUBMISSIONS: usize = 1024;
/// Most commands that wait for the dataplane thread.
pub(crate) const COMMANDS: usize = 65_536;

/// Hands work to the dataplane thread; cheap to clone; never blocks.
#[derive(Clone)]
pub struct Sender {
    submissions: Arc<Submissions>,
    commands: crossbeam_channel::Sender<Command>,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    /// Queues `outgoing` if its class has room; a class that is empty takes an `Outgoing` of any size.
    ///
    /// # Errors
    /// Gives `outgoing` back if the class has no room; [`TrySendError::Closed`] after shutdown.
    pub fn try_send(&self, outgoing: Outgoing) -> Result<(), TrySendError> {
        self.submissions.try_push(outgoing)
    }

    /// Queues `outgoing` as soon as its class has room.
    ///
    /// # Errors
    /// [`Closed`] after shutdown.
    pub async fn send(&self, outgoing: Outgoing) -> Result<(), Closed> {
        let mut outgoing = outgoing;
        loop {
            // Created before the attempt: room that is made in between is not missed.
            let room = self.submissions.room.notified();
            match self.submissions.try_push(outgoing) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed) => return Err(Closed),
                Err(TrySendError::Full(back)) => outgoing = back,
            }
            room.await;
        }
    }

    /// Adds a peer to both engines. What the peer sends after this has returned is judged as the peer's,
    /// though the thread may see the command later (docs/spec/threads.md#commands).
    ///
    /// # Errors
    /// [`Closed`] after shutdown, or with 65,536 commands waiting.
    pub fn add_peer(&self, peer: PeerId, config: PeerConfig) -> Result<(), Closed> {
        self.command(Command::AddPeer(peer, Box::new(config)))
    }

    /// Removes a peer from both engines; what is queued for it is dropped.
    ///
    /// # Errors
    /// As [`Sender::add_peer`].
    pub fn remove_peer(&self, peer: PeerId) -> Result<(), Closed> {
        self.command(Command::RemovePeer(peer))
    }

    /// Dials a peer in advance.
    ///
    /// # Errors
    /// As [`Sender::add_peer`].
    pub fn connect(&self, peer: PeerId) -> Result<(), Closed> {
        self.command(Command::Connect(peer))
    }

    /// Discards what comes from an address or a peer for `time`, on both lanes, as `banned`; zero lifts a ban. IPv4
    /// addresses are dropped by the kernel where it filters. Trusted peers are exempt (docs/spec/threads.md#bans).
    ///
    /// # Errors
    /// As [`Sender::add_peer`].
    pub fn ban(&self, ban: Ban, time: Duration) -> Result<(), Closed> {
        self.command(Command::Ban(ban, time))
    }

    /// Exempts a peer from bans, or no longer.
    ///
    /// # Errors
    /// As [`Sender::add_peer`].
    pub fn trust(&self, peer: PeerId, is_trusted: bool) -> Result<(), Closed> {
        self.command(Command::Trust(peer, is_trusted))
    }

    /// Runs `action` on the dataplane thread with its sessions, behind the commands given before: to put
    /// records in force, or to ask for what only the engine knows. It holds up all traffic meanwhile, so it
    /// must be short and must not block.
    ///
    /// # Errors
    /// As [`Sender::add_peer`]; then `action` is dropped.
    pub fn with_sessions(
        &self,
        action: impl FnOnce(Now, &mut Sessions) + Send + 'static,
    ) -> Result<(), Closed> {
        self.command(Command::WithSessions(Box::new(action)))
    }

    /// Resolves once every command given before has been carried out by the dataplane thread. What a peer
    /// sends later is certainly judged by them, and so is what it sends in answer to anything.
    ///
    /// # Errors
    /// As [`Sender::add_peer`].
    pub async fn settle(&self) -> Result<(), Closed> {
        let (done, settled) = oneshot::channel();
        self.command(Command::Settle(done))?;
        settled.await.map_err(|_| Closed)
    }

    fn command(&self, command: Command) -> Result<(), Closed> {
        if self.submissions.closed.load(Ordering::Acquire) {
            return Err(Closed);
        }
        self.commands.try_send(command).map_err(|_| Closed)?;
        self.submissions.wake.wake();
        Ok(())
    }
}

/// Why [`Sender::try_send`] did not take an [`Outgoing`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// The class has no room; the `Outgoing` is given back.
    #[error("the send queue of the class is full")]
    Full(Outgoing),
    /// The dataplane has stopped.
    #[error("the dataplane has stopped")]
    Closed,
}

/// The dataplane has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the dataplane has stopped")]
pub struct Closed;

/// See [`Sender::with_sessions`].
pub(crate) type Action = Box<dyn FnOnce(Now, &mut Sessions) + Send>;

/// What the embedder orders besides sending.
pub(crate) enum Command {
    AddPeer(PeerId, Box<PeerConfig>),
    RemovePeer(PeerId),
    Connect(PeerId),
    WithSessions(Action),
    Ban(Ban, Duration),
    Trust(PeerId, bool),
    Settle(oneshot::Sender<()>),
}

/// The sending half: a bounded queue a class.
struct Submissions {
    classes: [ClassInlet; Class::COUNT],
    closed: Arc<AtomicBool>,
    room: Arc<Notify>,
    wake: Arc<Wake>,
}

struct ClassInlet {
    queue: crossbeam_channel::Sender<(Outgoing, Cost)>,
    bytes: Arc<AtomicUsize>,
    byte_cap: usize,
}

impl Submissions {
    fn try_push(&self, outgoing: Outgoing) -> Result<(), TrySendError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(TrySendError::Closed);
        }
        let inlet = &self.classes[outgoing.class.index()];
        let cost = outgoing.cost();
        let before = inlet.bytes.fetch_add(cost.bytes, Ordering::AcqRel);
        if before > 0 && before.saturating_add(cost.bytes) > inlet.byte_cap {
            inlet.bytes.fetch_sub(cost.bytes, Ordering::AcqRel);
            return Err(TrySendError::Full(outgoing));
        }
        match inlet.queue.try_send((outgoing, cost)) {
            Ok(()) => {
                self.wake.wake();
                Ok(())
            }
            Err(crossbeam_channel::TrySendError::Full((back, _))) => {
                inlet.bytes.fetch_sub(cost.bytes, Ordering::AcqRel);
                Err(TrySendError::Full(back))
            }
            Err(crossbeam_channel::TrySendError::Disconnected(_)) => Err(TrySendError::Closed),
        }
    }
}

/// The dataplane thread's half.
pub(crate) struct Inbox {
    classes: [ClassOutlet; Class::COUNT],
    pub(crate) commands: Receiver<Command>,
    closed: Arc<AtomicBool>,
    room: Arc<Notify>,
    made_room: bool,
}

struct ClassOutlet {
    queue: Receiver<(Outgoing, Cost)>,
    bytes: Arc<AtomicUsize>,
    /// Taken from the queue, waiting for room in the scheduler.
    next: Option<(Outgoing, Cost)>,
}

impl Inbox {
    /// The oldest [`Outgoing`] of `class`, if `has_room` for it.
    pub(crate) fn poll(&mut self, class: Class, has_room: impl FnOnce(Cost) -> bool) -> Option<Outgoing> {
        let outlet = &mut self.classes[class.index()];
        if outlet.next.is_none() {
            outlet.next = outlet.queue.try_recv().ok();
        }
        if !has_room(outlet.next.as_ref()?.1) {
            return None;
        }
        let (outgoing, cost) = outlet.next.take()?;
        outlet.bytes.fetch_sub(cost.bytes, Ordering::AcqRel);
        self.made_room = true;
        Some(outgoing)
    }

    /// Whether the thread has something to take that it could not see before it announced its nap;
    /// commands count only if it `takes_commands`.
    pub(crate) fn has_news(&self, takes_commands: bool) -> bool {
        (takes_commands && !self.commands.is_empty())
            || self
                .classes
                .iter()
                .any(|class| class.next.is_none() && !class.queue.is_empty())
    }

    /// Whether a submission was taken that the scheduler had no room for.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.classes.iter().any(|class| class.next.is_some())
    }

    /// Wakes senders that wait for room, once a turn at most.
    pub(crate) fn notify_room(&mut self) {
        if std::mem::take(&mut self.made_room) {
            self.room.notify_waiters();
        }
    }

    /// `Outgoing`s of `class` that wait here.
    pub(crate) fn depth(&self, class: Class) -> usize {
        let outlet = &self.classes[class.index()];
        outlet.queue.len() + usize::from(outlet.next.is_some())
    }

    /// Refuses everything from now on and gives back what was still queued.
    pub(crate) fn close(&mut self) -> Vec<Outgoing> {
        self.closed.store(true, Ordering::Release);
        let mut left = Vec::new();
        for outlet in &mut self.classes {
            let waiting = outlet.next.take().into_iter().chain(outlet.queue.try_iter());
            left.extend(waiting.map(|(outgoing, _)| outgoing));
        }
        // Whoever waits for these to be carried out learns of the end now.
        self.commands.try_iter().for_each(drop);
        self.room.notify_waiters();
        left
    }
}

/// Both halves of the queue, its bytes bounded as those of the scheduler.
pub(crate) fn inbox(limits: &[ClassLimits; Class::COUNT], wake: Arc<Wake>) -> (Sender, Inbox) {
    let closed = Arc::new(AtomicBool::new(false));
    let room = Arc::new(Notify::new());
    let (command_tx, command_rx) = bounded(COMMANDS);
    let pairs = limits.map(|limits| {
        let (tx, rx) = bounded(SUBMISSIONS);
        let bytes = Arc::new(AtomicUsize::new(0));
        let inlet = ClassInlet {
            queue: tx,
            bytes: Arc::clone(&bytes),
            byte_cap: limits.bytes,
        };
        let outlet = ClassOutlet {
            queue: rx,
            bytes,
            next: None,
        };
        (inlet, outlet)
    });
    let [a, b, c, d] = pairs;
    let submissions = Submissions {
        classes: [a.0, b.0, c.0, d.0],
        closed: Arc::clone(&closed),
        room: Arc::clone(&room),
        wake,
    };
    let sender = Sender {
        submissions: Arc::new(submissions),
        commands: command_tx,
    };
    let inbox = Inbox {
        classes: [a.1, b.1, c.1, d.1],
        commands: command_rx,
        closed,
        room,
        made_room: false,
    };
    (sender, inbox)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::outgoing::Recipients;

    fn pair(byte_cap: usize) -> (Sender, Inbox) {
        let limits = ClassLimits {
            weight: 1,
            entries: 10,
            bytes: byte_cap,
            max_age: Duration::from_secs(1),
        };
        inbox(&[limits; 4], Arc::new(Wake::default()))
    }

    fn outgoing(length: usize) -> Outgoing {
        Outgoing {
            to: Recipients::One(PeerId(1)),
            class: Class::Regular,
            datagrams: vec![Bytes::from(vec![0x20; length])],
            completion: None,
        }
    }

    #[test]
    fn bytes_bound_the_queue_but_an_empty_one_takes_anything() {
        let (sender, mut inbox) = pair(10_000);
        assert!(sender.try_send(outgoing(50_000)).is_ok());
        assert!(matches!(sender.try_send(outgoing(1)), Err(TrySendError::Full(_))));
        assert!(inbox.poll(Class::Regular, |_| false).is_none());
        assert!(matches!(sender.try_send(outgoing(1)), Err(TrySendError::Full(_))));
        assert!(inbox.poll(Class::Regular, |_| true).is_some());
        assert!(sender.try_send(outgoing(1)).is_ok());
    }

    #[test]
    fn entries_bound_the_queue() {
        let (sender, _inbox) = pair(usize::MAX);
        let taken = (0..5_000)
            .take_while(|_| sender.try_send(outgoing(1)).is_ok())
            .count();
        assert_eq!(taken, SUBMISSIONS);
    }

    #[test]
    fn closing_gives_back_what_waits_and_refuses_more() {
        let (sender, mut inbox) = pair(usize::MAX);
        for _ in 0..3 {
            assert!(sender.try_send(outgoing(1)).is_ok());
        }
        assert!(inbox.poll(Class::Regular, |_| false).is_none());
        assert_eq!(inbox.close().len(), 3);
        assert!(matches!(sender.try_send(outgoing(1)), Err(TrySendError::Closed)));
        assert_eq!(sender.connect(PeerId(1)), Err(Closed));
    }
}
