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
/// Round trips that are not counted.
const WARM_UP: usize = 20;
/// Pause between two datagrams: everything sleeps again.
const PAUSE: Duration = Duration::from_micros(500);

pub(crate) fn lone(report: &mut Report) {
    if !report.wants("latency") {
        return;
    }
    let count = if report.is_quick() { 400 } else { 3_000 };
    println!("  round trips of one datagram at a time");
    let (mut ours, mut theirs) = (Trips::default(), Trips::default());
    let (mut our_bounces, mut their_bounces) = (Trips::default(), Trips::default());
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
    let wakes = |trips: &Trips| trips.naps as f64 / trips.micros.len().max(1) as f64;
    // The caller's own wake at the end is on top for `api`, and the echo has two: its own and the client's.
    report.figure("latency/api/wakes", 1.0 + wakes(&ours), Unit::Count);
    report.figure("latency/handler/wakes", wakes(&our_bounces), Unit::Count);
    let (ours, theirs) = (&mut ours.micros, &mut theirs.micros);
    let (our_bounces, their_bounces) = (&mut our_bounces.micros, &mut their_bounces.micros);
    report_quantiles(report, "latency/api", ours, theirs);
    report_quantiles(report, "latency/handler", our_bounces, their_bounces);
}

/// How long round trips took, and how often a dataplane thread went to sleep meanwhile, as often as it was woken.
#[derive(Default)]
struct Trips {
    micros: Vec<f64>,
    naps: u64,
}

impl Trips {
    fn extend(&mut self, more: Trips) {
        self.micros.extend(more.micros);
        self.naps += more.naps;
    }
}

fn naps(sides: [&Side; 2]) -> u64 {
    sides
        .iter()
        .map(|side| side.dataplane.stats().data_thread.naps)
        .sum()
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
    micros: Vec<f64>,
    /// Told once at the end: whoever is told wakes, on one of the two processors.
    done: Sender<Vec<f64>>,
}

impl Consumer for Bounce {
    fn deliver(&mut self, batch: Vec<Inbound>) -> Result<(), Full> {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.micros.push((now - last).as_secs_f64() * 1e6);
        }
        if self.left == 0 {
            // The bench may have gone.
            let _ = self.done.send(std::mem::take(&mut self.micros));
            return Ok(());
        }
        self.left -= 1;
        self.echo.deliver(batch)
    }
}

/// Round trips of one datagram that two dataplane threads bounce: two wakes each, as the echo and its client have.
fn bounces(count: usize) -> Trips {
    let (done, measured) = channel();
    let (near, far) = (Echo::default(), Echo::default());
    let bounce = Bounce {
        echo: near.clone(),
        last: None,
        left: count + WARM_UP,
        micros: Vec::with_capacity(count + WARM_UP),
        done,
    };
    let (a, b) = (
        Side::start(1, config(SENDER, "a"), bounce),
        Side::start(2, config(RECEIVER, "b"), far.clone()),
    );
    near.0.get_or_init(|| a.dataplane.sender());
    far.0.get_or_init(|| b.dataplane.sender());
    connect(&a, &b, Some(Suite::ChaCha20Poly1305));
    let before = naps([&a, &b]);
    submit(&a, to(Recipients::One(PeerId(0)), chunks(1, LENGTH)));
    // A lost datagram ends it early.
    let mut micros = measured.recv_timeout(Duration::from_secs(10)).unwrap_or_default();
    let naps = naps([&a, &b]) - before;
    let each = naps as f64 / micros.len().max(1) as f64;
    micros.drain(..micros.len().min(WARM_UP));
    Trips {
        naps: (each * micros.len() as f64) as u64,
        micros,
    }
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

fn our_round_trips(count: usize) -> Trips {
    let (told, returned): (_, Receiver<()>) = channel();
    let echo = Echo::default();
    let (a, b) = (
        Side::start(1, config(SENDER, "a"), Tell(told)),
        Side::start(2, config(RECEIVER, "b"), echo.clone()),
    );
    echo.0.get_or_init(|| b.dataplane.sender());
    connect(&a, &b, Some(Suite::ChaCha20Poly1305));
    let (near, before) = (&a, naps([&a, &b]));
    let micros = round_trips(count, PAUSE, move || {
        submit(near, to(Recipients::One(PeerId(0)), chunks(1, LENGTH)));
        returned.recv_timeout(Duration::from_secs(1)).is_ok()
    });
    let naps = naps([&a, &b]) - before;
    Trips {
        // Those of the first round trips, which are not in `micros`, too.
        naps: naps * micros.len() as u64 / (micros.len() as u64 + WARM_UP as u64),
        micros,
    }
}

fn echo_round_trips(count: usize, pause: Duration) -> Trips {
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
    let micros = round_trips(count, pause, || {
        client.send(&datagram).expect("loopback");
        client.recv(&mut buffer).is_ok()
    });
    stop.send(()).expect("the echo listens");
    client.send(&datagram).expect("loopback");
    thread.join().expect("the echo ends");
    Trips { micros, naps: 0 }
}

/// Microseconds of each of `count` round trips; the first ones warm up.
fn round_trips(count: usize, pause: Duration, mut once: impl FnMut() -> bool + Send) -> Vec<f64> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin(SENDER);
            let mut times = Vec::with_capacity(count);
            for round in 0..count + WARM_UP {
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
                let started = Instant::now();
                if once() && round >= WARM_UP {
                    times.push(started.elapsed().as_secs_f64() * 1e6);
                }
            }
            times
        });
        thread.join().expect("round trips")
    })
}
