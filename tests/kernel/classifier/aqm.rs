// SPDX-License-Identifier: MIT OR Apache-2.0
//! RED, CoDel and PIE against their papers.

use std::collections::VecDeque;

use emud::profile::{Aqm, CoDel, Length, Pie, Queue, Red};

use super::queue::{send_and_see, udp4_ecn};
use super::*;

fn managed(rate: u64, aqm: Aqm) -> Link {
    link(|l| {
        l.rate = Some(rate);
        l.queue = Queue {
            packets: Some(65_536),
            aqm: Some(aqm),
            ..Queue::default()
        };
    })
}

impl Bench {
    fn aqm(&self) -> abi::emud_aqm_state {
        self.maps.state_of(0, abi::EMUD_UP).unwrap().aqm
    }

    /// Early drops: RED, CoDel, PIE.
    fn dropped(&self) -> [u64; 3] {
        let c = self.counters();
        [
            c.aqm_dropped[abi::EMUD_AQM_RED as usize],
            c.aqm_dropped[abi::EMUD_AQM_CODEL as usize],
            c.aqm_dropped[abi::EMUD_AQM_PIE as usize],
        ]
    }
}

// RED

/// 1000 bytes take 1 us.
const FAST: u64 = 8_000_000_000;

fn red(probability: f64, weight: f64, ecn: bool) -> Link {
    let red = Red {
        min: Length::Time(100_000),
        max: Length::Bytes(300_000), // 300 us
        probability,
        weight,
        ecn,
    };
    managed(FAST, Aqm::Red(red))
}

/// A link whose backlog is `us` microseconds, and the time.
fn filled(l: &Link, us: u64) -> Bench {
    let mut b = Bench::new(&link(|l| {
        l.rate = Some(FAST);
        l.queue = Limit::Packets(65_536).into();
    }));
    for _ in 0..us {
        b.send(&udp4(1000, 1), 0);
    }
    b.set(l, 42, stamp_place());
    b
}

/// Returns which of `n` packets are dropped that all find the same backlog: time advances by the
/// wire time of each.
fn drops_at(b: &Bench, n: u64) -> Vec<u64> {
    let frame = udp4(1000, 1000);
    let mut at = 0;
    (0..n)
        .filter(|_| {
            let admitted = b.send(&frame, at).verdict == TC_ACT_UNSPEC;
            at += if admitted { 1000 } else { 0 };
            !admitted
        })
        .collect()
}

/// Mean and variance of the distance between two drops, by the paper's p_a.
fn red_distance(p_b: f64) -> (f64, f64) {
    let (mut left, mut mean, mut square) = (1.0, 0.0, 0.0);
    for n in 1..1_000_000 {
        let n = f64::from(n);
        let p_a = if n * p_b < 1.0 - p_b * 1.000_001 {
            p_b / (1.0 - n * p_b)
        } else {
            1.0
        };
        mean += n * left * p_a;
        square += n * n * left * p_a;
        left *= 1.0 - p_a;
        if left <= 0.0 {
            break;
        }
    }
    (mean, square - mean * mean)
}

#[test]
fn red_drops_as_often_as_the_paper_says() {
    for (us, share) in [(125, 0.125), (200, 0.5), (275, 0.875)] {
        for probability in [0.02, 0.1, 0.5] {
            let b = filled(&red(probability, 1.0, false), us);
            let drops = drops_at(&b, 20_000);
            assert_eq!(b.dropped(), [drops.len() as u64, 0, 0]);
            assert_eq!(b.counters().queue_dropped, 0);
            let (mean, variance) = red_distance(probability * share);
            let n = (drops.len() - 1) as f64;
            let got = (drops[drops.len() - 1] - drops[0]) as f64 / n;
            let se = (variance / n).sqrt();
            assert!(
                (got - mean).abs() < 3.0 * se,
                "{us} us, {probability}: every {got} for every {mean}, se {se}"
            );
            // Uniform, not geometric: the distance is at most 1/p_b.
            let furthest = drops.windows(2).map(|w| w[1] - w[0]).max().unwrap();
            assert!(furthest as f64 <= 1.0 / (probability * share));
        }
    }
}

