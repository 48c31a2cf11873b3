// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the classifier passes on for a bottleneck: class, arrival, length, and the random decisions.

use std::mem::offset_of;

use emud::abi::{emud_hold_hdr, emud_hold_service};
use emud::datapath::engine::hold::frame::{self, Service};
use emud::profile::Profile;

use super::rules::{bench_of, set};
use super::*;
use crate::hold::packet::own_network;

const BOTTLENECKS: &str = "\
    [bottleneck.hub]\nrate = \"10Mbit\"\nschedule = \"drr\"\n\
    [bottleneck.hub.class.a]\n[bottleneck.hub.class.b]\n\
    [bottleneck.other]\nrate = \"1Mbit\"\n\
    [[rule]]\nmatch = { source-port = 5 }\nclass = \"other\"\n\
    [[rule]]\nmatch = { source-port = 6 }\nlink = \"far\"\n\
    [links.far]\ndelay = \"50ms\"\n";

/// A link as engine hold has it, and a holder that lives.
fn held(link: &str) -> Bench {
    let mut bench = placed(link, abi::EMUD_RELEASE_HOLD);
    let holder = abi::emud_holder {
        lease_ns: u64::MAX,
        ..Default::default()
    };
    bench.maps.set_holder(abi::EMUD_UP, &holder).unwrap();
    bench
}

fn placed(link: &str, release: u32) -> Bench {
    let profile = Profile::parse(&format!("{link}{BOTTLENECKS}"), "x.toml");
    let profile = profile.unwrap_or_else(|error| panic!("{error}"));
    let mut bench = bench_of(&profile);
    bench.place = PacketTarget {
        release,
        ifindex: 1,
        l3: false,
    };
    set(&mut bench, &profile);
    bench
}

/// What the holder reads of a frame sent at `at`, as it comes out of a TAP.
fn passed_on(bench: &Bench, frame: &[u8], at: u64) -> (frame::Rewritten, Vec<u8>) {
    rewritten(&in_tap(bench, frame, &arriving(bench.start + at)))
}

fn in_tap(bench: &Bench, frame: &[u8], ctx: &[u8; SKB_LEN]) -> Vec<u8> {
    let left = run(&bench.loaded, frame, ctx);
    assert_eq!(left.verdict, TC_ACT_REDIRECT);
    let mut read = vec![0; frame::VNET_LEN];
    read.extend(&left.frame);
    read
}

fn rewritten(read: &[u8]) -> (frame::Rewritten, Vec<u8>) {
    let mut read = read.to_vec();
    let done = frame::rewrite(&mut read).unwrap();
    (done, read[done.start + frame::VNET_LEN..].to_vec())
}

#[test]
fn a_bottleneck_gets_all_it_needs() {
    let b = held("[link]\nclass = \"hub.b\"\ndelay = \"20ms\"\noverhead = 24\n");
    let packet = udp4(1514, 1);
    let (done, rest) = passed_on(&b, &packet, MS);
    let arrival_ns = b.start + MS;
    let want = Service {
        number: 2,
        arrival_ns,
        departure_ns: arrival_ns + 20 * MS,
        copy_ns: 0,
        path: abi::EMUD_UP,
        bytes: 1538,
        lost: false,
        overtakes: false,
        corrupted: false,
        reset: false,
        link: 0,
        own_bytes: 1514,
    };
    assert_eq!(done.service, Some(want));
    assert_eq!(rest, packet, "the frame itself");

    // A rule's class in place of the link's; another link, which has none.
    let (done, rest) = passed_on(&b, &udp4(100, 5), 2 * MS);
    let service = done.service.unwrap();
    assert_eq!((service.number, service.bytes), (3, 124));
    assert_eq!(rest, udp4(100, 5));
    let (done, _) = passed_on(&b, &udp4(100, 6), 3 * MS);
    assert_eq!(done.service, None);
    assert_eq!(done.departure_ns, b.start + 53 * MS);
}

