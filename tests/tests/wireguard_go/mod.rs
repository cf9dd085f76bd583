//! wireguard-go in a network namespace of its own, and our endpoint on a socket beside it.

#![allow(dead_code, reason = "each test uses a part")]

use bytes::Bytes;
use falconet_crypto::{Now, TransportSecret};
use falconet_transport::{Content, Endpoint, Event, Lane, PeerConfig, PeerId, Policy, TransportConfig};
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

pub(crate) const PEER: PeerId = PeerId(0);
/// Set in the process that runs inside the namespace.
const INSIDE: &str = "FALCONET_INSIDE_NAMESPACE";
const FIRST_PORT: u16 = 51820;

/// Runs `test` in a new network namespace, by starting the test of this `name` again in it.
pub(crate) fn in_namespace(name: &str, test: impl FnOnce()) {
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

/// wireguard-go behind one of several tunnels: 10.77.N.1 is its side, 10.77.N.2 ours.
pub(crate) struct Tunnel {
    number: u8,
    program: Child,
}

impl Tunnel {
    /// Starts tunnel `number`, to the holder of `ours` at `endpoint`.
    fn start(number: u8, ours: &TransportSecret, endpoint: SocketAddr) -> Self {
        let interface = interface(number);
        let program = Command::new("wireguard-go")
            .arg(&interface)
            .env("WG_PROCESS_FOREGROUND", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let tunnel = Self { number, program };
        configure(
            &interface,
            &format!(
                "private_key={}\nlisten_port={}\npublic_key={}\nendpoint={endpoint}\nallowed_ip={}/32\n",
                hex::encode(secret(number, 2)),
                Self::address(number).port(),
                hex::encode(ours.public().as_bytes()),
                tunnel.our_side(),
            ),
        );
        let their_side = format!("10.77.{number}.1/24");
        ip(&["address", "add", &their_side, "dev", &interface]);
        ip(&["link", "set", &interface, "up"]);
        tunnel
    }

    /// Where it listens.
    pub(crate) fn address(number: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], FIRST_PORT + u16::from(number)))
    }

    fn our_side(&self) -> String {
        format!("10.77.{}.2", self.number)
    }

    /// Pings our side, with these further arguments.
    pub(crate) fn ping(&self, arguments: &[&str]) -> Ping {
        let mut command = Command::new("ping");
        let command = command.args(arguments).arg(self.our_side());
        Ping(command.stdout(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        // A killed one leaves its control socket behind.
        let _ = std::fs::remove_file(control_socket(&interface(self.number)));
    }
}

/// The name is the process's: the control socket is not in the namespace.
fn interface(number: u8) -> String {
    format!("wg{}x{number}", std::process::id())
}

fn control_socket(interface: &str) -> String {
    format!("/var/run/wireguard/{interface}.sock")
}

fn secret(number: u8, side: u8) -> [u8; 32] {
    [2 * number + side; 32]
}

/// A `ping` under way.
pub(crate) struct Ping(Child);

impl Ping {
    pub(crate) fn is_over(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// What it has printed, once it is over.
    pub(crate) fn report(mut self) -> String {
        let mut report = String::new();
        let mut output = self.0.stdout.take().unwrap();
        output.read_to_string(&mut report).unwrap();
        report
    }
}

impl Drop for Ping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Our endpoint on a socket, and the tunnel to it; pings through the tunnel are answered.
pub(crate) struct Rig {
    pub(crate) endpoint: Endpoint,
    pub(crate) tunnel: Tunnel,
    pub(crate) events: Vec<Event>,
    /// Pings answered.
    pub(crate) answered: usize,
    socket: UdpSocket,
}

impl Rig {
    /// Both know each other's address.
    pub(crate) fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ours = socket.local_addr().unwrap();
        Self::through(0, socket, ours, Tunnel::address(0))
    }

    /// Rig `number` with our end on `socket`. Each knows only an address that leads to the other: the tunnel
    /// `to_us`, we `to_them`.
    pub(crate) fn through(number: u8, socket: UdpSocket, to_us: SocketAddr, to_them: SocketAddr) -> Self {
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let ours = TransportSecret::from_bytes(secret(number, 1));
        let tunnel = Tunnel::start(number, &ours, to_us);
        let peer = PeerConfig::new(TransportSecret::from_bytes(secret(number, 2)).public())
            .with_address(to_them)
            .with_policy(Policy::Require)
            .with_wireguard(true);
        let mut endpoint = Endpoint::new(TransportConfig::default(), ours, now(), [number ^ 0x5a; 32]);
        endpoint.add_peer(now(), PEER, &peer).unwrap();
        Self {
            endpoint,
            tunnel,
            events: Vec::new(),
            answered: 0,
            socket,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.endpoint.sessions().is_connected(now(), PEER)
    }

    /// Serves the endpoint until `done`; says whether that was within `limit`.
    pub(crate) fn serve_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let mut buffer = vec![0; 2048];
        let start = Instant::now();
        while !done(self) {
            if start.elapsed() >= limit {
                return false;
            }
            if let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
                self.receive(from, &mut buffer[..len]);
            }
            let timeout = self.endpoint.poll_timeout();
            if timeout.is_some_and(|at| at <= Instant::now()) {
                self.endpoint.handle_timeout(now());
            }
            while let Some(transmit) = self.endpoint.poll_transmit() {
                self.socket.send_to(&transmit.datagram, transmit.to).unwrap();
            }
            while let Some(event) = self.endpoint.poll_event() {
                self.events.push(event);
            }
        }
        true
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

/// Speaks wireguard-go's control protocol, once its socket is there.
fn configure(interface: &str, settings: &str) {
    let path = control_socket(interface);
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

pub(crate) fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap(),
    }
}