#[test]
fn red_lets_all_in_below_min_and_none_above_max() {
    assert_eq!(drops_at(&filled(&red(1.0, 1.0, false), 99), 2_000).len(), 0);
    assert_eq!(
        drops_at(&filled(&red(0.0, 1.0, false), 299), 2_000).len(),
        0
    );
    assert_eq!(
        drops_at(&filled(&red(0.0, 1.0, false), 300), 2_000).len(),
        2_000
    );
}

#[test]
fn red_begins_to_count_with_the_second_packet() {
    let b = filled(&red(1.0, 1.0, false), 500);
    let frame = udp4(1000, 1000);
    let mut busy = 500_000;
    let mut admitted = 0;
    for _ in 0..60 {
        // 50 us are below min; at 200 us p_b is 1/2, as p_a is of the first packet there. Of
        // the second it is 1.
        assert_eq!(b.send(&frame, busy - 50_000).verdict, TC_ACT_UNSPEC);
        busy += 1000;
        if b.send(&frame, busy - 200_000).verdict == TC_ACT_UNSPEC {
            busy += 1000;
            admitted += 1;
            assert_eq!(b.send(&frame, busy - 200_000).verdict, TC_ACT_STOLEN);
        }
    }
    // 3 standard deviations.
    assert!((18..=42).contains(&admitted), "{admitted}");
}

#[test]
fn red_marks_what_understands_it() {
    let b = filled(&red(0.5, 1.0, true), 300);
    let (ect, not_ect) = (udp4_ecn(1000, 2), udp4_ecn(1000, 0));
    for _ in 0..50 {
        let (verdict, frame) = send_and_see(&b, &ect, 0);
        assert_eq!((verdict, frame[15] & 3), (TC_ACT_UNSPEC, 3));
        assert_eq!(send_and_see(&b, &not_ect, 0).0, TC_ACT_STOLEN);
    }
    assert_eq!((b.counters().marked, b.dropped()), (50, [50, 0, 0]));
}

#[test]
fn reds_average_is_the_papers() {
    const WEIGHT: f64 = 0.01;
    let b = Bench::new(&red(0.02, WEIGHT, false));
    let frame = udp4(1000, 1);
    // A step, a pause of 2,500 small packets' time with the wire idle, a step; then a burst after which the average is
    // far above the threshold when the wire is idle again, and packets are dropped there.
    let arrivals = (0..400u64)
        .map(|n| n * 500)
        .chain((0..300).map(|n| 2_900_000 + n * 700))
        .chain((0..300).map(|n| 3_100_000 + n * 1_500))
        .chain((0..1_000).map(|n| 4_000_000 + n * 10))
        .chain((0..600).map(|n| 4_420_000 + n * 400));
    let (mut busy, mut counted, mut average) = (0u64, 0u64, 0.0f64);
    let mut dropped_when_idle = 0;
    for (n, at) in arrivals.enumerate() {
        let admitted = b.send(&frame, at).verdict == TC_ACT_UNSPEC;
        if busy > at {
            average += WEIGHT * ((busy - at) as f64 - average);
        } else {
            // For the first packet there is no average yet.
            let idle = if n == 0 { 0 } else { at - busy.max(counted) };
            counted = at;
            dropped_when_idle += u32::from(!admitted);
            average *= (1.0 - WEIGHT).powi((idle / 1000) as i32);
            // The paper's exponent is no whole number: a straight line between two.
            average *= 1.0 - WEIGHT * (idle % 1000) as f64 / 1000.0;
        }
        busy = busy.max(at) + if admitted { 1000 } else { 0 };
        let got = b.aqm().red_average as f64 / 65536.0;
        // 2^-17 ns a step, and the weight is one of 2^32.
        assert!(
            (got - average).abs() < 0.02,
            "packet {n}: {got} for {average}"
        );
    }
    assert!(dropped_when_idle > 10, "{dropped_when_idle}");
}

// CoDel

/// RFC 8289, section 5: at the head of a queue, with the packets in it.
#[derive(Default)]
struct CoDelAtHead {
    first_above: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    /// Began with a count from before.
    resumed: bool,
    ecn: bool,
    /// (packet, when): dropped, or marked with `ecn`.
    signals: Vec<(usize, u64)>,
}

const TARGET: u64 = 5 * MS;
const INTERVAL: u64 = 100 * MS;

