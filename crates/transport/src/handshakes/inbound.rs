//! Inbound handshake messages, cheapest checks first; `docs/spec/session.md#admission`.

use super::{Handshakes, MAX_TRANSMITS};
use crate::message::{NewSession, Origin};
use crate::{Discard, Lane, ToSessions, Transmit};
use bytes::Bytes;
use falconet_crypto::Now;
use falconet_handshake::{CookieReply, Decision, Initiation, Mac1Checked, Message, Response};
use std::net::SocketAddr;
use std::sync::Arc;

impl Handshakes {
    /// Takes a message of types 1-3; `from` is its UDP source.
    ///
    /// # Errors
    ///
    /// Why it was dropped; counted. Nothing has changed then, except for budgets.
    pub fn handle_datagram(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) -> Result<(), Discard> {
        let result = match Message::parse(datagram) {
            Ok(Message::Initiation(initiation)) => self.handle_initiation(now, from, initiation),
            Ok(Message::Response(response)) => self.handle_response(now, response),
            Ok(Message::CookieReply(reply)) => self.handle_cookie_reply(now, from, &reply),
            Err(reason) => Err(reason.into()),
        };
        if let Err(reason) = result {
            self.stats.discards.add(reason);
        }
        result
    }

    fn handle_initiation(
        &mut self,
        now: Now,
        from: SocketAddr,
        initiation: Initiation,
    ) -> Result<(), Discard> {
        if !self.config.allows(initiation.suite()) {
            return Err(Discard::SuiteRefused);
        }
        let checked = initiation.check_mac1(&self.local)?;
        // docs/spec/session.md#room: what cannot be handed on costs no key and spends no budget.
        if !self.has_room() {
            return Err(Discard::NoRoom);
        }
        if !self.indices.has_free_for_others(now.instant) {
            return Err(Discard::Overloaded);
        }
        match self.gate.admit(now, from, &checked, &mut self.rng) {
            Decision::Admit(_) => self.accept(now, from, checked),
            Decision::Drop(reason) => Err(reason.into()),
            Decision::CookieReply => {
                self.demand_cookie(from, &checked);
                Err(Discard::CookieDemanded)
            }
        }
    }

    fn demand_cookie(&mut self, from: SocketAddr, initiation: &Mac1Checked<Initiation>) {
        if self.transmits.len() >= MAX_TRANSMITS {
            return;
        }
        let reply = self
            .gate
            .cookie_reply(&self.local, initiation, from, &mut self.rng);
        self.stats.cookie_replies_sent += 1;
        self.transmits.push_back(transmit(from, &reply));
    }

    fn handle_response(&mut self, now: Now, response: Response) -> Result<(), Discard> {
        let index = response.receiver();
        let peer = *self.by_index.get(&index).ok_or(Discard::Unsolicited)?;
        // Its Diffie-Hellmans are never offloaded, so it waits behind nobody's.
        if !self.outbox.has_room_for_dialled() {
            return Err(Discard::NoRoom);
        }
        let response = response.check_mac1(&self.local)?;
        let contact = self.contacts.get_mut(peer.slot()).and_then(Option::as_deref_mut);
        let contact = contact.ok_or(Discard::Unsolicited)?;
        let statics = Arc::clone(&contact.statics);
        let pending = contact.pending(index).ok_or(Discard::Unsolicited)?;
        let keys = pending
            .initiation
            .open_response(&self.local, &statics, &response)?;
        let (initiated, at) = (pending.sent, pending.to);
        contact.round_trip = Some(now.instant.saturating_duration_since(initiated));
        contact.end_dial();
        contact.last_session = Some(now.instant);
        contact.last_index = Some(index);
        let finished = contact.finish_pending(index);
        self.forget_indices(finished);
        self.stats.dialled += 1;
        self.outbox.push(ToSessions(NewSession {
            peer,
            key: *statics.key(),
            keys,
            from: Origin::Dialled { initiated, at },
        }));
        Ok(())
    }

    /// A cookie is kept for the address that the initiation went to, whoever the reply came from: it
    /// authenticates the peer, the source does not.
    fn handle_cookie_reply(
        &mut self,
        now: Now,
        _from: SocketAddr,
        reply: &CookieReply,
    ) -> Result<(), Discard> {
        let index = reply.receiver();
        let peer = *self.by_index.get(&index).ok_or(Discard::Unsolicited)?;
        let contact = self.contacts.get_mut(peer.slot()).and_then(Option::as_deref_mut);
        let contact = contact.ok_or(Discard::Unsolicited)?;
        let statics = Arc::clone(&contact.statics);
        if let Some(pending) = contact.pending(index) {
            let cookie = pending.initiation.open_cookie_reply(&statics, reply)?;
            let to = pending.to;
            contact.store_cookie(now.instant, to, cookie);
            self.hasten_dial(now, peer);
            return Ok(());
        }
        // docs/spec/session.md#response-cookie: the initiator dials again, and our next answer has mac2.
        let answered = contact.answered.as_ref();
        let answered = answered.filter(|answered| answered.index == index);
        let answered = answered.ok_or(Discard::Unsolicited)?;
        let cookie = reply.open(&statics, &answered.mac1)?;
        let to = answered.to;
        contact.store_cookie(now.instant, to, cookie);
        Ok(())
    }
}

pub(super) fn transmit(to: SocketAddr, datagram: &[u8]) -> Transmit {
    Transmit {
        to,
        lane: Lane::Authenticated,
        datagram: Bytes::copy_from_slice(datagram),
    }
}
