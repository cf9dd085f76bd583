//! A whole `Endpoint` against wireguard-go (Debian package `wireguard-go`) over real sockets: a `ping`
//! through its tunnel is answered by us, across a rekey that we force, whoever has dialled.
//!
//! Needs root, `/dev/net/tun`, and the programs `wireguard-go`, `ip` and `ping`; without one of them the
//! tests say so and do nothing. Everything runs in a network namespace of its own, in which a test starts
//! itself again. `FALCONET_INTEROP_SECONDS` sets how long the ping lasts (default 4; CI: 30).

#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use bytes::Bytes;
use falconet_crypto::{Now, TransportSecret};
use falconet_transport::{Content, Endpoint, Lane, PeerConfig, PeerId, Policy, TransportConfig};
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const PEER: PeerId = PeerId(0);
/// Set in the process that runs inside the namespace.
const INSIDE: &str = "FALCONET_INSIDE_NAMESPACE";
const THEIR_PORT: u16 = 51820;

#[test]
fn wireguard_go_answers_our_dial_and_ping_is_answered_across_a_rekey() {
    in_namespace(
        "wireguard_go_answers_our_dial_and_ping_is_answered_across_a_rekey",
        || {
            let mut rig = Rig::new();
            rig.endpoint.connect(now(), PEER);
            rig.serve_until(|rig| rig.is_connected());
            assert_eq!(rig.endpoint.handshakes().stats().dialled, 1);
            rig.ping_across_a_rekey();
        },
    );
}

#[test]
fn wireguard_go_dials_us_and_ping_is_answered_across_a_rekey() {
    in_namespace(
        "wireguard_go_dials_us_and_ping_is_answered_across_a_rekey",
        || {
            let mut rig = Rig::new();
            rig.ping_across_a_rekey();
            assert!(rig.endpoint.handshakes().stats().accepted >= 1);
        },
    );
}

/// Runs `test` in a new network namespace, by starting the test of this `name` again in it.
fn in_namespace(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    if let Some(missing) = missing() {
        println!("skipped: {missing}");
        return;
    }
    let namespace = Namespace::new();
    let status = Command::new("ip")
        .args(["netns", "exec", &namespace.0])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    let runs = |program: &str, arg: &str| {
        let mut command = Command::new(program);
        let command = command.arg(arg).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    };
    let id = Command::new("id").arg("-u").output();
    if !id.is_ok_and(|id| id.stdout == b"0\n") {
        return Some("not root");
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("no /dev/net/tun");
    }
    if !runs("wireguard-go", "--version") {
        return Some("no wireguard-go");
    }
    if !runs("ip", "-V") || !runs("ping", "-V") {
        return Some("no ip or no ping");
    }
    None
}

struct Namespace(String);

