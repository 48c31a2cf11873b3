// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of [`Servers`](super::Servers).

use super::super::queue::TimerQueue;
use super::*;
use crate::bottleneck::{Class, Limits, Schedule, Signals};

/// Hands out the same figures each time, as with each `emud set` of something else.
struct Plans(Vec<Plan>);

impl Classes for Plans {
    fn plans(&self, _: &mut u64) -> Option<Vec<Plan>> {
        Some(self.0.clone())
    }

    fn account(&self, _: &[(u32, abi::emud_class)]) {}
}

const US: u64 = 1_000;

fn service(arrival_ns: u64, delay_ns: u64) -> Service {
    Service {
        number: 1,
        arrival_ns,
        departure_ns: arrival_ns + delay_ns,
        copy_ns: 0,
        path: 0,
        bytes: 1_000,
        lost: false,
        overtakes: false,
        corrupted: false,
        reset: false,
        link: 0,
        own_bytes: 900,
    }
}

fn servers(rates: &[u64]) -> (Servers, TimerQueue) {
    servers_of(rates, None)
}

/// Bottlenecks of these rates that mark what has waited at all, with a limit in packets.
fn servers_of(rates: &[u64], packets: Option<u32>) -> (Servers, TimerQueue) {
    let class = Class {
        signals: Signals::MarkAbove(0),
        limits: Limits {
            packets,
            ..Limits::default()
        },
        ..Class::default()
    };
    let plan = |rate: &u64| Plan {
        rate: *rate,
        schedule: Schedule::Fifo,
        seed: 0,
        classes: vec![class],
    };
    let mut servers = Servers::default();
    servers.update(&Plans(rates.iter().map(plan).collect()), 0);
    (servers, TimerQueue::new(1 << 20))
}

/// Behind a vnet header: IPv4 whose sender understands marks.
fn frame(queue: &mut TimerQueue) -> Frame {
    let mut bytes = [0; 10 + 14 + 20];
    (bytes[22], bytes[24], bytes[25]) = (8, 0x45, 1);
    queue.store(&bytes, false).unwrap()
}

#[test]
fn decisions_are_put_off_until_something_may_depart() {
    // 1,000 bytes take 10 us.
    for (delay_us, lag_us) in [(0, 50), (90, 100), (400, 410), (20_000, 1_000)] {
        let (mut servers, mut queue) = servers(&[800_000_000]);
        servers.arrive(0, service(7 * US, 20_000 * US), frame(&mut queue), None);
        assert_eq!(servers.due_ns(), Some(1_007 * US));
        servers.arrive(0, service(8 * US, delay_us * US), frame(&mut queue), None);
        assert_eq!(servers.due_ns(), Some((7 + lag_us) * US));
        // What has gone does not count any more. The wire is busy until 27 us, then until 37 us.
        servers.arrive(0, service(9 * US, 20_000 * US), frame(&mut queue), None);
        assert!(servers.decide(u64::MAX).is_some() && servers.decide(u64::MAX).is_some());
        assert_eq!(servers.due_ns(), Some(1_027 * US));
        assert!(servers.decide(u64::MAX).is_some());
        assert_eq!((servers.due_ns(), servers.waiting(0)), (None, 0));
        servers.arrive(0, service(10 * US, 20_000 * US), frame(&mut queue), None);
        assert_eq!(servers.due_ns(), Some(1_037 * US));
    }
}

#[test]
fn a_mark_is_written_into_the_frame_and_its_copy() {
    let (mut servers, mut queue) = servers(&[8_000_000]);
    servers.arrive(0, service(0, US), frame(&mut queue), None);
    let copied = Service {
        copy_ns: 5 * US,
        ..service(0, US)
    };
    let copy = Some(frame(&mut queue));
    servers.arrive(0, copied, frame(&mut queue), copy);
    let mut fields = Vec::new();
    while let Some(done) = servers.decide(u64::MAX) {
        let Done::Departs { frame, copy, .. } = done else {
            panic!("lost");
        };
        let frames = std::iter::once(frame).chain(copy);
        fields.extend(frames.map(|(at, frame)| (at, frame.bytes()[25])));
    }
    assert_eq!(fields, [(1_001 * US, 1), (2_001 * US, 3), (2_005 * US, 3)]);
}

