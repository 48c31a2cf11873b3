// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's packet generator: packets without a socket, as a router forwards them, handed to the
//! device's qdisc as fast as it takes them.

use std::fs;

use super::lab::Lab;
use super::site::Site;

const FOLDER: &str = "/proc/thread-self/net/pktgen";
pub const DEVICE: &str = "va";

/// Bytes of a packet, Ethernet header included.
pub const LEN: u32 = 200;

pub fn load() {
    super::lab::sh("modprobe pktgen");
}

/// `va` in the namespace of the calling thread, on CPU 0.
pub fn set_up(to_mac: &str, packets: u64, flows: u16) {
    write("kpktgend_0", "rem_device_all");
    write("kpktgend_0", &format!("add_device {DEVICE}"));
    let last_port = 2000 + flows;
    for setting in [
        &format!("count {packets}"),
        "delay 0",
        &format!("pkt_size {LEN}"),
        // A packet sent twice could not wait in a queue.
        "clone_skb 0",
        "xmit_mode queue_xmit",
        &format!("dst_mac {to_mac}"),
        &format!("src_min {}", Lab::A4),
        &format!("src_max {}", Lab::A4),
        &format!("dst_min {}", Lab::B4),
        &format!("dst_max {}", Lab::B4),
        "udp_dst_min 2000",
        &format!("udp_dst_max {last_port}"),
        "flag UDPDST_RND",
    ] {
        write(DEVICE, setting);
    }
    // Nobody else holds the packet, as on a router. 6.1 does not know it, there pktgen keeps a hold.
    let _ = fs::write(format!("{FOLDER}/{DEVICE}"), "flag !SHARED\n");
}

/// Sends, to the end.
pub fn send() {
    write("pgctrl", "start");
}

/// Ends if a packet was refused.
pub fn check(packets: u64) {
    let said = fs::read_to_string(format!("{FOLDER}/{DEVICE}")).unwrap();
    let all = format!("pkts-sofar: {packets}  errors: 0");
    assert!(said.contains(&all), "pktgen: {said}");
}

fn write(file: &str, text: &str) {
    let path = format!("{FOLDER}/{file}");
    fs::write(&path, format!("{text}\n")).unwrap_or_else(|e| panic!("{path}: {text}: {e}"));
}

impl Site {
    /// Runs `measure` around so many packets of so many flows in this site's near namespace.
    pub fn pktgen<T: Send + 'static>(
        &self,
        packets: u64,
        flows: u16,
        measure: impl FnOnce(fn()) -> T + Send + 'static,
    ) -> T {
        let mac = self.mac.clone();
        let thread = super::lab::inside(&self.lab.a, move || {
            set_up(&mac, packets, flows);
            let measured = measure(send);
            check(packets);
            measured
        });
        thread.join().expect("pktgen")
    }
}
