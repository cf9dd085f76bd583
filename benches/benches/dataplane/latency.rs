//! There and back of a lone datagram, beside a plain echo on tokio.

use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use falconet_benches::{Report, Unit};
use falconet_crypto::Suite;
use falconet_dataplane::{Consumer, Full, Inbound, Recipients};
use falconet_transport::PeerId;

use crate::rig::{RECEIVER, SENDER, Side, chunks, config, connect, pin, quantile, submit, to};

const LENGTH: usize = 1_440;
/// Pause between two datagrams: everything sleeps again.
const PAUSE: Duration = Duration::from_micros(500);

pub(crate) fn lone(report: &mut Report) {
    if !report.wants("latency") {
        return;
    }
    let count = if report.is_quick() { 400 } else { 3_000 };
    println!(
        "  round trips of one datagram at a time; ours: 2 sockets' wakes and 2 of the caller, the echo: 2"
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_bounces, mut their_bounces) = (Vec::new(), Vec::new());
    // In turn, since the machine drifts.
    for _ in 0..4 {
        ours.extend(our_round_trips(count / 4));
        theirs.extend(echo_round_trips(count / 4, PAUSE));
        our_bounces.extend(bounces(count / 4));
        their_bounces.extend(echo_round_trips(count / 4, Duration::ZERO));
    }
    println!(
        "  api: a thread of the caller asks, with pauses; handler: the dataplane threads answer each other"
    );
    report_quantiles(report, "latency/api", &mut ours, &mut theirs);
    report_quantiles(report, "latency/handler", &mut our_bounces, &mut their_bounces);
}

fn report_quantiles(report: &mut Report, name: &str, ours: &mut [f64], theirs: &mut [f64]) {
    for (quantile_name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let (our, their) = (quantile(ours, share), quantile(theirs, share));
        let name = format!("{name}/{quantile_name}");
        report.figure(&name, our, Unit::Microseconds);
        println!("    tokio echo: {their:.1} us");
        report.ratio(&name, "tokio-echo", our / their);
    }
}

/// Answers each datagram on the dataplane thread, and notes how long after the one before it came.
#[derive(Clone)]
struct Bounce {
    echo: Echo,
    last: Option<Instant>,
    left: usize,
    micros: Sender<f64>,
}

impl Consumer for Bounce {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            // The bench may have gone.
            let _ = self.micros.send((now - last).as_secs_f64() * 1e6);
        }
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.echo.deliver(batch)
    }
}

/// Round trips of one datagram that two dataplane threads bounce: two wakes each, as the echo and its client have.
fn bounces(count: usize) -> Vec<f64> {
    let (micros, measured) = channel();
    let (near, far) = (Echo::default(), Echo::default());
    let bounce = Bounce {
        echo: near.clone(),
        last: None,
        left: count + 20,
        micros,
    };
    let (a, b) = (
        Side::start(1, config(SENDER, "a"), bounce),
        Side::start(2, config(RECEIVER, "b"), far.clone()),
    );
    near.0.get_or_init(|| a.dataplane.sender());
    far.0.get_or_init(|| b.dataplane.sender());
    connect(&a, &b, Some(Suite::ChaCha20Poly1305));
    submit(&a, to(Recipients::One(PeerId(0)), chunks(1, LENGTH)));
    let next = || measured.recv_timeout(Duration::from_secs(1)).ok();
    std::iter::from_fn(next).take(count + 20).skip(20).collect()
}

/// Tells the caller of each datagram.
#[derive(Clone)]
struct Tell(Sender<()>);

impl Consumer for Tell {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        for _ in batch {
            // The caller may have gone.
            let _ = self.0.send(());
        }
        Ok(())
    }
}

/// Sends each datagram back from the dataplane thread.
#[derive(Clone, Default)]
struct Echo(std::sync::Arc<std::sync::OnceLock<falconet_dataplane::Sender>>);

impl Consumer for Echo {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let datagrams = batch.into_iter().map(|inbound| inbound.datagram).collect();
        if let Some(sender) = self.0.get() {
            sender
                .try_send(to(Recipients::One(PeerId(0)), datagrams))
                .map_err(|_| Full)?;
        }
        Ok(())
    }
}

fn our_round_trips(count: usize) -> Vec<f64> {
    let (told, returned): (_, Receiver<()>) = channel();
    let echo = Echo::default();
    let (a, b) = (
        Side::start(1, config(SENDER, "a"), Tell(told)),
        Side::start(2, config(RECEIVER, "b"), echo.clone()),
    );
    echo.0.get_or_init(|| b.dataplane.sender());
    connect(&a, &b, Some(Suite::ChaCha20Poly1305));
    let a = &a;
    round_trips(count, PAUSE, move || {
        submit(a, to(Recipients::One(PeerId(0)), chunks(1, LENGTH)));
        returned.recv_timeout(Duration::from_secs(1)).is_ok()
    })
}

fn echo_round_trips(count: usize, pause: Duration) -> Vec<f64> {
    let server = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let address = server.local_addr().expect("it is bound");
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        pin(RECEIVER);
        server.set_nonblocking(true).expect("an option");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let server = tokio::net::UdpSocket::from_std(server).expect("a runtime");
            let mut buffer = [0; 2_048];
            while stopped.try_recv().is_err() {
                let (length, from) = server.recv_from(&mut buffer).await.expect("loopback");
                server.send_to(&buffer[..length], from).await.expect("loopback");
            }
        });
    });
    let client = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    client.connect(address).expect("loopback");
    client
        .set_read_timeout(Some(Duration::from_secs(1)))
        .expect("an option");
    let (datagram, mut buffer) = (vec![0x5a; LENGTH], [0; 2_048]);
    let times = round_trips(count, pause, || {
        client.send(&datagram).expect("loopback");
        client.recv(&mut buffer).is_ok()
    });
    stop.send(()).expect("the echo listens");
    client.send(&datagram).expect("loopback");
    thread.join().expect("the echo ends");
    times
}

/// Microseconds of each of `count` round trips; the first ones warm up.
fn round_trips(count: usize, pause: Duration, mut once: impl FnMut() -> bool + Send) -> Vec<f64> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin(SENDER);
            let mut times = Vec::with_capacity(count);
            for round in 0..count + 20 {
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
                let started = Instant::now();
                if once() && round >= 20 {
                    times.push(started.elapsed().as_secs_f64() * 1e6);
                }
            }
            times
        });
        thread.join().expect("round trips")
    })
}
