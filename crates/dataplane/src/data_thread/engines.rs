//! What the dataplane thread hears from the embedder and the handshake thread, and what its sessions say.

use std::net::Ipv6Addr;

use falconet_crypto::Now;
use falconet_transport::{Event, Transmit};

use super::{DataThread, MESSAGES_A_TURN};
use crate::handshake_thread::{Control, MESSAGES};
use crate::outgoing::Class;
use crate::pacer::wire_bytes;
use crate::sender::{COMMANDS, Command};
use crate::unit::Unit;

impl DataThread {
    pub(super) fn handle_messages(&mut self, now: Now) {
        for message in self.from_handshakes.try_iter().take(MESSAGES_A_TURN) {
            self.sessions.handle_message(now, message);
        }
        for _ in 0..MESSAGES_A_TURN {
            let Ok(transmit) = self.handshake_transmits.try_recv() else {
                break;
            };
            self.transmit(now, transmit);
        }
    }

    /// Takes every command that is there. Both engines see them in the same order; only if the handshake
    /// thread is so far behind that as many wait for it as its queue holds, the others wait, too.
    pub(super) fn handle_commands(&mut self, now: Now) {
        self.retry_held();
        for _ in 0..COMMANDS {
            if !self.takes_commands() {
                break;
            }
            let Ok(command) = self.inbox.commands.try_recv() else {
                break;
            };
            self.handle_command(now, command);
        }
    }

    pub(super) fn takes_commands(&self) -> bool {
        self.held.len() < MESSAGES
    }

    pub(super) fn handle_command(&mut self, now: Now, command: Command) {
        match command {
            Command::AddPeer(peer, config) => match self.sessions.add_peer(now, peer, &config) {
                Ok(()) => self.tell_handshakes(Control::AddPeer(peer, config)),
                Err(error) => tracing::warn!(?peer, ?error, "peer not added"),
            },
            Command::RemovePeer(peer) => {
                self.sessions.remove_peer(peer);
                self.bans.remove_peer(peer);
                // First what the engine itself gives up, so that no tag is left behind.
                self.drain_sessions(now);
                self.emission.remove_peer(now.instant, peer, &mut self.counters);
                self.tell_handshakes(Control::RemovePeer(peer));
            }
            Command::Connect(peer) => self.sessions.connect(now, peer),
            Command::Ban(ban, time) => self.bans.ban(now.instant, ban, time),
            Command::Trust(peer, is_trusted) => self.bans.trust(peer, is_trusted),
            Command::WithSessions(action) => action(now, &mut self.sessions),
            // Nobody waits for it any more: that is fine.
            Command::Settle(done) => drop(done.send(())),
        }
    }

    pub(super) fn handle_submissions(&mut self, now: Now) {
        for class in Class::ALL {
            for _ in 0..MESSAGES_A_TURN {
                let emission = &self.emission;
                let Some(outgoing) = self.inbox.poll(class, |cost| emission.has_room(class, cost)) else {
                    break;
                };
                self.emission.push(now.instant, outgoing, &mut self.counters);
            }
        }
        self.inbox.notify_room();
    }

    /// Everything the sessions want to say; the engine bounds it. True if some of it was scheduled.
    pub(super) fn drain_sessions(&mut self, now: Now) -> bool {
        while let Some(transmit) = self.sessions.poll_transmit() {
            self.transmit(now, transmit);
        }
        while self.held.is_empty()
            && let Some(message) = self.sessions.poll_message()
        {
            self.tell_handshakes(Control::Message(message));
        }
        let mut is_scheduled = false;
        while let Some(released) = self.sessions.poll_released() {
            is_scheduled = true;
            let (tag, plaintext) = (released.tag, released.plaintext);
            self.emission
                .handle_released(now.instant, tag, plaintext, &mut self.counters);
        }
        while let Some(event) = self.sessions.poll_event() {
            self.handle_event(now, event);
        }
        is_scheduled
    }

    pub(super) fn handle_event(&mut self, now: Now, event: Event) {
        let event = match event {
            Event::SendFailed { peer, tag, plaintext } => {
                let counters = &mut self.counters;
                let class = self.emission.handle_send_failed(now.instant, tag, counters);
                let tag = class.map_or(0, Class::index) as u32;
                Event::SendFailed { peer, tag, plaintext }
            }
            event => event,
        };
        (self.consumers.events)(event);
    }

    pub(super) fn transmit(&mut self, now: Now, transmit: Transmit) {
        let (lane, length) = (transmit.lane, transmit.datagram.len());
        match self.egress.route(lane, transmit.to) {
            Ok(to) => {
                let mut bytes = self.egress.buffer();
                bytes.extend_from_slice(&transmit.datagram);
                self.emission.charge(now.instant, wire_bytes(length, to));
                let unit = Unit::new(lane, to, length, bytes);
                self.egress.push(now.instant, unit, &mut self.counters);
            }
            Err(reason) => self.counters.note_dropped(reason, 1),
        }
    }

    /// Charges the rate for what the handshake thread has sent by itself: nothing of it may wait, but what it took is
    /// not there for others (docs/spec/threads.md#pacing).
    pub(super) fn charge_handshakes(&mut self, now: Now) {
        let (datagrams, bytes) = self.handshakes_published.sent_authenticated();
        let (more, more_bytes) = (datagrams - self.charged.0, bytes - self.charged.1);
        if more > 0 {
            self.charged = (datagrams, bytes);
            // As over IPv6: a few bytes too many, where it was IPv4.
            let each = wire_bytes(0, (Ipv6Addr::UNSPECIFIED, 0).into());
            let wire = (more * each as u64).saturating_add(more_bytes);
            self.emission
                .charge(now.instant, usize::try_from(wire).unwrap_or(usize::MAX));
        }
    }

    pub(super) fn tell_handshakes(&mut self, control: Control) {
        self.held.push_back(control);
        self.retry_held();
    }

    pub(super) fn retry_held(&mut self) {
        while let Some(control) = self.held.pop_front() {
            if let Err(control) = self.handshakes.try_send(control) {
                return self.held.push_front(control);
            }
        }
    }
}