/// The TAP copies what is in front of a train to each of its packets.
#[test]
fn each_packet_of_a_train_takes_its_own_time() {
    let b = held("[link]\nclass = \"hub.b\"\noverhead = 24\n");
    // Headers of 42 bytes, then 1000, 1000 and 300.
    let mut ctx = arriving(b.start);
    ctx[SKB_GSO_SIZE..][..4].copy_from_slice(&1_000u32.to_ne_bytes());
    let train = in_tap(&b, &udp4(2_342, 1), &ctx);
    let bytes = |data: usize| {
        let packet = &train[..frame::VNET_LEN + frame::FRONT_LEN + 42 + data];
        rewritten(packet).0.service.unwrap().bytes
    };
    assert_eq!([1_000, 300].map(bytes), [1_066, 366]);
    // One packet is no train, whatever its length.
    let alone = passed_on(&b, &udp4(100, 1), 0).0.service.unwrap();
    assert_eq!(alone.bytes, 124);
}

/// What the wire behind the bottleneck loses takes its time there. The class may drop it, so that the
/// holder counts, not the classifier.
#[test]
fn a_loss_is_behind_the_bottleneck() {
    let b = held("[link]\nclass = \"hub.a\"\nloss = \"100%\"\n");
    let (done, _) = passed_on(&b, &udp4(100, 1), 0);
    assert!(done.service.unwrap().lost);
    let counters = b.counters();
    assert_eq!((counters.lost, counters.sent_bytes), (0, 0));

    // Before the queue it never comes so far.
    let b = held(
        "[link]\nclass = \"hub.a\"\nloss = { probability = \"100%\", stage = \"before-queue\" }\n",
    );
    assert_eq!(b.send(&udp4(100, 1), 0).verdict, TC_ACT_STOLEN);
    assert_eq!(b.counters().lost, 1);
}

/// So it is with copies, damage, resets and what is sent.
#[test]
fn what_a_class_may_drop_is_not_counted_yet() {
    let altered = "duplicate = \"100%\"\ncorrupt = \"100%\"\nreset = \"100%\"\n";
    let packet = super::alter::ip4(6, 100);
    let b = held(&format!("[link]\nclass = \"hub.a\"\n{altered}"));
    let service = passed_on(&b, &packet, 0).0.service.unwrap();
    assert!(service.corrupted && service.reset && service.copy_ns != 0);
    let c = b.counters();
    assert_eq!((c.duplicated, c.corrupted, c.reset), (0, 0, 0));
    assert_eq!(c.sent_bytes, 0);
    assert_eq!((c.packets, c.classed), (1, 1));

    // Without a class it goes out at once.
    let b = held(&format!("[link]\n{altered}"));
    assert_eq!(passed_on(&b, &packet, 0).0.service, None);
    let c = b.counters();
    assert_eq!((c.corrupted, c.reset), (1, 1));
    assert_eq!((c.sent_bytes, c.classed), (100, 0));
}

/// The queue of the link's own rate comes first.
#[test]
fn a_link_with_a_rate_sends_to_the_bottleneck() {
    let b = held("[link]\nclass = \"hub.a\"\nrate = \"8Mbit\"\ndelay = \"5ms\"\n");
    let packet = udp4(1000, 1);
    for n in 1..4 {
        let (done, _) = passed_on(&b, &packet, 0);
        let service = done.service.unwrap();
        assert_eq!(service.arrival_ns, b.start + n * MS);
        assert_eq!(service.departure_ns, b.start + (5 + n) * MS);
    }
}

/// What may overtake is marked, and everything fits into the space that a TAP leaves.
#[test]
fn jitter_per_packet_overtakes() {
    let b = held(
        "[link]\nclass = \"hub.a\"\n\
         delay = { mean = \"20ms\", jitter = \"5ms\", reorder = \"jitter\" }\n",
    );
    let (done, _) = passed_on(&b, &udp4(100, 1), 0);
    assert!(done.service.unwrap().overtakes);
    assert_eq!(offset_of!(emud_hold_hdr, service), 20);
    assert_eq!(
        size_of::<emud_hold_hdr>() + size_of::<emud_hold_service>(),
        frame::FRONT_LEN
    );
}

