//! What a received datagram is worth.

use std::net::SocketAddr;

use falconet_crypto::Now;
use falconet_transport::{Content, Sessions, kind};

use crate::bans::Bans;
use crate::handshake_thread::Inlet;
use crate::receive::Judged;

/// The type byte of a data message.
const DATA: u8 = 4;

/// A datagram of the authenticated lane: data is opened in place, handshake messages go to their own
/// thread, everything else is junk with a name (docs/spec/threads.md#discards).
pub(crate) fn judge_authenticated(
    sessions: &mut Sessions,
    handshakes: &Inlet,
    now: Now,
    from: SocketAddr,
    datagram: &mut [u8],
) -> Judged {
    match datagram.first() {
        None => Judged::Discarded("empty"),
        Some(&DATA) => match sessions.open(now, from, datagram) {
            Ok(received) => {
                let place = received.start..received.start + received.len;
                match received.content {
                    Content::Chunk => Judged::Chunk(Some(received.peer), place),
                    Content::Message => Judged::Message(Some(received.peer), place),
                    Content::None => Judged::Done,
                    Content::Other => Judged::Discarded("no_consumer"),
                }
            }
            Err(reason) => Judged::Discarded(reason.label()),
        },
        Some(1..=3) => match handshakes.forward(from, datagram) {
            Ok(()) => Judged::Done,
            Err(reason) => Judged::Discarded(reason),
        },
        Some(_) => Judged::Discarded("unknown_type"),
    }
}

/// A datagram of the plain lane: its kind, then the policy of the peer that its address hints at.
pub(crate) fn judge_plain(sessions: &mut Sessions, now: Now, from: SocketAddr, datagram: &[u8]) -> Judged {
    let Some(&first) = datagram.first() else {
        return Judged::Discarded("empty");
    };
    let is_chunk = kind::CHUNK.contains(&first);
    if !is_chunk && first != kind::MESSAGE {
        return Judged::Discarded("unknown_kind");
    }
    let place = 0..datagram.len();
    match sessions.admit_plain(now, from, datagram) {
        Ok(peer) if is_chunk => Judged::Chunk(peer, place),
        Ok(peer) => Judged::Message(peer, place),
        Err(reason) => Judged::Discarded(reason.label()),
    }
}

/// What `judge` finds of a datagram, unless its sender is banned (docs/spec/threads.md#bans).
pub(crate) fn judge_under_bans(bans: &Bans, from: SocketAddr, judge: impl FnOnce() -> Judged) -> Judged {
    if bans.bars(from.ip()) {
        return Judged::Discarded("banned");
    }
    match judge() {
        Judged::Chunk(peer, _) | Judged::Message(peer, _) if bans.refuses(peer, from.ip()) => {
            Judged::Discarded("banned")
        }
        judged => judged,
    }
}
