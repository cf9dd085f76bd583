//! Floods of several kinds against 200 Mbit/s of authenticated traffic.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_benches::flood::Flood;
use falconet_benches::{Report, Unit};
use falconet_crypto::{Suite, TransportSecret};
use falconet_dataplane::{Consumer, DataplaneConfig, Full, Inbound, Recipients};
use falconet_transport::PeerId;

use crate::attack::Attack;
use crate::cable::Cable;
use crate::rig::{Count, RECEIVER, SENDER, Side, config, connect, pin, processor_time, quantile, submit, to};

/// 1,440 bytes of payload are 1,538 on the wire with frame and headers: 17 a millisecond are 209 Mbit/s.
const VALID_A_MILLISECOND: usize = 17;
/// Marks a datagram that carries the time of its sending.
const FRESH: u8 = 0x5a;
/// The victim's key.
const VICTIM: u8 = 2;

/// What is sent, and how fast (datagrams a second; none is as fast as it goes).
#[derive(Clone, Copy)]
enum Kind {
    Junk,
    /// With so many bytes of plaintext.
    Replay(usize),
    Initiations,
}

/// The rows: name, what is sent, its rate.
const ROWS: [(&str, Kind, Option<f64>); 10] = [
    ("none", Kind::Junk, Some(0.0)),
    ("junk/638k", Kind::Junk, Some(638e3)),
    ("junk/1.04M", Kind::Junk, Some(1.04e6)),
    ("junk/unlimited", Kind::Junk, None),
    ("replay/32B/500k", Kind::Replay(32), Some(500e3)),
    ("replay/32B/unlimited", Kind::Replay(32), None),
    ("replay/1440B/500k", Kind::Replay(1_440), Some(500e3)),
    ("initiations/20k", Kind::Initiations, Some(20e3)),
    ("initiations/100k", Kind::Initiations, Some(100e3)),
    ("initiations/unlimited", Kind::Initiations, None),
];

pub(crate) fn floods(report: &mut Report) {
    println!("  floods; by the kernel's filters, and by the threads alone");
    for (name, kind, rate) in ROWS {
        let both = matches!(kind, Kind::Junk);
        for (judges, filtered) in [("kernel", true), ("threads", false)] {
            let name = format!("flood/{name}/{judges}");
            if (filtered || both) && report.wants(&name) {
                let found = on_loopback(kind, rate, filtered, time(report));
                found.report(report, &name);
            }
        }
    }
    for (name, rate) in [("none", Some(0.0)), ("1.04M", Some(1.04e6)), ("unlimited", None)] {
        let name = format!("flood/veth/{name}");
        if report.wants(&name) {
            match over_a_cable(rate, time(report)) {
                Some(found) => found.report(report, &name),
                None => println!("  {name} skipped: no network namespaces or no RPS here, which need root"),
            }
        }
    }
}

fn time(report: &Report) -> Duration {
    Duration::from_secs(if report.is_quick() { 1 } else { 4 })
}

struct Found {
    /// A second.
    flood: f64,
    lost_percent: f64,
    p99_ms: f64,
    /// Of the victim's dataplane thread, and of its handshake thread.
    cpu_percent: [f64; 2],
}

impl Found {
    fn report(&self, report: &mut Report, name: &str) {
        println!(
            "  {name:<34} {:>9.0}/s, valid loss {:.3} %, p99 {:.2} ms, dataplane thread {:.1} %, handshake thread {:.1} %",
            self.flood, self.lost_percent, self.p99_ms, self.cpu_percent[0], self.cpu_percent[1]
        );
        report.record(&format!("{name}/flood"), self.flood, Unit::PerSecond);
        report.record(&format!("{name}/loss"), self.lost_percent, Unit::Percent);
        report.record(&format!("{name}/p99"), self.p99_ms, Unit::Milliseconds);
        report.record(&format!("{name}/cpu"), self.cpu_percent[0], Unit::Percent);
        report.record(
            &format!("{name}/cpu-handshakes"),
            self.cpu_percent[1],
            Unit::Percent,
        );
    }
}

/// Notes how long each fresh datagram took, by the time of sending that it carries.
#[derive(Clone)]
struct Stopwatch {
    zero: Instant,
    milliseconds: Arc<Mutex<Vec<f64>>>,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch {
            zero: Instant::now(),
            milliseconds: Arc::default(),
        }
    }
}

impl Consumer for Stopwatch {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let now = self.zero.elapsed().as_nanos() as u64;
        let mut milliseconds = self.milliseconds.lock().expect("no panic");
        for inbound in batch.iter().filter(|inbound| inbound.datagram[9] == FRESH) {
            let sent = u64::from_le_bytes(inbound.datagram[1..9].try_into().expect("eight bytes"));
            milliseconds.push((now - sent) as f64 * 1e-6);
        }
        Ok(())
    }
}

