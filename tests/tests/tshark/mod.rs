//! tshark, and captures for it to read.
#![allow(clippy::unwrap_used)] // Helpers of tests, where a panic is the report.

use std::path::Path;
use std::process::{Command, Stdio};

/// `fields` of each datagram of a capture as tshark sees them, separated by `|`, or `None` without tshark.
pub(crate) fn dissect(capture: &Path, key_log: Option<&Path>, fields: &[&str]) -> Option<Vec<String>> {
    let version = Command::new("tshark")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if version.is_err() {
        println!("skipped: no tshark");
        return None;
    }
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(capture)
        .args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    if let Some(log) = key_log {
        tshark.arg("-o").arg(format!("wg.keylog_file:{}", log.display()));
    }
    let output = tshark.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// A capture file of raw IPv4 packets with UDP around each datagram, from host 1 or 2 to the other.
pub(crate) fn pcap<'a>(datagrams: impl IntoIterator<Item = (u8, &'a [u8])>) -> Vec<u8> {
    const LINKTYPE_RAW: u32 = 101;
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2u16, 4].map(u16::to_le_bytes).concat());
    file.extend([0, 0, 65_535, LINKTYPE_RAW].map(u32::to_le_bytes).concat());
    for (second, (from, datagram)) in (0u32..).zip(datagrams) {
        let udp = u16::try_from(8 + datagram.len()).unwrap();
        let mut packet = vec![0x45, 0];
        packet.extend((20 + udp).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, from, 192, 0, 2, 3 - from]);
        packet.extend([51_820u16; 2].map(u16::to_be_bytes).concat());
        packet.extend(udp.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(datagram);
        let len = u32::try_from(packet.len()).unwrap();
        file.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend(packet);
    }
    file
}

/// An ICMP echo request in an IPv4 packet of 28 bytes.
pub(crate) fn echo_request(identifier: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
    packet.extend([10, 77, 0, 1, 10, 77, 0, 2]);
    packet.extend([8, 0, 0, 0]);
    packet.extend(identifier.to_be_bytes());
    packet.extend([0, 1]);
    packet
}
