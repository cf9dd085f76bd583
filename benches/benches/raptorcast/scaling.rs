//! How time and bytes grow with the payload and with the set.

use std::time::Duration;

use falconet_benches::{Contest, Report, Unit};
use falconet_raptorcast::{Engine, Round};

use crate::meter::cpu;
use crate::network::{EPOCH, Network, now, payload};

const LENGTHS: [(&str, usize); 4] = [
    ("64KiB", 64 << 10),
    ("512KiB", 512 << 10),
    ("2MiB", 2 << 20),
    ("3MiB", 3 << 20),
];

/// Time of the leader, and the bytes that the leader and a first hop send, frames of 32 bytes included.
pub(crate) fn run(report: &mut Report) {
    for validators in [10, 100, 1000] {
        let network = Network::with(validators);
        for (name, length) in LENGTHS {
            let name = format!("{name}/{validators}");
            let mut leader = network.engine(0);
            let payload = payload(length);
            let mut round = 0;
            let mut last = None;
            Contest::with_untimed(format!("scaling/leader/{name}"), |repeats| {
                (0..repeats)
                    .map(|_| {
                        round += 1;
                        let mut made = None;
                        let elapsed = cpu(|| {
                            made = leader
                                .broadcast(now(), EPOCH, Round::from(round), payload.clone())
                                .ok();
                        });
                        last = made.or(last);
                        drain(&mut leader);
                        elapsed
                    })
                    .sum::<Duration>()
            })
            .run(report, Unit::Milliseconds);
            let Some(sent) = last else { continue };
            let datagram = (sent.chunk_len + 32) as f64;
            report.figure(
                &format!("scaling/leader-sends/{name}"),
                f64::from(sent.symbols) * datagram,
                Unit::Bytes,
            );
            // Its share of the symbols, to everybody but itself and the author.
            let share = f64::from(sent.symbols) / (validators - 1) as f64;
            report.figure(
                &format!("scaling/first-hop-sends/{name}"),
                share * (validators - 2) as f64 * datagram,
                Unit::Bytes,
            );
        }
    }
}

fn drain(leader: &mut Engine) {
    while leader.poll_transmit().is_some() {}
}
