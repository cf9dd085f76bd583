use super::*;

#[test]
fn a_snapshot_shows_what_was_counted() {
    let mut counters = Counters::default();
    counters.note_sent(Lane::Plain, 3, 300);
    counters.note_received(Lane::Authenticated, 2, 20);
    counters.note_dropped(DropReason::DelayLineFull, 5);
    counters.note_dropped(DropReason::QueueFull, 6);
    counters.note_discarded("bad_tag", 7);
    counters.note_discarded("bad_tag", 1);
    let start = Instant::now();
    counters.note_turn(start);
    counters.note_turn(start + Duration::from_secs(4));
    counters.note_nap(Duration::from_secs(3));
    counters.note_age(Class::Control, Duration::from_nanos(20));
    counters.note_age(Class::Control, Duration::from_nanos(10));
    let depth = Cost { entries: 8, bytes: 9 };
    counters.set_queue(Class::Control, 4, depth);
    counters.note_left(Class::Control, 2, 70);
    counters.note_left(Class::Control, 1, 30);
    let published = Published::default();
    published.publish(&counters);
    published.publish(&counters);
    let mut stats = Stats::default();
    published.add_to(&mut stats);
    assert_eq!(stats.lane(Lane::Plain).datagrams_sent, 3);
    assert_eq!(stats.plain.bytes_sent, 300);
    assert_eq!(stats.plain.segments_a_send(), 3.0);
    assert_eq!(stats.plain.segments_a_receive(), 0.0);
    assert_eq!(stats.authenticated.datagrams_received, 2);
    assert_eq!(
        (stats.dropped("delay_line_full"), stats.dropped("queue_full")),
        (5, 6)
    );
    assert_eq!(stats.discards, [("bad_tag", 8)]);
    let thread = published.thread();
    assert_eq!((thread.turns, thread.naps), (2, 1));
    assert_eq!(thread.busy_fraction(&ThreadStats::default()), 0.25);
    assert_eq!(thread.busy_fraction(&thread), 0.0);
    let queue = QueueStats {
        submissions: 4,
        entries: 8,
        bytes: 9,
        datagrams_sent: 3,
        bytes_sent: 100,
        age: Duration::from_nanos(10),
        longest_age: Duration::from_nanos(20),
    };
    assert_eq!(
        stats.queues,
        [
            QueueStats::default(),
            QueueStats::default(),
            QueueStats::default(),
            queue
        ]
    );
}

#[test]
fn labels_of_two_threads_add_up() {
    let mut stats = Stats::default();
    for _ in 0..2 {
        let (mut counters, published) = (Counters::default(), Published::default());
        counters.note_discarded("empty", 2);
        published.publish(&counters);
        published.add_to(&mut stats);
    }
    assert_eq!(stats.discarded("empty"), 4);
}
