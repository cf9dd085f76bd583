//! A virtual cable between two network namespaces that go when it does.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use falconet_dataplane::DataplaneConfig;
use nix::sched::{CloneFlags, unshare};

use crate::rig::config;
use crate::sys;

/// The device at either end has the same name.
const DEVICE: &str = "cable";
/// Link-local: nothing of it could leave even a cable that is plugged in somewhere.
const NEAR: Ipv4Addr = Ipv4Addr::new(169, 254, 9, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(169, 254, 9, 2);

/// Two namespaces, connected.
pub(crate) struct Cable {
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
}

impl Cable {
    /// With the devices' offloads, or with every datagram a packet of its own with its checksum. `None` without root.
    pub(crate) fn plug(offloads: bool) -> Option<Cable> {
        let (near, far) = (Namespace::new(NEAR)?, Namespace::new(FAR)?);
        let thread = far.run(|_| nix::unistd::gettid());
        let link = format!("ip link add {DEVICE} type veth peer name {DEVICE} netns {thread}");
        if !near.run(move |_| shell(&link)) {
            return None;
        }
        for end in [&near, &far] {
            let is_up = end.run(move |at| {
                let up = format!(
                    "ip link set lo up && ip addr add {at}/30 dev {DEVICE} && ip link set {DEVICE} up txqueuelen 10000"
                );
                (offloads || plain_packets().is_ok()) && shell(&up)
            });
            if !is_up {
                return None;
            }
        }
        Some(Cable { near, far })
    }

    /// Moves the stack's work on what arrives at the far end to `processor` (RPS); false if the system does not let us.
    pub(crate) fn steer_arrivals(&self, processor: usize) -> bool {
        // The mount shows the devices of the namespace that it is made in, and only this command sees it.
        let steer = format!(
            "unshare -m sh -c 'mount -t sysfs none /sys && echo {:x} > /sys/class/net/{DEVICE}/queues/rx-0/rps_cpus'",
            1 << processor
        );
        self.far.run(move |_| shell(&steer))
    }

    /// As [`config`], at an end of the cable.
    pub(crate) fn config(at: IpAddr, processor: usize, prefix: &str) -> DataplaneConfig {
        config(processor, prefix)
            .with_listen((at, 0).into())
            .with_listen_plain((at, 0).into())
    }
}

type Job = Box<dyn FnOnce(IpAddr) + Send>;

/// A thread in a network namespace of its own: what it opens stays in there.
pub(crate) struct Namespace {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    fn new(address: Ipv4Addr) -> Option<Namespace> {
        let (jobs, queue) = channel::<Job>();
        let (told, is_apart) = channel();
        let thread = std::thread::spawn(move || {
            let _ = told.send(unshare(CloneFlags::CLONE_NEWNET).is_ok());
            for job in queue {
                job(address.into());
            }
        });
        let namespace = Namespace {
            jobs: Some(jobs),
            thread: Some(thread),
        };
        is_apart.recv().ok()?.then_some(namespace)
    }

    /// Runs `job` in the namespace, with the address of its end.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce(IpAddr) -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = Box::new(move |at| drop(done.send(job(at))));
        let jobs = self.jobs.as_ref().expect("until it is dropped");
        jobs.send(job).expect("the thread waits");
        result.recv().expect("the job ends")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Switches off segmentation, aggregation and checksums by the device of this thread's namespace.
fn plain_packets() -> std::io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    for offload in sys::OFFLOADS {
        sys::switch_off(&socket, DEVICE, offload)?;
    }
    Ok(())
}

fn shell(command: &str) -> bool {
    Command::new("sh")
        .args(["-c", command])
        .status()
        .is_ok_and(|status| status.success())
}
