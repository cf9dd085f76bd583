//! Validators, epochs, rounds, and the broadcasts of this node.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use falconet_raptorcast::{CommandError, Epoch, LeaderSchedule, Round, Validator, ValidatorSet};
use tokio::sync::oneshot;

use super::{NO_EPOCH, Node};
use crate::departure::Departure;
use crate::error::{BroadcastError, PeerError, StartError};

/// What became of a broadcast: every datagram has left the node, or was given up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BroadcastReport {
    /// K: symbols that the payload was split into; about so many rebuild it.
    pub source_symbols: usize,
    /// N: symbols in all, each sent to its first hop.
    pub symbols: usize,
    /// T: bytes of a symbol.
    pub symbol_size: usize,
    /// N / K.
    pub redundancy: f64,
    /// Datagrams that left.
    pub datagrams: usize,
    /// Their bytes of UDP payload, frames included.
    pub bytes: usize,
    /// Datagrams that were given up: no way to their first hop is known, or its queue was full.
    pub dropped: usize,
    /// Before encoding.
    pub started: Instant,
    /// When the last datagram left.
    pub last_sent: Instant,
}

impl Node {
    /// Hands over the validators of an epoch; the first call enters it, later ones prepare the next epoch.
    /// Messages of the two latest epochs are judged, each by its own set.
    ///
    /// # Errors
    /// If the list is no set, or the node has stopped.
    pub fn set_validators(&self, epoch: u32, members: Vec<Validator>) -> Result<(), StartError> {
        let set = ValidatorSet::new(members)?;
        Ok(self
            .insert_set(Epoch::new(epoch), set)
            .map_err(|_| PeerError::Stopped)?)
    }

    pub(super) fn insert_set(&self, epoch: Epoch, set: ValidatorSet) -> Result<(), CommandError> {
        let set = Arc::new(set);
        self.directory.insert_set(epoch, &set);
        self.raptorcast.handle().set_epoch(epoch, set)?;
        let _ = self
            .epoch
            .compare_exchange(NO_EPOCH, epoch.number(), Ordering::AcqRel, Ordering::Acquire);
        Ok(())
    }

    /// Broadcasts in this epoch from now on; its validators were handed over before.
    pub fn enter_epoch(&self, epoch: u32) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Tells the local round: broadcasts further from it than the window of 2 are refused from now on.
    ///
    /// # Errors
    /// [`BroadcastError::RoundTooLarge`] above 2^48 - 1, [`BroadcastError::Stopped`] if the node is too busy or stopped.
    pub fn set_round(&self, round: u64) -> Result<(), BroadcastError> {
        let round = Round::new(round).ok_or(BroadcastError::RoundTooLarge(round))?;
        self.raptorcast
            .handle()
            .set_round(round)
            .map_err(|_| BroadcastError::Stopped)
    }

    /// Says who may broadcast in which round of an epoch whose validators were handed over: chunks of anybody else are
    /// dropped. Default: every validator in every round.
    ///
    /// # Errors
    /// [`BroadcastError::Stopped`] if the node is too busy or stopped.
    pub fn set_leader_schedule(
        &self,
        epoch: u32,
        schedule: impl LeaderSchedule + 'static,
    ) -> Result<(), BroadcastError> {
        let raptorcast = self.raptorcast.handle();
        let told = raptorcast.set_schedule(Epoch::new(epoch), Arc::new(schedule));
        told.map_err(|_| BroadcastError::Stopped)
    }

    /// Gives up what is left of the rounds before this one: the consensus above is past them.
    ///
    /// # Errors
    /// [`BroadcastError::RoundTooLarge`] above 2^48 - 1, [`BroadcastError::Stopped`] if the node is too busy or stopped.
    pub fn drop_rounds_before(&self, oldest: u64) -> Result<(), BroadcastError> {
        let oldest = Round::new(oldest).ok_or(BroadcastError::RoundTooLarge(oldest))?;
        let told = self.raptorcast.handle().drop_rounds_before(oldest);
        told.map_err(|_| BroadcastError::Stopped)
    }

    /// Broadcasts a payload of 1 byte to 3 MiB to every other validator of the epoch, and waits until its last datagram
    /// has left.
    ///
    /// What is promised: every validator that gets enough symbols delivers exactly this payload, once. The node does not
    /// deliver its own. Other validators may deliver rounds in another order.
    ///
    /// Dropping the future does not take the broadcast back.
    ///
    /// # Errors
    /// [`BroadcastError`]; all but `Stopped` before any work on the payload.
    pub async fn broadcast(&self, round: u64, payload: Bytes) -> Result<BroadcastReport, BroadcastError> {
        let started = Instant::now();
        let round = Round::new(round).ok_or(BroadcastError::RoundTooLarge(round))?;
        let epoch = self.epoch.load(Ordering::Acquire);
        if epoch == NO_EPOCH {
            return Err(BroadcastError::NoValidators);
        }
        let departure = Departure::new();
        let (reply, encoded) = oneshot::channel();
        let begin = (self.departures.clone(), Arc::clone(&departure));
        let on_encoded = move |result: Result<falconet_raptorcast::BroadcastReport, _>| {
            if let Ok(report) = &result {
                let (departures, departure) = begin;
                departure.expect(usize::from(report.symbols));
                departures.begin(report.id, &departure);
            }
            // The caller may have gone; the broadcast goes on.
            let _ = reply.send(result);
        };
        let raptorcast = self.raptorcast.handle();
        raptorcast
            .broadcast(Epoch::new(epoch), round, payload, on_encoded)
            .map_err(|_| BroadcastError::Stopped)?;
        let encoded = encoded.await.map_err(|_| BroadcastError::Stopped)??;
        let departed = departure.wait().await;
        Ok(BroadcastReport {
            source_symbols: usize::from(encoded.source_symbols),
            symbols: usize::from(encoded.symbols),
            symbol_size: usize::from(encoded.symbol_size),
            redundancy: encoded.redundancy,
            datagrams: departed.sent,
            bytes: departed.sent_bytes,
            dropped: departed.dropped,
            started,
            last_sent: departed.last_sent.unwrap_or(started),
        })
    }
}