/// What skb->cb says to emud's qdisc.
fn put(left: &Left) -> abi::emud_classed {
    let cb = &left.ctx[rules::SKB_CB..][..size_of::<abi::emud_classed>()];
    // SAFETY: as many bytes as the structure has, which takes any.
    unsafe { std::ptr::read_unaligned(cb.as_ptr().cast()) }
}

/// The packet itself waits in emud's qdisc, and skb->cb says in which class.
#[test]
fn the_qdisc_gets_all_it_needs() {
    for (release, direction) in [
        (abi::EMUD_RELEASE_QDISC, abi::EMUD_UP),
        (abi::EMUD_RELEASE_QDISC_IFB, abi::EMUD_DOWN),
    ] {
        let link = "[link]\nclass = \"hub.b\"\ndelay = \"20ms\"\noverhead = 24\nloss = \"100%\"\n";
        let b = placed(link, release);
        let mut ctx = arriving(b.start + MS);
        ctx[rules::SKB_CB..][..4].copy_from_slice(&direction.to_ne_bytes());
        let left = run(&b.loaded, &udp4(1514, 1), &ctx);
        let put = put(&left);
        let want = abi::emud_classed {
            magic: abi::EMUD_CLASSED as u16,
            service: 2,
            path: direction as u16,
            token: 0,
            bytes: 1538,
            own_bytes: 1514,
            link: 0,
            flags: abi::EMUD_SERVICE_LOST as u8,
            packets: 1,
        };
        assert_eq!(format!("{put:?}"), format!("{want:?}"));
        let due = b.start + 21 * MS;
        let marks = u64::from(abi::EMUD_QDISC_MARKS);
        assert_eq!(
            left.departure(),
            (due & !marks) | u64::from(abi::EMUD_QDISC_CLASSED)
        );
    }
    // A packet of no class is put apart.
    let b = placed("[link]\ndelay = \"20ms\"\n", abi::EMUD_RELEASE_QDISC);
    let left = run(&b.loaded, &udp4(100, 1), &arriving(b.start));
    assert_eq!(left.departure() & u64::from(abi::EMUD_QDISC_CLASSED), 0);
}

/// A packet of a test run has a socket, which waits if emud's qdisc is in place and can have the clone.
#[test]
fn a_sender_waits_for_what_the_qdisc_sends() {
    let thread = std::thread::spawn(|| {
        own_network();
        let link = "[link]\nclass = \"line\"\n[bottleneck.line]\nrate = \"1Mbit\"\n\
                    queue = { full = \"block\" }\n";
        let mut b = placed(link, abi::EMUD_RELEASE_QDISC);
        let mut lldp = vec![0; 60];
        lldp[12..14].copy_from_slice(&0x88ccu16.to_be_bytes());
        for (lease_ns, frame, waits) in [
            (0, udp4(100, 1), false),
            (u64::MAX, udp4(100, 1), true),
            (u64::MAX, lldp, false),
        ] {
            let holder = abi::emud_holder {
                lease_ns,
                ..Default::default()
            };
            b.maps.set_holder(abi::EMUD_UP, &holder).unwrap();
            let left = run(&b.loaded, &frame, &arriving(b.start));
            let (verdict, magic) = match waits {
                // No later filter sees it.
                true => (TC_ACT_OK, abi::EMUD_TOKEN),
                false => (TC_ACT_UNSPEC, abi::EMUD_CLASSED),
            };
            let put = put(&left);
            assert_eq!((left.verdict, put.magic), (verdict, magic as u16));
            let is_held = put.flags & abi::EMUD_SERVICE_HELD as u8 != 0;
            assert_eq!(is_held, waits);
        }
        let c = b.counters();
        // Those that wait in a class are counted there.
        let not_ip = c.passed[abi::EMUD_PASS_NOT_IP as usize];
        assert_eq!((c.packets, c.classed, not_ip), (3, 3, 0));
    });
    thread.join().unwrap();
}
