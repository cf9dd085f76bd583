//! What no sequence of datagrams gets to within a test.
#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.

use crate::sessions::SendError;
use crate::{
    Endpoint, Event, Handshakes, Lane, PeerConfig, PeerId, Released, Sessions, TransportConfig, split,
};
use bytes::Bytes;
use falconet_auth_framing::OVERHEAD;
use falconet_crypto::{Now, Suite, TransportSecret};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PEER: PeerId = PeerId(0);

struct Rig {
    handshakes: Handshakes,
    sessions: Sessions,
    now: Now,
}

/// A node that has dialled another and has a session of `suite` with it.
fn connected(suite: Suite) -> Rig {
    let now = Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    };
    let (own, others) = (
        TransportSecret::from_bytes([1; 32]),
        TransportSecret::from_bytes([2; 32]),
    );
    let to = |secret: &TransportSecret, port| {
        PeerConfig::new(secret.public())
            .with_address(SocketAddr::from(([192, 0, 2, 1], port)))
            .with_suites(vec![suite])
    };
    let (to_other, to_us) = (to(&others, 2), to(&own, 1));
    let (mut handshakes, mut sessions) = split(TransportConfig::default(), own, now, [1; 32]);
    let mut other = Endpoint::new(TransportConfig::default(), others, now, [2; 32]);
    handshakes.add_peer(now, PEER, &to_other).unwrap();
    sessions.add_peer(now, PEER, &to_other).unwrap();
    other.add_peer(now, PEER, &to_us).unwrap();
    sessions.connect(now, PEER);
    handshakes.handle_message(now, sessions.poll_message().unwrap());
    let mut initiation = handshakes.poll_transmit().unwrap().datagram.to_vec();
    let from = to_us.address.unwrap();
    other
        .handle_datagram(now, from, Lane::Authenticated, &mut initiation)
        .unwrap();
    let response = other.poll_transmit().unwrap().datagram;
    handshakes
        .handle_datagram(now, to_other.address.unwrap(), &response)
        .unwrap();
    sessions.handle_message(now, handshakes.poll_message().unwrap());
    assert_eq!(sessions.current(PEER).unwrap().suite, suite);
    Rig {
        handshakes,
        sessions,
        now,
    }
}

impl Rig {
    fn skip_to(&mut self, counter: u64) {
        let slot = self.sessions.peer(PEER).unwrap().keys.current.unwrap();
        let session = self.sessions.table.session_mut(slot).unwrap();
        session.sealer.skip_to(counter);
    }

    fn seal(&mut self) -> Result<SocketAddr, SendError> {
        self.sessions.seal(self.now, PEER, &mut [0; OVERHEAD + 1])
    }

    /// Whether the session has asked for the next one.
    fn dials(&mut self) -> bool {
        let mut dials = false;
        while let Some(message) = self.sessions.poll_message() {
            self.handshakes.handle_message(self.now, message);
            dials |= self.handshakes.poll_transmit().is_some();
        }
        dials
    }
}

/// `docs/spec/session.md#rekey`
#[test]
fn a_session_is_renewed_at_the_message_limit_of_its_suite_and_ends_at_the_next() {
    let limits = [
        (Suite::ChaCha20Poly1305, 1u64 << 60, u64::MAX - 8192),
        (Suite::Aes256Gcm, 1 << 32, 1 << 36),
    ];
    for (suite, rekey, reject) in limits {
        let mut rig = connected(suite);
        rig.now = rig.now.after(Duration::from_secs(10));
        rig.skip_to(rekey - 2);
        rig.seal().unwrap();
        assert!(!rig.dials());
        rig.seal().unwrap();
        assert!(rig.dials(), "and sending goes on meanwhile");
        rig.seal().unwrap();
        rig.skip_to(reject - 1);
        rig.seal().unwrap();
        assert_eq!(rig.seal(), Err(SendError::NoSession));
        assert!(!rig.sessions.is_connected(rig.now, PEER));
    }
}

/// `docs/spec/session.md#buffered`
#[test]
fn what_was_released_and_can_neither_leave_nor_wait_is_reported() {
    let mut rig = connected(Suite::ChaCha20Poly1305);
    let plaintext = Bytes::from_static(&[0x20, 1]);
    rig.sessions.fail_released(Released {
        peer: PEER,
        plaintext: plaintext.clone(),
        tag: 9,
    });
    assert_eq!(rig.sessions.stats().buffered_entries, 1, "until it is told");
    let told: Vec<_> = std::iter::from_fn(|| rig.sessions.poll_event()).collect();
    let failed = Event::SendFailed {
        peer: PEER,
        tag: 9,
        plaintext,
    };
    assert!(told.contains(&failed), "{told:?}");
    assert_eq!(rig.sessions.stats().buffered_entries, 0);
}
