//! Peers that nobody has configured; `docs/spec/session.md#strangers`.

use super::Handshakes;
use super::contact::Contact;
use crate::timing::{PENDING_LIFETIME, REJECT_AFTER};
use crate::{Discard, PeerId};
use falconet_crypto::{Now, Suite};
use falconet_handshake::{Identified, PeerStatic, SessionIndex, Verified};
use std::time::Instant;

impl Handshakes {
    /// Whether the holder of an unknown key could get a place, before the Diffie-Hellman that this costs.
    pub(super) fn may_take_in(&self, now: Now, suite: Suite) -> Result<PeerId, Discard> {
        if self.config.places() == 0 {
            return Err(Discard::UnknownPeer);
        }
        // No record lists it.
        if suite == Suite::Aes256Gcm {
            return Err(Discard::SuiteRefused);
        }
        self.free_place(now.instant).ok_or(Discard::StrangersFull)
    }

    /// Gives a place to the holder of an unknown key, if it proves that it holds it.
    pub(super) fn take_in(
        &mut self,
        now: Now,
        suite: Suite,
        identified: Identified,
        statics: PeerStatic,
    ) -> Result<(PeerId, Verified), Discard> {
        let peer = self.may_take_in(now, suite)?;
        let key = *statics.key();
        let verified = identified.verify(&statics)?;
        if self.remembered.get(&key) >= Some(verified.timestamp()) {
            return Err(Discard::ReplayedInitiation);
        }
        self.remove_peer(peer);
        let mut contact = Contact::new(statics, false, false);
        contact.greatest = self.remembered.take(&key);
        if self.contacts.len() <= peer.slot() {
            self.contacts.resize_with(peer.slot() + 1, || None);
        }
        self.contacts[peer.slot()] = Some(Box::new(contact));
        self.by_key.insert(key, peer);
        Ok((peer, verified))
    }

    /// The session of the stranger in a place was given up, if it was the one with this index; `peer` has a
    /// newer one otherwise. `docs/spec/session.md#caps`
    pub(super) fn free(&mut self, peer: PeerId, index: SessionIndex) {
        if let Some(contact) = self.contact_mut(peer)
            && contact.last_index == Some(index)
        {
            contact.last_session = None;
        }
    }

    /// A place that nobody has, or that was [freed](Self::free), or whose last session can no longer be alive on
    /// either side.
    fn free_place(&self, now: Instant) -> Option<PeerId> {
        let first = self.config.max_peers;
        let mut places = first..first + self.config.places();
        let is_free = |place: &usize| {
            let contact = self.contacts.get(*place).and_then(Option::as_deref);
            contact
                .and_then(|contact| contact.last_session)
                .is_none_or(|at| now.saturating_duration_since(at) >= REJECT_AFTER + PENDING_LIFETIME)
        };
        let place = places.find(is_free)?;
        u32::try_from(place).ok().map(PeerId)
    }
}
