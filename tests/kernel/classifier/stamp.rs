// SPDX-License-Identifier: MIT OR Apache-2.0
//! A packet that its sender holds back (SO_TXTIME, pacing) leaves later; no other packet does.

use emud::profile::{Queue, Slot};

use super::rules::{SKB_CB, bench};
use super::*;

const AHEAD: u64 = 8_000 * MS;

/// Every stage with a state: the queue's clock, the order of departures, slots.
fn links() -> Vec<(&'static str, Link)> {
    let ordered = jitter(20 * MS, 5e6, Distribution::Normal, Reorder::Never);
    vec![
        ("delay", link(|l| l.delay.mean_ns = 20 * MS)),
        (
            "rate",
            link(|l| {
                l.rate = Some(8_000_000);
                l.queue = Limit::Packets(20).into();
                l.delay.mean_ns = 20 * MS;
            }),
        ),
        (
            "burst",
            link(|l| {
                l.rate = Some(8_000_000);
                l.wire.burst = Some(4_000);
                l.queue = Queue {
                    time_ns: Some(5 * MS),
                    ..Queue::default()
                };
            }),
        ),
        ("in order", ordered),
        (
            "slots",
            link(|l| {
                l.slot = Some(Slot {
                    min_ns: 10 * MS,
                    max_ns: 10 * MS,
                    packets: Some(3),
                    bytes: None,
                });
            }),
        ),
    ]
}

/// Departures of 60 packets, of which every tenth has a stamp this far ahead.
fn departures(l: &Link, ahead: u64) -> Vec<Fate> {
    let b = Bench::new(l);
    (0..60)
        .map(|n| {
            let at = n * 700_000;
            let mut ctx = arriving(b.start + at);
            let of_pacer = n % 10 == 5;
            if of_pacer {
                ctx[SKB_TSTAMP..][..8].copy_from_slice(&(b.start + at + ahead).to_ne_bytes());
            }
            let frame = udp4(1_000, if of_pacer { 7 } else { 1 });
            run(&b.loaded, &frame, &ctx).fate(b.start)
        })
        .collect()
}

#[test]
fn a_stamp_delays_its_own_packet_and_no_other() {
    for (name, l) in links() {
        let plain = departures(&l, 0);
        for ahead in [1, 300_000, 30 * MS, AHEAD] {
            let stamped = departures(&l, ahead);
            for (n, (plain, stamped)) in plain.iter().zip(&stamped).enumerate() {
                let about = format!("{name}, {ahead} ns ahead: packet {n}");
                if n % 10 != 5 || plain.verdict == TC_ACT_STOLEN {
                    assert_eq!(plain, stamped, "{about}");
                    continue;
                }
                let earliest = n as u64 * 700_000 + ahead;
                assert!(stamped.departure >= earliest, "{about}: {stamped:?}");
                // The effect of the link on it, from then on.
                let most = plain.departure + ahead;
                assert!(stamped.departure <= most, "{about}: {stamped:?}");
            }
        }
    }
}

#[test]
fn on_a_plain_link_it_is_the_stamp_and_the_delay() {
    let b = Bench::new(&link(|l| l.delay.mean_ns = 20 * MS));
    let send = |at: u64, stamp: u64| {
        let mut ctx = arriving(b.start + at);
        ctx[SKB_TSTAMP..][..8].copy_from_slice(&stamp.to_ne_bytes());
        let fate = run(&b.loaded, &udp4(100, 1), &ctx).fate(b.start);
        fate.departure
    };
    assert_eq!(send(MS, b.start + 3 * MS), 23 * MS);
    // In the past, or of a different clock.
    assert_eq!(send(4 * MS, b.start + 3 * MS), 24 * MS);
    assert_eq!(send(5 * MS, 1_790_000_000_000_000_000), 25 * MS);
    // The time for which the sender holds a packet back is not a delay of the link.
    let c = b.counters();
    assert_eq!(c.delay_ns, 3 * 20 * MS);
}

/// fq before 6.7 would send priority 7 at once.
#[test]
fn control_traffic_is_no_priority_of_fqs() {
    const SKB_PRIORITY: usize = 32;
    let b = Bench::new(&link(|l| l.delay.mean_ns = 20 * MS));
    for (priority, want) in [
        (0u32, 0),
        (6, 6),
        (7, 6),
        (8, 8),
        (0x1_0007, 0x1_0006),
        (23, 22),
        (0x1_0008, 0x1_0008),
    ] {
        let mut ctx = arriving(b.start);
        ctx[SKB_PRIORITY..][..4].copy_from_slice(&priority.to_ne_bytes());
        let left = run(&b.loaded, &udp4(100, 1), &ctx);
        let got = u32::from_ne_bytes(left.ctx[SKB_PRIORITY..][..4].try_into().unwrap());
        assert_eq!((got, left.departure() - b.start), (want, 20 * MS));
    }
}

