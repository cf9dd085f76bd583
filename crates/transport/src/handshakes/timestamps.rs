//! Timestamps: ours, which never go back, and the greatest of each peer that is no peer at the moment.

use falconet_crypto::{Now, Tai64N, TransportPublicKey};
use std::collections::VecDeque;
use std::time::Duration;

/// How far ahead of the clock a stored mark lies.
const MARK_AHEAD: Duration = Duration::from_secs(60);
/// What is left of a mark when the next one is handed out: the time that storing it may take.
const MARK_MARGIN: Duration = Duration::from_secs(30);
/// Keys whose greatest timestamp is remembered although they are no peers; the oldest goes first.
pub(super) const MAX_REMEMBERED: usize = 4096;

/// Our own timestamps; `docs/spec/session.md#timestamps`.
#[derive(Default)]
pub(super) struct Timestamps {
    last: Option<Tai64N>,
    /// The last mark that was handed out.
    mark: Option<Tai64N>,
    /// It was not polled yet.
    is_due: bool,
}

impl Timestamps {
    /// The clock, or one more than the last.
    pub(super) fn next(&mut self, now: Now) -> Tai64N {
        let clock = Tai64N::from_unix(now.unix);
        let timestamp = self.last.map_or(clock, |last| clock.max(last.next()));
        self.last = Some(timestamp);
        // docs/spec/session.md#high-water
        if self.mark < Some(later(timestamp, MARK_MARGIN)) {
            self.mark = Some(later(timestamp, MARK_AHEAD));
            self.is_due = true;
        }
        timestamp
    }

    pub(super) fn raise(&mut self, floor: Tai64N) {
        self.last = self.last.max(Some(floor));
    }

    pub(super) const fn last(&self) -> Option<Tai64N> {
        self.last
    }

    pub(super) fn poll_mark(&mut self) -> Option<Tai64N> {
        std::mem::take(&mut self.is_due).then_some(self.mark)?
    }
}

/// Greatest timestamps of keys that are no peers; `docs/spec/session.md#timestamps`.
#[derive(Default)]
pub(super) struct Remembered(VecDeque<(TransportPublicKey, Tai64N)>);

impl Remembered {
    pub(super) fn insert(&mut self, key: TransportPublicKey, timestamp: Tai64N) {
        let timestamp = timestamp.max(self.take(&key).unwrap_or(timestamp));
        if self.0.len() >= MAX_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((key, timestamp));
    }

    pub(super) fn get(&self, key: &TransportPublicKey) -> Option<Tai64N> {
        let mut entries = self.0.iter();
        entries
            .find(|(known, _)| known == key)
            .map(|(_, timestamp)| *timestamp)
    }

    pub(super) fn take(&mut self, key: &TransportPublicKey) -> Option<Tai64N> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        self.0.remove(at).map(|(_, timestamp)| timestamp)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TransportPublicKey, Tai64N)> + '_ {
        self.0.iter().copied()
    }
}

/// `label` plus whole seconds; stays at the last one there is.
fn later(label: Tai64N, by: Duration) -> Tai64N {
    let mut bytes = *label.as_bytes();
    if let Some(seconds) = bytes.first_chunk_mut() {
        *seconds = u64::from_be_bytes(*seconds)
            .saturating_add(by.as_secs())
            .to_be_bytes();
    }
    Tai64N::from_bytes(bytes)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.
mod tests {
    use super::*;
    use std::time::Instant;

    fn at(unix: u64) -> Now {
        Now {
            instant: Instant::now(),
            unix: Duration::from_secs(unix),
        }
    }

    #[test]
    fn a_mark_is_handed_out_before_half_of_the_last_one_is_used_up() {
        let mut timestamps = Timestamps::default();
        assert_eq!(timestamps.poll_mark(), None);
        let mut stored = None;
        for second in 1000..1300 {
            // What the last mark covered is enough for a timestamp of 29 s later.
            let sent = timestamps.next(at(second));
            assert!(stored.is_none() || stored > Some(later(sent, Duration::from_secs(28))));
            if let Some(mark) = timestamps.poll_mark() {
                assert_eq!(mark, Tai64N::from_unix(Duration::from_secs(second + 60)));
                stored = Some(mark);
            }
            assert_eq!(timestamps.poll_mark(), None, "once");
        }
    }

    #[test]
    fn a_clock_that_goes_back_does_not_take_the_timestamps_along() {
        let mut timestamps = Timestamps::default();
        let before = timestamps.next(at(5000));
        let mark = timestamps.poll_mark().unwrap();
        let after = timestamps.next(at(4000));
        assert!(after > before);
        // The next run, with a clock that is an hour behind.
        let mut restarted = Timestamps::default();
        restarted.raise(mark);
        assert!(restarted.next(at(1400)) > after);
    }

    #[test]
    fn as_many_keys_are_remembered_as_the_cap_says() {
        let mut remembered = Remembered::default();
        let key = |n: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(n as u64).to_le_bytes());
            TransportPublicKey::from_bytes(bytes)
        };
        let label = Tai64N::from_unix(Duration::from_secs(7));
        for n in 0..MAX_REMEMBERED + 10 {
            remembered.insert(key(n), label);
        }
        assert_eq!(remembered.iter().count(), MAX_REMEMBERED);
        assert_eq!(remembered.take(&key(9)), None);
        remembered.insert(key(10), Tai64N::from_unix(Duration::from_secs(1)));
        assert_eq!(remembered.take(&key(10)), Some(label), "the greater one counts");
    }
}
