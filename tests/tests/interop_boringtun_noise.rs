//! Handshakes and data against boringtun's `Tunn`, in both roles: proof that suite 0 is WireGuard's
//! protocol byte for byte.

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519;
use falconet_auth_framing::{HEADER_LEN, Header, OVERHEAD, Opener, Sealer};
use falconet_crypto::{Now, SecretBytes, Suite, Tai64N, TransportPublicKey, TransportSecret};
use falconet_handshake::{
    Cookie, CookieJar, Discard, Identified, Initiation, LocalStatic, Mac1, Mac1Checked, Message, PeerStatic,
    PendingInitiation, Response, SessionIndex, SessionKeys,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OUR_SECRET: [u8; 32] = [0x41; 32];
const THEIR_SECRET: [u8; 32] = [0x52; 32];
const PSK: [u8; 32] = [0x63; 32];
const OUR_INDEX: SessionIndex = SessionIndex::new(0x0a0b_0c0d);
const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 51820);

/// Our keys, and a boringtun tunnel to them.
struct Pair {
    local: LocalStatic,
    peer: PeerStatic,
    tunn: Tunn,
    rng: ChaCha20Rng,
}

fn pair(psk: Option<[u8; 32]>) -> Pair {
    pair_with_limit(psk, psk, 1_000)
}

/// boringtun is under load as soon as it has seen `limit` handshake messages in a second.
fn pair_with_limit(our_psk: Option<[u8; 32]>, their_psk: Option<[u8; 32]>, limit: u64) -> Pair {
    let local = LocalStatic::new(TransportSecret::from_bytes(OUR_SECRET));
    let their_secret = x25519::StaticSecret::from(THEIR_SECRET);
    let their_public = x25519::PublicKey::from(&their_secret);
    let peer_key = TransportPublicKey::from_bytes(their_public.to_bytes());
    let peer = PeerStatic::new(&local, peer_key, our_psk.map(SecretBytes::new)).unwrap();
    let ours = x25519::PublicKey::from(*local.public().as_bytes());
    let limiter = Arc::new(RateLimiter::new(&their_public, limit));
    let tunn = Tunn::new(their_secret, ours, their_psk, None, 7, Some(limiter));
    Pair {
        local,
        peer,
        tunn,
        rng: ChaCha20Rng::seed_from_u64(9),
    }
}

impl Pair {
    fn initiate(&mut self, cookie: Option<&Cookie>) -> (PendingInitiation, [u8; 148]) {
        // boringtun compares the timestamps of one tunnel: a real clock keeps them rising.
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let (suite, timestamp) = (Suite::ChaCha20Poly1305, Tai64N::from_unix(now));
        PendingInitiation::new(
            &self.local,
            &self.peer,
            suite,
            OUR_INDEX,
            timestamp,
            cookie,
            &mut self.rng,
        )
        .unwrap()
    }

    /// What boringtun sends in answer to `datagram`.
    fn tunn_answers(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut buffer = vec![0; 2048];
        match self.tunn.decapsulate(Some(SOURCE.ip()), datagram, &mut buffer) {
            TunnResult::WriteToNetwork(answer) => answer.to_vec(),
            TunnResult::Done => Vec::new(),
            other => panic!("boringtun refused: {other:?}"),
        }
    }

    fn tunn_initiates(&mut self) -> Vec<u8> {
        let mut buffer = vec![0; 2048];
        match self.tunn.format_handshake_initiation(&mut buffer, true) {
            TunnResult::WriteToNetwork(initiation) => initiation.to_vec(),
            other => panic!("boringtun does not initiate: {other:?}"),
        }
    }

    fn identify(&self, initiation: Mac1Checked<Initiation>) -> Identified {
        let identified = initiation.identify(&self.local).unwrap();
        assert_eq!(identified.peer_key(), self.peer.key());
        identified
    }

    fn respond(&mut self, initiation: &[u8]) -> (SessionKeys, [u8; 92]) {
        let verified = self
            .identify(self.initiation(initiation))
            .verify(&self.peer)
            .unwrap();
        verified.respond(&self.peer, OUR_INDEX, &mut self.rng).unwrap()
    }

    fn initiation(&self, datagram: &[u8]) -> Mac1Checked<Initiation> {
        match Message::parse(datagram).unwrap() {
            Message::Initiation(message) => message.check_mac1(&self.local).unwrap(),
            other => panic!("not an initiation: {other:?}"),
        }
    }

    fn response(&self, datagram: &[u8]) -> Mac1Checked<Response> {
        match Message::parse(datagram).unwrap() {
            Message::Response(message) => message.check_mac1(&self.local).unwrap(),
            other => panic!("not a response: {other:?}"),
        }
    }

    /// Data of many sizes both ways; the session is confirmed on boringtun's side by our first.
    fn exchange_data(&mut self, keys: &SessionKeys) {
        let mut sealer = Sealer::new(keys.suite, &keys.send, keys.remote_index);
        let mut opener = Opener::new(keys.suite, &keys.receive);
        for len in (20..1_420).step_by(35).chain([1_420, 20]) {
            let packet = ipv4_packet(len);
            let mut datagram = framed(&packet);
            sealer.seal(&mut datagram).unwrap();
            let mut buffer = vec![0; 2048];
            match self.tunn.decapsulate(Some(SOURCE.ip()), &datagram, &mut buffer) {
                TunnResult::WriteToTunnelV4(received, _) => assert_eq!(received, packet),
                other => panic!("boringtun refused data: {other:?}"),
            }
            self.receive_data(keys, &mut opener, &packet);
        }
    }

