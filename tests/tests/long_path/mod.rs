//! A path that delays everything and loses 30 % of each direction, by the clock that its user shows it.
//!
//! The fate of a datagram depends on the seed, its direction, its message type and how many of that type went before
//! it that way, on nothing else. So which initiation of a dial is the first that is answered is known before anything
//! is sent, whatever the real clock does, and the time that a session may take is a bound, not a matter of luck.

#![allow(dead_code, reason = "each test uses a part")]

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Percent of the datagrams of each direction.
const LOSS: u32 = 30;
/// From docs/spec/session.md#retransmission: the first pause of a dial to a peer whose round trip is not known, and
/// the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;

/// The round trips that every implementation is tried at.
pub(crate) const ROUND_TRIPS: [Duration; 3] = [
    Duration::from_millis(20),
    Duration::from_millis(360),
    Duration::from_millis(900),
];

/// An end of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Ours,
    Theirs,
}

impl End {
    pub(crate) const BOTH: [End; 2] = [End::Ours, End::Theirs];

    pub(crate) fn other(self) -> End {
        match self {
            End::Ours => End::Theirs,
            End::Theirs => End::Ours,
        }
    }
}

pub(crate) struct LongPath {
    round_trip: Duration,
    seed: u64,
    /// In order of arrival: the delay is the same for all.
    flights: VecDeque<(Instant, End, Vec<u8>)>,
    /// Datagrams sent to an end, by message type.
    sent: [[u32; 5]; 2],
    /// When initiations were sent to each end, the lost ones included.
    initiations: [Vec<Instant>; 2],
}

impl LongPath {
    pub(crate) fn new(round_trip: Duration, seed: u64) -> Self {
        Self {
            round_trip,
            seed,
            flights: VecDeque::new(),
            sent: [[0; 5]; 2],
            initiations: [Vec::new(), Vec::new()],
        }
    }

    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Sends a datagram to an end, or loses it.
    pub(crate) fn send(&mut self, now: Instant, to: End, datagram: &[u8]) {
        let kind = datagram.first().copied().filter(|kind| *kind < 5).unwrap_or(0);
        if kind == INITIATION {
            self.initiations[to as usize].push(now);
        }
        let number = &mut self.sent[to as usize][usize::from(kind)];
        *number += 1;
        if !is_lost(self.seed, to, kind, *number) {
            let arrival = now + self.round_trip / 2;
            self.flights.push_back((arrival, to, datagram.to_vec()));
        }
    }

    /// What has arrived by now, if anything.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(End, Vec<u8>)> {
        let (_, to, datagram) = self.flights.pop_front_if(|(arrival, ..)| *arrival <= now)?;
        Some((to, datagram))
    }

    /// When the next datagram arrives.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.flights.front().map(|(arrival, ..)| *arrival)
    }

    /// When initiations were sent to `to`, the lost ones included.
    pub(crate) fn initiations(&self, to: End) -> &[Instant] {
        &self.initiations[to as usize]
    }

    /// The first initiation to `to`, counted from 1, of which the answer comes back, if each that arrives is answered.
    /// `skipped` initiations are no longer pending when their answers come.
    pub(crate) fn first_answered(&self, to: End, skipped: usize) -> usize {
        let mut responses = 0;
        for attempt in 1.. {
            if is_lost(self.seed, to, INITIATION, attempt) {
                continue;
            }
            responses += 1;
            let is_awaited = attempt as usize > skipped;
            if is_awaited && !is_lost(self.seed, to.other(), RESPONSE, responses) {
                return attempt as usize;
            }
        }
        unreachable!("of all initiations one gets through");
    }

    /// The same for a dial of ours: its answer is awaited until the second initiation after it
    /// (docs/spec/session.md#retransmission).
    pub(crate) fn our_first_answered(&self, to: End) -> usize {
        // At 900 ms the third initiation leaves 750 ms to 1 s after the first: that one may be forgotten by then.
        let is_forgotten = earliest_departure(3) <= self.round_trip;
        self.first_answered(to, usize::from(is_forgotten))
    }
}

fn is_lost(seed: u64, to: End, kind: u8, number: u32) -> bool {
    let mut fate = [0; 32];
    fate[..8].copy_from_slice(&seed.to_le_bytes());
    fate[8..10].copy_from_slice(&[to as u8, kind]);
    fate[10..14].copy_from_slice(&number.to_le_bytes());
    ChaCha20Rng::from_seed(fate).next_u32() % 100 < LOSS
}

/// The pause after our attempt, counted from 1, without jitter.
pub(crate) fn pause_after(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt - 1).unwrap_or(u32::MAX).min(5);
    (FIRST_PAUSE * (1 << doublings)).min(LONGEST_PAUSE)
}

/// Earliest departure of an attempt of ours to a peer whose round trip is not known, from the start of the dial.
pub(crate) fn earliest_departure(attempt: usize) -> Duration {
    (1..attempt).map(pause_after).sum()
}

/// Latest departure: jitter makes a pause longer by up to a third.
pub(crate) fn latest_departure(attempt: usize) -> Duration {
    earliest_departure(attempt) * 4 / 3
}
