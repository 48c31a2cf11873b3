// SPDX-License-Identifier: MIT OR Apache-2.0
//! A packet with a socket is replaced by a clone while it waits; if that fails, the packet itself waits.

use super::*;
use crate::hold::packet::own_network;

const LOOPBACK: u32 = 1;
const NO_DEVICE: u32 = 1_000_000;

/// Verdict and counters after a packet of a test run, which has a socket.
fn outcome(link: &Link, ifb: u32) -> (i32, String) {
    let place = Place {
        release: abi::EMUD_RELEASE_IFB,
        ifindex: ifb,
        l3: false,
    };
    let b = Bench::with(link, 42, place);
    let verdict = b.send(&udp4(200, 1), 0).verdict;
    (verdict, format!("{:?}", b.counters()))
}

#[test]
fn without_a_clone_the_packet_waits_itself() {
    let thread = std::thread::spawn(|| {
        own_network();
        let constant = link(|l| l.delay.mean_ns = 2 * MS);
        let copying = link(|l| {
            l.delay.mean_ns = 2 * MS;
            l.duplicate.probability = 1e-9;
        });
        for link in [constant, copying] {
            let (cloned, as_usual) = outcome(&link, LOOPBACK);
            assert_eq!(cloned, TC_ACT_STOLEN);
            let (failed, counted) = outcome(&link, NO_DEVICE);
            assert_eq!((failed, counted), (TC_ACT_REDIRECT, as_usual));
        }
    });
    thread.join().unwrap();
}
