// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's packet generator: packets without a socket, as a router forwards them, passed to
//! the device's qdisc as fast as it accepts them.

use std::fs;
use std::net::Ipv4Addr;

use super::site::Site;
use support::lab::Lab;

const FOLDER: &str = "/proc/thread-self/net/pktgen";

/// Bytes of a packet, Ethernet header included.
pub const LEN: u32 = 200;

/// The packets to send, each with random fields.
#[derive(Clone, Copy)]
pub struct Mix {
    pub source: Ipv4Addr,
    /// The first of `destinations` successive addresses.
    pub destination: Ipv4Addr,
    pub destinations: u32,
    pub ports: u16,
}

impl Mix {
    /// This many flows to the far end.
    pub fn flows(flows: u16) -> Self {
        Self {
            source: Lab::A4.parse().unwrap(),
            destination: Lab::B4.parse().unwrap(),
            destinations: 1,
            ports: flows,
        }
    }
}

/// How many packets may wait for a CPU to receive them; a veth drops the rest. A sender that never waits
/// filled the 1,000 of the kernel on 6.1 before the receiver had a turn: 431 of 10,000 without any link.
const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";

/// Loaded, and receivers that keep what it sends; until this is dropped.
#[must_use]
pub struct Loaded(String);

/// Its threads are for the CPUs that are online now.
pub fn load() -> Loaded {
    support::lab::sh("modprobe pktgen");
    let before = fs::read_to_string(BACKLOG).unwrap();
    fs::write(BACKLOG, "1000000").unwrap();
    Loaded(before)
}

impl Drop for Loaded {
    fn drop(&mut self) {
        fs::write(BACKLOG, &self.0).unwrap();
    }
}

/// `va` in the namespace of the calling thread, once for each CPU; their names.
fn set_up(cpus: usize, to_mac: &str, packets: u64, mix: Mix) -> Vec<String> {
    let devices: Vec<_> = (0..cpus).map(|cpu| format!("va@{cpu}")).collect();
    // Also those of a CPU that sent the last time and must not send now.
    for thread in threads() {
        write(&thread, "rem_device_all");
    }
    for (cpu, device) in devices.iter().enumerate() {
        write(&format!("kpktgend_{cpu}"), &format!("add_device {device}"));
        configure(device, (cpu as u16 + 1) * 2000, to_mac, packets, mix);
    }
    devices
}

/// Of all CPUs that were online when pktgen was loaded.
fn threads() -> impl Iterator<Item = String> {
    let files = fs::read_dir(FOLDER).unwrap().map(|file| file.unwrap());
    files
        .map(|file| file.file_name().into_string().unwrap())
        .filter(|name| name.starts_with("kpktgend_"))
}

fn configure(device: &str, first_port: u16, to_mac: &str, packets: u64, mix: Mix) {
    // It never generates the last one of several.
    let beyond = match mix.destinations {
        1 => 0,
        several => several,
    };
    let end = Ipv4Addr::from(u32::from(mix.destination) + beyond);
    for setting in [
        &format!("count {packets}"),
        "delay 0",
        &format!("pkt_size {LEN}"),
        // A packet sent twice could not wait in a queue.
        "clone_skb 0",
        "xmit_mode queue_xmit",
        &format!("dst_mac {to_mac}"),
        &format!("src_min {}", mix.source),
        &format!("src_max {}", mix.source),
        &format!("dst_min {}", mix.destination),
        &format!("dst_max {end}"),
        &format!("udp_dst_min {first_port}"),
        &format!("udp_dst_max {}", first_port + mix.ports),
        "flag UDPDST_RND",
        "flag IPDST_RND",
    ] {
        write(device, setting);
    }
    // The packet has no further reference, as on a router. 6.1 does not support this; there pktgen
    // keeps a reference.
    let _ = fs::write(format!("{FOLDER}/{device}"), "flag !SHARED\n");
}

/// Sends until the end. Returns later: the kernel checks every 100 ms whether its threads are done.
fn send() {
    write("pgctrl", "start");
}

/// The fate of a device's packets.
#[derive(Debug, PartialEq, Eq)]
pub struct Sent {
    pub took_us: u64,
    /// By the qdisc.
    pub refused: u64,
}

fn sent(device: &str, packets: u64) -> Sent {
    let said = fs::read_to_string(format!("{FOLDER}/{device}")).unwrap();
    result(&said, packets).unwrap_or_else(|| panic!("pktgen: {said}"))
}

/// From the text of a device; `None` unless it has sent this many packets.
pub fn result(said: &str, packets: u64) -> Option<Sent> {
    let number_after = |what: &str| -> Option<u64> {
        let rest = said.split(what).nth(1)?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    };
    Some(Sent {
        took_us: number_after("Result: OK: ")?,
        refused: number_after(&format!("pkts-sofar: {packets}  errors: "))?,
    })
}

fn write(file: &str, text: &str) {
    let path = format!("{FOLDER}/{file}");
    fs::write(&path, format!("{text}\n")).unwrap_or_else(|e| panic!("{path}: {text}: {e}"));
}

impl Site {
    /// Runs `measure` around this many packets in this site's near namespace. Returns its result, and for how
    /// many us pktgen sent.
    pub fn pktgen<T: Send + 'static>(
        &self,
        packets: u64,
        mix: Mix,
        measure: impl FnOnce(fn()) -> T + Send + 'static,
    ) -> (T, u64) {
        let mac = self.mac.clone();
        let thread = support::lab::inside(&self.lab.a, move || {
            let devices = set_up(1, &mac, packets, mix);
            let measured = measure(send);
            let sent = sent(&devices[0], packets);
            assert_eq!(sent.refused, 0, "rejected by va");
            (measured, sent.took_us)
        });
        thread.join().expect("pktgen")
    }

    /// Packets per second from this many CPUs at the same time, with this many packets of each.
    pub fn pktgen_rate(&self, cpus: usize, packets: u64, flows: u16) -> f64 {
        let mac = self.mac.clone();
        let thread = support::lab::inside(&self.lab.a, move || {
            let devices = set_up(cpus, &mac, packets, Mix::flows(flows));
            send();
            let took = devices.iter().map(|device| sent(device, packets).took_us);
            (packets * cpus as u64) as f64 * 1e6 / took.max().unwrap() as f64
        });
        thread.join().expect("pktgen")
    }
}
