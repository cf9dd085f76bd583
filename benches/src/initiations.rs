//! Four kinds of initiations that nobody needs, made in advance and sent over loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use falconet_crypto::{
    SessionIndex, Suite, Tai64N, TransportPublicKey, TransportSecret, blake2s, blake2s_mac,
};
use falconet_handshake::{INITIATION_LEN, LocalStatic, PeerStatic, PendingInitiation};
use quinn_udp::{Transmit, UdpSocketState};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Different messages of one attack; the victim remembers none of them.
const MESSAGES: usize = 1_024;
/// Where mac1 begins.
const MAC1: usize = 116;
/// A byte of the encrypted timestamp.
const TIMESTAMP: usize = 90;
/// Sockets, and so ports, of the attack from many addresses.
const PORTS: usize = 16;
const ADDRESSES: u64 = 65_536;

/// What is wrong with an initiation, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Noise of the right length.
    Random,
    /// An initiation whose mac1 is noise.
    BadMac1,
    /// A right mac1 by an unknown key whose timestamp does not open: it costs all that one without a place can cost.
    OneAddress,
    /// The same, from 65,536 addresses and 16 ports.
    ManyAddresses,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Random, Kind::BadMac1, Kind::OneAddress, Kind::ManyAddresses];

    /// As it stands in names of figures.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Random => "random",
            Kind::BadMac1 => "bad-mac1",
            Kind::OneAddress => "one-address",
            Kind::ManyAddresses => "many-addresses",
        }
    }
}

/// An attack that is ready to be sent.
pub struct Attack {
    kind: Kind,
    messages: Vec<[u8; INITIATION_LEN]>,
    sockets: Vec<(UdpSocket, UdpSocketState)>,
}

impl Attack {
    /// On whoever holds `victim`.
    pub fn new(kind: Kind, victim: &TransportPublicKey) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(kind as u64);
        let (count, address) = match kind {
            // The source address is chosen by message.
            Kind::ManyAddresses => (PORTS, Ipv4Addr::UNSPECIFIED),
            // No address that anybody else here uses.
            _ => (1, Ipv4Addr::new(127, 0, 0, 2)),
        };
        let open = |_| {
            let socket = UdpSocket::bind((address, 0)).expect("loopback");
            let state = UdpSocketState::new((&socket).into()).expect("options");
            (socket, state)
        };
        Self {
            kind,
            messages: (0..MESSAGES).map(|_| message(kind, victim, &mut rng)).collect(),
            sockets: (0..count).map(open).collect(),
        }
    }

    /// The message of this number.
    pub fn message(&self, number: u64) -> &[u8] {
        &self.messages[number as usize % MESSAGES]
    }

    /// Sends the message of this number to `target`; says whether it left.
    pub fn send(&self, target: SocketAddr, number: u64) -> bool {
        let place = number % ADDRESSES;
        let [.., high, low] = place.to_be_bytes();
        let source = Ipv4Addr::new(127, 1, high, low);
        let (socket, state) = &self.sockets[(place as usize) % self.sockets.len()];
        let transmit = Transmit {
            destination: target,
            ecn: None,
            contents: self.message(number),
            segment_size: None,
            src_ip: (self.kind == Kind::ManyAddresses).then_some(IpAddr::V4(source)),
        };
        state.try_send(socket.into(), &transmit).is_ok()
    }
}

fn message(kind: Kind, victim: &TransportPublicKey, rng: &mut ChaCha20Rng) -> [u8; INITIATION_LEN] {
    let mut message = [0; INITIATION_LEN];
    if kind == Kind::Random {
        rng.fill_bytes(&mut message);
        return message;
    }
    message = initiation(victim, rng);
    if kind == Kind::BadMac1 {
        rng.fill_bytes(&mut message[MAC1..MAC1 + 16]);
        return message;
    }
    message[TIMESTAMP] ^= 1;
    let key = blake2s(&[b"mac1----", victim.as_bytes()]);
    let mac1 = blake2s_mac(&key, &[&message[..MAC1]]);
    message[MAC1..MAC1 + 16].copy_from_slice(&mac1);
    message
}

/// A genuine one, by a key that nobody knows.
fn initiation(victim: &TransportPublicKey, rng: &mut ChaCha20Rng) -> [u8; INITIATION_LEN] {
    let stranger = LocalStatic::new(TransportSecret::generate(rng));
    let to_victim = PeerStatic::new(&stranger, *victim, None).expect("a real key");
    let (suite, timestamp) = (Suite::ChaCha20Poly1305, Tai64N::from_unix(Duration::from_secs(1)));
    let index = SessionIndex::new(rng.next_u32());
    let made = PendingInitiation::new(&stranger, &to_victim, suite, index, timestamp, None, rng);
    made.expect("a real key").1
}
