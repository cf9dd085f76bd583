//! The frame of data messages: the header codec, and sequences of seal, open, replay and tampering on one session.

use falconet_auth_framing::{Discard, HEADER_LEN, Header, OVERHEAD, Opener, Sealer, SessionIndex};
use falconet_crypto::{SecretBytes, Suite};

use super::Script;

/// Datagrams that are kept for replays.
const MAX_DATAGRAMS: usize = 64;
/// What the key does not cover: type and reserved bytes are checked, the receiver index finds the session.
const UNBOUND: usize = 8;

/// Runs one input.
pub fn run(input: &[u8]) {
    parse(input);
    let mut script = Script::new(input);
    let mut session = Session::new(script.byte());
    while !script.is_over() {
        session.step(&mut script);
    }
}

/// What parses is written back the same.
fn parse(datagram: &[u8]) {
    if let Ok(header) = Header::parse(datagram) {
        assert!(datagram.len() >= OVERHEAD);
        assert_eq!(header.encode(), datagram[..HEADER_LEN]);
    }
}

struct Session {
    sealer: Sealer,
    opener: Opener,
    sealed: Vec<Sealed>,
}

struct Sealed {
    datagram: Vec<u8>,
    plaintext: Vec<u8>,
    was_opened: bool,
}

impl Session {
    fn new(suite: u8) -> Self {
        let suite = if suite.is_multiple_of(2) {
            Suite::ChaCha20Poly1305
        } else {
            Suite::Aes256Gcm
        };
        let key = SecretBytes::new([7; 32]);
        Self {
            sealer: Sealer::new(suite, &key, SessionIndex::new(42)),
            opener: Opener::new(suite, &key),
            sealed: Vec::new(),
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let operation = script.byte() % 4;
        if operation == 0 || self.sealed.is_empty() {
            return self.seal(script);
        }
        let which = script.place(self.sealed.len());
        let mut datagram = self.sealed[which].datagram.clone();
        match operation {
            1 => {}
            2 => script.patch(&mut datagram),
            _ => datagram.resize(script.number() % 2048, script.byte()),
        }
        self.open(which, datagram);
    }

    fn seal(&mut self, script: &mut Script<'_>) {
        if self.sealed.len() >= MAX_DATAGRAMS {
            return;
        }
        let plaintext = vec![script.byte(); usize::from(script.byte())];
        let mut datagram = [&[0; HEADER_LEN], &plaintext[..], &[0; OVERHEAD - HEADER_LEN]].concat();
        let counter = self.sealer.seal(&mut datagram).expect("far from the limit");
        assert_eq!(
            counter.value(),
            self.sealed.len() as u64,
            "a counter was skipped or used twice"
        );
        self.sealed.push(Sealed {
            datagram,
            plaintext,
            was_opened: false,
        });
    }

    /// Opens something made from a sealed datagram: its plaintext comes out once, and never anything else.
    fn open(&mut self, which: usize, mut datagram: Vec<u8>) {
        let Ok(header) = Header::parse(&datagram) else {
            return;
        };
        let sealed = &mut self.sealed[which];
        let is_genuine = datagram[UNBOUND..] == sealed.datagram[UNBOUND..];
        match self.opener.open(header, &mut datagram) {
            Ok(opened) => {
                assert!(is_genuine, "a forgery was opened");
                assert!(!sealed.was_opened, "a replay was opened");
                assert_eq!(datagram[HEADER_LEN..HEADER_LEN + opened.len], sealed.plaintext);
                sealed.was_opened = true;
            }
            Err(Discard::Replayed) if is_genuine => {
                assert!(sealed.was_opened, "a fresh datagram was refused")
            }
            Err(reason) => assert!(!is_genuine, "a genuine datagram was refused: {reason}"),
        }
    }
}

/// Headers, and sessions that seal, replay and tamper.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for suite in [0, 1] {
        let seal_three = [suite, 0, 9, 0, 0, 9, 1, 0, 9, 200];
        seeds.push(seal_three.to_vec());
        let tails: [&[u8]; 8] = [
            &[1, 0, 1, 1, 1, 2],
            &[1, 2, 1, 0, 1, 0, 1, 2],
            &[2, 1, 1, 0, 1],
            &[2, 1, 1, 4, 1, 1, 1],
            &[2, 1, 1, 8, 1, 1, 1],
            &[2, 2, 2, 16, 1, 20, 8, 1, 2],
            &[3, 2, 31, 0, 7, 3, 2, 32, 0, 7],
            &[3, 0, 0, 8, 255, 3, 0, 0, 0, 0],
        ];
        seeds.extend(tails.map(|tail| [&seal_three[..], tail].concat()));
    }
    let header = Header {
        receiver: SessionIndex::new(1),
        counter: falconet_auth_framing::Counter::new(u64::MAX),
    };
    seeds.push([&header.encode()[..], &[0; 16]].concat());
    seeds
}