impl Namespace {
    fn new() -> Self {
        let nanos = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .subsec_nanos();
        let namespace = Self(format!("falconet{}x{}", std::process::id(), nanos % 1000));
        ip(&["netns", "add", &namespace.0]);
        ip(&["-n", &namespace.0, "link", "set", "lo", "up"]);
        namespace
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(args: &[&str]) {
    assert!(
        Command::new("ip").args(args).status().unwrap().success(),
        "ip {args:?}"
    );
}

/// Our endpoint on a socket, and wireguard-go behind another, with 10.77.0.1 on its side of the tunnel.
struct Rig {
    endpoint: Endpoint,
    socket: UdpSocket,
    wireguard: Child,
    answered: usize,
}

impl Rig {
    fn new() -> Self {
        // The name is the process's: the control socket is not in the namespace.
        let interface = format!("wg{}", std::process::id());
        let wireguard = Command::new("wireguard-go")
            .arg(&interface)
            .env("WG_PROCESS_FOREGROUND", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let (ours, theirs) = (
            TransportSecret::from_bytes([1; 32]),
            TransportSecret::from_bytes([2; 32]),
        );
        let their_key = theirs.public();
        configure(
            &interface,
            &format!(
                "private_key={}\nlisten_port={THEIR_PORT}\npublic_key={}\nendpoint={}\nallowed_ip=10.77.0.2/32\n",
                hex::encode([2; 32]),
                hex::encode(ours.public().as_bytes()),
                socket.local_addr().unwrap(),
            ),
        );
        ip(&["address", "add", "10.77.0.1/24", "dev", &interface]);
        ip(&["link", "set", &interface, "up"]);
        let peer = PeerConfig::new(their_key)
            .with_address(SocketAddr::from(([127, 0, 0, 1], THEIR_PORT)))
            .with_policy(Policy::Require)
            .with_wireguard(true);
        let mut endpoint = Endpoint::new(TransportConfig::default(), ours, now(), [3; 32]);
        endpoint.add_peer(now(), PEER, &peer).unwrap();
        Self {
            endpoint,
            socket,
            wireguard,
            answered: 0,
        }
    }

    fn is_connected(&self) -> bool {
        self.endpoint.sessions().is_connected(now(), PEER)
    }

    /// Pings through the tunnel; halfway we ask for a new session. Every single ping has to be answered.
    fn ping_across_a_rekey(&mut self) {
        let seconds = std::env::var("FALCONET_INTEROP_SECONDS").ok();
        let seconds: usize = seconds.and_then(|s| s.parse().ok()).unwrap_or(4);
        let count = seconds * 10;
        let mut ping = Command::new("ping")
            .args(["-i", "0.1", "-W", "5", "-c", &count.to_string(), "10.77.0.2"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        self.serve_until(|rig| rig.answered >= count / 2);
        let before = self.endpoint.sessions().current(PEER).unwrap();
        self.endpoint.rekey(now(), PEER);
        self.serve_until(|_| ping.try_wait().unwrap().is_some());
        let after = self.endpoint.sessions().current(PEER).unwrap();
        assert_ne!(before.local_index, after.local_index, "a new session serves");
        let mut report = String::new();
        ping.stdout.take().unwrap().read_to_string(&mut report).unwrap();
        assert!(report.contains(" 0% packet loss"), "{report}");
        assert_eq!(self.endpoint.stats().1.discards.total(), 0);
    }

    fn serve_until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        let mut buffer = vec![0; 2048];
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < Duration::from_secs(120), "no progress");
            if let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
                self.receive(from, &mut buffer[..len]);
            }
            if self
                .endpoint
                .poll_timeout()
                .is_some_and(|at| at <= Instant::now())
            {
                self.endpoint.handle_timeout(now());
            }
            while let Some(transmit) = self.endpoint.poll_transmit() {
                self.socket.send_to(&transmit.datagram, transmit.to).unwrap();
            }
        }
    }

    fn receive(&mut self, from: SocketAddr, datagram: &mut [u8]) {
        let inbound = self
            .endpoint
            .handle_datagram(now(), from, Lane::Authenticated, datagram);
        let Ok(inbound) = inbound else { return };
        if inbound.content != Content::Other {
            return;
        }
        let packet = &datagram[inbound.start..][..inbound.len];
        if let Some(answer) = echo_reply(packet) {
            self.endpoint.send(now(), PEER, &answer).unwrap();
            self.answered += 1;
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.wireguard.kill();
        let _ = self.wireguard.wait();
    }
}

/// Speaks wireguard-go's control protocol, once its socket is there.
fn configure(interface: &str, settings: &str) {
    let path = format!("/var/run/wireguard/{interface}.sock");
    let start = Instant::now();
    let mut control = loop {
        match UnixStream::connect(&path) {
            Ok(control) => break control,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(20), "{path}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    control
        .write_all(format!("set=1\n{settings}\n").as_bytes())
        .unwrap();
    let mut answer = [0; 64];
    let len = control.read(&mut answer).unwrap();
    assert_eq!(&answer[..len], b"errno=0\n\n");
}

/// The answer to an ICMP echo request over IPv4. WireGuard pads to 16 bytes: the packet ends where its own
/// length says.
fn echo_reply(packet: &[u8]) -> Option<Bytes> {
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let mut answer = packet.get(..total)?.to_vec();
    if answer.len() < 28 || answer[0] != 0x45 || answer[9] != 1 || answer[20] != 8 {
        return None;
    }
    // Swapping the addresses leaves the header's checksum as it is.
    let (source, rest) = answer[12..20].split_at_mut(4);
    source.swap_with_slice(rest);
    answer[20] = 0;
    // RFC 1624: the type went from 8 to 0, so the complement's sum is higher by 0x0800.
    let sum = u32::from(u16::from_be_bytes([answer[22], answer[23]])) + 0x0800;
    let sum = (sum & 0xffff) + (sum >> 16);
    answer[22..24].copy_from_slice(&(sum as u16).to_be_bytes());
    Some(answer.into())
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap(),
    }
}