fn control_law(t: u64, count: u64) -> u64 {
    t + (INTERVAL as f64 / (count as f64).sqrt()).round() as u64
}

type Waiting = VecDeque<(usize, u64)>;

impl CoDelAtHead {
    /// Returns the packet at the head, and whether it may be dropped.
    fn take(&mut self, queue: &mut Waiting, now: u64) -> (Option<usize>, bool) {
        let Some((packet, arrival)) = queue.pop_front() else {
            self.first_above = 0;
            return (None, false);
        };
        if now - arrival < TARGET || queue.len() * 1000 <= 1514 {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now + INTERVAL;
        } else if now >= self.first_above {
            return (Some(packet), true);
        }
        (Some(packet), false)
    }

    /// Returns the packet that leaves the queue now.
    fn dequeue(&mut self, queue: &mut Waiting, now: u64) -> Option<usize> {
        let (mut packet, mut ok) = self.take(queue, now);
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.signals.push((packet.unwrap(), now));
                self.count += 1;
                if self.ecn {
                    self.drop_next = control_law(self.drop_next, self.count);
                    break;
                }
                (packet, ok) = self.take(queue, now);
                if ok {
                    self.drop_next = control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            self.signals.push((packet.unwrap(), now));
            if !self.ecn {
                (packet, _) = self.take(queue, now);
            }
            self.dropping = true;
            let delta = self.count - self.last_count;
            let recent = now < self.drop_next + 16 * INTERVAL;
            self.resumed |= delta > 1 && recent;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, self.count);
            self.last_count = self.count;
        }
        packet
    }

    /// Runs a wire that takes 1 ms per packet.
    fn run(mut self, arrivals: &[u64]) -> Self {
        let (mut queue, mut next, mut free) = (Waiting::new(), 0, 0);
        while next < arrivals.len() || !queue.is_empty() {
            let now = queue.front().map_or_else(
                || arrivals[next].max(free),
                |(_, arrival)| free.max(*arrival),
            );
            while next < arrivals.len() && arrivals[next] <= now {
                queue.push_back((next, arrivals[next]));
                next += 1;
            }
            if self.dequeue(&mut queue, now).is_some() {
                free = now + MS;
            }
        }
        self
    }
}

/// Too much, a little less than the wire's rate, more than before, ...
fn arrivals() -> Vec<u64> {
    let phases = [
        (1000, 900_000),
        (800, 1_200_000),
        (1200, 850_000),
        (1000, 1_200_000),
        (1500, 900_000),
        (800, 1_200_000),
    ];
    let mut at = 0;
    phases
        .into_iter()
        .flat_map(|(n, gap)| (0..n).map(move |i: u64| gap + i * 7_919 % 1_009))
        .map(|gap| {
            at += gap;
            at
        })
        .collect()
}

#[test]
fn codel_signals_what_it_would_at_the_head_of_the_queue() {
    let arrivals = arrivals();
    for ecn in [false, true] {
        let reference = CoDelAtHead {
            ecn,
            ..CoDelAtHead::default()
        }
        .run(&arrivals);
        let aqm = Aqm::CoDel(CoDel {
            target_ns: TARGET,
            interval_ns: INTERVAL,
            ecn,
        });
        let b = Bench::new(&managed(8_000_000, aqm));
        let frame = udp4_ecn(1000, 1);
        let signals: Vec<usize> = (0..arrivals.len())
            .filter(|n| {
                let (verdict, frame) = send_and_see(&b, &frame, arrivals[*n]);
                verdict == TC_ACT_STOLEN || frame[15] & 3 == 3
            })
            .collect();
        let wanted: Vec<usize> = reference.signals.iter().map(|(n, _)| *n).collect();
        assert!(
            wanted.len() > 60,
            "the arrivals are too few: {}",
            wanted.len()
        );
        assert!(reference.resumed, "not all of the law was met");
        assert_eq!(signals, wanted, "ecn {ecn}");
        let n = wanted.len() as u64;
        let (marked, dropped) = if ecn { (n, 0) } else { (0, n) };
        assert_eq!(
            (b.counters().marked, b.dropped()),
            (marked, [0, dropped, 0])
        );
        // Each step has two roundings, so 1 ns is allowed for each since the last begin.
        let a = b.aqm();
        assert_eq!(u64::from(a.codel_count), reference.count);
        let off = (a.codel_drop_next - b.start).abs_diff(reference.drop_next);
        assert!(off <= reference.count, "off by {off} ns");
    }
}