    fn receive_data(&mut self, keys: &SessionKeys, opener: &mut Opener, packet: &[u8]) {
        let mut buffer = vec![0; 2048];
        let TunnResult::WriteToNetwork(datagram) = self.tunn.encapsulate(packet, &mut buffer) else {
            panic!("boringtun sends no data")
        };
        let header = Header::parse(datagram).unwrap();
        assert_eq!(header.receiver, keys.local_index);
        let mut replay = datagram.to_vec();
        let opened = opener.open(header, datagram).unwrap();
        assert!(opened.is_highest);
        let plaintext = &datagram[HEADER_LEN..HEADER_LEN + opened.len];
        assert_eq!(&plaintext[..packet.len()], packet);
        assert!(plaintext[packet.len()..].iter().all(|&padding| padding == 0));
        assert_eq!(
            opener.open(header, &mut replay),
            Err(falconet_auth_framing::Discard::Replayed)
        );
    }
}

fn framed(plaintext: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; plaintext.len() + OVERHEAD];
    datagram[HEADER_LEN..HEADER_LEN + plaintext.len()].copy_from_slice(plaintext);
    datagram
}

/// A packet that boringtun takes for IPv4: it reads version, total length and addresses.
fn ipv4_packet(len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
    packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
    for (at, byte) in packet[20..].iter_mut().enumerate() {
        *byte = at as u8;
    }
    packet
}

fn we_initiate(psk: Option<[u8; 32]>) {
    let mut pair = pair(psk);
    let (pending, initiation) = pair.initiate(None);
    let response = pair.tunn_answers(&initiation);
    let keys = pending
        .open_response(&pair.local, &pair.peer, &pair.response(&response))
        .unwrap();
    pair.exchange_data(&keys);
}

fn they_initiate(psk: Option<[u8; 32]>) {
    let mut pair = pair(psk);
    let initiation = pair.tunn_initiates();
    let (keys, response) = pair.respond(&initiation);
    // boringtun confirms with a keepalive, which the session must open too.
    let mut keepalive = pair.tunn_answers(&response);
    let header = Header::parse(&keepalive).unwrap();
    let opened = Opener::new(keys.suite, &keys.receive)
        .open(header, &mut keepalive)
        .unwrap();
    assert_eq!(opened.len, 0);
    pair.exchange_data(&keys);
}

#[test]
fn boringtun_answers_our_initiation() {
    we_initiate(None);
}

#[test]
fn boringtun_answers_our_initiation_with_a_psk() {
    we_initiate(Some(PSK));
}

#[test]
fn boringtun_accepts_our_response() {
    they_initiate(None);
}

#[test]
fn boringtun_accepts_our_response_with_a_psk() {
    they_initiate(Some(PSK));
}

#[test]
fn boringtun_with_another_psk_yields_no_session() {
    let mut pair = pair_with_limit(Some(PSK), None, 1_000);
    let (pending, initiation) = pair.initiate(None);
    let response = pair.tunn_answers(&initiation);
    let error = pending
        .open_response(&pair.local, &pair.peer, &pair.response(&response))
        .unwrap_err();
    assert_eq!(error, Discard::BadResponse);

    let initiation = pair.tunn_initiates();
    let (_, response) = pair.respond(&initiation);
    let mut buffer = vec![0; 2048];
    assert!(matches!(
        pair.tunn.decapsulate(Some(SOURCE.ip()), &response, &mut buffer),
        TunnResult::Err(_)
    ));
}

#[test]
fn boringtun_under_load_accepts_our_initiation_with_its_cookie() {
    let mut pair = pair_with_limit(None, None, 0);
    let (pending, initiation) = pair.initiate(None);
    let answer = pair.tunn_answers(&initiation);
    let Message::CookieReply(reply) = Message::parse(&answer).unwrap() else {
        panic!("no cookie reply")
    };
    let cookie = pending.open_cookie_reply(&pair.peer, &reply).unwrap();

    let (pending, initiation) = pair.initiate(Some(&cookie));
    let response = pair.tunn_answers(&initiation);
    let keys = pending
        .open_response(&pair.local, &pair.peer, &pair.response(&response))
        .unwrap();
    pair.exchange_data(&keys);
}

#[test]
fn boringtun_under_load_accepts_our_response_with_its_cookie() {
    let mut pair = pair_with_limit(None, None, 0);
    let initiation = pair.tunn_initiates();
    let (_, response) = pair.respond(&initiation);
    let answer = pair.tunn_answers(&response);
    let Message::CookieReply(reply) = Message::parse(&answer).unwrap() else {
        panic!("no cookie reply")
    };
    assert_eq!(reply.receiver(), OUR_INDEX);
    let cookie = reply.open(&pair.peer, &Mac1::of_response(&response)).unwrap();

    let initiation = pair.tunn_initiates();
    let (keys, mut response) = pair.respond(&initiation);
    cookie.stamp_response(&mut response);
    pair.tunn_answers(&response);
    pair.exchange_data(&keys);
}

#[test]
fn boringtun_proves_its_address_with_our_cookie() {
    let mut pair = pair(None);
    let now = Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    };
    let jar = CookieJar::new(now, &mut pair.rng);
    let initiation = pair.tunn_initiates();
    let first = pair.initiation(&initiation);
    assert!(!jar.mac2_valid(&first, SOURCE));
    let reply = jar.reply(&pair.local, &first, SOURCE, &mut pair.rng);
    assert!(pair.tunn_answers(&reply).is_empty());

    let initiation = pair.tunn_initiates();
    let second = pair.initiation(&initiation);
    assert!(jar.mac2_valid(&second, SOURCE));
    assert!(!jar.mac2_valid(&second, SocketAddr::new(SOURCE.ip(), SOURCE.port() + 1)));
    let (keys, response) = pair.respond(&initiation);
    pair.tunn_answers(&response);
    pair.exchange_data(&keys);
}
