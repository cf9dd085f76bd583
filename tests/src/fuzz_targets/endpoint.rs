//! Sequences of operations on two endpoints and the wire between them.
//!
//! Whatever the wire does, what an endpoint hands out on the authenticated lane was sent by that peer, to this one, and
//! is handed out once. And once the wire is good again, both talk again.

use std::time::Duration;

use bytes::Bytes;
use falconet_transport::{Lane, kind};

use super::Script;
use wire::{Flight, PEER, Wire, address};

mod wire;

const MAX_OPERATIONS: usize = 400;

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut script = Script::new(input);
    let mut wire = Wire::new(script.byte());
    for _ in 0..MAX_OPERATIONS {
        if script.is_over() {
            break;
        }
        wire.step(&mut script);
    }
    wire.reconverges();
}

impl Wire {
    fn step(&mut self, script: &mut Script<'_>) {
        let node = usize::from(script.byte());
        let (node, operation) = (node & 1, node >> 1);
        match operation % 12 {
            0 | 1 => (0..=script.byte() % 8).for_each(|_| self.send(node)),
            2 | 3 => (0..=script.byte() % 16).for_each(|_| self.deliver_next(0, |_| {})),
            4 => {
                let which = usize::from(script.byte());
                self.deliver_next(which, |_| {});
            }
            5 => drop(self.take(script.byte().into())),
            6 => self.duplicate(script.byte().into()),
            7 => {
                let which = usize::from(script.byte());
                self.deliver_next(which, |flight| script.patch(&mut flight.datagram));
            }
            8 => {
                let (which, len) = (usize::from(script.byte()), script.number());
                self.deliver_next(which, |flight| {
                    let len = len % (flight.datagram.len() + 2);
                    flight.datagram.resize(len, 0);
                });
            }
            9 => {
                let time = u32::from(script.byte());
                // From nothing to 260 s: past every timer of a session.
                self.advance(Duration::from_millis(4) * time * time);
            }
            10 => self.disturb(node, script),
            _ => self.inject(node, script),
        }
        self.collect();
    }

    /// The rare ones.
    fn disturb(&mut self, node: usize, script: &mut Script<'_>) {
        match script.byte() % 6 {
            0 => self.restart(node),
            1 => self.endpoints[node].connect(self.now, PEER),
            2 => {
                let which = usize::from(script.byte());
                self.deliver_next(which, |flight| {
                    flight.from = address(1 - flight.to, flight.lane, true)
                });
            }
            // Whoever is under load asks everybody for a cookie, the other one too.
            4 => self.endpoints[node].set_under_load(script.byte() % 2 == 1),
            5 => self.endpoints[node].rekey(self.now, PEER),
            _ => {
                // A malicious peer, or a broken one: plaintexts of any kind, correctly sealed.
                let plaintext = Bytes::copy_from_slice(script.bytes(40));
                if plaintext.first() != Some(&kind::MESSAGE) {
                    let _ = self.endpoints[node].send(self.now, PEER, &plaintext);
                }
            }
        }
    }

    fn inject(&mut self, node: usize, script: &mut Script<'_>) {
        let lane = if script.byte().is_multiple_of(2) {
            Lane::Authenticated
        } else {
            Lane::Plain
        };
        let len = usize::from(script.byte());
        // Plain messages are believed: they would look like ones that nobody sent.
        let datagram = script.bytes(len).to_vec();
        self.deliver(Flight {
            to: node,
            from: address(1 - node, lane, false),
            lane,
            datagram,
        });
    }
}

// Operations of the first endpoint; one more is the second's.
const SEND: u8 = 0;
const DELIVER: u8 = 4;
const PICK: u8 = 8;
const LOSE: u8 = 10;
const DUPLICATE: u8 = 12;
const CORRUPT: u8 = 14;
const CUT: u8 = 16;
const WAIT: u8 = 18;
const DISTURB: u8 = 20;
const INJECT: u8 = 22;

/// What follows an exchange, or nothing.
const TAILS: [&[u8]; 17] = [
    &[],
    &[
        WAIT,
        180,
        DELIVER,
        15,
        SEND,
        7,
        DELIVER,
        15,
        WAIT,
        250,
        SEND + 1,
        7,
        DELIVER,
        15,
    ],
    &[WAIT, 212, SEND, 7, DELIVER, 15],
    &[SEND, 3, DUPLICATE, 0, DUPLICATE, 1, DELIVER, 15],
    &[SEND, 3, PICK, 3, PICK, 1, LOSE, 0, DELIVER, 15],
    &[SEND, 3, CORRUPT, 0, 1, 20, 1, CORRUPT, 0, 1, 4, 1, DELIVER, 15],
    &[SEND, 3, CUT, 0, 31, 0, CUT, 0, 0, 0, DELIVER, 15],
    &[DISTURB, 0, SEND, 3, DELIVER, 15, WAIT, 60, DELIVER, 15],
    &[DISTURB + 1, 0, SEND, 3, DELIVER, 15, WAIT, 70, DELIVER, 15],
    &[DISTURB, 0, DISTURB + 1, 0, SEND, 3, SEND + 1, 3, DELIVER, 15],
    &[SEND, 3, DISTURB, 2, 0, DELIVER, 15, SEND + 1, 3, DELIVER, 15],
    &[DISTURB, 3, 0x45, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    &[
        INJECT,
        0,
        6,
        4,
        0,
        0,
        0,
        1,
        2,
        INJECT,
        1,
        3,
        0x20,
        1,
        2,
        INJECT + 1,
        1,
        2,
        0x10,
        1,
    ],
    &[
        DISTURB,
        1,
        DISTURB + 1,
        1,
        LOSE,
        0,
        WAIT,
        37,
        DELIVER,
        15,
        WAIT,
        37,
        DELIVER,
        15,
    ],
    // One under load, both, and a session that is renewed while they are.
    &[
        DISTURB,
        4,
        1,
        DISTURB + 1,
        1,
        DELIVER,
        15,
        WAIT,
        20,
        DELIVER,
        15,
        SEND,
        3,
        DELIVER,
        15,
    ],
    &[
        DISTURB,
        4,
        1,
        DISTURB + 1,
        4,
        1,
        DISTURB,
        1,
        DISTURB + 1,
        1,
        DELIVER,
        15,
        WAIT,
        40,
        DELIVER,
        15,
    ],
    &[
        DISTURB,
        4,
        1,
        DISTURB + 1,
        5,
        DELIVER,
        15,
        WAIT,
        20,
        DELIVER,
        15,
        DISTURB,
        4,
        0,
        DISTURB,
        5,
        DELIVER,
        15,
    ],
];

/// Sessions that live, rekey, lose, replay, restart, roam and are lied to.
pub fn seeds() -> Vec<Vec<u8>> {
    let exchange = [SEND, 3, DELIVER, 15, SEND + 1, 3, DELIVER, 15];
    let mut seeds = Vec::new();
    for (choices, tail) in [0u8, 4, 1, 2].into_iter().cycle().zip(TAILS) {
        seeds.push([&[choices], &exchange[..], tail].concat());
        seeds.push([&[choices], tail].concat());
    }
    seeds
}