#[test]
fn codel_drops_by_the_square_root() {
    // An endless standing queue: drop n + 1 comes interval / sqrt(n) after drop n.
    let b = Bench::new(&managed(
        8_000_000,
        Aqm::CoDel(CoDel {
            target_ns: TARGET,
            interval_ns: INTERVAL,
            ecn: true,
        }),
    ));
    for _ in 0..1000 {
        b.send(&udp4(1000, 1), 0);
    }
    let (mut last, mut next) = (0, None::<u64>);
    for n in 0..5_000u64 {
        send_and_see(&b, &udp4_ecn(1000, 1), n * MS);
        let a = b.aqm();
        if a.codel_count != last {
            let at = a.codel_drop_next;
            if let Some(next) = next {
                let want = (INTERVAL as f64 / f64::from(a.codel_count).sqrt()).round() as u64;
                assert!((at - next).abs_diff(want) <= 1, "count {}", a.codel_count);
            }
            (last, next) = (a.codel_count, Some(at));
        }
    }
    assert!(last > 300, "{last}");
}

#[test]
fn codel_leaves_a_packet_or_two_alone() {
    // At 384 kbit/s a packet takes 31.5 ms, more than the target.
    let b = Bench::new(&managed(
        384_000,
        Aqm::CoDel(CoDel {
            target_ns: TARGET,
            interval_ns: INTERVAL,
            ecn: false,
        }),
    ));
    let frame = udp4(1514, 1);
    b.send(&frame, 0);
    // Each finds one that has just begun.
    for n in 0..200u64 {
        assert_eq!(b.send(&frame, n * 31_541_667).verdict, TC_ACT_UNSPEC);
    }
    assert_eq!(b.dropped(), [0; 3]);
    // And now two.
    b.send(&frame, 200 * 31_541_667);
    let drops = (200..206u64).filter(|n| b.send(&frame, n * 31_541_667).verdict == TC_ACT_STOLEN);
    assert_eq!(drops.count(), 1);
}

// PIE

const PIE: Pie = Pie {
    target_ns: 15 * MS,
    tupdate_ns: 15 * MS,
    alpha: 0.125,
    beta: 1.25,
    ecn: false,
};

/// RFC 8033, sections 4 and 5, in s.
struct PieReference {
    next: u64,
    p: f64,
    old: f64,
    burst: f64,
    accumulated: f64,
}

impl PieReference {
    fn update(&mut self, busy: u64) {
        let delay = busy.saturating_sub(self.next) as f64 / 1e9;
        let mut change = PIE.alpha * (delay - 0.015) + PIE.beta * (delay - self.old);
        change /= match self.p {
            p if p < 1e-6 => 2048.0,
            p if p < 1e-5 => 512.0,
            p if p < 1e-4 => 128.0,
            p if p < 1e-3 => 32.0,
            p if p < 1e-2 => 8.0,
            p if p < 1e-1 => 2.0,
            _ => 1.0,
        };
        if self.p >= 0.1 {
            change = change.min(0.02);
        }
        self.p += change;
        if delay == 0.0 && self.old == 0.0 {
            self.p *= 1.0 - 1.0 / 64.0;
        }
        self.p = self.p.clamp(0.0, 1.0);
        self.old = delay;
        self.burst = (self.burst - 0.015).max(0.0);
        self.next += PIE.tupdate_ns;
    }

    /// Returns the probability that this packet is dropped.
    fn chance(&mut self, wait: u64) -> f64 {
        let wait = wait as f64 / 1e9;
        if self.p == 0.0 && wait < 0.0075 && self.old < 0.0075 {
            self.burst = 0.15;
        }
        // Two packets of 1024 bytes take 2.048 ms.
        if self.burst > 1e-9 || (self.old < 0.0075 && self.p < 0.2) || wait <= 0.002_048 {
            return 0.0;
        }
        if self.p == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.p;
        match self.accumulated {
            a if a < 0.85 => 0.0,
            a if a >= 8.5 => 1.0,
            _ => self.p,
        }
    }
}

