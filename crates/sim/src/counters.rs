//! Whether a counter of a session was ever used twice.

use std::collections::HashMap;
use std::time::Duration;

use crate::time::Time;

/// First byte of a data message, and its length without plaintext (docs/spec/framing.md).
const DATA: u8 = 4;
const SHORTEST: usize = 32;
/// Keys are dead 180 s after they were made, and an index rests for 600 s before it names another key
/// (docs/spec/session.md#index-reuse): in between there is nothing under it, and past this it is another key's.
const REST: Duration = Duration::from_secs(400);
/// How often keys that are dead are forgotten.
const SWEEP: Duration = Duration::from_secs(600);
/// Datagrams of one session that may leave in another order than they were sealed in.
const WINDOW: u64 = 128;

/// The counters that have left under each key, across restarts of who sends: a key is known by the receiver and the
/// index that it chose.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    keys: HashMap<(u16, u16, u32), Key>,
    swept: Time,
    noted: u64,
    /// The first few.
    reused: Vec<Reuse>,
}

/// A counter that left twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// When it left for the second time.
    pub at: Time,
    /// Whose it is.
    pub from: u16,
    /// To whom.
    pub to: u16,
    /// Its value.
    pub counter: u64,
}

#[derive(Debug)]
struct Key {
    highest: u64,
    /// Bit `n`: the counter `n` below the highest has left.
    seen: u128,
    last: Time,
}

impl Counters {
    /// A datagram leaves.
    pub(crate) fn note(&mut self, at: Time, (from, to): (u16, u16), datagram: &[u8]) {
        let Some((index, counter)) = parse(datagram) else {
            return;
        };
        self.noted += 1;
        self.sweep(at);
        let key = self.keys.entry((from, to, index)).or_insert(Key {
            highest: counter,
            seen: 0,
            last: at,
        });
        if at.since(key.last) > REST {
            *key = Key {
                highest: counter,
                seen: 0,
                last: at,
            };
        }
        key.last = at;
        if !key.take(counter) && self.reused.len() < 20 {
            self.reused.push(Reuse {
                at,
                from,
                to,
                counter,
            });
        }
    }

    /// Data messages that were looked at.
    pub(crate) fn noted(&self) -> u64 {
        self.noted
    }

    pub(crate) fn take_reused(&mut self) -> Vec<Reuse> {
        std::mem::take(&mut self.reused)
    }

    fn sweep(&mut self, at: Time) {
        if at.since(self.swept) > SWEEP {
            self.swept = at;
            self.keys.retain(|_, key| at.since(key.last) <= REST);
        }
    }
}

impl Key {
    /// False if it was there.
    fn take(&mut self, counter: u64) -> bool {
        if counter > self.highest {
            let by = counter - self.highest;
            self.seen = if by < WINDOW { self.seen << by } else { 0 };
            self.highest = counter;
        }
        let below = self.highest - counter;
        let bit = 1_u128.checked_shl(below.min(WINDOW) as u32).unwrap_or(0);
        // What has fallen out of the window counts as used: nothing leaves that late.
        let is_new = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }
}

fn parse(datagram: &[u8]) -> Option<(u32, u64)> {
    if datagram.len() < SHORTEST || datagram.first() != Some(&DATA) {
        return None;
    }
    let index = datagram.get(4..8)?.try_into().ok()?;
    let counter = datagram.get(8..16)?.try_into().ok()?;
    Some((u32::from_le_bytes(index), u64::from_le_bytes(counter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(index: u32, counter: u64) -> Vec<u8> {
        let mut bytes = vec![0; SHORTEST];
        bytes[0] = DATA;
        bytes[4..8].copy_from_slice(&index.to_le_bytes());
        bytes[8..16].copy_from_slice(&counter.to_le_bytes());
        bytes
    }

    fn reused(left: &[(u64, (u16, u16), u32, u64)]) -> Vec<u64> {
        let mut counters = Counters::default();
        for (seconds, pair, index, counter) in left {
            let at = Time::START + Duration::from_secs(*seconds);
            counters.note(at, *pair, &datagram(*index, *counter));
        }
        counters.take_reused().iter().map(|reuse| reuse.counter).collect()
    }

    #[test]
    fn a_counter_that_leaves_twice_under_one_key_is_found() {
        let pair = (1, 2);
        assert_eq!(reused(&[(0, pair, 7, 0), (0, pair, 7, 1), (1, pair, 7, 1)]), [1]);
        // A process that begins anew with the keys of the last one.
        assert_eq!(reused(&[(0, pair, 7, 500), (90, pair, 7, 0)]), [0]);
        assert_eq!(
            reused(&[(0, pair, 7, 3), (0, pair, 7, 130), (0, pair, 7, 3)]),
            [3]
        );
    }

    #[test]
    fn another_order_key_or_time_is_no_reuse() {
        let pair = (1, 2);
        assert_eq!(
            reused(&[(0, pair, 7, 0), (0, pair, 7, 2), (0, pair, 7, 1)]),
            [0_u64; 0]
        );
        assert_eq!(
            reused(&[(0, pair, 7, 0), (0, pair, 8, 0), (0, (2, 1), 7, 0)]),
            [0_u64; 0]
        );
        assert_eq!(reused(&[(0, pair, 7, 0), (401, pair, 7, 0)]), [0_u64; 0]);
    }

    #[test]
    fn dead_keys_are_forgotten() {
        let mut counters = Counters::default();
        for second in 0..5_000_u64 {
            let at = Time::START + Duration::from_secs(second);
            counters.note(at, (1, 2), &datagram(second as u32, 0));
        }
        assert!(counters.keys.len() <= 1_001, "{}", counters.keys.len());
        assert_eq!(counters.noted(), 5_000);
    }
}
