//! Telling completions what became of their datagrams.

use std::sync::Arc;
use std::time::Instant;

use crate::drop_reason::DropReason;
use crate::outgoing::Completion;
use crate::payloads::Run;
use crate::scheduler::Scheduler;
use crate::stats::Counters;

/// What one completion is told at a time.
struct Part {
    completion: Arc<dyn Completion>,
    sent: usize,
    dropped: usize,
    bytes: usize,
}

impl Part {
    fn tell(self, now: Instant) {
        self.completion.finished(self.sent, self.dropped, self.bytes, now);
    }
}

/// Empties `group` and tells its completions, one call for neighbours of the same one: the first `left`
/// datagrams left, each longer than its plaintext by `overhead`, the others were given up.
pub(crate) fn report(
    scheduler: &mut Scheduler,
    group: &mut Vec<Run>,
    mut left: usize,
    overhead: usize,
    now: Instant,
) {
    let mut open: Option<Part> = None;
    for run in group.drain(..) {
        let datagrams = scheduler.datagrams(&run);
        let sent = left.min(datagrams.len());
        left -= sent;
        if let Some(completion) = scheduler.completion(&run) {
            if let Some(part) = open.take_if(|part| !Arc::ptr_eq(&part.completion, completion)) {
                part.tell(now);
            }
            let part = open.get_or_insert_with(|| Part {
                completion: Arc::clone(completion),
                sent: 0,
                dropped: 0,
                bytes: 0,
            });
            part.sent += sent;
            part.dropped += datagrams.len() - sent;
            part.bytes += datagrams[..sent]
                .iter()
                .map(|d| d.len() + overhead)
                .sum::<usize>();
        }
        scheduler.release(run);
    }
    if let Some(part) = open {
        part.tell(now);
    }
}

/// Counts `datagrams` that never were in a group, or in one no more, and tells their completion.
pub(crate) fn drop_datagrams(
    now: Instant,
    completion: Option<&Arc<dyn Completion>>,
    datagrams: usize,
    reason: DropReason,
    counters: &mut Counters,
) {
    if datagrams == 0 {
        return;
    }
    counters.note_dropped(reason, datagrams);
    if let Some(completion) = completion {
        completion.finished(0, datagrams, 0, now);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use bytes::Bytes;
    use falconet_transport::PeerId;

    use super::*;
    use crate::outgoing::Class;
    use crate::scheduler::{ClassLimits, GroupLimits};

    #[derive(Default)]
    struct Log(Mutex<Vec<(usize, usize, usize)>>);

    impl Completion for Log {
        fn finished(&self, sent: usize, dropped: usize, sent_bytes: usize, _at: Instant) {
            self.0.lock().unwrap().push((sent, dropped, sent_bytes));
        }
    }

    #[test]
    fn neighbours_of_one_completion_are_reported_together() {
        let (first, second) = (Arc::new(Log::default()), Arc::new(Log::default()));
        let now = Instant::now();
        let class_limits = ClassLimits {
            weight: 1,
            entries: 100,
            bytes: 1 << 20,
            max_age: Duration::from_secs(1),
        };
        let mut scheduler = Scheduler::new([class_limits; 4], 65_536);
        for (log, count) in [(&first, 1), (&first, 1), (&second, 2), (&first, 1)] {
            let completion = Arc::clone(log) as Arc<dyn Completion>;
            let datagrams = vec![Bytes::from_static(&[0x20; 10]); count];
            scheduler.push(now, Class::Relay, &[PeerId(1)], datagrams, Some(completion));
        }
        let limits = GroupLimits {
            bytes: 1_000,
            segment: 100,
            overhead: 32,
        };
        let (mut group, mut expired) = (Vec::new(), Vec::new());
        scheduler.poll_group(now, limits, |_| false, &mut group, &mut expired);
        report(&mut scheduler, &mut group, 3, 32, now);
        assert_eq!(*first.0.lock().unwrap(), [(2, 0, 84), (0, 1, 0)]);
        assert_eq!(*second.0.lock().unwrap(), [(1, 1, 42)]);
    }
}
