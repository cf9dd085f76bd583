//! A relay's burst: 40 chunks to each of 98 peers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use falconet_benches::{Report, Unit};
use falconet_crypto::Suite;
use falconet_dataplane::{Completion, Recipients};
use falconet_transport::PeerId;

use crate::rig::{
    Count, Left, RECEIVER, SENDER, Side, chunks, config, pin, processor_time, quantile, submit, to,
};

const PEERS: usize = 98;
const CHUNKS: usize = 40;

pub(crate) fn burst(report: &mut Report) {
    if !report.wants("relay") {
        return;
    }
    let relay = Side::start(200, config(SENDER, "relay"), Count::default());
    let receivers: Vec<Side> = (0..PEERS)
        .map(|number| {
            let secret = u8::try_from(number + 1).expect("fewer than 200");
            let config = config(RECEIVER, "r").with_socket_buffer(1 << 20);
            Side::start(secret, config, Count::default())
        })
        .collect();
    for (number, receiver) in (0..).zip(&receivers) {
        relay.add(PeerId(number), receiver, Some(Suite::Aes256Gcm));
        receiver.add(PeerId(0), &relay, Some(Suite::Aes256Gcm));
        relay.dataplane.sender().connect(PeerId(number)).expect("it runs");
    }
    relay.wait_for_sessions(PEERS);
    let rounds = if report.is_quick() { 5 } else { 15 };
    let peers: Arc<[PeerId]> = (0..PEERS as u32).map(PeerId).collect();
    let grouped = (0..rounds).map(|_| {
        time(&relay, |left| {
            for peer in peers.iter() {
                let mut outgoing = to(Recipients::One(*peer), chunks(CHUNKS, 1_440));
                outgoing.completion = Some(Arc::clone(left) as Arc<dyn Completion>);
                submit(&relay, outgoing);
            }
        })
    });
    report_rounds(report, "relay/98x40/grouped", grouped.collect());
    let in_turn = (0..rounds).map(|_| {
        time(&relay, |left| {
            for _ in 0..CHUNKS {
                let mut outgoing = to(Recipients::Many(Arc::clone(&peers)), chunks(1, 1_440));
                outgoing.completion = Some(Arc::clone(left) as Arc<dyn Completion>);
                submit(&relay, outgoing);
            }
        })
    });
    report_rounds(report, "relay/98x40/in-turn", in_turn.collect());
}

/// Microseconds a datagram from the first submission until all have left: by the clock, and of the dataplane
/// thread's processor, which a busy machine disturbs less.
fn time(relay: &Side, submit_all: impl Fn(&Arc<Left>) + Sync) -> (f64, f64) {
    let left = Arc::new(Left::default());
    let (started, before) = (Instant::now(), processor_time("relay-data"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(SENDER);
            submit_all(&left);
            while left.0.load(Ordering::Relaxed) < PEERS * CHUNKS {
                std::thread::sleep(Duration::from_micros(50));
            }
        });
    });
    let elapsed = started.elapsed();
    let busy = processor_time("relay-data").saturating_sub(before);
    // The receivers empty their sockets before the next burst.
    std::thread::sleep(Duration::from_millis(50));
    let dropped = relay.dataplane.stats().drops;
    assert!(dropped.is_empty(), "{dropped:?}");
    let each = |time: Duration| time.as_secs_f64() * 1e6 / (PEERS * CHUNKS) as f64;
    (each(elapsed), each(busy))
}

fn report_rounds(report: &mut Report, name: &str, micros: Vec<(f64, f64)>) {
    let (mut clock, mut busy): (Vec<f64>, Vec<f64>) = micros.into_iter().unzip();
    report.figure(name, quantile(&mut clock, 0.5), Unit::Microseconds);
    report.figure(
        &format!("{name}/processor"),
        quantile(&mut busy, 0.5),
        Unit::Microseconds,
    );
}
