//! How far the clocks of others are from ours, from the signed timestamps of their messages
//! (`docs/spec/broadcast.md#clock`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use falconet_crypto::IdentityKey;

/// Messages of an author that its estimate rests on, the latest.
const SAMPLES: usize = 9;
/// Fewer say nothing: one of them may have been under way for long.
const MIN_SAMPLES: usize = 3;
/// An author's messages that the window refuses are looked at this often: what lies between may be the same one.
const REFUSED_INTERVAL: Duration = Duration::from_secs(1);

/// What is known of an author's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Whose clock.
    pub peer: IdentityKey,
    /// Our clock when the first symbol came, less the author's when it made the message, in milliseconds: the median
    /// of its latest messages. Positive if its clock is behind ours; the usual delay is part of it.
    pub offset_ms: i64,
    /// Messages that this rests on, 3 to 9.
    pub samples: usize,
}

/// One estimate an author. Holds no more authors than it is told to [keep](Clocks::retain).
#[derive(Debug)]
pub(crate) struct Clocks {
    warn_at_ms: u64,
    authors: BTreeMap<IdentityKey, Clock>,
}

#[derive(Debug, Default)]
struct Clock {
    /// The latest last.
    samples: Vec<i64>,
    /// Those in a row that the window has refused, and when one was last looked at.
    refused: Vec<i64>,
    refused_at: Option<Instant>,
    /// The greatest timestamp that it signed, in milliseconds: what is not above it may be a replay.
    greatest_ms: u64,
    is_reported: bool,
}

impl Clocks {
    /// Reports clocks that are a quarter of the window off: before the window refuses anything.
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            warn_at_ms: window.as_millis() as u64 / 4,
            authors: BTreeMap::new(),
        }
    }

    /// Takes the timestamp of a message whose signature is checked. Returns what is to be reported: once, until the
    /// clock has been within half of the limit again.
    pub(crate) fn sample(&mut self, author: IdentityKey, ours_ms: u64, theirs_ms: u64) -> Option<ClockSkew> {
        let clock = self.authors.entry(author).or_default();
        if clock.samples.len() == SAMPLES {
            clock.samples.remove(0);
        }
        // 48 bits each: the difference fits.
        clock.samples.push(ours_ms as i64 - theirs_ms as i64);
        clock.refused.clear();
        clock.greatest_ms = clock.greatest_ms.max(theirs_ms);
        let skew = clock.estimate(author)?;
        let distance = skew.offset_ms.unsigned_abs();
        if distance <= self.warn_at_ms / 2 {
            clock.is_reported = false;
        }
        let is_news = distance > self.warn_at_ms && !clock.is_reported;
        clock.is_reported |= is_news;
        is_news.then_some(skew)
    }

    /// Whether a message that the window refuses is worth a check of its signature: once a second and author.
    pub(crate) fn wants_refused(&mut self, author: IdentityKey, now: Instant, theirs_ms: u64) -> bool {
        let clock = self.authors.entry(author).or_default();
        let is_recent = |at| now.saturating_duration_since(at) < REFUSED_INTERVAL;
        if theirs_ms <= clock.greatest_ms || clock.refused_at.is_some_and(is_recent) {
            return false;
        }
        clock.refused_at = Some(now);
        true
    }

    /// Takes the timestamp of such a message, whose signature is good. Returns what is to be reported: with the third in
    /// a row, once, as [`Clocks::sample`].
    pub(crate) fn sample_refused(
        &mut self,
        author: IdentityKey,
        ours_ms: u64,
        theirs_ms: u64,
    ) -> Option<ClockSkew> {
        let clock = self.authors.entry(author).or_default();
        clock.greatest_ms = theirs_ms;
        if clock.refused.len() == MIN_SAMPLES {
            clock.refused.remove(0);
        }
        clock.refused.push(ours_ms as i64 - theirs_ms as i64);
        let skew = estimate(author, &clock.refused)?;
        let is_news = !clock.is_reported;
        clock.is_reported = true;
        is_news.then_some(skew)
    }

    /// Forgets all authors but these.
    pub(crate) fn retain(&mut self, keep: impl Fn(&IdentityKey) -> bool) {
        self.authors.retain(|author, _| keep(author));
    }

    /// Every author with enough messages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ClockSkew> {
        self.authors
            .iter()
            .filter_map(|(author, clock)| clock.estimate(*author))
    }
}

impl Clock {
    fn estimate(&self, peer: IdentityKey) -> Option<ClockSkew> {
        estimate(peer, &self.samples)
    }
}

fn estimate(peer: IdentityKey, samples: &[i64]) -> Option<ClockSkew> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let samples = samples.len();
    // The lower of the two in the middle: delay only ever adds.
    let offset_ms = *sorted.get((samples.max(1) - 1) / 2)?;
    (samples >= MIN_SAMPLES).then_some(ClockSkew {
        peer,
        offset_ms,
        samples,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use falconet_crypto::IdentityKey;

    use super::{Clocks, SAMPLES};

    const WINDOW: Duration = Duration::from_secs(10);

    fn author(id: u8) -> IdentityKey {
        IdentityKey::from_bytes([id; 32])
    }

    #[test]
    fn one_message_that_was_long_under_way_is_not_a_wrong_clock() {
        let mut clocks = Clocks::new(WINDOW);
        for delay in [90, 9_000, 80, 100, 8_500, 95] {
            assert_eq!(clocks.sample(author(1), 100_000 + delay, 100_000), None);
        }
        assert_eq!(clocks.iter().next().map(|skew| skew.offset_ms), Some(95));
    }

    #[test]
    fn a_clock_a_quarter_of_the_window_off_is_reported_once_either_way() {
        for (ours, theirs, offset_ms) in [(103_000, 100_000, 3_000), (100_000, 103_000, -3_000)] {
            let mut clocks = Clocks::new(WINDOW);
            let reports: Vec<_> = (0..20)
                .filter_map(|_| clocks.sample(author(1), ours, theirs))
                .collect();
            assert_eq!(reports.len(), 1);
            assert_eq!((reports[0].offset_ms, reports[0].samples), (offset_ms, 3));
            // Set right, and wrong again: reported again.
            (0..SAMPLES).for_each(|_| assert_eq!(clocks.sample(author(1), 100_000, 100_000), None));
            let again = (0..SAMPLES).filter_map(|_| clocks.sample(author(1), ours, theirs));
            assert_eq!(again.count(), 1);
        }
    }

    #[test]
    fn authors_that_are_not_kept_are_forgotten() {
        let mut clocks = Clocks::new(WINDOW);
        for id in 0..100 {
            (0..3).for_each(|_| assert_eq!(clocks.sample(author(id), 5, 0), None));
        }
        clocks.retain(|kept| *kept == author(7));
        assert_eq!(
            clocks.iter().map(|skew| skew.peer).collect::<Vec<_>>(),
            [author(7)]
        );
    }
}