/// Receive offload is off: so the kernel judges each datagram by itself, as it does those of different senders.
fn victim(config: DataplaneConfig, filtered: bool) -> DataplaneConfig {
    config
        .with_aggregation(false)
        .with_kernel_filter(filtered)
        .with_kernel_steering(filtered)
}

fn on_loopback(kind: Kind, rate: Option<f64>, filtered: bool, time: Duration) -> Found {
    let watch = Stopwatch::start();
    let receiver = victim(config(RECEIVER, "victim"), filtered);
    let a = Side::start(1, config(SENDER, "a"), Count::default());
    let b = Side::start(VICTIM, receiver, watch.clone());
    connect(&a, &b, Some(Suite::Aes256Gcm));
    // No address that anybody else here uses.
    let socket = UdpSocket::bind("127.0.0.2:0").expect("loopback");
    let attack = match kind {
        Kind::Junk => Attack::junk(socket),
        Kind::Replay(length) => Attack::replay(socket, &a, length),
        Kind::Initiations => Attack::initiations(socket, &TransportSecret::from_bytes([VICTIM; 32]).public()),
    };
    run(&a, &b, &watch, attack, (rate, time))
}

/// Between two namespaces, each datagram a packet of its own, the stack's work on arrivals on the receiver's processor.
fn over_a_cable(rate: Option<f64>, time: Duration) -> Option<Found> {
    let cable = Cable::plug(false)?;
    if !cable.steer_arrivals(RECEIVER) {
        return None;
    }
    let watch = Stopwatch::start();
    let watching = watch.clone();
    let a = cable
        .near
        .run(|at| Side::start(1, Cable::config(at, SENDER, "a"), Count::default()));
    let b = cable.far.run(move |at| {
        let receiver = victim(Cable::config(at, RECEIVER, "victim"), true);
        Side::start(VICTIM, receiver, watching)
    });
    connect(&a, &b, Some(Suite::Aes256Gcm));
    let socket = cable
        .near
        .run(|at| UdpSocket::bind((at, 0)).expect("an end of the cable"));
    Some(run(&a, &b, &watch, Attack::junk(socket), (rate, time)))
}

fn run(
    a: &Side,
    b: &Side,
    watch: &Stopwatch,
    mut attack: Attack,
    (rate, time): (Option<f64>, Duration),
) -> Found {
    let target = b.dataplane.local_addr().expect("a lane");
    let busy = || ["victim-data", "victim-hs"].map(processor_time);
    let before = busy();
    let (sent, flood) = std::thread::scope(|scope| {
        let flood = scope.spawn(move || {
            pin(SENDER);
            Flood::new(target, rate, time).run(attack.group(), |number| attack.send(target, number))
        });
        let valid = scope.spawn(|| send_valid(a, watch.zero, time));
        (valid.join().expect("valid"), flood.join().expect("a flood"))
    });
    let after = busy();
    // What waits in a buffer of 16 MiB of small datagrams.
    std::thread::sleep(Duration::from_millis(500));
    let mut milliseconds = watch.milliseconds.lock().expect("no panic").clone();
    let percent = |at: usize| {
        let used = after[at].saturating_sub(before[at]);
        100.0 * used.as_secs_f64() / time.as_secs_f64()
    };
    Found {
        flood: flood as f64 / time.as_secs_f64(),
        lost_percent: 100.0 * (1.0 - milliseconds.len() as f64 / sent.max(1) as f64),
        p99_ms: quantile(&mut milliseconds, 0.99),
        cpu_percent: [percent(0), percent(1)],
    }
}

/// Sends valid datagrams, some each millisecond; returns how many.
fn send_valid(from: &Side, zero: Instant, time: Duration) -> u64 {
    pin(SENDER);
    let started = Instant::now();
    let mut sent = 0;
    for millisecond in 0.. {
        if started.elapsed() >= time {
            break;
        }
        let datagrams = (0..VALID_A_MILLISECOND)
            .map(|_| {
                let mut datagram = vec![FRESH; 1_440];
                datagram[0] = 0x11;
                datagram[1..9].copy_from_slice(&(zero.elapsed().as_nanos() as u64).to_le_bytes());
                Bytes::from(datagram)
            })
            .collect();
        submit(from, to(Recipients::One(PeerId(0)), datagrams));
        sent += VALID_A_MILLISECOND as u64;
        let next = started + Duration::from_millis(millisecond + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    sent
}
