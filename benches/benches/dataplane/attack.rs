//! What a flood consists of, ready to be sent in groups.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::channel;

use falconet_crypto::{SessionIndex, Suite, Tai64N, TransportPublicKey, TransportSecret};
use falconet_handshake::{INITIATION_LEN, LocalStatic, PeerStatic, PendingInitiation};
use falconet_transport::PeerId;
use quinn_udp::{Transmit, UdpSocketState};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::rig::Side;

const JUNK: usize = 32;
/// Bytes of a sealed datagram that are not its plaintext.
const FRAME: (usize, usize) = (16, 16);
/// Different initiations, and different recorded datagrams: whole groups of them.
const MESSAGES: usize = 1_024;

/// Datagrams of one length, sent in groups over and over; the receiver's kernel takes a group apart.
pub(crate) struct Attack {
    socket: UdpSocket,
    state: UdpSocketState,
    datagrams: Vec<u8>,
    length: usize,
    group: usize,
    /// Junk is new each time.
    guess: Option<u32>,
}

impl Attack {
    fn new(socket: UdpSocket, datagrams: Vec<u8>, length: usize) -> Attack {
        let state = UdpSocketState::new((&socket).into()).expect("options");
        Attack {
            socket,
            state,
            datagrams,
            length,
            group: if length < 1_000 { 64 } else { 32 },
            guess: None,
        }
    }

    /// 32 bytes of type 4 with guessed receiver indices.
    pub(crate) fn junk(socket: UdpSocket) -> Attack {
        let mut attack = Attack::new(socket, vec![0; 64 * JUNK], JUNK);
        attack.guess = Some(1);
        attack
    }

    /// Genuine datagrams of `from` to its only peer, of `length` bytes of plaintext: the peer takes each once.
    pub(crate) fn replay(socket: UdpSocket, from: &Side, length: usize) -> Attack {
        let (sealed, recorded) = channel();
        let record = from.dataplane.sender().with_sessions(move |now, sessions| {
            let mut datagrams = Vec::new();
            for _ in 0..MESSAGES {
                let mut datagram = vec![0; FRAME.0 + length + FRAME.1];
                datagram[FRAME.0] = 0x11;
                sessions
                    .seal(now, PeerId(0), &mut datagram)
                    .expect("there is a session");
                datagrams.extend(datagram);
            }
            let _ = sealed.send(datagrams);
        });
        record.expect("it runs");
        let datagrams = recorded.recv().expect("it seals");
        Attack::new(socket, datagrams, FRAME.0 + length + FRAME.1)
    }

    /// Well-formed initiations to the holder of `victim`, each by a key of its own that nobody knows.
    pub(crate) fn initiations(socket: UdpSocket, victim: &TransportPublicKey) -> Attack {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let messages = (0..MESSAGES).flat_map(|_| {
            let stranger = LocalStatic::new(TransportSecret::generate(&mut rng));
            let to_victim = PeerStatic::new(&stranger, *victim, None).expect("a real key");
            let suite = Suite::ChaCha20Poly1305;
            let timestamp = Tai64N::from_unix(std::time::Duration::from_secs(1));
            let index = SessionIndex::new(rng.next_u32());
            let made = PendingInitiation::new(&stranger, &to_victim, suite, index, timestamp, None, &mut rng);
            made.expect("a real key").1
        });
        Attack::new(socket, messages.collect(), INITIATION_LEN)
    }

    /// Datagrams of one [`Attack::send`].
    pub(crate) fn group(&self) -> u64 {
        self.group as u64
    }

    /// Sends the group that begins with the datagram of this number; says whether it left.
    pub(crate) fn send(&mut self, target: SocketAddr, number: u64) -> bool {
        if let Some(guess) = &mut self.guess {
            for datagram in self.datagrams.chunks_mut(JUNK) {
                *guess = guess.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
                datagram[0] = 4;
                datagram[4..8].copy_from_slice(&guess.to_be_bytes());
            }
        }
        let groups = self.datagrams.len() / self.length / self.group;
        let first = (number / self.group as u64) as usize % groups;
        let bytes = self.group * self.length;
        let transmit = Transmit {
            destination: target,
            ecn: None,
            contents: &self.datagrams[first * bytes..(first + 1) * bytes],
            segment_size: Some(self.length),
            src_ip: None,
        };
        self.state.try_send((&self.socket).into(), &transmit).is_ok()
    }
}
