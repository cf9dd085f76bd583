//! A network of `falconet node` processes on loopback.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keys and addresses of some nodes, each with a folder of its own.
pub(crate) struct Network {
    folder: tempfile::TempDir,
    pub(crate) identities: Vec<String>,
    transports: Vec<String>,
    addresses: Vec<[SocketAddr; 2]>,
}

impl Network {
    pub(crate) fn new(nodes: usize) -> Self {
        // Held until all are chosen, so that no two are the same.
        let sockets: Vec<_> = (0..2 * nodes)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let at = |socket: &UdpSocket| socket.local_addr().unwrap();
        let mut network = Self {
            folder: tempfile::tempdir().unwrap(),
            identities: Vec::new(),
            transports: Vec::new(),
            addresses: sockets
                .chunks(2)
                .map(|pair| [at(&pair[0]), at(&pair[1])])
                .collect(),
        };
        for number in 0..nodes {
            let folder = network.folder(number);
            std::fs::create_dir(&folder).unwrap();
            let made = falconet().arg("keygen").current_dir(folder).output().unwrap();
            let printed = String::from_utf8(made.stdout).unwrap();
            let mut keys = printed
                .lines()
                .map(|line| line.split_whitespace().nth(1).unwrap().to_owned());
            network.identities.push(keys.next().unwrap());
            network.transports.push(keys.next().unwrap());
        }
        network
    }

    pub(crate) fn folder(&self, number: usize) -> PathBuf {
        self.folder.path().join(number.to_string())
    }

    /// What a node of both lanes is told; `more` stands before the first table, or is one.
    pub(crate) fn config(&self, number: usize, more: &str) -> String {
        let [sealed, plain] = self.addresses[number];
        let (keys, table) = if more.starts_with('[') {
            ("", more)
        } else {
            (more, "")
        };
        format!(
            "identity = \"identity.key\"\ntransport = \"transport.key\"\nlisten = \"{sealed}\"\n\
             listen_plain = \"{plain}\"\n{keys}\n{table}\n{}",
            self.tables()
        )
    }

    /// What a node is told that has not been upgraded.
    pub(crate) fn plain_only(&self, number: usize) -> String {
        let plain = self.addresses[number][1];
        format!(
            "identity = \"identity.key\"\ntransport = \"transport.key\"\nlisten_plain = \"{plain}\"\n{}",
            self.tables()
        )
    }

    /// The validators, the schedule and the peers, the same for all.
    fn tables(&self) -> String {
        let members = self
            .identities
            .iter()
            .map(|identity| format!("[[validators.members]]\nidentity = \"{identity}\"\nstake = 1\n"));
        let members: String = members.collect();
        let leaders = self.identities.join("\", \"");
        let peers: String = (0..self.identities.len())
            .map(|number| self.peer(number))
            .collect();
        format!(
            "[validators]\nepoch = 1\n{members}\n\
             [schedule]\ninterval = \"200ms\"\nleaders = [\"{leaders}\"]\nsize = \"40000\"\nseed = {}\n{peers}",
            self.identities.len(),
        )
    }

    fn peer(&self, number: usize) -> String {
        let [sealed, plain] = self.addresses[number];
        format!(
            "\n[[peers]]\nidentity = \"{}\"\ntransport = \"{}\"\naddress = \"{sealed}\"\nplain = \"{plain}\"\n",
            self.identities[number], self.transports[number]
        )
    }

    /// A configuration that lacks a peer.
    pub(crate) fn without_peer(&self, config: &str, number: usize) -> String {
        config.replace(&self.peer(number), "")
    }

    pub(crate) fn write(&self, number: usize, config: &str) {
        std::fs::write(self.folder(number).join("node.toml"), config).unwrap();
    }

    pub(crate) fn check(&self, number: usize) -> Output {
        self.command(number).arg("--check").output().unwrap()
    }

    pub(crate) fn start(&self, number: usize, more: &str) -> Daemon {
        self.write(number, &self.config(number, more));
        self.start_as_written(number)
    }

    pub(crate) fn start_as_written(&self, number: usize) -> Daemon {
        Daemon::start(self.command(number))
    }

    fn command(&self, number: usize) -> Command {
        let mut command = falconet();
        // From elsewhere: paths in the file are relative to it.
        let config = self.folder(number).join("node.toml");
        command.arg("node").arg("--config").arg(config);
        command
    }
}

fn falconet() -> Command {
    Command::new(env!("CARGO_BIN_EXE_falconet"))
}

/// A running node, and all that it has printed.
pub(crate) struct Daemon {
    child: Child,
    incoming: Receiver<Value>,
    lines: Vec<Value>,
    /// Where waiting begins.
    start: usize,
    log: Option<std::thread::JoinHandle<String>>,
    logged: String,
}

impl Daemon {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (sender, incoming) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).ok();
            text
        });
        Self {
            child,
            incoming,
            lines: Vec::new(),
            start: 0,
            log: Some(log),
            logged: String::new(),
        }
    }

    /// Waits for so many events of a name in all; gives them.
    pub(crate) fn wait_for(&mut self, count: usize, event: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        self.wait_until(event, |line| {
            if line["event"] == *event {
                seen.push(line.clone());
            }
            seen.len() >= count
        });
        seen
    }

    /// Waits until a line since the start (or the last [`Daemon::forget`]) is the one.
    pub(crate) fn wait_until(&mut self, what: &str, mut is_it: impl FnMut(&Value) -> bool) {
        let limit = Instant::now() + PATIENCE;
        let mut next = self.start;
        loop {
            while let Some(line) = self.lines.get(next) {
                if is_it(line) {
                    return;
                }
                next += 1;
            }
            let left = limit.saturating_duration_since(Instant::now());
            match self.incoming.recv_timeout(left) {
                Ok(line) => self.lines.push(line),
                Err(why) => panic!("waited in vain for {what} ({why}): {:#?}", self.lines),
            }
        }
    }

    /// Later waits are for what is printed from now on.
    pub(crate) fn forget(&mut self) {
        self.lines.extend(self.incoming.try_iter());
        self.start = self.lines.len();
    }

    /// All events of a name so far.
    pub(crate) fn all(&self, event: &str) -> Vec<Value> {
        let named = self.lines.iter().filter(|line| line["event"] == *event);
        named.cloned().collect()
    }

    pub(crate) fn last(&self) -> &Value {
        self.lines.last().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let signal = format!("-{name}");
        let sent = Command::new("kill")
            .arg(signal)
            .arg(self.child.id().to_string())
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end, and reads what is left.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        self.lines.extend(self.incoming.iter());
        if let Some(log) = self.log.take() {
            self.logged = log.join().unwrap();
        }
        status
    }

    /// What it wrote on standard error, once it has ended.
    pub(crate) fn log(&self) -> &str {
        &self.logged
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