/// The stamp of a packet to the port of PTP events, which pass, with these links; 0: none.
fn stamp_after_a_pass(release: abi::emud_release, direction: u32, stamp: u64) -> u64 {
    let place = PacketTarget {
        release,
        ..stamp_place()
    };
    let l = link(|l| l.delay.mean_ns = 20 * MS);
    let mut b = Bench::with(&l, 42, place);
    let links = [abi::EMUD_UP, abi::EMUD_DOWN].map(|d| b.compile(&l, 42, d, place));
    b.apply(links.each_ref().map(std::slice::from_ref)).unwrap();
    let mut frame = udp4(100, 1);
    frame[36..38].copy_from_slice(&319u16.to_be_bytes());
    let mut ctx = arriving(b.start);
    ctx[SKB_TSTAMP..][..8].copy_from_slice(&stamp.to_ne_bytes());
    ctx[SKB_CB..][..4].copy_from_slice(&direction.to_ne_bytes());
    let left = run(&b.loaded, &frame, &ctx);
    assert_eq!(left.verdict, TC_ACT_UNSPEC);
    left.departure()
}

/// The monitor takes a stamp that remains for a departure time of the link.
#[test]
fn a_packet_that_passes_keeps_no_stamp_of_the_past() {
    let other_clock = 1_790_000_000_000_000_000;
    let stamps = [(START - 1, 0), (other_clock, 0), (START + MS, START + MS)];
    for (stamp, left) in stamps {
        for release in [abi::EMUD_RELEASE_STAMP, abi::EMUD_RELEASE_QDISC] {
            assert_eq!(stamp_after_a_pass(release, abi::EMUD_UP, stamp), left);
            // When it was received.
            assert_eq!(stamp_after_a_pass(release, abi::EMUD_DOWN, stamp), stamp);
        }
        // Another qdisc may be for such stamps.
        let by_hold = stamp_after_a_pass(abi::EMUD_RELEASE_HOLD, abi::EMUD_UP, stamp);
        assert_eq!(by_hold, stamp);
    }
    let mut b = bench("[link]\n[[rule]]\nmatch = { protocol = \"udp\" }\nlink = \"none\"\n");
    b.maps.end_at(u64::MAX).unwrap();
    let mut ctx = arriving(b.start);
    ctx[SKB_TSTAMP..][..8].copy_from_slice(&(START - 1).to_ne_bytes());
    assert_eq!(run(&b.loaded, &udp4(100, 1), &ctx).departure(), 0);
}

/// By the lowest bit of the stamp: emud's qdisc limits what users hold back.
#[test]
fn the_qdisc_sees_which_packets_are_held_back_for_long() {
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_QDISC,
        ..stamp_place()
    };
    let b = Bench::with(&link(|l| l.delay.mean_ns = 20 * MS + 1), 42, place);
    for (ahead, bit) in [(0, 0), (5 * MS, 0), (11 * MS, 1), (5000 * MS, 1)] {
        let mut ctx = arriving(b.start);
        ctx[SKB_TSTAMP..][..8].copy_from_slice(&(b.start + ahead).to_ne_bytes());
        let fate = run(&b.loaded, &udp4(100, 1), &ctx).fate(b.start);
        assert_eq!(fate.departure, 20 * MS + ahead + bit);
        let passes = stamp_after_a_pass(place.release, abi::EMUD_UP, START + ahead);
        assert_eq!(passes, START + ahead + bit);
    }
}

/// Of a clock that is close to CLOCK_MONOTONIC on a host that does not know the time.
#[test]
fn the_time_of_a_reception_holds_nothing_back() {
    let l = link(|l| l.delay.mean_ns = 20 * MS);
    let mut b = Bench::new(&l);
    let links = [abi::EMUD_UP, abi::EMUD_DOWN].map(|d| b.compile(&l, 42, d, stamp_place()));
    b.apply(links.each_ref().map(std::slice::from_ref)).unwrap();
    let departure = |direction: u32| {
        let mut ctx = arriving(b.start);
        ctx[SKB_TSTAMP..][..8].copy_from_slice(&(b.start + 3 * MS).to_ne_bytes());
        ctx[SKB_CB..][..4].copy_from_slice(&direction.to_ne_bytes());
        run(&b.loaded, &udp4(100, 1), &ctx).fate(b.start).departure
    };
    assert_eq!(departure(abi::EMUD_UP), 23 * MS);
    assert_eq!(departure(abi::EMUD_DOWN), 20 * MS);
}
