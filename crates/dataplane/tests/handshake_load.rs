//! A flood of initiations, and what it does not take away.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use falconet_dataplane::Class;
use falconet_transport::Policy;
use nodes::*;

#[test]
fn past_its_share_the_handshake_thread_samples_initiations_but_not_the_answers_to_its_own() {
    let flooded = start(1, config().with_handshake_cpu(0.01));
    let other = start(2, config());
    let (to, stop) = (
        flooded.dataplane.local_addr().unwrap(),
        Arc::new(AtomicBool::new(false)),
    );
    let flood = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut initiation = [0; 148];
            initiation[0] = 1;
            while !stop.load(Ordering::Relaxed) {
                // More than a hundredth of a core takes, and less than the socket holds while reading pauses: what the
                // kernel drops, answers included, is not what is tested here.
                for _ in 0..20 {
                    let _ = socket.send_to(&initiation, to);
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    });
    wait_until("sampling", || {
        flooded.stats().discarded("handshake_sampled") > 1_000
    });

    flooded.knows(&other, Policy::Require);
    other.knows(&flooded, Policy::Require);
    flooded.send(numbered(0x20, 5, 100), Class::Control);

    assert_eq!(numbers(&other.receive(5)), [0, 1, 2, 3, 4]);
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
}
