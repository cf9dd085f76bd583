//! How much gets through: the raw path beside `quinn-udp`, the authenticated one beside boringtun.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use boringtun::noise::TunnResult;
use falconet_benches::{Report, Unit, peers};
use falconet_crypto::Suite;
use falconet_dataplane::Recipients;
use falconet_transport::PeerId;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

use crate::rig::{Count, RECEIVER, SENDER, Side, chunks, config, connect, pin, submit, to};

/// Datagrams of one submission.
const BATCH: usize = 440;
/// Segments of one grouped send.
const GROUP: usize = 44;

/// What one direction carried.
struct Carried {
    gigabits: f64,
    lost_percent: f64,
}

impl Carried {
    fn of(bytes: u64, sent: u64, received: u64, time: Duration) -> Carried {
        Carried {
            gigabits: bytes as f64 * 8e-9 / time.as_secs_f64(),
            lost_percent: 100.0 * (1.0 - received as f64 / sent.max(1) as f64),
        }
    }
}

/// 1,472 bytes a datagram, nothing sealed.
pub(crate) fn raw(report: &mut Report) {
    if report.wants("raw") {
        let time = duration(report);
        let rounds = rounds(report, || ours(None, 1_472, time), || quinn_udp(1_472, time));
        report_rounds(report, "raw/1472", "quinn-udp", &rounds);
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
            let rounds = rounds(
                report,
                || ours(Some(suite), 1_440, time),
                || boringtun(1_440, time),
            );
            report_rounds(report, name, "boringtun", &rounds);
        }
    }
}

fn duration(report: &Report) -> Duration {
    Duration::from_millis(if report.is_quick() { 300 } else { 1_000 })
}

/// In turn, since the machine drifts.
fn rounds(
    report: &Report,
    ours: impl Fn() -> Carried,
    theirs: impl Fn() -> Carried,
) -> Vec<(Carried, Carried)> {
    let count = if report.is_quick() { 3 } else { 7 };
    (0..count).map(|_| (ours(), theirs())).collect()
}

fn report_rounds(report: &mut Report, name: &str, peer: &str, rounds: &[(Carried, Carried)]) {
    let median = |of: &dyn Fn(&(Carried, Carried)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        crate::rig::quantile(&mut values, 0.5)
    };
    report.figure(name, median(&|r| r.0.gigabits), Unit::GigabitsPerSecond);
    report.figure(
        &format!("{name}/loss"),
        median(&|r| r.0.lost_percent),
        Unit::Percent,
    );
    println!(
        "    {peer}: {:.3} Gbit/s, loss {:.1} %",
        median(&|r| r.1.gigabits),
        median(&|r| r.1.lost_percent)
    );
    report.ratio(name, peer, median(&|r| r.0.gigabits / r.1.gigabits));
}

fn ours(suite: Option<Suite>, length: usize, time: Duration) -> Carried {
    let count = Count::default();
    let (a, b) = (
        Side::start(1, config(SENDER, "a"), Count::default()),
        Side::start(2, config(RECEIVER, "b"), count.clone()),
    );
    connect(&a, &b, suite);
    let batch = chunks(BATCH, length);
    let (started, mut sent) = (Instant::now(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(SENDER);
            while started.elapsed() < time {
                submit(&a, to(Recipients::One(PeerId(0)), batch.clone()));
            }
        });
    });
    let bytes = count.bytes.load(Ordering::Relaxed);
    let measured = started.elapsed();
    // What is still on its way counts for the loss, not for the goodput.
    std::thread::sleep(Duration::from_millis(300));
    let stats = a.dataplane.stats();
    sent += stats.authenticated.datagrams_sent + stats.plain.datagrams_sent;
    Carried::of(bytes, sent, count.datagrams.load(Ordering::Relaxed), measured)
}