#[test]
fn pie_follows_its_rfc() {
    let b = Bench::new(&managed(8_000_000, Aqm::Pie(PIE)));
    let frame = udp4(1000, 1000);
    let mut r = PieReference {
        next: 15 * MS,
        p: 0.0,
        old: 0.0,
        burst: 0.15,
        accumulated: 0.0,
    };
    let (mut expected, mut variance, mut dropped, mut highest) = (0.0f64, 0.0f64, 0u64, 0.0f64);
    let mut busy = 0u64;
    // 25 % too much, then as much as the wire takes, silence, and again.
    let gaps = |from: u64, n: u64, gap: u64| (0..n).map(move |i| from + i * gap);
    let arrivals = gaps(0, 3_000, 800_000)
        .chain(gaps(2_400 * MS, 1_000, MS))
        .chain(gaps(5_200 * MS, 1_500, 750_000))
        // A step of the delay, of which a high probability uses at most 2 %.
        .chain(gaps(6_330 * MS, 300, 0))
        .chain(gaps(6_331 * MS, 100, MS));
    for (n, at) in arrivals.enumerate() {
        while r.next <= at {
            r.update(busy);
        }
        let wait = busy.saturating_sub(at);
        let chance = r.chance(wait);
        let verdict = b.send(&frame, at).verdict;
        let a = b.aqm();
        let p = a.pie_probability as f64 / 2f64.powi(48);
        // The gains are rounded by a part in a million.
        assert!(
            (p - r.p).abs() < 1e-6 * r.p.max(1e-3),
            "packet {n}: {p} for {}",
            r.p
        );
        expected += chance;
        variance += chance * (1.0 - chance);
        highest = highest.max(p);
        if verdict == TC_ACT_STOLEN {
            assert!(chance > 0.0, "packet {n} must not be dropped");
            r.accumulated = 0.0;
            dropped += 1;
        } else {
            assert!(chance < 1.0, "packet {n} must be dropped");
            busy = busy.max(at) + MS;
        }
    }
    assert!(highest > 0.15, "p never rose: {highest}");
    assert_eq!(b.dropped(), [0, 0, dropped]);
    assert!(
        (dropped as f64 - expected).abs() < 3.0 * variance.sqrt(),
        "{dropped} for {expected}, sd {}",
        variance.sqrt()
    );
}

#[test]
fn pie_marks_up_to_a_tenth_and_drops_beyond() {
    let b = Bench::new(&managed(8_000_000, Aqm::Pie(Pie { ecn: true, ..PIE })));
    let frame = udp4_ecn(1000, 2);
    let (mut marked, mut dropped) = (0u64, 0u64);
    // 4 % too much, then more than marks can signal.
    let gaps = (0..3_000u64).map(|n| n * 960_000);
    for (n, at) in gaps
        .chain((0..3_000).map(|n| 2_880 * MS + n * 700_000))
        .enumerate()
    {
        let (verdict, got) = send_and_see(&b, &frame, at);
        let above = b.aqm().pie_probability >= (1 << 48) / 10;
        if verdict == TC_ACT_STOLEN {
            assert!(above, "packet {n} dropped below 10 %");
            dropped += 1;
        } else if got[15] & 3 == 3 {
            assert!(!above, "packet {n} marked above 10 %");
            marked += 1;
        }
    }
    assert!(
        marked > 10 && dropped > 10,
        "{marked} marked, {dropped} dropped"
    );
    assert_eq!(
        (b.counters().marked, b.dropped()),
        (marked, [0, 0, dropped])
    );
}

#[test]
fn each_manager_starts_afresh() {
    let mut b = Bench::new(&managed(8_000_000, Aqm::Pie(PIE)));
    for n in 0..2_000u64 {
        b.send(&udp4(1000, 1), n * 700_000);
    }
    assert!(b.aqm().pie_probability > 0);
    b.set(&red(0.02, 0.5, false), 42, stamp_place());
    b.send(&udp4(1000, 1), 1_400 * MS);
    let a = b.aqm();
    assert_eq!((a.aqm, a.pie_probability), (abi::EMUD_AQM_RED, 0));
}
