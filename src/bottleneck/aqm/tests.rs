// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each manager alone, against what its paper says of it.

use super::*;
use crate::abi::mix;

const MS: u64 = 1_000_000;
const AT_ONCE: AverageFigures = AverageFigures {
    weight: 1 << 32,
    packet_ns: 1_000,
};

fn red(min: u64, max: u64, share: f64) -> RedFigures {
    RedFigures {
        min,
        max,
        probability: probability(share),
        average: AT_ONCE,
    }
}

fn packet(n: u64) -> Packet {
    Packet {
        now_ns: n * MS,
        size: 1_000,
        draw: mix(n),
        ..Packet::default()
    }
}

/// Which of `n` packets are dropped that all find this backlog.
fn drops(manager: &mut dyn Aqm, backlog: u64, n: u64) -> Vec<u64> {
    let is_dropped = |n: &u64| manager.arrive(&packet(*n), backlog) == AqmVerdict::Drop;
    (0..n).filter(is_dropped).collect()
}

fn distances(drops: &[u64]) -> impl Iterator<Item = u64> {
    drops.windows(2).map(|pair| pair[1] - pair[0])
}

#[test]
fn red_spaces_drops_evenly() {
    // p is 0.05 in the middle: distances are uniform on 1..=19.
    let middle = drops(&mut Red::new(red(100, 300, 0.1)), 200, 20_000);
    assert!(distances(&middle).all(|d| (1..=19).contains(&d)));
    let mean = distances(&middle).sum::<u64>() as f64 / (middle.len() - 1) as f64;
    // Standard deviation 5.5, some 2,000 of them: 3 standard errors.
    assert!((mean - 10.0).abs() < 0.37, "{mean}");
    assert_eq!(drops(&mut Red::new(red(100, 300, 1.0)), 99, 50), [0; 0]);
    assert_eq!(drops(&mut Red::new(red(100, 300, 0.0)), 300, 50).len(), 50);
}

#[test]
fn an_idle_time_counts_as_small_packets() {
    let average = AverageFigures {
        weight: probability(0.002),
        packet_ns: 1_000,
    };
    let figures = RedFigures {
        average,
        ..red(100, 300, 1.0)
    };
    let mut manager = Red::new(figures);
    for n in 0..5_000 {
        manager.arrive(&packet(n), 90);
    }
    let before = manager.average();
    let idle = Packet {
        idle_ns: 500_000,
        ..packet(0)
    };
    assert_eq!(manager.arrive(&idle, 0), AqmVerdict::Pass);
    let want = before as f64 * 0.998f64.powi(500);
    assert!((manager.average() as f64 - want).abs() <= 1.0);
}

#[test]
fn ared_moves_its_probability_into_the_target_range() {
    let figures = AredFigures {
        red: red(100, 300, 0.1),
        interval_ns: 500 * MS,
        alpha: probability(0.01),
        beta: probability(0.9),
    };
    let at = |backlog: u64, seconds: u64| {
        let mut manager = Ared::new(figures, 0);
        drops(&mut manager, backlog, seconds * 1000);
        manager.probability() as f64 / (1u64 << 32) as f64
    };
    // In the target range it stays.
    for backlog in [180, 200, 220] {
        assert!((at(backlog, 10) - 0.1).abs() < 1e-6);
    }
    // One step each 501 ms: 9 of them within 5 s.
    assert!((at(250, 5) - 0.19).abs() < 1e-6);
    assert!((at(150, 5) - 0.1 * 0.9f64.powi(9)).abs() < 1e-6);
    assert!((0.5..0.51).contains(&at(290, 100)));
    assert!((0.009..0.01).contains(&at(110, 100)));
}

#[test]
fn ared_is_gentle_above_max_and_waits_between_drops() {
    let figures = AredFigures {
        red: red(100, 300, 0.2),
        interval_ns: u64::MAX / 2,
        alpha: 0,
        beta: 0,
    };
    let ared = || Ared::new(figures, 0);
    // p is 0.1 in the middle.
    let middle = drops(&mut ared(), 200, 5_000);
    assert!(distances(&middle).all(|d| (10..=20).contains(&d)));
    // 0.2 + 0.8 / 2 half way to twice `max`.
    let gentle = drops(&mut ared(), 450, 5_000);
    assert!(distances(&gentle).all(|d| (2..=4).contains(&d)));
    assert_eq!(drops(&mut ared(), 600, 50).len(), 50);
}

#[test]
fn rio_protects_what_is_assured() {
    let mut manager = Rio::new(RioFigures {
        best_effort: red(50, 150, 0.1),
        assured: red(100, 300, 0.02),
        codes: 1 << 10,
    });
    let assured = |n: u64| Packet {
        dscp: 10,
        size: 1,
        ..packet(n)
    };
    let best_effort = |n: u64| Packet {
        dscp: 12,
        size: 1,
        ..packet(n)
    };
    // 99 assured packets, then any number of others: only those are dropped.
    for n in 0..99 {
        assert_eq!(manager.arrive(&assured(n), n), AqmVerdict::Pass);
    }
    assert_eq!(manager.arrive(&best_effort(0), 150), AqmVerdict::Drop);
    assert_eq!(manager.arrive(&assured(99), 1_000), AqmVerdict::Pass);
    // One that does not fit is not in the queue.
    let full = Packet {
        full: true,
        ..assured(100)
    };
    for _ in 0..500 {
        manager.arrive(&full, 1_000);
    }
    assert_eq!(manager.assured_backlog(), 100);
    for n in 100..400 {
        manager.arrive(&assured(n), 1_000);
    }
    let before = manager.assured_backlog();
    assert!((290..=300).contains(&before), "{before}");
    for n in 0..before {
        manager.depart(&assured(n), 0);
        manager.depart(&best_effort(n), 0);
    }
    assert_eq!(manager.assured_backlog(), 0);
}

