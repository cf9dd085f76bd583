//! What a flood of initiations does to a node, and to who wants to connect to it.
//!
//! The victim's threads and its reader have processor 1. Processor 0 has the flood, the other node and who connects; in
//! the base row the flood's thread spins without sending, so that both rows compare.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use falconet::Stats;
use falconet_benches::flood::Flood;
use falconet_benches::initiations::{Attack, Kind};
use falconet_benches::machine::{kernel_time, resident};
use falconet_benches::rig::{Count, RECEIVER, SENDER, Side, config, pin, processor_time, quantile};
use falconet_benches::{Report, Unit};
use falconet_crypto::TransportSecret;
use falconet_transport::TransportConfig;

use crate::probe::Probe;
use crate::stage::{Stage, Traffic};

const RATES: [u32; 5] = [2_000, 3_000, 4_000, 20_000, 200_000];
/// Rate, number and patience of the strangers' rows.
const STRANGERS_RATE: u32 = 20_000;
const STRANGERS: u64 = 3;
const STRANGERS_PATIENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(10));
/// From then on a node's caches forget as much as they take.
const SETTLED_AFTER: Duration = Duration::from_secs(20);
/// Threads of the victim.
const THREADS: [&str; 3] = ["victim-hs", "victim-data", "victim-cast"];

/// All cells, the table, and how the targets of issue 3 are met.
pub(crate) fn flood(report: &mut Report) {
    if !report.wants("flood") {
        return;
    }
    let time = Duration::from_secs(if report.is_quick() { 1 } else { 10 });
    let stage = Stage::new();
    let attacks = Kind::ALL.map(|kind| Attack::new(kind, &stage.victim.transport_key()));
    println!(
        "  processor time in % of a core: handshake, dataplane and raptorcast thread, kernel on processors 0 and 1"
    );
    println!(
        "  {:<22} {:>8} {:>6} {:>6} {:>6} {:>5} {:>5} {:>7} {:>7} {:>6} {:>7} {:>8} {:>7} {:>15}  discards/s",
        "flood",
        "sent/s",
        "hs",
        "data",
        "cast",
        "k0",
        "k1",
        "RSS MB",
        "Mbit/s",
        "loss %",
        "p99 ms",
        "ns/msg",
        "bcast",
        "connect p50/max"
    );
    // What the broadcasts of its first 20 s take in the caches is not the flood's.
    cell(&stage, None, SETTLED_AFTER);
    let base = cell(&stage, None, time);
    base.print("none", 0.0);
    base.record(report, "flood/none", 0.0);
    let mut cells = Vec::new();
    for (kind, attack) in Kind::ALL.into_iter().zip(&attacks) {
        for rate in RATES {
            let found = cell(&stage, Some((attack, rate)), time);
            let cost = found.cost_of_message(&base, time);
            found.print(&format!("{}/{rate}", kind.name()), cost);
            found.record(report, &format!("flood/{}/{rate}", kind.name()), cost);
            cells.push((found, cost));
        }
    }
    drop(stage);
    let stranger = strangers(report);
    judge(&base, &cells, stranger);
}

/// What one cell found.
struct Found {
    sent: u64,
    time: Duration,
    /// Percent of a core.
    threads: [f64; 3],
    kernel: [f64; 2],
    resident: f64,
    traffic: Traffic,
    discards: Vec<(&'static str, u64)>,
}

fn cell(stage: &Stage, attack: Option<(&Attack, u32)>, time: Duration) -> Found {
    let target = stage.target();
    let before = (
        THREADS.map(processor_time),
        [SENDER, RECEIVER].map(kernel_time),
        stage.stats(),
    );
    let started = Instant::now();
    let (sent, traffic) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            pin(SENDER);
            let rate = attack.map_or(0.0, |(_, rate)| f64::from(rate));
            let send = |number| attack.is_some_and(|(attack, _)| attack.send(target, number));
            Flood::new(target, Some(rate), time).run(1, send)
        });
        let traffic = stage.run(time);
        (flood.join().expect("no panic"), traffic)
    });
    let elapsed = started.elapsed();
    let percent = |now: Duration, before| 100.0 * (now - before).as_secs_f64() / elapsed.as_secs_f64();
    Found {
        sent,
        time,
        threads: std::array::from_fn(|i| percent(processor_time(THREADS[i]), before.0[i])),
        kernel: std::array::from_fn(|i| percent(kernel_time([SENDER, RECEIVER][i]), before.1[i])),
        resident: resident() as f64 * 1e-6,
        traffic,
        discards: difference(&before.2, &stage.stats()),
    }
}

/// Discards since `before`, most of them first.
fn difference(before: &Stats, now: &Stats) -> Vec<(&'static str, u64)> {
    let mut discards: Vec<_> = now
        .discards
        .iter()
        .map(|(label, count)| (*label, count - before.discarded(label)))
        .filter(|(_, count)| *count > 0)
        .collect();
    discards.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    discards
}

impl Found {
    /// Nanoseconds of the handshake thread for each message sent, above what it does without a flood.
    fn cost_of_message(&self, base: &Found, time: Duration) -> f64 {
        let seconds = (self.threads[0] - base.threads[0]) / 100.0 * time.as_secs_f64();
        1e9 * seconds / self.sent.max(1) as f64
    }

    /// Median and longest time in which the validator connected, in ms; what was in vain counts as it is.
    fn connects(&self) -> (f64, f64) {
        let mut times: Vec<f64> = self
            .traffic
            .connects
            .iter()
            .map(|took| took.unwrap_or_else(|in_vain| in_vain))
            .collect();
        (
            quantile(&mut times, 0.5),
            times.last().copied().unwrap_or(f64::NAN),
        )
    }

