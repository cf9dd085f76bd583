//! From the first Diffie-Hellman of an admitted initiation to its session keys. The Diffie-Hellmans are
//! [`Work`]; every decision between them is here, on the engine's thread. `docs/spec/session.md#offload`

use super::Handshakes;
use super::contact::{Answered, Contact};
use super::inbound::transmit;
use super::work::{Answering, Case, Finished, Outcome, Step, Work};
use crate::message::{NewSession, Origin};
use crate::timing::INITIATION_INTERVAL;
use crate::{Discard, PeerId, ToSessions};
use falconet_crypto::{Now, SecretBytes, Suite};
use falconet_handshake::{
    Identified, Initiation, Mac1, Mac1Checked, PeerStatic, RESPONSE_LEN, SessionKeys, Verified,
};
use rand_core::Rng;
use std::net::SocketAddr;
use std::sync::Arc;
use zeroize::Zeroize;

impl Handshakes {
    /// The next Diffie-Hellmans to compute, on whatever thread, with
    /// [`TransportConfig::with_offload`](crate::TransportConfig::with_offload) only. At most 64 exist at a
    /// time, those that are computed and waiting included.
    pub fn poll_work(&mut self) -> Option<Work> {
        self.works.pop_front()
    }

    /// Goes on with an initiation whose Diffie-Hellmans are done; there may be more of them then
    /// ([`Handshakes::poll_work`]). In any order, and however late.
    ///
    /// # Errors
    ///
    /// Why the initiation was dropped; counted.
    pub fn handle_finished(&mut self, now: Now, finished: Finished) -> Result<(), Discard> {
        let result = self.go_on(now, finished);
        if let Err(reason) = result {
            self.stats.discards.add(reason);
        }
        result
    }

    /// An initiation was admitted.
    pub(super) fn accept(
        &mut self,
        now: Now,
        from: SocketAddr,
        initiation: Mac1Checked<Initiation>,
    ) -> Result<(), Discard> {
        let case = Case {
            from,
            received: now.instant,
            suite: initiation.suite(),
            _place: self.places.take(),
        };
        let local = Arc::clone(&self.local);
        self.compute(now, Work::new(case, Step::Identify { local, initiation }))
    }

    /// At once, or whenever somebody does.
    fn compute(&mut self, now: Now, work: Work) -> Result<(), Discard> {
        if !self.config.offload {
            return self.go_on(now, work.run());
        }
        // Each has a place among the results, so the queue needs no cap of its own.
        self.works.push_back(work);
        Ok(())
    }

    fn go_on(&mut self, now: Now, finished: Finished) -> Result<(), Discard> {
        let Finished { case, outcome } = finished;
        match outcome? {
            Outcome::Identified(identified) => self.identified(now, case, identified),
            Outcome::Met(identified, statics) => self.met(now, case, identified, statics),
            Outcome::Answered {
                answering,
                keys,
                response,
            } => self.answered(now, &case, answering, keys, response),
        }
    }

    /// Whose it claims to be is known.
    pub(super) fn identified(&mut self, now: Now, case: Case, identified: Identified) -> Result<(), Discard> {
        let Some(&peer) = self.by_key.get(identified.peer_key()) else {
            self.may_take_in(now, case.suite)?;
            let local = Arc::clone(&self.local);
            return self.compute(now, Work::new(case, Step::Meet { local, identified }));
        };
        let contact = self.contact(peer).ok_or(Discard::UnknownPeer)?;
        if case.suite == Suite::Aes256Gcm && !contact.aes {
            return Err(Discard::SuiteRefused);
        }
        let is_recent = |at| case.received.saturating_duration_since(at) < INITIATION_INTERVAL;
        if contact.last_accepted.is_some_and(is_recent) {
            return Err(Discard::InitiationTooSoon);
        }
        let verified = identified.verify(&contact.statics)?;
        self.answer(now, case, peer, verified)
    }

    /// The static-static secret of an unknown key is known.
    fn met(
        &mut self,
        now: Now,
        case: Case,
        identified: Identified,
        statics: PeerStatic,
    ) -> Result<(), Discard> {
        if self.by_key.contains_key(statics.key()) {
            // It was configured, or taken in, meanwhile.
            return self.identified(now, case, identified);
        }
        let (peer, verified) = self.take_in(now, case.suite, identified, statics)?;
        self.answer(now, case, peer, verified)
    }

    /// The last checks; from here on the initiation is the newest of its peer. So one that comes twice is
    /// answered once, although the answer is still to be computed.
    fn answer(&mut self, now: Now, case: Case, peer: PeerId, verified: Verified) -> Result<(), Discard> {
        let contact = self.contacts.get_mut(peer.slot()).and_then(Option::as_deref_mut);
        let contact = contact.ok_or(Discard::UnknownPeer)?;
        let timestamp = verified.timestamp();
        if contact.greatest >= Some(timestamp) {
            // docs/spec/session.md#dial-back: a copy of the last one is no sign of a clock gone back.
            if contact.greatest > Some(timestamp) {
                contact.start_dial_back(now.instant);
                self.serve(now, peer);
            }
            return Err(Discard::ReplayedInitiation);
        }
        if !self.indices.has_free_for_others(now.instant) {
            return Err(Discard::Overloaded);
        }
        let index = self.indices.allocate(now.instant, &mut self.rng);
        let index = index.ok_or(Discard::Overloaded)?;
        contact.greatest = Some(timestamp);
        contact.last_accepted = Some(case.received);
        contact.last_session = Some(now.instant);
        contact.turn += 1;
        let answering = Answering {
            peer,
            statics: Arc::clone(&contact.statics),
            index,
            turn: contact.turn,
        };
        let mut bytes = [0; 32];
        self.rng.fill_bytes(&mut bytes);
        self.log_answer(peer, &bytes);
        let ephemeral = SecretBytes::new(bytes);
        bytes.zeroize();
        let step = Step::Answer {
            verified,
            answering,
            ephemeral,
        };
        self.compute(now, Work::new(case, step))
    }

    /// Hands the response and the session keys on.
    fn answered(
        &mut self,
        now: Now,
        case: &Case,
        answering: Answering,
        keys: SessionKeys,
        mut response: [u8; RESPONSE_LEN],
    ) -> Result<(), Discard> {
        let Answering { peer, index, .. } = answering;
        let contact = self.contacts.get_mut(peer.slot()).and_then(Option::as_deref_mut);
        // The handle may have been given to another, or to the same peer with another preshared key.
        let is_it = |contact: &&mut Contact| Arc::ptr_eq(&contact.statics, &answering.statics);
        let contact = contact.filter(is_it).ok_or(Discard::UnknownPeer)?;
        if contact.answered_turn >= answering.turn {
            return Err(Discard::Superseded);
        }
        contact.answered_turn = answering.turn;
        contact.last_index = Some(index);
        // docs/spec/session.md#response-cookie
        if let Some(cookie) = contact.cookie(now.instant, case.from) {
            cookie.stamp_response(&mut response);
        }
        let forgotten = contact.answered.replace(Answered {
            index,
            mac1: Mac1::of_response(&response),
            to: case.from,
        });
        self.by_index.insert(index, peer);
        self.forget_indices([forgotten.map(|answered| answered.index)]);
        self.stats.accepted += 1;
        self.outbox.push(ToSessions(NewSession {
            peer,
            key: *answering.statics.key(),
            keys,
            from: Origin::Accepted {
                response: transmit(case.from, &response),
            },
        }));
        Ok(())
    }
}
