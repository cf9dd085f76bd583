//! Both engines joined, for one loop on one thread.

use crate::sessions::classify_plain;
use crate::{
    AddPeerError, Content, Discard, Event, Finished, HandshakeStats, Handshakes, KeyLogLine, Lane,
    LaneDecision, PeerConfig,
};
use crate::{
    PeerId, PeerRecord, Received, RecordError, SendError, SessionStats, Sessions, Transmit, TransportConfig,
    Work, split,
};
use bytes::{Bytes, BytesMut};
use falconet_auth_framing::{HEADER_LEN, MESSAGE_TYPE_DATA, OVERHEAD};
use falconet_crypto::{Now, Tai64N, TransportPublicKey, TransportSecret};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

/// Datagrams that wait for `poll_transmit`; while full, `send` refuses. Only what was released by a new
/// session goes beyond, and that was under the caps of what may wait.
const MAX_TRANSMITS: usize = 16_384;

/// [`Handshakes`] and [`Sessions`] joined, for the simulator and for embedders with their own loop.
///
/// After *every* call that takes `&mut self`, in this order: [`poll_transmit`](Self::poll_transmit)
/// until `None`, [`poll_event`](Self::poll_event) until `None`, then arm one timer for
/// [`poll_timeout`](Self::poll_timeout). When it fires, feed what was received first, then call
/// [`handle_timeout`](Self::handle_timeout).
pub struct Endpoint {
    handshakes: Handshakes,
    sessions: Sessions,
    transmits: VecDeque<Transmit>,
}

/// What [`Endpoint::handle_datagram`] found: the plaintext is `datagram[start..start + len]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inbound {
    /// On the authenticated lane, who sealed it. On the plain lane, whose address it came from, if
    /// anybody's: a hint. `None` also for handshake messages.
    pub peer: Option<PeerId>,
    /// Offset of the plaintext.
    pub start: usize,
    /// Bytes of the plaintext, kind byte included.
    pub len: usize,
    /// What it is; [`Content::None`] asks nothing of the consumer.
    pub content: Content,
}

impl Endpoint {
    /// An endpoint without peers; arguments as for [`split`].
    #[must_use]
    pub fn new(config: TransportConfig, secret: TransportSecret, now: Now, seed: [u8; 32]) -> Self {
        let (handshakes, sessions) = split(config, secret, now, seed);
        Self {
            handshakes,
            sessions,
            transmits: VecDeque::new(),
        }
    }

    /// Adds a peer; a persistent one is dialled at once.
    ///
    /// # Errors
    ///
    /// [`AddPeerError`]; then nothing was added.
    pub fn add_peer(&mut self, now: Now, peer: PeerId, config: &PeerConfig) -> Result<(), AddPeerError> {
        self.handshakes.add_peer(now, peer, config)?;
        if let Err(error) = self.sessions.add_peer(now, peer, config) {
            // A peer without transport key is unknown to the handshakes: this one was not added there.
            if error != AddPeerError::Duplicate || config.transport_key.is_some() {
                self.handshakes.remove_peer(peer);
            }
            return Err(error);
        }
        self.pump(now);
        Ok(())
    }

    /// Removes a peer, its sessions and keys.
    pub fn remove_peer(&mut self, peer: PeerId) {
        self.sessions.remove_peer(peer);
        self.handshakes.remove_peer(peer);
    }

    /// Dials in advance.
    pub fn connect(&mut self, now: Now, peer: PeerId) {
        self.sessions.connect(now, peer);
        self.pump(now);
    }

    /// See [`Sessions::rekey`].
    pub fn rekey(&mut self, now: Now, peer: PeerId) {
        self.sessions.rekey(now, peer);
        self.pump(now);
    }

    /// Takes a datagram and opens it in place.
    ///
    /// # Errors
    ///
    /// Why it was dropped; counted.
    pub fn handle_datagram(
        &mut self,
        now: Now,
        from: SocketAddr,
        lane: Lane,
        datagram: &mut [u8],
    ) -> Result<Inbound, Discard> {
        let result = match (lane, datagram.first()) {
            (Lane::Plain, _) => self.handle_plain(now, from, datagram),
            (Lane::Authenticated, None) => Err(self.sessions.discard(Discard::Empty)),
            (Lane::Authenticated, Some(&MESSAGE_TYPE_DATA)) => {
                self.sessions.open(now, from, datagram).map(Inbound::from)
            }
            (Lane::Authenticated, Some(1..=3)) => {
                let handled = self.handshakes.handle_datagram(now, from, datagram);
                handled.map(|()| Inbound::NOTHING)
            }
            (Lane::Authenticated, Some(_)) => Err(self.sessions.discard(Discard::UnknownType)),
        };
        self.pump(now);
        result
    }

    fn handle_plain(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) -> Result<Inbound, Discard> {
        let peer = self.sessions.admit_plain(now, from, datagram)?;
        Ok(Inbound {
            peer,
            start: 0,
            len: datagram.len(),
            content: classify_plain(datagram)?,
        })
    }