    fn print(&self, name: &str, cost: f64) {
        let seconds = self.time.as_secs_f64();
        let [hs, data, cast] = self.threads;
        let [k0, k1] = self.kernel;
        let traffic = &self.traffic;
        let (median, longest) = self.connects();
        let discards: Vec<_> = self
            .discards
            .iter()
            .map(|(label, count)| format!("{label} {:.0}", *count as f64 / seconds))
            .collect();
        println!(
            "  {name:<22} {:>8.0} {hs:>6.2} {data:>6.2} {cast:>6.2} {k0:>5.1} {k1:>5.1} {:>7.1} {:>7.1} {:>6.2} {:>7.2} {cost:>8.0} {:>3}/{:<3} {:>15}  {}",
            self.sent as f64 / seconds,
            self.resident,
            traffic.goodput,
            traffic.lost_percent,
            traffic.p99_ms,
            traffic.broadcasts.0,
            traffic.broadcasts.1,
            format!("{median:.1}/{longest:.0} ms"),
            discards.join(", "),
        );
    }

    fn record(&self, report: &mut Report, name: &str, cost: f64) {
        let [hs, data, cast] = self.threads;
        let (median, longest) = self.connects();
        let rate = self.sent as f64 / self.time.as_secs_f64();
        for (what, value, unit) in [
            ("sent", rate, Unit::PerSecond),
            ("handshake-cpu", hs, Unit::Percent),
            ("dataplane-cpu", data, Unit::Percent),
            ("raptorcast-cpu", cast, Unit::Percent),
            ("kernel-0", self.kernel[0], Unit::Percent),
            ("kernel-1", self.kernel[1], Unit::Percent),
            ("resident", self.resident * 1e6, Unit::Bytes),
            ("goodput", self.traffic.goodput * 1e-3, Unit::GigabitsPerSecond),
            ("loss", self.traffic.lost_percent, Unit::Percent),
            ("p99", self.traffic.p99_ms, Unit::Milliseconds),
            ("message", cost, Unit::Nanoseconds),
            ("validator/p50", median, Unit::Milliseconds),
            ("validator/max", longest, Unit::Milliseconds),
        ] {
            report.record(&format!("{name}/{what}"), value, unit);
        }
    }
}

/// How long strangers take to connect to a dataplane that accepts them; the longest, in seconds.
fn strangers(report: &mut Report) -> f64 {
    let patience = if report.is_quick() {
        STRANGERS_PATIENCE.1
    } else {
        STRANGERS_PATIENCE.0
    };
    let transport = TransportConfig::default().with_accept_unknown(true);
    let host = Side::start_with(9, transport, config(RECEIVER, "host"), Count::default());
    let target = host.dataplane.local_addr().expect("a lane");
    let key = TransportSecret::from_bytes([9; 32]).public();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let mut probe = Probe::new(socket, key, target);
    let mut longest = 0.0_f64;
    for (number, kind) in (0..).zip(Kind::ALL) {
        let (attack, over) = (Attack::new(kind, &key), AtomicBool::new(false));
        let flood = Flood::new(target, Some(f64::from(STRANGERS_RATE)), patience).with_stop(&over);
        let times: Vec<f64> = std::thread::scope(|scope| {
            scope.spawn(|| {
                pin(SENDER);
                flood.run(1, |number| attack.send(target, number));
                over.store(true, Ordering::Relaxed);
            });
            pin(SENDER);
            // The flood is at full height.
            std::thread::sleep(Duration::from_millis(500));
            let strangers = (1..=STRANGERS).map(|stranger| {
                let secret = TransportSecret::from_bytes([(10 + STRANGERS * number + stranger) as u8; 32]);
                let took = probe.connect(secret, || over.load(Ordering::Relaxed));
                took.map_or(f64::INFINITY, |took| took.as_secs_f64())
            });
            let times = strangers.collect();
            over.store(true, Ordering::Relaxed);
            times
        });
        let slowest = times.iter().copied().fold(0.0, f64::max);
        println!(
            "  strangers, {}/{STRANGERS_RATE}: connected in {times:.3?} s",
            kind.name()
        );
        report.record(
            &format!("flood/{}/stranger", kind.name()),
            1e3 * slowest,
            Unit::Milliseconds,
        );
        longest = longest.max(slowest);
    }
    longest
}

/// The worst of all cells beside the targets.
fn judge(base: &Found, cells: &[(Found, f64)], stranger: f64) {
    let worst = |of: &dyn Fn(&(Found, f64)) -> f64| cells.iter().map(of).fold(f64::MIN, f64::max);
    let least = cells.iter().map(|cell| cell.0.resident).fold(f64::MAX, f64::min);
    let above_base = |thread: usize| worst(&|cell| cell.0.threads[thread] - base.threads[thread]);
    println!("\n  worst of all cells                             found    target");
    for (name, found, target) in [
        (
            "RSS, above the least, %",
            100.0 * (worst(&|cell| cell.0.resident) / least - 1.0),
            10.0,
        ),
        ("dataplane thread, points above none", above_base(1), 1.0),
        ("raptorcast thread, points above none", above_base(2), 1.0),
        ("handshake thread, ns a message", worst(&|cell| cell.1), 1_500.0),
        (
            "handshake thread, % of a core",
            worst(&|cell| cell.0.threads[0]),
            50.0,
        ),
        (
            "known validator connects, ms",
            worst(&|cell| cell.0.connects().1),
            2_000.0,
        ),
        ("stranger connects at 20,000/s, ms", 1e3 * stranger, 60_000.0),
    ] {
        let verdict = if found <= target { "met" } else { "MISSED" };
        println!("  {name:<40} {found:>11.2} {target:>9.0}  {verdict}");
    }
}