#[test]
fn pi_is_the_papers_difference_equation() {
    let (a, b) = (1.822e-5, 1.816e-5);
    let figures = PiFigures {
        target: 200,
        tupdate_ns: 10,
        gains: Gains::of([a - b, b]),
    };
    let mut manager = Pi::new(figures, 0);
    let (mut p, mut before) = (0.0f64, 0.0);
    for n in 0..100_000u64 {
        let backlog = mix(n / 700) % 500;
        assert_eq!(manager.due_ns(), Some(10 * (n + 1)));
        catch_up(&mut manager, 10 * (n + 1), |_| backlog);
        let q = backlog as f64;
        p = (p + a * (q - 200.0) - b * (before - 200.0)).clamp(0.0, 1.0);
        before = q;
        let got = manager.probability() as f64 / (1u64 << 32) as f64;
        // Half a unit of 2^-32 an update, and the bound at 0 forgets it.
        assert!(
            (got - p).abs() < 2.0 * (n as f64 + 1.0) / 2f64.powi(32),
            "{n}: {got} for {p}"
        );
    }
    assert!(p > 0.01);
}

#[test]
fn rem_is_the_papers_price() {
    let (gamma, alpha, phi) = (0.001, 0.1, 1.001f64);
    let figures = RemFigures {
        target: 200_000,
        tupdate_ns: 2 * MS,
        capacity: 3_750,
        gains: Gains::of([gamma * alpha * phi.ln() / 1e3, gamma * phi.ln() / 1e3]),
    };
    let mut manager = Rem::new(figures, 0);
    let mut price = 0.0f64;
    for n in 1..50_000u64 {
        let (backlog, arrivals) = (mix(n / 900) % 500, mix(!n) % 8);
        for i in 0..arrivals {
            manager.arrive(&packet(i), backlog * 1000);
        }
        catch_up(&mut manager, 2 * MS * n, |_| backlog * 1000);
        let (q, arrived) = (backlog as f64, arrivals as f64);
        price = (price + gamma * (alpha * (q - 200.0) + arrived - 3.75)).max(0.0);
        let want = 1.0 - phi.powf(-price);
        let got = manager.probability() as f64 / (1u64 << 32) as f64;
        assert!((got - want).abs() < 1e-4, "{n}: {got} for {want}");
    }
    assert!(price > 1.0);
}

#[test]
fn pi_and_rem_drop_with_their_probability() {
    let mut manager = Pi::new(
        PiFigures {
            target: 0,
            tupdate_ns: 1,
            gains: Gains::of([0.1, 0.0]),
        },
        0,
    );
    manager.update(2);
    let n = 20_000;
    let got = drops(&mut manager, 1, n).len() as f64 / n as f64;
    // 4 standard deviations.
    assert!((got - 0.2).abs() < 0.012, "{got}");
    let full = Packet {
        full: true,
        draw: 0,
        ..packet(0)
    };
    assert_eq!(manager.arrive(&full, 1), AqmVerdict::Pass);
    let capable = Packet {
        capable: true,
        draw: 0,
        ..packet(0)
    };
    assert_eq!(manager.arrive(&capable, 1), AqmVerdict::Mark);
}

#[test]
fn codel_drops_by_its_control_law() {
    let figures = CoDelFigures {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        packet: 1_514,
    };
    let mut manager = CoDel::new(figures);
    let mut drops = Vec::new();
    for ms in 0..1_000 {
        let mut head = Packet {
            sojourn_ns: 20 * MS,
            ..packet(ms)
        };
        // After a drop the next one is judged at the same time.
        while manager.depart(&head, 20_000) == AqmVerdict::Drop {
            drops.push(ms);
            head.sojourn_ns -= 1;
        }
    }
    let mut want = vec![100];
    let mut next = 100.0 + 100.0;
    for count in 2.. {
        if next > 999.0 {
            break;
        }
        want.push(f64::ceil(next) as u64);
        next += 100.0 / f64::from(count).sqrt();
    }
    assert_eq!(drops, want);
    let short = Packet {
        sojourn_ns: 4 * MS,
        ..packet(2_000)
    };
    assert_eq!(manager.depart(&short, 20_000), AqmVerdict::Pass);
}

#[test]
fn pie_waits_for_its_burst_and_then_drops() {
    let gain = |per_s: f64| (per_s / 1e9 * 2f64.powi(54)).round() as u64;
    let figures = PieFigures {
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: gain(0.125),
        beta: gain(1.25),
        packets: 2_048,
        // 1000 units are 1 ms.
        unit_ns: 1_000 << 32,
    };
    let mut manager = Pie::new(figures, 0);
    let mut early = 0;
    let mut dropped = 0;
    for ms in 0..20_000u64 {
        catch_up(&mut manager, ms * MS, |_| 40_000);
        let drop = manager.arrive(&packet(ms), 40_000) == AqmVerdict::Drop;
        dropped += u64::from(drop);
        early += u64::from(drop && ms < 150);
    }
    assert_eq!(early, 0);
    assert!(dropped > 1_000, "{dropped}");
}
