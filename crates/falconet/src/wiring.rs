//! What joins the threads of a node: each of these runs on the thread that calls it, and never blocks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use falconet_crypto::Now;
use falconet_dataplane::{Class, Consumer, Full, Inbound, Outgoing, Recipients, Sender, TrySendError};
use falconet_raptorcast::{self as raptorcast, MessageId};
use falconet_transport::{Event, Lane, PeerId, kind};
use tokio::sync::broadcast;

use crate::connections::Connections;
use crate::departure::Departure;
use crate::directory::{Directory, SharedDirectory};
use crate::state::StateHandle;
use crate::streams::{Delivery, Message, NodeEvent};

/// One reading of both clocks. A clock before 1970 reads as 1970: the timestamps it gives are refused, not trusted.
pub(crate) fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
    }
}

/// Dataplane thread to raptorcast thread: opened chunks, with who sent them.
pub(crate) struct ChunkConsumer {
    /// Set once the raptorcast thread runs; what comes before is dropped.
    pub(crate) raptorcast: Arc<OnceLock<raptorcast::RaptorcastHandle>>,
    pub(crate) directory: SharedDirectory,
}

impl Consumer for ChunkConsumer {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let raptorcast = self.raptorcast.get().ok_or(Full)?;
        let directory = self.directory.load();
        let batch = batch
            .into_iter()
            .map(|inbound| (sender(&directory, &inbound), inbound.datagram))
            .collect();
        raptorcast.chunks(batch).map_err(|_| Full)
    }
}

/// A session proves who sent; an address of the plain lane only hints at it (docs/spec/chunk.md#accept).
fn sender(directory: &Directory, inbound: &Inbound) -> raptorcast::Sender {
    let Some(identity) = inbound.peer.and_then(|peer| directory.identity(peer)) else {
        return raptorcast::Sender::Unknown;
    };
    match inbound.lane {
        Lane::Authenticated => raptorcast::Sender::Validator(identity),
        Lane::Plain => raptorcast::Sender::Hint(identity),
    }
}

/// Dataplane thread to the embedder: small messages.
pub(crate) struct MessageConsumer {
    pub(crate) messages: broadcast::Sender<Message>,
    pub(crate) directory: SharedDirectory,
}

impl Consumer for MessageConsumer {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let directory = self.directory.load();
        for inbound in batch {
            let from = inbound.peer.and_then(|peer| directory.identity(peer));
            // The datagram is a part of a larger buffer, in which all else may be junk of the same sender: who keeps
            // messages, and reads them late, keeps no more than them.
            let payload = Bytes::copy_from_slice(&inbound.datagram[1..]);
            // An error means that nobody reads, which is the embedder's choice.
            let _ = self.messages.send(Message {
                payload,
                from,
                lane: inbound.lane,
                missed: 0,
            });
        }
        Ok(())
    }
}

/// The datagram that carries a small message.
pub(crate) fn message_datagram(payload: &[u8]) -> Bytes {
    let mut datagram = BytesMut::with_capacity(1 + payload.len());
    datagram.extend_from_slice(&[kind::MESSAGE]);
    datagram.extend_from_slice(payload);
    datagram.freeze()
}

/// Dataplane thread to the embedder: what became of sessions.
pub(crate) struct SessionEvents {
    pub(crate) events: broadcast::Sender<NodeEvent>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) directory: SharedDirectory,
    pub(crate) state: Option<StateHandle>,
}

impl SessionEvents {
    pub(crate) fn handle(&self, event: Event) {
        let directory = self.directory.load();
        let named = |peer: PeerId| directory.identity(peer);
        let event = match event {
            Event::Connected { peer, suite } => {
                self.connections.connect(peer);
                named(peer).map(|peer| {
                    self.note(|state| state.note_session(peer));
                    NodeEvent::Connected { peer, suite }
                })
            }
            Event::Disconnected { peer } => {
                self.connections.disconnect(peer);
                named(peer).map(|peer| NodeEvent::Disconnected { peer })
            }
            Event::SendFailed { peer, plaintext, .. } => named(peer).map(|peer| NodeEvent::SendFailed {
                peer,
                payload: plaintext,
            }),
            // Of a stranger nothing is remembered: there are as many as somebody cares to make up.
            Event::RecordAccepted { peer, record } => named(peer).map(|peer| {
                self.note(|state| state.note_record(record.clone()));
                NodeEvent::RecordAccepted { peer, record }
            }),
            _ => None,
        };
        if let Some(event) = event {
            // An error means that nobody reads, which is the embedder's choice.
            let _ = self.events.send(event);
        }
    }

    fn note(&self, note: impl FnOnce(&StateHandle)) {
        if let Some(state) = &self.state {
            note(state);
        }
    }
}

