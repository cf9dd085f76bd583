//! What is thrown at the victim, each attack ready to be sent in bursts.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use falconet::Now;
use falconet_raptorcast::{ChunkView, Epoch, MessageId, RepairRequest, Round, SymbolIndex, Wanted};
use falconet_tests::hostile::{Addressed, with_bad_proof, with_bad_signature};

use crate::cluster::{Cluster, EPOCH, HOSTILE, VICTIM, identity};
use crate::member::{Groups, Member};
use crate::spoof::Spoofer;
use falconet::Signer;
use falconet_benches::initiations::{Attack, Kind as Initiation};

/// Datagrams of one call of an attack that sends chunks.
const BURST: usize = 32;
const JUNK: usize = 32;
const JUNK_BURST: usize = 64;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Initiations with a right mac1 by keys that nobody knows.
    Initiations(Initiation),
    /// The same, from the address of a validator.
    SpoofedInitiations,
    /// 32 bytes that look like data of a session.
    Junk,
    /// Chunks on the plain lane from where nobody is.
    Stranger,
    /// Chunks with bad signatures on the plain lane, from the hostile member's own address.
    Plain,
    /// The same, from the address of an honest validator.
    SpoofedChunks,
    BadProof,
    BadSignature,
    WrongHop,
    Replay,
    /// Repair requests.
    Requests,
    /// Small valid messages.
    Messages,
    Inconsistent,
    /// Half of the symbols that it would take, and no more, then the next round.
    Erasure,
    /// Ten messages in each round.
    TenARound,
    Maximal,
    /// Nothing is sent: the victim's embedder does not read.
    Unread,
}

/// Names, attacks, and bursts a second (none: as fast as one core sends).
pub(crate) const ROWS: [(&str, Kind, Option<f64>); 25] = [
    (
        "handshakes/2k",
        Kind::Initiations(Initiation::OneAddress),
        Some(2e3),
    ),
    (
        "handshakes/3k",
        Kind::Initiations(Initiation::OneAddress),
        Some(3e3),
    ),
    (
        "handshakes/4k",
        Kind::Initiations(Initiation::OneAddress),
        Some(4e3),
    ),
    (
        "handshakes/core",
        Kind::Initiations(Initiation::ManyAddresses),
        None,
    ),
    ("handshakes/spoofed/4k", Kind::SpoofedInitiations, Some(4e3)),
    // 32 bytes are 98 on the wire with headers, frame, preamble and gap.
    ("junk/500M", Kind::Junk, Some(637_755.0)),
    ("junk/1000M", Kind::Junk, Some(1_275_510.0)),
    ("junk/core", Kind::Junk, None),
    ("plain/stranger/20k", Kind::Stranger, Some(20e3)),
    ("plain/stranger/core", Kind::Stranger, None),
    ("plain/bad-signature/20k", Kind::Plain, Some(20e3)),
    ("plain/spoofed/20k", Kind::SpoofedChunks, Some(20e3)),
    ("member/bad-proof/20k", Kind::BadProof, Some(20e3)),
    ("member/bad-proof/core", Kind::BadProof, None),
    ("member/bad-signature/20k", Kind::BadSignature, Some(20e3)),
    ("member/wrong-hop/20k", Kind::WrongHop, Some(20e3)),
    ("member/replay/20k", Kind::Replay, Some(20e3)),
    ("member/requests/20k", Kind::Requests, Some(20e3)),
    ("leader/messages/400", Kind::Messages, Some(400.0)),
    ("leader/inconsistent/2", Kind::Inconsistent, Some(2.0)),
    ("leader/erasure/4", Kind::Erasure, Some(4.0)),
    ("leader/ten-a-round/20", Kind::TenARound, Some(20.0)),
    ("leader/maximal/1", Kind::Maximal, Some(1.0)),
    ("leader/maximal/2", Kind::Maximal, Some(2.0)),
    ("embedder/unread", Kind::Unread, Some(0.0)),
];

/// An attack that is ready.
pub(crate) struct Generator<'a> {
    kind: Kind,
    member: &'a Member,
    sealed: SocketAddr,
    plain: SocketAddr,
    /// Of another honest validator: sealed and plain lane.
    neighbour: [SocketAddr; 2],
    initiations: Option<Attack>,
    groups: Groups,
    spoofer: Option<Spoofer>,
    /// Of the message of this run.
    chunks: Vec<Addressed>,
    victims: Vec<Bytes>,
    round: u64,
    number: u64,
    /// Datagrams of the attack that have left, all runs together.
    pub(crate) datagrams: u64,
}

