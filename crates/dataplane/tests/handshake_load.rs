//! A flood of initiations, and what it does not take away.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use falconet_dataplane::Class;
use falconet_transport::Policy;
use nodes::*;

/// A flood of initiations with a wrong mac1, until it is dropped.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Flood {
    /// `burst` a millisecond: less than the socket holds while reading pauses, for what the kernel drops, answers
    /// included, is not what is tested here.
    fn start(at: &Node, burst: usize) -> Self {
        let (to, stop) = (
            at.dataplane.local_addr().unwrap(),
            Arc::new(AtomicBool::new(false)),
        );
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut initiation = [0; 148];
            initiation[0] = 1;
            while !stopped.load(Ordering::Relaxed) {
                for _ in 0..burst {
                    let _ = socket.send_to(&initiation, to);
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn past_its_share_the_handshake_thread_samples_initiations_but_not_the_answers_to_its_own() {
    let flooded = start(1, config().with_handshake_cpu(0.01));
    let other = start(2, config());
    let _flood = Flood::start(&flooded, 20);
    wait_until("sampling", || {
        flooded.stats().discarded("handshake_sampled") > 1_000
    });

    flooded.knows(&other, Policy::Require);
    other.knows(&flooded, Policy::Require);
    flooded.send(numbered(0x20, 5, 100), Class::Control);

    assert_eq!(numbers(&other.receive(5)), [0, 1, 2, 3, 4]);
}