/// Raptorcast thread to dataplane thread: chunks, by the peers they go to.
pub(crate) struct ChunkOutput {
    pub(crate) sender: Sender,
    pub(crate) directory: SharedDirectory,
    pub(crate) departures: Departures,
}

impl raptorcast::ChunkSink for ChunkOutput {
    fn send(&mut self, transmit: raptorcast::Transmit) -> Result<(), raptorcast::QueueFull> {
        let directory = self.directory.load();
        // Only our own broadcasts have a departure that somebody waits for.
        let departure = self.departures.of(transmit.id);
        let Some(to) = recipients(&directory, &transmit) else {
            if let Some(departure) = departure {
                departure.drop_datagrams(transmit.chunks.len());
            }
            return Ok(());
        };
        let completion = departure.map(|departure| departure as Arc<dyn falconet_dataplane::Completion>);
        let outgoing = Outgoing {
            to,
            class: match transmit.class {
                raptorcast::Class::Proposal => Class::Proposal,
                // What others make us relay does not wait in the way of our own.
                raptorcast::Class::Relay => Class::Relay,
            },
            datagrams: transmit.chunks.clone(),
            completion,
        };
        match self.sender.try_send(outgoing) {
            Err(TrySendError::Full(_)) => Err(raptorcast::QueueFull(transmit)),
            // A stopped dataplane takes the raptorcast thread with it in a moment.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn recipients(directory: &Directory, transmit: &raptorcast::Transmit) -> Option<Recipients> {
    let epoch = transmit.id.epoch;
    match transmit.to {
        raptorcast::Recipients::One(index) => directory.validator(epoch, index).map(Recipients::One),
        raptorcast::Recipients::AllBut { author } => {
            Some(Recipients::Many(directory.validators_but(epoch, author)))
        }
    }
}

/// The broadcasts of ours that have not left yet; as many as the engine keeps.
#[derive(Clone, Default)]
pub(crate) struct Departures(Arc<Mutex<HashMap<MessageId, Weak<Departure>>>>);

impl Departures {
    /// From now on the chunks of this message are counted out.
    pub(crate) fn begin(&self, id: MessageId, departure: &Arc<Departure>) {
        let mut departures = self.lock();
        // Those that nobody waits for any more have left or were abandoned.
        departures.retain(|_, departure| departure.strong_count() > 0);
        departures.insert(id, Arc::downgrade(departure));
    }

    fn of(&self, id: MessageId) -> Option<Arc<Departure>> {
        self.lock().get(&id)?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, Weak<Departure>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Raptorcast thread to the embedder: payloads, and what went wrong with others.
pub(crate) struct BroadcastEvents {
    pub(crate) deliveries: broadcast::Sender<Delivery>,
    pub(crate) events: broadcast::Sender<NodeEvent>,
}

impl raptorcast::EventSink for BroadcastEvents {
    fn event(&mut self, event: raptorcast::Event) {
        let event = match event {
            raptorcast::Event::Delivered(delivery) => {
                // An error means that nobody reads, which is the embedder's choice.
                let _ = self.deliveries.send(to_delivery(delivery));
                return;
            }
            raptorcast::Event::Tainted(taint) => NodeEvent::Tainted(taint),
            raptorcast::Event::Expired(expiry) => NodeEvent::Expired(expiry),
            raptorcast::Event::Joiners(joiners) => NodeEvent::Joiners(joiners),
            raptorcast::Event::ClockSkew(skew) => NodeEvent::ClockSkew(skew),
            raptorcast::Event::Equivocation(evidence) => NodeEvent::Equivocation(evidence),
            _ => return,
        };
        let _ = self.events.send(event);
    }
}

fn to_delivery(delivery: raptorcast::Delivery) -> Delivery {
    Delivery {
        payload: delivery.payload,
        author: delivery.author,
        epoch: delivery.epoch.number(),
        round: delivery.round.number(),
        at: delivery.decoded_at,
        first_symbol_at: delivery.first_symbol_at,
        author_time: delivery.leader_timestamp,
        symbols: delivery.symbols_received,
        missed: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_message_keeps_nothing_that_came_with_it() {
        let buffer = Bytes::from(vec![kind::MESSAGE; 65_536]);
        let inbound = Inbound {
            peer: None,
            lane: Lane::Authenticated,
            from: ([127, 0, 0, 1], 9).into(),
            datagram: buffer.slice(1_000..1_010),
        };
        let (messages, mut kept) = broadcast::channel(4);
        let directory = SharedDirectory::default();
        let mut consumer = MessageConsumer { messages, directory };
        assert_eq!(consumer.deliver(vec![inbound]), Ok(()));
        assert!(buffer.is_unique(), "the receive buffer can be used again");
        let message = kept.try_recv().unwrap();
        assert_eq!(message.payload, vec![kind::MESSAGE; 9]);
    }
}
