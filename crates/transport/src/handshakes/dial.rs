//! Outbound handshakes: initiations and their retries; `docs/spec/session.md#retransmission`.

use super::contact::{Contact, Pending};
use super::{Handshakes, MAX_TRANSMITS};
use crate::timing::{INITIATION_INTERVAL, REKEY_TIMEOUT};
use crate::{Lane, PeerId, Transmit};
use bytes::Bytes;
use falconet_crypto::Now;
use falconet_handshake::PendingInitiation;
use rand_core::Rng;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

impl Handshakes {
    /// Everything that may be due for `peer`; arms its next deadline.
    pub(super) fn serve(&mut self, now: Now, peer: PeerId) {
        let Some(contact) = self.contact_mut(peer) else {
            return;
        };
        let expired = contact.expire_pending(Some(now.instant));
        let dial = contact.dial.as_ref();
        let gives_up = dial
            .and_then(|dial| dial.give_up)
            .is_some_and(|at| at <= now.instant);
        let is_due = dial.is_some_and(|dial| dial.next_at <= now.instant);
        if gives_up {
            let ended = contact.dial.take();
            self.stats.gave_up += u64::from(ended.is_some_and(|dial| !dial.is_back));
        } else if is_due {
            self.send_initiation(now, peer);
        }
        self.forget_indices(expired);
        self.arm(peer);
    }

    pub(super) fn arm(&mut self, peer: PeerId) {
        if let Some(at) = self.contact(peer).and_then(Contact::next_deadline) {
            self.deadlines.arm(peer, at);
        }
    }

    /// Hastens the next initiation of the dial under way; a cookie has come.
    pub(super) fn hasten_dial(&mut self, now: Now, peer: PeerId) {
        if let Some(dial) = self.contact_mut(peer).and_then(|contact| contact.dial.as_mut())
            && dial.cookie_retries < super::contact::MAX_COOKIE_RETRIES
        {
            dial.cookie_retries += 1;
            dial.next_at = now.instant;
        }
        self.serve(now, peer);
    }

    fn send_initiation(&mut self, now: Now, peer: PeerId) {
        if let Some((to, datagram)) = self.initiate(now, peer) {
            self.stats.initiations_sent += 1;
            self.transmits.push_back(Transmit {
                to,
                lane: Lane::Authenticated,
                datagram,
            });
        }
    }

    /// A fresh initiation to the peer that is dialled, or `None` if it has to wait.
    fn initiate(&mut self, now: Now, peer: PeerId) -> Option<(SocketAddr, Bytes)> {
        let jitter = self.rng.next_u32();
        let is_full = self.transmits.len() >= MAX_TRANSMITS;
        let contact = self.contacts.get_mut(peer.slot())?.as_deref_mut()?;
        let (suite, falls_back) = contact.suite();
        let to = contact.destination()?;
        let dial = contact.dial.as_mut()?;
        let earliest = contact
            .last_sent
            .map_or(now.instant, |at| at + INITIATION_INTERVAL);
        if earliest > now.instant {
            dial.next_at = earliest;
            return None;
        }
        let index = match is_full {
            true => None,
            false => self.indices.allocate(now.instant, &mut self.rng),
        };
        let pause = with_jitter(dial.interval, jitter);
        dial.next_at = match dial.give_up.filter(|_| dial.is_back) {
            Some(end) => end,
            None => now.instant + pause,
        };
        let index = index?;
        dial.interval = (dial.interval * 2).min(REKEY_TIMEOUT);
        dial.tries = dial.tries.saturating_add(1);
        contact.last_sent = Some(now.instant);
        self.stats.suite_fallbacks += u64::from(falls_back);
        let timestamp = self.timestamps.next(now);
        let statics = Arc::clone(&contact.statics);
        let cookie = contact.cookie(now.instant, to);
        let (initiation, datagram) = PendingInitiation::new(
            &self.local,
            &statics,
            suite,
            index,
            timestamp,
            cookie,
            &mut self.rng,
        )
        .ok()?;
        self.log_initiation(&initiation, &statics);
        let contact = self.contact_mut(peer)?;
        let dropped = contact.push_pending(Pending {
            initiation,
            to,
            sent: now.instant,
        });
        self.by_index.insert(index, peer);
        self.forget_indices([dropped]);
        Some((to, Bytes::copy_from_slice(&datagram)))
    }
}

/// Up to a third longer, so that two peers that dial each other do not stay in step.
fn with_jitter(interval: Duration, random: u32) -> Duration {
    let share = (u64::from(random) * (interval.as_nanos() as u64 / 3)) >> 32;
    interval + Duration::from_nanos(share)
}
