//! Classic-BPF programs that judge datagrams before any of our code runs.
//!
//! They need no privilege. A socket filter sees the UDP header in front of the payload, the selector of a
//! group of sockets does not. Loading past the end of a datagram ends a program with 0, which drops it or,
//! in the selector, leaves it to the data socket (docs/spec/threads.md#kernel-filter).

use std::net::Ipv4Addr;

use falconet_transport::IndexKey;
use libc::sock_filter;

use crate::bans::MOST_IN_KERNEL;

/// Where the payload begins in what a socket filter sees.
const UDP: u32 = 8;
/// Where the IP header begins: an offset that the kernel takes as one (`SKF_NET_OFF`).
const IP: u32 = 0xfff0_0000;
/// Lengths of the handshake messages by type: initiation, response, cookie reply.
const INITIATION: u32 = 148;
const RESPONSE: u32 = 92;
const COOKIE_REPLY: u32 = 64;
/// The shortest data message: header and tag of a keepalive.
const KEEPALIVE: u32 = 32;

const LOAD_LENGTH: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_LEN) as u16;
const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const SUBTRACT: u16 = (libc::BPF_ALU | libc::BPF_SUB | libc::BPF_K) as u16;
const ADD: u16 = (libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K) as u16;
const MULTIPLY: u16 = (libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const SHIFT_RIGHT: u16 = (libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K) as u16;
const XOR: u16 = (libc::BPF_ALU | libc::BPF_XOR | libc::BPF_K) as u16;
const XOR_X: u16 = (libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X) as u16;
const COPY_TO_X: u16 = (libc::BPF_MISC | libc::BPF_TAX) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const EQUAL_X: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_X) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const MORE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
/// What a filter returns to keep a datagram, whole.
const WHOLE: u32 = u32::MAX;

/// A step of a judgement.
#[derive(Clone, Copy)]
enum Step {
    Do(u16, u32),
    /// Goes on if the comparison holds, else the datagram is dropped.
    Require(u16, u32),
    /// Goes on if the comparison does not hold.
    Forbid(u16, u32),
}

use Step::{Do, Forbid, Require};

/// Chooses the socket of a datagram: 1 for the handshake types, 0 for everything else.
pub(crate) fn selector() -> Vec<sock_filter> {
    vec![
        instruction(LOAD_BYTE, 0, 0, 0),
        instruction(SUBTRACT, 0, 0, 1),
        instruction(MORE, 1, 0, 2),
        instruction(RETURN, 0, 0, 1),
        instruction(RETURN, 0, 0, 0),
    ]
}

/// Drops what comes from these addresses, and leaves everything else to the program that follows
/// (docs/spec/threads.md#bans).
pub(crate) fn barring(addresses: &[Ipv4Addr]) -> Vec<sock_filter> {
    let addresses = &addresses[..addresses.len().min(MOST_IN_KERNEL)];
    if addresses.is_empty() {
        return Vec::new();
    }
    // Past the source address and the two steps of each one here: fewer than 255, as there are at most 64.
    let away = u8::try_from(1 + 2 * addresses.len()).unwrap_or(u8::MAX);
    let mut program = vec![
        instruction(LOAD_BYTE, 0, 0, IP),
        instruction(AND, 0, 0, 0xf0),
        instruction(EQUAL, 0, away, 0x40),
        instruction(LOAD_WORD, 0, 0, IP + 12),
    ];
    for address in addresses {
        program.push(instruction(EQUAL, 0, 1, address.to_bits()));
        program.push(instruction(RETURN, 0, 0, 0));
    }
    program
}

/// Keeps data messages: type, length, and a receiver index that certifies itself.
pub(crate) fn data(key: IndexKey) -> Vec<sock_filter> {
    let mut steps = vec![
        Do(LOAD_LENGTH, 0),
        Require(AT_LEAST, UDP + KEEPALIVE),
        Do(LOAD_WORD, UDP),
        Require(EQUAL, 0x0400_0000),
    ];
    steps.extend(check_index(key, UDP + 4));
    judgement(&steps)
}

/// Keeps handshake messages: exact length by type, reserved bytes, and for answers to us the index.
pub(crate) fn handshakes(key: IndexKey) -> Vec<sock_filter> {
    let message = |length: u32| {
        vec![
            Do(LOAD_LENGTH, 0),
            Require(EQUAL, UDP + length),
            // The byte before these two is the suite.
            Do(LOAD_HALF, UDP + 2),
            Require(EQUAL, 0),
        ]
    };
    let initiation = message(INITIATION);
    let mut response = message(RESPONSE);
    response.extend(check_index(key, UDP + 8));
    let mut cookie_reply = message(COOKIE_REPLY);
    cookie_reply.extend(check_index(key, UDP + 4));
    let mut program = vec![instruction(LOAD_BYTE, 0, 0, UDP)];
    for (kind, steps) in [(1, initiation), (2, response), (3, cookie_reply)] {
        let judged = judgement(&steps);
        let skip = u8::try_from(judged.len()).unwrap_or(u8::MAX);
        program.push(instruction(EQUAL, 0, skip, kind));
        program.extend(judged);
    }
    program.push(instruction(RETURN, 0, 0, 0));
    program
}

/// Keeps what starts with the kind of a chunk or a message.
pub(crate) fn plain() -> Vec<sock_filter> {
    judgement(&[Do(LOAD_BYTE, UDP), Do(SUBTRACT, 0x10), Forbid(MORE, 0x10)])
}

/// docs/spec/session.md#index-check, for the index `at` this offset.
fn check_index(key: IndexKey, at: u32) -> [Step; 14] {
    let [xor, multiply, add, fold] = key.constants();
    [
        Do(LOAD_WORD, at),
        Do(SHIFT_RIGHT, 12),
        Do(XOR, xor),
        Do(MULTIPLY, multiply),
        Do(COPY_TO_X, 0),
        Do(SHIFT_RIGHT, 15),
        Do(XOR_X, 0),
        Do(ADD, add),
        Do(MULTIPLY, fold),
        Do(SHIFT_RIGHT, 20),
        Do(COPY_TO_X, 0),
        Do(LOAD_WORD, at),
        Do(AND, 0xfff),
        Require(EQUAL_X, 0),
    ]
}

/// The program that takes `steps`, then keeps what has passed them all.
fn judgement(steps: &[Step]) -> Vec<sock_filter> {
    let mut program = Vec::with_capacity(steps.len() + 2);
    for (position, step) in steps.iter().enumerate() {
        // To the last instruction, over the one that keeps.
        let away = u8::try_from(steps.len() - position).unwrap_or(u8::MAX);
        program.push(match *step {
            Do(code, k) => instruction(code, 0, 0, k),
            Require(code, k) => instruction(code, 0, away, k),
            Forbid(code, k) => instruction(code, away, 0, k),
        });
    }
    program.push(instruction(RETURN, 0, 0, WHOLE));
    program.push(instruction(RETURN, 0, 0, 0));
    program
}

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests;
