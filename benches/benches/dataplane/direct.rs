//! Sockets driven directly: `quinn-udp` with nothing around it, and boringtun's codec one call a datagram or in groups.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use boringtun::noise::TunnResult;
use bytes::Bytes;
use falconet_benches::peers;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

use crate::rig::{RECEIVER, SENDER, chunks, pin, thread_time};

/// Segments of one grouped send.
const GROUP: usize = 44;
/// Buffers of one receive call.
const BUFFERS: usize = 4;
/// Bytes by which a WireGuard datagram is longer than what it carries.
const OVERHEAD: usize = 32;
/// One receive call in so many is timed, since asking for a thread's time is a system call.
const SAMPLED: u64 = 16;

/// What one direction carried, and the processor time of either side for a datagram.
pub(crate) struct Carried {
    pub(crate) gigabits: f64,
    pub(crate) lost_percent: f64,
    pub(crate) sender_ns: f64,
    pub(crate) receiver_ns: f64,
}

/// What the two sides have counted.
pub(crate) struct Counted {
    /// Bytes that were received in `time`, datagrams that were sent, and those received at any time.
    pub(crate) bytes: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) time: Duration,
    pub(crate) sender: Duration,
    /// Processor time for this many received datagrams.
    pub(crate) receiver: (Duration, u64),
}

impl Counted {
    pub(crate) fn carried(&self) -> Carried {
        let each = |time: Duration, count: u64| time.as_secs_f64() * 1e9 / count.max(1) as f64;
        Carried {
            gigabits: self.bytes as f64 * 8e-9 / self.time.as_secs_f64(),
            lost_percent: 100.0 * (1.0 - self.received as f64 / self.sent.max(1) as f64),
            sender_ns: each(self.sender, self.sent),
            receiver_ns: each(self.receiver.0, self.receiver.1),
        }
    }
}

/// One end: a socket with large buffers, and its options.
struct End {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl End {
    fn open() -> End {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let state = UdpSocketState::new((&socket).into()).expect("options");
        // As ours ask for; the system may clamp it.
        let _ = state.set_recv_buffer_size((&socket).into(), 16 << 20);
        let _ = state.set_send_buffer_size((&socket).into(), 16 << 20);
        End { socket, state }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }

    /// Sends datagrams of `length` bytes that lie one behind the other; how many left.
    fn send(&self, destination: SocketAddr, contents: &[u8], length: usize) -> u64 {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size: Some(length),
            src_ip: None,
        };
        let sent = self.state.try_send((&self.socket).into(), &transmit).is_ok();
        if sent { (contents.len() / length) as u64 } else { 0 }
    }

    /// Receives into `buffers`, and calls `take` with each datagram.
    fn receive(&self, buffers: &mut [Vec<u8>; BUFFERS], mut take: impl FnMut(&mut [u8])) {
        let mut metas = [RecvMeta::default(); BUFFERS];
        let mut slices = buffers.each_mut().map(|buffer| IoSliceMut::new(buffer));
        let filled = self
            .state
            .recv((&self.socket).into(), &mut slices, &mut metas)
            .unwrap_or(0);
        for (buffer, meta) in buffers.iter_mut().zip(&metas[..filled]) {
            buffer[..meta.len]
                .chunks_mut(meta.stride.max(1))
                .for_each(&mut take);
        }
    }
}

fn buffers() -> [Vec<u8>; BUFFERS] {
    std::array::from_fn(|_| vec![0; 64 << 10])
}

/// `quinn-udp` with nothing around it, in groups as ours: one buffer that is never touched, sent again and again.
pub(crate) fn quinn_udp(length: usize, time: Duration) -> Carried {
    let contents = vec![0x5a; length * GROUP];
    grouped(time, |end, to| end.send(to, &contents, length))
}

/// The same for who has datagrams: 44 of them are put behind each other first.
pub(crate) fn quinn_udp_filled(length: usize, time: Duration) -> Carried {
    let datagrams: Vec<Bytes> = chunks(GROUP, length);
    let mut contents = Vec::with_capacity(length * GROUP);
    grouped(time, move |end, to| {
        contents.clear();
        for datagram in &datagrams {
            contents.extend_from_slice(datagram);
        }
        end.send(to, &contents, length)
    })
}

