//! Small messages to peers.

use bytes::Bytes;
use falconet_crypto::IdentityKey;
use falconet_dataplane::{Class, Outgoing, Recipients, TrySendError};

use super::Node;
use crate::error::SendError;
use crate::wiring::message_datagram;

impl Node {
    /// Sends a small message, such as a vote, to one peer: up to [`Node::max_message`] bytes, on the lane that the
    /// peer's policy says. Waits while the class's queue is full.
    ///
    /// It is a datagram: it may be lost, and messages may overtake each other. One that waited for a session in vain is
    /// reported as [`crate::NodeEvent::SendFailed`].
    ///
    /// # Errors
    /// [`SendError`], never `Full`.
    pub async fn send(&self, peer: &IdentityKey, payload: Bytes, class: Class) -> Result<(), SendError> {
        let outgoing = self.message_to(peer, &payload, class)?;
        self.dataplane
            .sender()
            .send(outgoing)
            .await
            .map_err(|_| SendError::Stopped)
    }

    /// As [`Node::send`], without waiting.
    ///
    /// # Errors
    /// [`SendError`]; `Full` if the class's queue has no room.
    pub fn try_send(&self, peer: &IdentityKey, payload: Bytes, class: Class) -> Result<(), SendError> {
        let outgoing = self.message_to(peer, &payload, class)?;
        self.dataplane
            .sender()
            .try_send(outgoing)
            .map_err(|error| match error {
                TrySendError::Full(_) => SendError::Full,
                _ => SendError::Stopped,
            })
    }

    /// Sends a small message to every peer. Waits while the class's queue is full.
    ///
    /// # Errors
    /// As [`Node::send`].
    pub async fn send_all(&self, payload: Bytes, class: Class) -> Result<(), SendError> {
        let peers = self.directory.load().peers().collect();
        let outgoing = self.message(Recipients::Many(peers), &payload, class)?;
        self.dataplane
            .sender()
            .send(outgoing)
            .await
            .map_err(|_| SendError::Stopped)
    }

    /// The longest message in bytes: a chunk less the byte that says what it is.
    pub fn max_message(&self) -> usize {
        self.max_message
    }

    fn message_to(&self, peer: &IdentityKey, payload: &Bytes, class: Class) -> Result<Outgoing, SendError> {
        let id = self
            .directory
            .load()
            .peer(peer)
            .ok_or(SendError::UnknownPeer(*peer))?;
        self.message(Recipients::One(id), payload, class)
    }

    fn message(&self, to: Recipients, payload: &Bytes, class: Class) -> Result<Outgoing, SendError> {
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        if payload.len() > self.max_message {
            return Err(SendError::TooLarge {
                len: payload.len(),
                max: self.max_message,
            });
        }
        Ok(Outgoing {
            to,
            class,
            datagrams: vec![message_datagram(payload)],
            completion: None,
        })
    }
}