/// A pair of sockets with large buffers.
fn sockets() -> (UdpSocket, UdpSocket) {
    let open = || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let state = UdpSocketState::new((&socket).into()).expect("options");
        // As ours ask for; the system may clamp it.
        let _ = state.set_recv_buffer_size((&socket).into(), 16 << 20);
        let _ = state.set_send_buffer_size((&socket).into(), 16 << 20);
        socket
    };
    (open(), open())
}

/// `quinn-udp` with nothing around it, in groups as ours.
fn quinn_udp(length: usize, time: Duration) -> Carried {
    let (sender, receiver) = sockets();
    let destination = receiver.local_addr().expect("it is bound");
    let contents = vec![0x5a; length * GROUP];
    let sending = UdpSocketState::new((&sender).into()).expect("options");
    let send = move || {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: &contents,
            segment_size: Some(length),
            src_ip: None,
        };
        let sent = sending.try_send((&sender).into(), &transmit).is_ok();
        if sent { GROUP as u64 } else { 0 }
    };
    let mut buffers = vec![vec![0_u8; 64 << 10]; 4];
    let state = UdpSocketState::new((&receiver).into()).expect("options");
    receiver.set_nonblocking(true).expect("an option");
    let receive = move || {
        let mut metas = [RecvMeta::default(); 4];
        let mut iter = buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; 4] =
            std::array::from_fn(|_| IoSliceMut::new(iter.next().expect("four")));
        match state.recv((&receiver).into(), &mut slices, &mut metas) {
            Ok(filled) => metas[..filled].iter().fold((0, 0), |(datagrams, bytes), meta| {
                let stride = meta.stride.max(1);
                (
                    datagrams + meta.len.div_ceil(stride) as u64,
                    bytes + meta.len as u64,
                )
            }),
            Err(_) => (0, 0),
        }
    };
    drive(send, receive, time)
}

/// boringtun with one `sendto` and one `recvfrom` a datagram.
fn boringtun(length: usize, time: Duration) -> Carried {
    let (sender, receiver) = sockets();
    sender
        .connect(receiver.local_addr().expect("it is bound"))
        .expect("loopback");
    receiver.set_nonblocking(true).expect("an option");
    let (mut sealer, mut opener) = peers::boringtun_pair();
    let packet = peers::ipv4_packet(length);
    let (mut sealed, mut datagram, mut opened) = ([0; 2_048], [0; 2_048], [0; 2_048]);
    let send = move || {
        let TunnResult::WriteToNetwork(datagram) = sealer.encapsulate(&packet, &mut sealed) else {
            panic!("there is a session");
        };
        u64::from(sender.send(datagram).is_ok())
    };
    let receive = move || {
        let Ok(received) = receiver.recv(&mut datagram) else {
            return (0, 0);
        };
        match opener.decapsulate(None, &datagram[..received], &mut opened) {
            TunnResult::WriteToTunnelV4(packet, _) => (1, packet.len() as u64),
            _ => (0, 0),
        }
    };
    drive(send, receive, time)
}

/// Runs `send` on one processor and `receive` on the other until `time` has passed.
fn drive(
    mut send: impl FnMut() -> u64 + Send,
    mut receive: impl FnMut() -> (u64, u64) + Send,
    time: Duration,
) -> Carried {
    let done = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            pin(SENDER);
            let mut sent = 0;
            while started.elapsed() < time {
                sent += send();
            }
            done.store(true, Ordering::Release);
            sent
        });
        let receiving = scope.spawn(|| {
            pin(RECEIVER);
            let (mut received, mut bytes, mut in_time) = (0, 0, 0);
            let mut end = None;
            // Some time longer, for what is on its way.
            while end.is_none_or(|end: Instant| end.elapsed() < Duration::from_millis(100)) {
                let (datagrams, length) = receive();
                received += datagrams;
                bytes += length;
                if end.is_none() && done.load(Ordering::Acquire) {
                    in_time = bytes;
                    end = Some(Instant::now());
                }
            }
            (received, in_time)
        });
        let sent = sending.join().expect("it sends");
        let (received, bytes) = receiving.join().expect("it receives");
        Carried::of(bytes, sent, received, time)
    })
}
