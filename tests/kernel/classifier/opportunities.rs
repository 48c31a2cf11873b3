// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mahimahi's delivery opportunities against a simple implementation of mm-link's rules.

use super::timeline::lcg;
use super::*;
use emud::profile::{Trace, TraceSource};
use std::collections::VecDeque;

fn mahimahi(ms: Vec<u32>, repeat: bool) -> Link {
    link(|l| {
        l.trace = Some(Trace {
            source: TraceSource::Mahimahi(ms.into()),
            repeat,
            offset_ns: 0,
        });
        l.queue = Limit::Packets(65_536).into();
    })
}

/// At each opportunity up to 1500 bytes of the waiting packets leave, the rest is lost.
fn plain(times: &[u64], packets: &[(u64, usize)]) -> Vec<u64> {
    let mut waiting = VecDeque::new();
    let mut coming = packets.iter().enumerate().peekable();
    let mut left = vec![u64::MAX; packets.len()];
    for time in times {
        // A packet that arrives with the opportunity is too late for it.
        while let Some((i, (_, bytes))) = coming.next_if(|(_, (at, _))| at < time) {
            waiting.push_back((i, *bytes));
        }
        let mut room = 1500;
        while let Some((i, bytes)) = waiting.front_mut() {
            let part = room.min(*bytes);
            *bytes -= part;
            room -= part;
            if *bytes > 0 {
                break;
            }
            left[*i] = *time;
            waiting.pop_front();
        }
    }
    left
}

/// A cellular link: its rate varies, and is 0 at times.
fn cellular(seconds: u32, seed: &mut u64) -> Vec<u32> {
    let mut all = Vec::new();
    let (mut per_ms, mut until) = (0.5, 0);
    for ms in 0..seconds * 1000 {
        if ms == until {
            let steps = [0.0, 0.1, 0.3, 0.8, 1.5, 2.5];
            per_ms = steps[lcg(seed) as usize % steps.len()];
            until = ms + 100 + (lcg(seed) % 900) as u32;
        }
        let draw = (lcg(seed) % 1000) as f64 / 1000.0;
        let n = (per_ms * 2.0 * draw).round() as usize;
        all.extend(std::iter::repeat_n(ms, n));
    }
    all.push(seconds * 1000);
    all
}

/// Returns when packets of (arrival, bytes) leave.
fn send_all(up: &Link, packets: &[(u64, usize)]) -> Vec<u64> {
    let rows = up.trace.as_ref().unwrap().len() + 1;
    let sizes = Sizes {
        rows,
        ..Sizes::default()
    };
    let b = Bench::sized(up, sizes);
    let departure = |&(at, bytes): &(u64, usize)| {
        let fate = b.send(&udp4(bytes, 1), at);
        assert_eq!(fate.verdict, TC_ACT_UNSPEC, "at {at}");
        fate.departure
    };
    packets.iter().map(departure).collect()
}

#[test]
fn a_cellular_trace_of_60_s_is_mm_links_to_the_byte() {
    let mut seed = 3;
    let trace = cellular(20, &mut seed);
    let period = u64::from(*trace.last().unwrap()) * MS;
    // Three rounds and what is still waiting then.
    let times: Vec<u64> = (0..4)
        .flat_map(|round| {
            trace
                .iter()
                .map(move |ms| round * period + u64::from(*ms) * MS)
        })
        .collect();
    let mut at = 0;
    let mut packets = Vec::new();
    while at < 60_000 * MS {
        // Bursts, and pauses in which opportunities go to waste.
        at += match lcg(&mut seed) % 20 {
            0 => lcg(&mut seed) % (300 * MS),
            _ => lcg(&mut seed) % (2 * MS),
        };
        packets.push((at, 60 + (lcg(&mut seed) % 1455) as usize));
    }
    let want = plain(&times, &packets);
    let got = send_all(&mahimahi(trace, true), &packets);
    let wrong = got.iter().zip(&want).filter(|(g, w)| g != w).count();
    println!("{} packets, {wrong} not as mm-link", got.len());
    assert_eq!(wrong, 0);
    assert!(got.iter().all(|g| times.binary_search(g).is_ok()));
}

