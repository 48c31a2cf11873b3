// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets for many destinations, through a router, at a fixed rate.
//!
//! At a fixed rate, since what HTB with netem below does for a packet depends on how many wait.
//! pktgen is suitable for flat out only: below 100 us between two packets it spins, and that time
//! cannot be separated. So a program writes the packets to a TAP, and the kernel forwards them.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use emud::datapath::engine::hold::frame::VNET_LEN;
use emud::datapath::engine::hold::tap;
use emud::datapath::engine::hold::tap::Tap;

use super::pktgen::{LEN, Mix};
use super::site::Site;
use super::spare::Spare;
use support::clock;
use support::lab::{Lab, inside};
use support::probe::precise_timers;

/// Where packets come from, as the kernel sees it.
pub const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// Destinations follow one another from here.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x11];

/// The address of one of up to 65,536 links.
pub fn destination(link: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST) + link)
}

pub struct Router {
    pub site: Site,
    tap: Tap,
}

impl Router {
    pub fn new() -> Self {
        let site = Site::new();
        let make = || tap::create("gen", 1500).expect("a TAP");
        let tap = inside(&site.lab.a, make).join().expect("a TAP");
        let mac = MAC.map(|byte| format!("{byte:02x}")).join(":");
        site.lab.in_a(&format!(
            "ip link set dev gen down
             ip link set dev gen address {mac} up
             cd /proc/sys/net/ipv4
             echo 1 >ip_forward
             echo 0 | tee conf/all/rp_filter conf/gen/rp_filter >/dev/null
             ip route add {FIRST}/16 via {} dev va",
            Lab::B4
        ));
        Self { site, tap }
    }

    /// Instructions per packet, including those of its sender: this many packets at this distance,
    /// equally for all links; waiting packets leave meanwhile.
    pub fn cost(&self, spare: &Spare, packets: u64, interval_ns: u64, links: u32) -> Cost {
        precise_timers();
        let mut took_ns = 0;
        let busy_ns = spare.busy_ns(|| {
            took_ns = self.send(packets, interval_ns, links);
            thread::sleep(Duration::from_millis(30));
        });
        Cost {
            instructions: busy_ns / packets as f64,
            packets_per_s: packets as f64 * 1e9 / took_ns as f64,
        }
    }

    /// The same from pktgen, one after the other.
    pub fn flat_out(&self, spare: &Arc<Spare>, packets: u64, links: u32) -> Cost {
        let mix = Mix {
            source: SOURCE,
            destination: FIRST,
            destinations: links,
            ports: 1,
        };
        let spare = spare.clone();
        let measure = move |send: fn()| {
            spare.busy_ns(|| {
                send();
                thread::sleep(Duration::from_millis(30));
            })
        };
        let (busy_ns, took_us) = self.site.pktgen(packets, mix, measure);
        Cost {
            instructions: busy_ns / packets as f64,
            packets_per_s: packets as f64 * 1e6 / took_us as f64,
        }
    }

    fn send(&self, packets: u64, interval_ns: u64, links: u32) -> u64 {
        let mut frame = frame();
        let start = clock::now();
        for number in 0..packets {
            clock::sleep_until(start + number * interval_ns);
            address(&mut frame, destination(scattered(number, links)));
            let written = rustix::io::write(&self.tap.fd, &frame).expect("the TAP takes it");
            assert_eq!(written, frame.len());
        }
        clock::now() - start
    }
}

pub struct Cost {
    pub instructions: f64,
    /// Rate as sent: lower than requested if there is no time left.
    pub packets_per_s: f64,
}

/// All links equally often, in an order that nothing can exploit (Fibonacci hashing).
fn scattered(number: u64, links: u32) -> u32 {
    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((hash * u64::from(links)) >> 32) as u32
}

const ETHERNET: usize = VNET_LEN;
const IP: usize = ETHERNET + 14;
const UDP: usize = IP + 20;

fn frame() -> Vec<u8> {
    let mut frame = vec![0; VNET_LEN + LEN as usize];
    let len = LEN as u16 - 14;
    frame[ETHERNET..ETHERNET + 6].copy_from_slice(&MAC);
    frame[ETHERNET + 12..IP].copy_from_slice(&[0x08, 0x00]);
    frame[IP] = 0x45;
    frame[IP + 2..IP + 4].copy_from_slice(&len.to_be_bytes());
    frame[IP + 8..IP + 10].copy_from_slice(&[64, 17]);
    frame[IP + 12..IP + 16].copy_from_slice(&SOURCE.octets());
    frame[UDP..UDP + 2].copy_from_slice(&2000u16.to_be_bytes());
    frame[UDP + 2..UDP + 4].copy_from_slice(&2000u16.to_be_bytes());
    frame[UDP + 4..UDP + 6].copy_from_slice(&(len - 20).to_be_bytes());
    frame
}

fn address(frame: &mut [u8], to: Ipv4Addr) {
    frame[IP + 16..IP + 20].copy_from_slice(&to.octets());
    frame[IP + 10..IP + 12].fill(0);
    let words = frame[IP..UDP].chunks(2);
    let sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    frame[IP + 10..IP + 12].copy_from_slice(&(!folded as u16).to_be_bytes());
}