impl<'a> Generator<'a> {
    /// None if the system does not let us.
    pub(crate) fn new(kind: Kind, cluster: &Cluster, member: &'a Member, first_round: u64) -> Option<Self> {
        let victim = cluster.victim();
        let lanes = |number: usize| {
            let node = &cluster.nodes[number];
            [node.local_addr(), node.local_plain_addr()].map(|at| at.expect("it listens"))
        };
        let initiation = match kind {
            Kind::Initiations(initiation) => Some(initiation),
            Kind::SpoofedInitiations => Some(Initiation::OneAddress),
            _ => None,
        };
        let spoofs = matches!(kind, Kind::SpoofedInitiations | Kind::SpoofedChunks);
        let spoofer = Spoofer::open();
        if spoofs && spoofer.is_none() {
            return None;
        }
        let socket = match kind {
            Kind::Plain => member.plain.try_clone(),
            // No address that anybody else here uses.
            _ => UdpSocket::bind("127.0.0.2:0"),
        };
        let [sealed, plain] = lanes(VICTIM);
        Some(Self {
            kind,
            member,
            sealed,
            plain,
            neighbour: lanes(VICTIM + 1),
            initiations: initiation.map(|kind| Attack::new(kind, &victim.transport_key())),
            groups: Groups::new(socket.expect("loopback")),
            spoofer,
            chunks: Vec::new(),
            victims: Vec::new(),
            round: first_round,
            number: 0,
            datagrams: 0,
        })
    }

    pub(crate) fn target(&self) -> SocketAddr {
        self.sealed
    }

    /// Datagrams, or messages of a leader, of one [`Generator::send`].
    pub(crate) fn burst(&self) -> u64 {
        match self.kind {
            Kind::Junk => JUNK_BURST as u64,
            Kind::Stranger
            | Kind::Plain
            | Kind::BadProof
            | Kind::BadSignature
            | Kind::WrongHop
            | Kind::Replay
            | Kind::Requests => BURST as u64,
            _ => 1,
        }
    }

    /// Makes what a run needs: timestamps are good for 10 s.
    pub(crate) fn prepare(&mut self) {
        let len = match self.kind {
            Kind::Stranger | Kind::Plain | Kind::SpoofedChunks | Kind::BadSignature => 3_000,
            Kind::BadProof | Kind::WrongHop | Kind::Replay | Kind::Requests => 400_000,
            _ => return,
        };
        self.chunks = self.message(len, 1);
        self.victims = self.member.victims(&self.chunks);
        if matches!(
            self.kind,
            Kind::BadProof | Kind::WrongHop | Kind::Replay | Kind::Requests
        ) {
            // The victim knows the message, and its signature.
            self.member.send(VICTIM, self.victims[..1].to_vec());
        }
    }

    /// Sends the next burst; says whether it left.
    pub(crate) fn send(&mut self) -> bool {
        self.number += 1;
        let left = match self.kind {
            Kind::Initiations(_) => {
                let attack = self.initiations.as_ref().expect("made at start");
                u64::from(attack.send(self.sealed, self.number))
            }
            Kind::SpoofedInitiations | Kind::SpoofedChunks => self.spoof(),
            Kind::Junk => self.junk(),
            Kind::Stranger | Kind::Plain => self.in_the_clear(),
            Kind::BadProof | Kind::BadSignature | Kind::WrongHop | Kind::Replay | Kind::Requests => {
                self.in_the_session()
            }
            Kind::Messages | Kind::Inconsistent | Kind::Erasure | Kind::TenARound | Kind::Maximal => {
                self.lead()
            }
            Kind::Unread => 0,
        };
        self.datagrams += left;
        left > 0
    }

    fn spoof(&mut self) -> u64 {
        let Some(spoofer) = &mut self.spoofer else {
            return 0;
        };
        let [sealed, plain] = self.neighbour;
        let left = if self.kind == Kind::SpoofedChunks {
            let noise = with_bad_signature(&self.victims[0], self.number);
            spoofer.send(plain, self.plain, &noise)
        } else {
            let attack = self.initiations.as_ref().expect("made at start");
            spoofer.send(sealed, self.sealed, attack.message(self.number))
        };
        u64::from(left)
    }