#[test]
fn an_opportunity_carries_1500_bytes_and_what_is_unused_is_gone() {
    let b = Bench::new(&mahimahi(vec![10, 10, 20, 40], true));
    let send = |bytes, at_ms: u64| b.send(&udp4(bytes, 1), at_ms * MS).departure / MS;
    assert_eq!(send(1000, 0), 10);
    assert_eq!(send(500, 9), 10, "in what the first leaves");
    assert_eq!(send(1500, 9), 10, "the second one");
    assert_eq!(send(100, 10), 20, "too late for those");
    assert_eq!(send(1400, 19), 20);
    assert_eq!(send(1500, 20), 40);
    assert_eq!(send(3001, 40), 60, "two at 50, one at 60");
    assert_eq!(send(1439, 45), 60);
    assert_eq!([send(60, 45), send(60, 45)], [60, 80], "60 bytes were left");
    // A super-packet: 100 pieces, 14 of 42 + 1000 bytes in each 10 opportunities.
    let pieces = b.send_gso(&udp4(42 + 3400, 1), 1_000 * MS, 1000);
    assert_eq!(
        pieces.departure / MS,
        1_020,
        "3 x 1042 + 442 bytes in three"
    );
}

#[test]
fn without_a_loop_the_last_opportunity_is_the_last() {
    let b = Bench::new(&mahimahi(vec![5, 10], false));
    assert_eq!(b.send(&udp4(1500, 1), 0).departure, 5 * MS);
    assert_eq!(b.send(&udp4(1000, 1), 7 * MS).departure, 10 * MS);
    assert_eq!(b.send(&udp4(501, 1), 8 * MS).verdict, TC_ACT_STOLEN);
    assert_eq!(b.send(&udp4(500, 1), 8 * MS).departure, 10 * MS);
    assert_eq!(b.send(&udp4(60, 1), 10 * MS).verdict, TC_ACT_STOLEN);
    assert_eq!(b.counters().queue_dropped, 2);
}

#[test]
fn the_queue_in_front_of_opportunities_is_limited() {
    let each_ms: Vec<u32> = (1..=100).collect();
    let with = |limit: Limit| {
        let mut l = mahimahi(each_ms.clone(), true);
        l.queue = limit.into();
        let b = Bench::new(&l);
        let all = (0..200).map(|_| b.send(&udp4(1000, 1), 0).verdict);
        all.filter(|v| *v == TC_ACT_UNSPEC).count()
    };
    assert_eq!(with(Limit::Packets(30)), 30);
    assert_eq!(with(Limit::Bytes(30_000)), 30);
    // The first bits of number n are of opportunity n * 1000 / 1500, at 1 ms and so on.
    assert_eq!(with(Limit::Time(10 * MS)), 15);
}

/// As by `set` of `trace.restart`, and of a trace in place of a rate.
#[test]
fn other_opportunities_come_behind_what_waits() {
    let of_a_rate = link(|l| {
        l.rate = Some(1_200_000);
        l.queue = Limit::Packets(65_536).into();
    });
    for before in [mahimahi(vec![10], true), of_a_rate] {
        let sizes = Sizes {
            rows: 100,
            ..Sizes::default()
        };
        let mut b = Bench::sized(&before, sizes);
        let frame = udp4(1500, 1);
        // One each 10 ms.
        let sent: Vec<_> = (0..50).map(|_| b.send(&frame, 0).departure).collect();
        assert!(sent[49].abs_diff(500 * MS) <= 1, "{}", sent[49]);
        let mut up = b.compile(&mahimahi(vec![20], true), 42, abi::EMUD_UP, stamp_place());
        up.link.timeline.epoch_ns += 105 * MS;
        b.apply([&[up], &[]]).unwrap();
        assert_eq!(b.send(&frame, 105 * MS).departure, 505 * MS);
        assert_eq!(b.send(&frame, 106 * MS).departure, 525 * MS);
        // The queue is empty.
        assert_eq!(b.send(&frame, 704 * MS).departure, 705 * MS);
    }
}