fn grouped(time: Duration, mut send: impl FnMut(&End, SocketAddr) -> u64 + Send) -> Carried {
    let (sender, receiver) = (End::open(), End::open());
    let (to, mut buffers) = (receiver.address(), buffers());
    receiver.socket.set_nonblocking(true).expect("an option");
    let send = || send(&sender, to);
    let receive = move || {
        let (mut datagrams, mut bytes) = (0, 0);
        receiver.receive(&mut buffers, |datagram| {
            datagrams += 1;
            bytes += datagram.len() as u64;
        });
        (datagrams, bytes)
    };
    drive(send, receive, time)
}

/// boringtun with one `sendto` and one `recvfrom` a datagram.
pub(crate) fn boringtun(length: usize, time: Duration) -> Carried {
    let (sender, receiver) = (End::open().socket, End::open().socket);
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

/// boringtun's codec on sockets as ours: groups of 44 out, aggregates in.
pub(crate) fn boringtun_grouped(length: usize, time: Duration) -> Carried {
    let (sender, receiver) = (End::open(), End::open());
    let (to, mut buffers) = (receiver.address(), buffers());
    receiver.socket.set_nonblocking(true).expect("an option");
    let (mut sealer, mut opener) = peers::boringtun_pair();
    let (packet, mut opened) = (peers::ipv4_packet(length), [0; 2_048]);
    let mut contents = vec![0; (length + OVERHEAD) * GROUP];
    let send = move || {
        for place in contents.chunks_mut(length + OVERHEAD) {
            let sealed = sealer.encapsulate(&packet, place);
            assert!(
                matches!(sealed, TunnResult::WriteToNetwork(_)),
                "there is a session"
            );
        }
        sender.send(to, &contents, length + OVERHEAD)
    };
    let receive = move || {
        let (mut datagrams, mut bytes) = (0, 0);
        receiver.receive(&mut buffers, |datagram| {
            let packet = opener.decapsulate(None, datagram, &mut opened);
            if let TunnResult::WriteToTunnelV4(packet, _) = packet {
                datagrams += 1;
                bytes += packet.len() as u64;
            }
        });
        (datagrams, bytes)
    };
    drive(send, receive, time)
}

/// A thread with a name, by which a profiler tells it from others.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    job: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn_scoped(scope, job).expect("a thread")
}

/// Runs `send` on one processor and `receive` on the other, neither of which ever waits, until `time` has passed.
fn drive(
    mut send: impl FnMut() -> u64 + Send,
    mut receive: impl FnMut() -> (u64, u64) + Send,
    time: Duration,
) -> Carried {
    let done = AtomicBool::new(false);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let sending = spawn(scope, "peer-sends", || {
            pin(SENDER);
            let mut sent = 0;
            while started.elapsed() < time {
                sent += send();
            }
            done.store(true, Ordering::Release);
            (sent, thread_time())
        });
        let receiving = spawn(scope, "peer-receives", || {
            pin(RECEIVER);
            let (mut received, mut bytes, mut in_time) = (0, 0, 0);
            let (mut calls, mut sampled) = (0, (Duration::ZERO, 0));
            let mut end = None;
            // Some time longer, for what is on its way.
            while end.is_none_or(|end: Instant| end.elapsed() < Duration::from_millis(100)) {
                let since = (calls % SAMPLED == 0).then(thread_time);
                let (datagrams, length) = receive();
                calls += u64::from(datagrams > 0);
                if let Some(since) = since.filter(|_| datagrams > 0) {
                    sampled.0 += thread_time().saturating_sub(since);
                    sampled.1 += datagrams;
                }
                received += datagrams;
                bytes += length;
                if end.is_none() && done.load(Ordering::Acquire) {
                    in_time = bytes;
                    end = Some(Instant::now());
                }
            }
            (received, in_time, sampled)
        });
        let (sent, sender) = sending.join().expect("it sends");
        let (received, bytes, receiver) = receiving.join().expect("it receives");
        let counted = Counted {
            bytes,
            sent,
            received,
            time,
            sender,
            receiver,
        };
        counted.carried()
    })
}
