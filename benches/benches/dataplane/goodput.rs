//! How much gets through: the raw path beside `quinn-udp`, the authenticated one beside quinn and boringtun.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use falconet_benches::{Report, Unit};
use falconet_crypto::Suite;
use falconet_dataplane::Recipients;
use falconet_transport::PeerId;

use crate::cable::Cable;
use crate::direct::{Carried, Counted, boringtun, boringtun_grouped, quinn_udp, quinn_udp_filled, spawn};
use crate::quic::quic;
use crate::rig::{
    Count, RECEIVER, SENDER, Side, chunks, config, connect, pin, processor_time, quantile, submit,
    thread_time, to,
};

/// Datagrams of one submission.
const BATCH: usize = 440;

/// One that carries datagrams for a while.
type Contender<'a> = (&'static str, Box<dyn Fn() -> Carried + 'a>);

/// 1,472 bytes a datagram, nothing sealed. Ours is a whole dataplane: submission by another thread of the same
/// processor, scheduler, the copy of each datagram into its group, a judgement of each on arrival, and its delivery.
pub(crate) fn raw(report: &mut Report) {
    if report.wants("raw") {
        let time = duration(report);
        let contenders: [Contender<'_>; 3] = [
            ("ours", Box::new(|| loopback(None, 1_472, time))),
            ("quinn-udp", Box::new(|| quinn_udp(1_472, time))),
            ("quinn-udp-filled", Box::new(|| quinn_udp_filled(1_472, time))),
        ];
        compete(report, "raw/1472", &contenders);
    }
}

/// 1,440 bytes a datagram, sealed and opened.
pub(crate) fn authenticated(report: &mut Report) {
    for (name, suite) in [
        ("goodput/1440/suite1", Suite::Aes256Gcm),
        ("goodput/1440/suite0", Suite::ChaCha20Poly1305),
    ] {
        if report.wants(name) {
            let time = duration(report);
            let contenders: [Contender<'_>; 4] = [
                ("ours", Box::new(|| loopback(Some(suite), 1_440, time))),
                ("boringtun", Box::new(|| boringtun(1_440, time))),
                ("boringtun-grouped", Box::new(|| boringtun_grouped(1_440, time))),
                ("quinn", Box::new(|| quic(1_440, time))),
            ];
            compete(report, name, &contenders);
        }
    }
}

/// The same over a virtual cable between two network namespaces, with and without the devices' offloads.
pub(crate) fn over_a_cable(report: &mut Report) {
    for (name, offloads) in [
        ("veth/1440/suite1/plain", false),
        ("veth/1440/suite1/offloads", true),
    ] {
        if !report.wants(name) {
            continue;
        }
        let count = if report.is_quick() { 3 } else { 7 };
        let rounds: Option<Vec<Carried>> = (0..count)
            .map(|_| veth(Suite::Aes256Gcm, 1_440, duration(report), offloads))
            .collect();
        match rounds {
            Some(rounds) => {
                figures(report, name, &rounds);
            }
            None => println!("  {name} skipped: no network namespaces here, which need root"),
        }
    }
}

fn duration(report: &Report) -> Duration {
    Duration::from_millis(if report.is_quick() { 300 } else { 1_000 })
}

