// SPDX-License-Identifier: MIT OR Apache-2.0
//! A packet with a socket is replaced by a clone while it waits; if that fails, the packet itself waits.

use std::time::Duration;

use super::*;
use crate::hold::packet::own_network;
use emud::netlink::{BpfFilter, Hook, Netlink};

const LOOPBACK: u32 = 1;
const NO_DEVICE: u32 = 1_000_000;

/// Verdict and counters after a packet of a test run, which has a socket.
fn outcome(link: &Link, ifb: u32) -> (i32, String) {
    let place = PacketTarget {
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

/// Behind the ifb, for which lo stands here, a copy is a packet like all others: a link of another
/// interface that it meets next must not let it pass.
#[test]
fn the_copy_of_an_ifb_is_not_marked() {
    let thread = std::thread::spawn(|| {
        own_network();
        let next = Bench::new(&Link::default());
        let mut nl = Netlink::open().unwrap();
        nl.set_up(LOOPBACK, true).unwrap();
        let filter = BpfFilter {
            hook: Hook::Ingress,
            pref: 1,
            handle: 1,
            program: next.loaded.program_fd(Program::Classify).unwrap(),
            name: Program::Classify.name(),
            classid: 0,
            chain: 0,
        };
        nl.attach_bpf_filter(LOOPBACK, &filter).unwrap();
        let copying = link(|l| l.duplicate.probability = 1.0);
        let place = PacketTarget {
            release: abi::EMUD_RELEASE_IFB,
            ifindex: LOOPBACK,
            l3: false,
        };
        let b = Bench::with(&copying, 42, place);
        b.send(&udp4(200, 1), 0);
        assert_eq!(b.counters().duplicated, 1);
        let seen = || {
            let both = abi::DIRECTIONS.map(|d| next.maps.counters(d).unwrap().packets);
            both.iter().sum::<u64>()
        };
        // The original, whose socket is replaced by a clone, and the copy.
        for _ in 0..5_000 {
            if seen() == 2 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{} packets", seen());
    });
    thread.join().unwrap();
}

/// A device that is down answers like the full backlog of a CPU: NET_RX_DROP, which is not negative.
#[test]
fn what_the_stack_does_not_take_again_is_not_lost_in_silence() {
    let thread = std::thread::spawn(|| {
        own_network();
        let copying = link(|l| l.duplicate.probability = 1.0);
        let place = PacketTarget {
            release: abi::EMUD_RELEASE_MIRRED,
            ifindex: NO_DEVICE,
            l3: false,
        };
        let b = Bench::with(&copying, 42, place);
        let loaded = Loaded::load_only(&[Program::Orphan], &Sizes::default()).unwrap();
        let orphan = || {
            let ctx = arriving(b.start);
            run_program(&loaded, Program::Orphan, &udp4(200, 1), &ctx).verdict
        };
        let copied = || {
            b.send(&udp4(200, 1), 0);
            (b.counters().unaltered, b.counters().duplicated)
        };
        assert_eq!((orphan(), copied()), (TC_ACT_UNSPEC, (1, 0)));
        Netlink::open().unwrap().set_up(LOOPBACK, true).unwrap();
        assert_eq!((orphan(), copied()), (TC_ACT_STOLEN, (1, 1)));
    });
    thread.join().unwrap();
}
