//! Junk of 32 bytes, as much as comes, against 200 Mbit/s of authenticated traffic.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet_benches::flood::Flood;
use falconet_benches::{Report, Unit};
use falconet_crypto::Suite;
use falconet_dataplane::{Consumer, Full, Inbound, Recipients};
use falconet_transport::PeerId;
use quinn_udp::{Transmit, UdpSocketState};

use crate::rig::{Count, RECEIVER, SENDER, Side, config, connect, pin, processor_time, quantile, submit, to};

/// Junk datagrams of one call; the receiver has receive offload off, so its kernel judges each by itself.
const BURST: usize = 64;
const JUNK: usize = 32;
/// 1,440 bytes of payload are 1,538 on the wire with frame and headers: 17 a millisecond are 209 Mbit/s.
const VALID_A_MILLISECOND: usize = 17;

pub(crate) fn junk(report: &mut Report) {
    if !report.wants("flood") {
        return;
    }
    println!("  type 4, guessed receiver indices; by the kernel's filters, and by the threads alone");
    for (name, rate) in [
        ("none", Some(0.0)),
        ("638k", Some(638e3)),
        ("1.04M", Some(1.04e6)),
        ("unlimited", None),
    ] {
        for (kind, filtered) in [("kernel", true), ("threads", false)] {
            let found = run(rate, filtered, report.is_quick());
            let name = format!("flood/{name}/{kind}");
            report.figure(&format!("{name}/junk"), found.junk_rate, Unit::PerSecond);
            report.figure(&format!("{name}/loss"), found.lost_percent, Unit::Percent);
            report.figure(&format!("{name}/p99"), found.p99_ms, Unit::Milliseconds);
            report.figure(&format!("{name}/cpu"), found.cpu_percent, Unit::Percent);
        }
    }
}

struct Found {
    junk_rate: f64,
    lost_percent: f64,
    p99_ms: f64,
    cpu_percent: f64,
}

/// Notes how long each datagram took, by the time of sending that it carries.
#[derive(Clone)]
struct Stopwatch {
    zero: Instant,
    milliseconds: Arc<Mutex<Vec<f64>>>,
}

impl Consumer for Stopwatch {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let now = self.zero.elapsed().as_nanos() as u64;
        let mut milliseconds = self.milliseconds.lock().expect("no panic");
        for inbound in batch {
            let sent = u64::from_le_bytes(inbound.datagram[1..9].try_into().expect("eight bytes"));
            milliseconds.push((now - sent) as f64 * 1e-6);
        }
        Ok(())
    }
}

fn run(rate: Option<f64>, filtered: bool, quick: bool) -> Found {
    let time = Duration::from_secs(if quick { 1 } else { 4 });
    let watch = Stopwatch {
        zero: Instant::now(),
        milliseconds: Arc::default(),
    };
    let receiver = config(RECEIVER, "victim")
        .with_aggregation(false)
        .with_kernel_filter(filtered)
        .with_kernel_steering(filtered);
    let (a, b) = (
        Side::start(1, config(SENDER, "a"), Count::default()),
        Side::start(2, receiver, watch.clone()),
    );
    connect(&a, &b, Some(Suite::Aes256Gcm));
    let target = b.dataplane.local_addr().expect("a lane");
    let before = processor_time("victim-data");
    let (sent, junk) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood(target, rate, time));
        let valid = scope.spawn(|| send_valid(&a, watch.zero, time));
        (valid.join().expect("valid"), flood.join().expect("junk"))
    });
    let cpu = processor_time("victim-data").saturating_sub(before);
    std::thread::sleep(Duration::from_millis(200));
    let mut milliseconds = watch.milliseconds.lock().expect("no panic").clone();
    Found {
        junk_rate: junk as f64 / time.as_secs_f64(),
        lost_percent: 100.0 * (1.0 - milliseconds.len() as f64 / sent.max(1) as f64),
        p99_ms: quantile(&mut milliseconds, 0.99),
        cpu_percent: 100.0 * cpu.as_secs_f64() / time.as_secs_f64(),
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
                let mut datagram = vec![0x5a; 1_440];
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

/// Sends junk to `target` on loopback at `rate` a second, or as fast as it goes; returns how much.
fn flood(target: SocketAddr, rate: Option<f64>, time: Duration) -> u64 {
    pin(SENDER);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let state = UdpSocketState::new((&socket).into()).expect("options");
    let (mut contents, mut guess) = (vec![0; JUNK * BURST], 1_u32);
    Flood::new(target, rate, time).run(BURST as u64, |_| {
        for datagram in contents.chunks_mut(JUNK) {
            guess = guess.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            datagram[0] = 4;
            datagram[4..8].copy_from_slice(&guess.to_be_bytes());
        }
        let transmit = Transmit {
            destination: target,
            ecn: None,
            contents: &contents,
            segment_size: Some(JUNK),
            src_ip: None,
        };
        state.try_send((&socket).into(), &transmit).is_ok()
    })
}