    fn junk(&mut self) -> u64 {
        let mut contents = [0; JUNK_BURST * JUNK];
        for (place, datagram) in contents.chunks_exact_mut(JUNK).enumerate() {
            datagram[0] = 4;
            let guess = (self.number as u32)
                .wrapping_mul(JUNK_BURST as u32)
                .wrapping_add(place as u32);
            datagram[4..8].copy_from_slice(&guess.wrapping_mul(0x9e37_79b1).to_le_bytes());
        }
        self.left(self.groups.send(self.sealed, &contents, JUNK), JUNK_BURST)
    }

    fn in_the_clear(&mut self) -> u64 {
        let length = self.victims[0].len();
        let contents: Vec<u8> = (0..BURST as u64)
            .flat_map(|place| with_bad_signature(&self.victims[0], self.number * BURST as u64 + place))
            .collect();
        self.left(self.groups.send(self.plain, &contents, length), BURST)
    }

    fn left(&self, has_left: bool, datagrams: usize) -> u64 {
        if has_left { datagrams as u64 } else { 0 }
    }

    fn in_the_session(&mut self) -> u64 {
        let number = self.number * BURST as u64;
        let datagram = |place: u64| match self.kind {
            Kind::BadProof => {
                let others = &self.victims[1..];
                with_bad_proof(&others[(number + place) as usize % others.len()])
            }
            Kind::BadSignature => with_bad_signature(&self.victims[0], number + place),
            Kind::WrongHop => self
                .chunks
                .iter()
                .map(|addressed| &addressed.chunk)
                .find(|chunk| !self.victims.contains(chunk))
                .expect("another hop")
                .clone(),
            Kind::Requests => self.request(number + place),
            _ => self.victims[0].clone(),
        };
        let datagrams = match self.kind {
            // One search for all.
            Kind::WrongHop => vec![datagram(0); BURST],
            _ => (0..BURST as u64).map(datagram).collect(),
        };
        self.left(self.member.send(VICTIM, datagrams), BURST)
    }

    fn request(&self, number: u64) -> Bytes {
        let header = ChunkView::parse(&self.victims[0]).expect("a chunk").header;
        let author = self.member.leader.set().index_of(&identity(HOSTILE).identity());
        let mut root = [0; 20];
        root[..8].copy_from_slice(&number.to_le_bytes());
        let request = RepairRequest {
            id: MessageId {
                epoch: Epoch::new(EPOCH),
                round: header.round,
                author: author.expect("a member"),
            },
            root,
            count: 64,
            wanted: Wanted::from(SymbolIndex::new(0), header.symbols, |_| true),
        };
        request.encode().into()
    }

    fn message(&mut self, len: usize, filling: u8) -> Vec<Addressed> {
        self.round += 1;
        self.message_of(self.round, len, filling)
    }

    fn message_of(&self, round: u64, len: usize, filling: u8) -> Vec<Addressed> {
        let round = Round::new(round).expect("few rounds");
        let message = self
            .member
            .leader
            .message(now(), round, vec![filling; len].into());
        message.expect("its engine publishes")
    }

    fn lead(&mut self) -> u64 {
        match self.kind {
            Kind::Messages => {
                let message = self.message(64, 1);
                let victims = self.member.victims(&message);
                let count = victims.len() as u64;
                if self.member.send(VICTIM, victims) {
                    count
                } else {
                    0
                }
            }
            Kind::Inconsistent => {
                let message = self.message(256 << 10, 1);
                let altered = self.member.leader.recommit(message, |index| index % 2 == 1);
                self.member.lead(&altered)
            }
            Kind::Erasure => {
                let mut message = self.message(256 << 10, 1);
                // Source symbols leave first: none of those after them can make up for the two that lack.
                let header = ChunkView::parse(&message[0].chunk).expect("a chunk").header;
                message.truncate(header.source_symbols() as usize - 2);
                self.member.lead(&message)
            }
            Kind::TenARound => {
                let round = self.round + self.number / 10;
                let message = self.message_of(round, 32 << 10, (self.number % 10) as u8);
                self.member.lead(&message)
            }
            _ => {
                let message = self.message(3 << 20, 1);
                self.member.lead(&message)
            }
        }
    }
}

fn now() -> Now {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Now {
        instant: std::time::Instant::now(),
        unix: unix.unwrap_or(Duration::ZERO),
    }
}