/// Runs all in turn, since the machine drifts, the first of them being ours; every second round backwards.
fn compete(report: &mut Report, name: &str, contenders: &[Contender<'_>]) {
    let count = if report.is_quick() { 3 } else { 7 };
    let mut carried: Vec<Vec<Carried>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..count {
        for step in 0..contenders.len() {
            let turn = if round % 2 == 0 {
                step
            } else {
                contenders.len() - 1 - step
            };
            carried[turn].push((contenders[turn].1)());
        }
    }
    figures(report, name, &carried[0]);
    for ((peer, _), theirs) in contenders.iter().zip(&carried).skip(1) {
        println!("    {peer}: {}", in_words(theirs));
        let pairs = || carried[0].iter().zip(theirs);
        let mut ratios: Vec<f64> = pairs()
            .map(|(ours, theirs)| ours.gigabits / theirs.gigabits)
            .collect();
        report.ratio(name, peer, quantile(&mut ratios, 0.5));
        let mut ratios: Vec<f64> = pairs()
            .map(|(ours, theirs)| ours.sender_ns / theirs.sender_ns)
            .collect();
        report.ratio(&format!("{name}/sender"), peer, quantile(&mut ratios, 0.5));
        let mut ratios: Vec<f64> = pairs()
            .map(|(ours, theirs)| ours.receiver_ns / theirs.receiver_ns)
            .collect();
        report.ratio(&format!("{name}/receiver"), peer, quantile(&mut ratios, 0.5));
    }
}

fn figures(report: &mut Report, name: &str, rounds: &[Carried]) {
    println!("  {name}: {}", in_words(rounds));
    report.record(name, median(rounds, |r| r.gigabits), Unit::GigabitsPerSecond);
    report.record(
        &format!("{name}/loss"),
        median(rounds, |r| r.lost_percent),
        Unit::Percent,
    );
    report.record(
        &format!("{name}/sender"),
        median(rounds, |r| r.sender_ns),
        Unit::Nanoseconds,
    );
    report.record(
        &format!("{name}/receiver"),
        median(rounds, |r| r.receiver_ns),
        Unit::Nanoseconds,
    );
}

fn in_words(rounds: &[Carried]) -> String {
    format!(
        "{:.2} Gbit/s, loss {:.3} %, processor time of sender and receiver {:.0} + {:.0} ns a datagram",
        median(rounds, |r| r.gigabits),
        median(rounds, |r| r.lost_percent),
        median(rounds, |r| r.sender_ns),
        median(rounds, |r| r.receiver_ns),
    )
}

fn median(rounds: &[Carried], of: impl Fn(&Carried) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    quantile(&mut values, 0.5)
}

fn loopback(suite: Option<Suite>, length: usize, time: Duration) -> Carried {
    let count = Count::default();
    let a = Side::start(1, config(SENDER, "a"), Count::default());
    let b = Side::start(2, config(RECEIVER, "b"), count.clone());
    ours(&a, &b, &count, suite, (length, time))
}

fn veth(suite: Suite, length: usize, time: Duration, offloads: bool) -> Option<Carried> {
    let cable = Cable::plug(offloads)?;
    let count = Count::default();
    let counting = count.clone();
    let a = cable
        .near
        .run(|at| Side::start(1, Cable::config(at, SENDER, "a"), Count::default()));
    let b = cable
        .far
        .run(move |at| Side::start(2, Cable::config(at, RECEIVER, "b"), counting));
    Some(ours(&a, &b, &count, Some(suite), (length, time)))
}

/// Both sides' threads, and the submitting one, are counted in the processor time.
fn ours(
    a: &Side,
    b: &Side,
    count: &Count,
    suite: Option<Suite>,
    (length, time): (usize, Duration),
) -> Carried {
    connect(a, b, suite);
    let batch = chunks(BATCH, length);
    let started = Instant::now();
    let submitter = std::thread::scope(|scope| {
        let submitting = spawn(scope, "submits", || {
            pin(SENDER);
            while started.elapsed() < time {
                submit(a, to(Recipients::One(PeerId(0)), batch.clone()));
            }
            thread_time()
        });
        submitting.join().expect("it submits")
    });
    let bytes = count.bytes.load(Ordering::Relaxed);
    let measured = started.elapsed();
    // What is still on its way counts for the loss, not for the goodput.
    std::thread::sleep(Duration::from_millis(300));
    let stats = a.dataplane.stats();
    let received = count.datagrams.load(Ordering::Relaxed);
    let counted = Counted {
        bytes,
        sent: stats.authenticated.datagrams_sent + stats.plain.datagrams_sent,
        received,
        time: measured,
        sender: submitter + processor_time("a-data"),
        receiver: (processor_time("b-data"), received),
    };
    counted.carried()
}