#[test]
fn what_a_class_drops_is_not_lost_or_copied_behind_it() {
    let (mut servers, mut queue) = servers_of(&[8_000_000], Some(1));
    // Each second one finds the wire busy with the one before.
    let arrivals = [(0, true), (1, true), (2_000, false), (2_001, false)];
    for (arrival_us, lost) in arrivals {
        let service = Service {
            lost,
            corrupted: !lost,
            reset: !lost,
            copy_ns: u64::from(!lost) * 5_000 * US,
            link: 3,
            ..service(arrival_us * US, US)
        };
        let copy = (!lost).then(|| frame(&mut queue));
        servers.arrive(0, service, frame(&mut queue), copy);
    }
    while servers.decide(u64::MAX).is_some() {}
    let one_of_each = abi::emud_served {
        sent_packets: 1,
        sent_bytes: 900,
        dropped: 2,
        lost: 1,
        duplicated: 1,
        corrupted: 1,
        reset: 1,
    };
    let served = servers.served(0).unwrap()[3];
    assert_eq!(format!("{served:?}"), format!("{one_of_each:?}"));
}

/// Of one of these frames: number, departure and mark, in the order of writing.
type Written = Vec<(u16, u64, u8)>;

/// What a holder writes that wakes up at random times, and how late it is altogether, ns. A frame can
/// be read by less than the margin after its stamp.
fn replayed(
    plans: &Plans,
    services: &[Service],
    mut random: impl FnMut(u64) -> u64,
) -> (Written, u64) {
    let mut servers = Servers::default();
    servers.update(plans, 0);
    let mut queue = TimerQueue::new(1 << 20);
    let there = services.iter().map(|s| s.arrival_ns + random(MARGIN_NS));
    let mut unread: Vec<_> = there.zip(0..).collect();
    unread.sort_unstable();
    let mut unread = unread.into_iter().peekable();
    let (mut now_ns, mut written, mut late_ns) = (0, Written::new(), 0);
    loop {
        if random(5) == 0 {
            servers.update(plans, now_ns);
        }
        while let Some((_, number)) = unread.next_if(|(there, _)| *there <= now_ns) {
            let numbered = |queue: &mut TimerQueue| {
                let mut frame = frame(queue);
                frame.bytes_mut()[42..44].copy_from_slice(&u16::to_le_bytes(number));
                frame
            };
            let service = services[usize::from(number)];
            let copy = (service.copy_ns > 0).then(|| numbered(&mut queue));
            let frame = numbered(&mut queue);
            assert!(servers.arrive(0, service, frame, copy), "disordered");
        }
        while let Some(done) = servers.decide(now_ns.saturating_sub(MARGIN_NS)) {
            match done {
                Done::Departs { frame, copy, .. } => {
                    for (departs, frame) in std::iter::once(frame).chain(copy) {
                        queue.insert(departs, frame);
                    }
                }
                Done::Lost { frame, copy, .. } => {
                    let frames = std::iter::once(frame).chain(copy);
                    frames.for_each(|frame| queue.recycle(frame));
                }
            }
        }
        while let Some(frame) = queue.pop_due(now_ns) {
            let bytes = frame.bytes();
            let number = u16::from_le_bytes([bytes[42], bytes[43]]);
            written.push((number, frame.departure_ns, bytes[25]));
            late_ns += now_ns - frame.departure_ns;
            queue.recycle(frame);
        }
        if unread.peek().is_none() && servers.waiting(0) == 0 && queue.is_empty() {
            return (written, late_ns);
        }
        // As due, or up to 1 or 50 ms later.
        let most_ns = [100 * US, 1_000 * US, 50_000 * US][random(3) as usize];
        now_ns += 1 + random(most_ns);
    }
}