    /// Sends a plaintext, kind byte first, on the lane that the peer's policy asks for now.
    ///
    /// `Ok` means that it left or waits for a session; what has waited in vain for 90 s comes back as
    /// [`Event::SendFailed`] with tag 0.
    ///
    /// # Errors
    ///
    /// [`SendError`]; then it was not sent.
    pub fn send(&mut self, now: Now, peer: PeerId, plaintext: &Bytes) -> Result<(), SendError> {
        if plaintext.is_empty() {
            return Err(SendError::Empty);
        }
        if self.transmits.len() >= MAX_TRANSMITS {
            return Err(SendError::BufferFull);
        }
        let result = match self.sessions.lane(now, peer, 1) {
            LaneDecision::Authenticated => self.seal(now, peer, plaintext),
            LaneDecision::Plain(to) => {
                self.transmits.push_back(Transmit {
                    to,
                    lane: Lane::Plain,
                    datagram: plaintext.clone(),
                });
                Ok(())
            }
            LaneDecision::Buffer => self.sessions.buffer(now, peer, plaintext.clone(), 0),
            LaneDecision::Refuse(error) => Err(error),
        };
        self.pump(now);
        result
    }

    fn seal(&mut self, now: Now, peer: PeerId, plaintext: &[u8]) -> Result<(), SendError> {
        let mut datagram = BytesMut::zeroed(plaintext.len() + OVERHEAD);
        datagram[HEADER_LEN..HEADER_LEN + plaintext.len()].copy_from_slice(plaintext);
        let to = self.sessions.seal(now, peer, &mut datagram)?;
        self.transmits.push_back(Transmit {
            to,
            lane: Lane::Authenticated,
            datagram: datagram.freeze(),
        });
        Ok(())
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        self.handshakes.handle_timeout(now);
        self.sessions.handle_timeout(now);
        self.pump(now);
    }

    /// The next datagram to leave.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let first = self.transmits.pop_front();
        first
            .or_else(|| self.sessions.poll_transmit())
            .or_else(|| self.handshakes.poll_transmit())
    }

    /// What the embedder should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.sessions.poll_event()
    }

    /// See [`Handshakes::poll_work`].
    pub fn poll_work(&mut self) -> Option<Work> {
        self.handshakes.poll_work()
    }

    /// See [`Handshakes::handle_finished`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn handle_finished(&mut self, now: Now, finished: Finished) -> Result<(), Discard> {
        let result = self.handshakes.handle_finished(now, finished);
        self.pump(now);
        result
    }

    /// See [`Handshakes::poll_key_log`].
    pub fn poll_key_log(&mut self) -> Option<KeyLogLine> {
        self.handshakes.poll_key_log()
    }

    /// When [`Endpoint::handle_timeout`] wants to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timeouts = [self.handshakes.poll_timeout(), self.sessions.poll_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// See [`Sessions::set_record`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_record(&mut self, now: Now, record: &PeerRecord) -> Result<(), RecordError> {
        self.sessions.set_record(now, record)?;
        self.pump(now);
        Ok(())
    }

    /// See [`Sessions::update_record`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn update_record(&mut self, now: Now, peer: PeerId, record: &PeerRecord) -> Result<(), Discard> {
        let result = self.sessions.update_record(now, peer, record);
        self.pump(now);
        result
    }

    /// See [`Handshakes::set_under_load`].
    pub fn set_under_load(&mut self, under_load: bool) {
        self.handshakes.set_under_load(under_load);
    }

    /// See [`Handshakes::raise_timestamp`].
    pub fn raise_timestamp(&mut self, floor: Tai64N) {
        self.handshakes.raise_timestamp(floor);
    }

    /// See [`Handshakes::poll_timestamp_mark`].
    pub fn poll_timestamp_mark(&mut self) -> Option<Tai64N> {
        self.handshakes.poll_timestamp_mark()
    }

    /// See [`Handshakes::raise_peer_timestamp`].
    pub fn raise_peer_timestamp(&mut self, key: TransportPublicKey, timestamp: Tai64N) {
        self.handshakes.raise_peer_timestamp(key, timestamp);
    }

    /// The data-plane half, to ask it things.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The handshake half, to ask it things.
    pub fn handshakes(&self) -> &Handshakes {
        &self.handshakes
    }

    /// One snapshot of both halves.
    pub fn stats(&self) -> (HandshakeStats, SessionStats) {
        (self.handshakes.stats(), self.sessions.stats())
    }

    /// Carries messages between the halves until neither has one, and collects what may leave.
    fn pump(&mut self, now: Now) {
        loop {
            let mut is_quiet = true;
            while let Some(message) = self.handshakes.poll_message() {
                self.sessions.handle_message(now, message);
                is_quiet = false;
            }
            while let Some(message) = self.sessions.poll_message() {
                self.handshakes.handle_message(now, message);
                is_quiet = false;
            }
            if is_quiet {
                break;
            }
        }
        // What does not fit stays where it has a cap of its own.
        while self.transmits.len() < MAX_TRANSMITS {
            let transmit = self.sessions.poll_transmit();
            match transmit.or_else(|| self.handshakes.poll_transmit()) {
                Some(transmit) => self.transmits.push_back(transmit),
                None => break,
            }
        }
        while let Some(released) = self.sessions.poll_released() {
            let peer = released.peer;
            let waits = match self.seal(now, peer, &released.plaintext) {
                Ok(()) => Ok(()),
                // The session that released it is gone already: it waits for the next one.
                Err(SendError::NoSession) if !self.sessions.is_connected(now, peer) => {
                    self.sessions
                        .buffer(now, peer, released.plaintext.clone(), released.tag)
                }
                Err(error) => Err(error),
            };
            if waits.is_err() {
                self.sessions.fail_released(released);
            }
        }
    }
}

impl Inbound {
    const NOTHING: Self = Self {
        peer: None,
        start: 0,
        len: 0,
        content: Content::None,
    };
}

impl From<Received> for Inbound {
    fn from(received: Received) -> Self {
        Self {
            peer: Some(received.peer),
            start: received.start,
            len: received.len,
            content: received.content,
        }
    }
}
