//! What a session and a peer cost in memory, counted by the C library: it serves both backends. It
//! counts the main thread's arena only, so this test has no harness. And that what is not admitted costs none.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.
#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.

use falconet_crypto::{Now, Suite, TransportSecret};
use falconet_transport::{
    AdmissionOptions, Endpoint, Handshakes, Lane, PeerConfig, PeerId, TransportConfig, split,
};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

#[allow(unsafe_code)] // The C library's own count, since one backend allocates there as well; and an allocator.
mod sys {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The system's allocator, and how often it was asked.
    pub(crate) struct Counting(AtomicUsize);

    impl Counting {
        pub(crate) const fn new() -> Self {
            Self(AtomicUsize::new(0))
        }

        pub(crate) fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    // SAFETY: every call is handed to the system's allocator as it is.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.0.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller keeps the contract, which is the same.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: as above; the pointer came from there.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    /// Bytes that are allocated in the main arena, the allocator's own included.
    pub(crate) fn live() -> isize {
        // SAFETY: no argument, no memory of ours.
        let counts = unsafe { libc::mallinfo2() };
        (counts.uordblks + counts.hblkhd) as isize
    }
}

use sys::live;

#[global_allocator]
static ALLOCATOR: sys::Counting = sys::Counting::new();

fn address(node: u32) -> SocketAddr {
    SocketAddr::from(([10, (node >> 16) as u8, (node >> 8) as u8, node as u8], 7000))
}

fn secret(node: u32) -> TransportSecret {
    let mut bytes = [7; 32];
    bytes[4..8].copy_from_slice(&node.to_le_bytes());
    TransportSecret::from_bytes(bytes)
}

fn main() {
    what_is_not_admitted_allocates_nothing();
    for suite in [Suite::ChaCha20Poly1305, Suite::Aes256Gcm] {
        a_session_takes_three_kib_at_most_and_ten_thousand_peers_fit_in_48_mib(suite);
    }
}

const PEERS: u32 = 300;

fn what_is_not_admitted_allocates_nothing() {
    let now = Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    };
    let rate = NonZeroU32::MIN;
    let options = AdmissionOptions::default()
        .with_unproved_per_second(rate)
        .with_cookie_replies_per_second(rate);
    let config = TransportConfig::default()
        .with_aes(false)
        .with_admission(options)
        .unwrap();
    let (mut handshakes, _sessions) = split(config, secret(0), now, [1; 32]);
    let mut caller = Endpoint::new(TransportConfig::default(), secret(1), now, [2; 32]);
    let config = PeerConfig::new(secret(0).public()).with_address(address(0));
    caller.add_peer(now, PeerId(0), &config).unwrap();
    caller.connect(now, PeerId(0));
    let genuine = caller.poll_transmit().unwrap().datagram.to_vec();
    let altered = |at: usize| {
        let mut datagram = genuine.clone();
        datagram[at] ^= 1;
        datagram
    };
    // Past every budget; suite; reserved byte; mac1; a mac2 that is none; length; a response to nothing.
    let mut response = vec![0; 92];
    response[0] = 2;
    let all = [
        genuine.clone(),
        altered(1),
        altered(2),
        altered(60),
        altered(140),
        genuine[..147].to_vec(),
        response,
    ];
    let refuse_all = |handshakes: &mut Handshakes| {
        for datagram in &all {
            assert!(handshakes.handle_datagram(now, address(1), datagram).is_err());
        }
    };
    // The first ones are admitted, are asked for a cookie, and start a count for each reason.
    (0..8).for_each(|_| refuse_all(&mut handshakes));
    let before = ALLOCATOR.count();
    (0..1000).for_each(|_| refuse_all(&mut handshakes));
    assert_eq!(ALLOCATOR.count() - before, 0);
}

fn a_session_takes_three_kib_at_most_and_ten_thousand_peers_fit_in_48_mib(suite: Suite) {
    let now = Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    };
    let empty = footprint(hub(now, 0, suite));
    let without_sessions = footprint(hub(now, PEERS, suite));
    let mut hub = hub(now, PEERS, suite);
    for peer in 1..=PEERS {
        // Ten a second, so that no budget is asked.
        connect(
            &mut hub,
            now.after(Duration::from_millis(100) * peer),
            peer,
            suite,
        );
    }
    assert_eq!(hub.stats().1.sessions, PEERS as usize);
    let session = (footprint(hub) - without_sessions) / PEERS as isize;
    let peer = (without_sessions - empty) / PEERS as isize;
    println!("{suite:?}: bytes a session: {session}; bytes a configured peer: {peer}");
    assert!(session <= 3 << 10, "{session} bytes a session");
    assert!(10_000 * (session + peer) <= 48 << 20, "{peer} bytes a peer");
}

/// Bytes that go with `endpoint`.
fn footprint(endpoint: Endpoint) -> isize {
    let before = live();
    drop(endpoint);
    before - live()
}

/// Node 0 with `peers` peers.
fn hub(now: Now, peers: u32, suite: Suite) -> Endpoint {
    let mut hub = Endpoint::new(TransportConfig::default(), secret(0), now, [0; 32]);
    for peer in 1..=peers {
        let config = PeerConfig::new(secret(peer).public()).with_address(address(peer));
        let config = config.with_suites(vec![suite]);
        hub.add_peer(now, PeerId(peer), &config).unwrap();
    }
    hub
}

/// The peer dials the hub, and confirms the session.
fn connect(hub: &mut Endpoint, now: Now, peer: u32, suite: Suite) {
    let mut other = Endpoint::new(TransportConfig::default(), secret(peer), now, [1; 32]);
    let config = PeerConfig::new(secret(0).public()).with_address(address(0));
    let config = config.with_suites(vec![suite]);
    other.add_peer(now, PeerId(0), &config).unwrap();
    other.connect(now, PeerId(0));
    for _ in 0..2 {
        while let Some(transmit) = other.poll_transmit() {
            let mut datagram = transmit.datagram.to_vec();
            hub.handle_datagram(now, address(peer), Lane::Authenticated, &mut datagram)
                .unwrap();
        }
        while let Some(transmit) = hub.poll_transmit() {
            let mut datagram = transmit.datagram.to_vec();
            other
                .handle_datagram(now, address(0), Lane::Authenticated, &mut datagram)
                .unwrap();
        }
    }
    while hub.poll_event().is_some() {}
}