#[test]
fn the_time_of_waking_up_changes_only_lateness() {
    let mut seed = 0;
    let mut random = |below| {
        seed += 1;
        abi::mix(seed) % below
    };
    let plan = |rate, schedule, ceil: Option<u64>| Plan {
        rate,
        schedule,
        seed: 1,
        classes: (1..=2)
            .map(|n| Class {
                priority: n,
                weight: n.into(),
                ceil: ceil.filter(|_| n == 1),
                limits: Limits {
                    packets: Some(20),
                    ..Limits::default()
                },
                signals: Signals::MarkAbove(5_000 * US),
                ..Class::default()
            })
            .collect(),
    };
    let plans = Plans(vec![
        plan(8_000_000, Schedule::Drr, None),
        plan(4_000_000, Schedule::Priority, Some(1_500_000)),
    ]);
    let mut at_ns = 0;
    let services: Vec<_> = (0..400)
        .map(|_| {
            at_ns += 1 + random(1_200 * US);
            Service {
                number: 1 + random(4) as u32,
                path: random(2) as u32,
                lost: random(20) == 0,
                overtakes: random(10) == 0,
                copy_ns: u64::from(random(10) == 0) * (at_ns + random(30_000 * US)),
                ..service(at_ns, random(30_000 * US))
            }
        })
        .collect();
    let (mut written, mut late_ns) = replayed(&plans, &services, &mut random);
    let by_number = |written: &mut Written| written.sort_unstable();
    by_number(&mut written);
    assert!(
        written.iter().any(|(.., ds)| *ds == 3) && written.len() > 300,
        "{}",
        written.len()
    );
    for _ in 0..100 {
        let (mut again, late_again) = replayed(&plans, &services, &mut random);
        by_number(&mut again);
        assert_eq!(again, written);
        assert_ne!(late_again, late_ns);
        late_ns = late_again;
    }
}

#[test]
fn a_bottleneck_does_not_hold_up_the_packets_of_another() {
    let (mut servers, mut queue) = servers(&[8_000_000, 800_000_000]);
    let of = |number, arrival_us| Service {
        number,
        ..service(arrival_us * US, 0)
    };
    servers.arrive(0, of(1, 0), frame(&mut queue), None);
    servers.arrive(0, of(2, 1), frame(&mut queue), None);
    servers.arrive(0, of(2, 100), frame(&mut queue), None);
    let mut departures = Vec::new();
    while let Some(Done::Departs { frame, .. }) = servers.decide(u64::MAX) {
        departures.push(frame.0);
    }
    assert_eq!(departures, [1_000 * US, 11 * US, 110 * US]);
}

#[test]
fn nothing_waits_after_the_end() {
    let (mut servers, mut queue) = servers(&[8_000_000]);
    let of_link = |arrival_us| Service {
        link: 3,
        ..service(arrival_us * US, US)
    };
    let lost = Service {
        lost: true,
        ..of_link(1)
    };
    let copied = Service {
        copy_ns: 5 * US,
        ..of_link(2)
    };
    servers.arrive(0, of_link(0), frame(&mut queue), None);
    servers.arrive(0, lost, frame(&mut queue), None);
    let copy = Some(frame(&mut queue));
    servers.arrive(1, copied, frame(&mut queue), copy);
    servers.arrive(1, of_link(3), frame(&mut queue), None);
    // The first one is on the wire, two wait, and the class does not know the last one yet.
    assert!(servers.decide(2 * US).is_some() && servers.decide(2 * US).is_none());
    assert_eq!([0, 1].map(|port| servers.waiting(port)), [1, 2]);
    assert_eq!(servers.account()[0].1.backlog_packets, 2);
    let frames = servers.drain();
    let ports: Vec<_> = frames.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [1, 1, 1]);
    assert_eq!([0, 1].map(|port| servers.waiting(port)), [0, 0]);
    let counts = [0, 1].map(|port| {
        let served = servers.served(port).unwrap()[3];
        [served.sent_packets, served.lost, served.duplicated]
    });
    assert_eq!(counts, [[1, 1, 0], [2, 0, 1]]);
    assert!(servers.account().is_empty() && !servers.has(1));
}
