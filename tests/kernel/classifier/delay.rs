// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delays: distributions, correlation, order, and reordering.
//!
//! Bounds are 4.5 standard errors, or the 1 % and 0.01 that are promised where that is less.

use emud::profile::{Reordering, Shape};

use super::theory::{ERRORS, theories};
use super::*;

/// Packets of a statistic. Fewer, as in guests, are too few for the bounds.
fn n() -> u64 {
    support::count(50_000).max(20_000)
}

/// Distance of packets in a test that draws for each: the machine's time must not overtake the
/// test's.
const GAP: u64 = 50_000;

fn delayed(mean_ns: f64, sd_ns: f64, shape: &Shape, reorder: Reorder) -> Link {
    link(|l| {
        l.delay = Delay {
            mean_ns: mean_ns as u64,
            jitter: Some(Jitter {
                sd_ns,
                distribution: shape.clone(),
                reorder,
                ..Jitter::default()
            }),
            ..Delay::default()
        };
    })
}

/// Delays of `n` packets, `gap` ns apart.
fn delays(b: &Bench, n: u64, gap: u64) -> Vec<f64> {
    let frame = udp4(100, 1000);
    (0..n)
        .map(|i| (b.send(&frame, i * gap).departure - i * gap) as f64)
        .collect()
}

#[test]
fn each_distribution_drawn_for_each_packet() {
    for t in theories() {
        let sd = 10e6;
        let b = Bench::new(&delayed(t.mean * sd, sd, &t.shape, Reorder::Jitter));
        t.check_table(&b, sd);
        t.check(&delays(&b, n(), GAP), t.mean_ns(sd), sd);
    }
}

/// The process in time gives independent values two coherence times apart, and 100,000 of them fit
/// into 8 s if the delay is short enough.
#[test]
fn each_distribution_in_order() {
    const COHERENCE: f64 = 39_000.0;
    for t in theories() {
        let of = |sd: f64| delayed(t.mean * sd, sd, &t.shape, Reorder::Never);
        let coherence = |l: &Link| {
            compile(l, 42, abi::EMUD_UP, 0, stamp_place())
                .unwrap()
                .link
                .coherence_ns
        };
        let sd = 10e6 * COHERENCE / coherence(&of(10e6)) as f64;
        let profile = of(sd);
        let gap = 2 * coherence(&profile);
        assert!(n() * gap <= 8_000_000_000, "{}: {gap}", t.name);
        let b = Bench::new(&profile);
        t.check(&delays(&b, n(), gap), t.mean_ns(sd), sd);
        assert_eq!(b.counters().reordered, 0);
    }
}

/// Pearson's, of each value and the next.
fn correlation(v: &[f64]) -> f64 {
    let (m, s) = moments(v);
    v.windows(2).map(|w| (w[0] - m) * (w[1] - m)).sum::<f64>() / (v.len() - 1) as f64 / (s * s)
}

#[test]
fn correlation_is_as_asked_and_leaves_the_distribution() {
    let some = ["uniform", "lognormal", "samples"];
    for t in theories().iter().filter(|t| some.contains(&t.name)) {
        for r in [0.25, 0.5, 0.9] {
            let sd = 10e6;
            let mut profile = delayed(t.mean * sd, sd, &t.shape, Reorder::Jitter);
            profile.delay.jitter.as_mut().unwrap().correlation = r;
            let d = delays(&Bench::new(&profile), n(), GAP);
            let got = correlation(&d);
            assert!((got - r).abs() < 0.02, "{}: {got} for {r}", t.name);
            let x: Vec<f64> = d.iter().map(|d| (d - t.mean_ns(sd)) / sd).collect();
            // This many of them are equivalent to one, at most.
            let worth = n() as f64 * (1.0 - r) / (1.0 + r);
            let (m, s) = moments(&x);
            assert!(
                m.abs() < ERRORS / worth.sqrt(),
                "{} {r}: mean off by {m} sd",
                t.name
            );
            let fourth = x.iter().map(|v| (v - m).powi(4)).sum::<f64>() / n() as f64;
            let error = ((fourth - s.powi(4)) / worth).sqrt() / (2.0 * s);
            assert!((s - 1.0).abs() < ERRORS * error, "{} {r}: sd {s}", t.name);
            // Kolmogorov's distribution has 1.95 at 0.999.
            let distance = t.distance(&x);
            println!(
                "{} correlated by {r}: {got:.4}, sd off by {:.2} %, KS distance {distance:.4}",
                t.name,
                100.0 * (s - 1.0)
            );
            assert!(
                distance < 1.95 / worth.sqrt() + 0.0016,
                "{} {r}: KS {distance}",
                t.name
            );
        }
    }
}

#[test]
fn a_flow_is_correlated_with_itself_alone() {
    let mut profile = jitter(100 * MS, 10e6, Distribution::Normal, Reorder::Jitter);
    profile.delay.jitter.as_mut().unwrap().correlation = 0.9;
    let alone = delays(&Bench::new(&profile), 2000, GAP);
    let b = Bench::new(&profile);
    let (one, other) = (udp4(100, 1000), udp4(100, 2000));
    let (mut among, mut others) = (Vec::new(), Vec::new());
    for i in 0..2000 {
        others.push((b.send(&other, i * GAP).departure - i * GAP) as f64);
        among.push((b.send(&one, i * GAP).departure - i * GAP) as f64);
    }
    assert_eq!(alone, among);
    let (a, s) = moments(&among);
    let (o, u) = moments(&others);
    let both = among.iter().zip(&others).map(|(x, y)| (x - a) * (y - o));
    let r = both.sum::<f64>() / 2000.0 / (s * u);
    // Two independent AR(1) of 0.9: the error of r is sqrt((1 + r^2)/(1 - r^2)/n).
    assert!(r.abs() < ERRORS * (1.81f64 / 0.19 / 2000.0).sqrt(), "{r}");
}

/// Sends packets of 50 +- 40 ms in order, `rate` per second from 5 s on; returns the number of
/// reordered packets, and the delays.
fn in_order(rate: u64, n: u64, seed: u64) -> (u64, Vec<f64>) {
    let half = 40e6 / 3f64.sqrt();
    let profile = jitter(50 * MS, half, Distribution::Uniform, Reorder::Never);
    let b = Bench::with(&profile, seed, stamp_place());
    // Faster than the machine may be: far enough ahead that it does not catch up.
    let from = if rate > 20_000 { 5_000_000_000 } else { 0 };
    let (frame, gap) = (udp4(100, 1000), 1_000_000_000 / rate);
    let (mut last, mut reordered) = (0, 0);
    let delays = (0..n)
        .map(|i| {
            let at = from + i * gap;
            let departure = b.send(&frame, at).departure;
            reordered += u64::from(departure < last);
            last = departure;
            (departure - at) as f64
        })
        .collect();
    assert_eq!(b.counters().reordered, 0);
    (reordered, delays)
}

/// The rates with this number of packets each.
fn nothing_overtakes(runs: &[(u64, u64, u64)]) {
    for &(rate, n, times) in runs {
        for seed in 0..times {
            let (reordered, delays) = in_order(rate, n, seed);
            assert_eq!(reordered, 0, "{rate} packets/s");
            let range = 10e6..=90e6;
            assert!(delays.iter().all(|d| range.contains(d)), "{rate} packets/s");
        }
    }
}

#[test]
fn nothing_overtakes_at_50_and_40_ms() {
    nothing_overtakes(&[
        (10, 80, 2),
        (100, 800, 2),
        (1000, 8000, 1),
        (10_000, 40_000, 1),
        (100_000, 50_000, 1),
    ]);
}

#[test]
#[ignore = "a million packets"]
fn nothing_overtakes_in_a_million_packets() {
    nothing_overtakes(&[
        (10, 80, 5),
        (100, 800, 5),
        (1000, 8000, 10),
        (10_000, 80_000, 3),
        (100_000, 230_000, 3),
    ]);
}

/// The link of 50 +- 40 ms, a thousand times as fast, so that a second has 19,000 coherence
/// times: 10 packets/s are 10,000 here.
#[test]
fn the_delay_is_the_same_at_every_packet_rate() {
    let theory = &theories()[0];
    let (mean, sd) = (50e3, 40e3 / 3f64.sqrt());
    let profile = delayed(mean, sd, &theory.shape, Reorder::Never);
    let run = |gap: u64, n: u64| -> Vec<f64> {
        let b = Bench::new(&profile);
        let from = if gap < 20_000 { 3_000_000_000 } else { 0 };
        let frame = udp4(100, 1000);
        let delays = (0..n)
            .map(|i| from + i * gap)
            .map(|at| ((b.send(&frame, at).departure - at) as f64 - mean) / sd)
            .collect();
        assert_eq!(b.counters().reordered, 0);
        delays
    };
    // 10 packets/s: two coherence times apart, independent.
    let d = theory.distance(&run(110_000, 72_000));
    println!("10 packets/s: KS distance {d:.4}");
    assert!(d < 0.01, "10 packets/s: {d}");
    // Each faster one against the slower, over the same stretch of the process: 100 packets/s are 5
    // a coherence time, so that 1000 coherence times determine the distribution of that stretch to
    // 0.001; the rest is for the clamp, which is 0.001 to 0.003.
    let span = 53_000_000;
    let mut runs: Vec<_> = [10_000u64, 1000, 500]
        .iter()
        .map(|gap| run(*gap, span / gap))
        .collect();
    while let Some(mut fast) = runs.pop() {
        let Some(slow) = runs.last_mut() else { break };
        let d = ks(&mut fast, slow);
        println!(
            "{} against {} packets: KS distance {d:.4}",
            fast.len(),
            slow.len()
        );
        assert!(
            d < 0.006,
            "{} against {} packets: {d}",
            fast.len(),
            slow.len()
        );
    }
}

#[test]
fn jitter_overtakes_as_often_as_theory_says() {
    // Uniform on a width w: in units of w, packets g apart.
    let width = 20e6;
    for gap in [MS, 4 * MS] {
        let n = 8_000_000_000 / gap;
        let (mut pairs, mut overtaken, mut packets) = (0u64, 0u64, 0u64);
        for seed in 0..10 {
            let profile = jitter(
                20 * MS,
                width / 12f64.sqrt(),
                Distribution::Uniform,
                Reorder::Jitter,
            );
            let b = Bench::with(&profile, seed, stamp_place());
            let at: Vec<f64> = delays(&b, n, gap)
                .iter()
                .zip(0..)
                .map(|(d, i)| d + (i * gap) as f64)
                .collect();
            pairs += at.windows(2).filter(|w| w[1] < w[0]).count() as u64;
            overtaken += b.counters().reordered;
            packets += n;
        }
        let (g, n) = (gap as f64 / width, packets as f64);
        let one = |what: &str, got: u64, p: f64| {
            let got = got as f64 / n;
            // Neighbours are correlated; that is less than twice the variance.
            let error = (2.0 * p * (1.0 - p) / n).sqrt();
            assert!(
                (got - p).abs() < ERRORS * error,
                "{what} at {gap} ns: {got} for {p}"
            );
        };
        // A packet leaves before the one ahead of it: the triangle above 1 - g.
        one("pairs", pairs, 0.5 * (1.0 - g).powi(2));
        // Before any one ahead: not all of u + g, u + 2g, .. are above the other's value.
        let steps = 10_000;
        let none = (0..steps)
            .map(|k| (f64::from(k) + 0.5) / f64::from(steps))
            .map(|u| {
                (1..)
                    .map(|j| u + f64::from(j) * g)
                    .take_while(|v| *v < 1.0)
                    .product::<f64>()
            })
            .sum::<f64>()
            / f64::from(steps);
        one("packets", overtaken, 1.0 - none);
    }
}

/// The cut-off tail becomes one delay, as frequent as the tail.
#[test]
fn no_delay_is_longer_than_the_longest() {
    const MAX_NS: f64 = 12.5e6;
    for reorder in [Reorder::Jitter, Reorder::Never] {
        let mut l = jitter(10 * MS, 5e6 / 3f64.sqrt(), Distribution::Uniform, reorder);
        l.delay.max_ns = Some(MAX_NS as u64);
        // In order: independent values, one for each packet.
        l.delay.jitter.as_mut().unwrap().coherence_ns = Some(1);
        let b = Bench::new(&l);
        let gap = match reorder {
            Reorder::Jitter => GAP,
            // Further apart than the delays spread.
            Reorder::Never => 11 * MS,
        };
        let n = match reorder {
            Reorder::Jitter => n(),
            Reorder::Never => n() / 10,
        };
        let delays = delays(&b, n, gap);
        assert!(delays.iter().all(|ns| *ns <= MAX_NS));
        // A quarter of 5 to 15 ms is above 12.5.
        let cut = delays.iter().filter(|ns| **ns == MAX_NS).count() as f64;
        let error = (n as f64 * 0.25 * 0.75).sqrt();
        assert!(
            (cut - n as f64 * 0.25).abs() < ERRORS * error,
            "{cut} of {n} {reorder:?}"
        );
    }
}

#[test]
fn a_share_is_delayed_and_the_rest_is_not() {
    let constant = link(|l| {
        l.delay.mean_ns = 10 * MS;
        l.delay.share = Some(0.25);
    });
    let badnet = {
        let mut l = jitter(10 * MS, 5e6, Distribution::Normal, Reorder::Jitter);
        l.delay.share = Some(0.05);
        l
    };
    for (profile, p) in [(constant, 0.25), (badnet, 0.05)] {
        let b = Bench::new(&profile);
        let delays = delays(&b, n(), GAP);
        let late: Vec<f64> = delays.iter().copied().filter(|d| *d > 0.0).collect();
        let c = b.counters();
        let jittered = profile.delay.jitter.is_some();
        // A delayed packet of normal(10, 5) ms that is cut off at zero is delayed by nothing.
        let spared = n() - late.len() as u64;
        assert!(if jittered {
            spared >= c.undelayed
        } else {
            spared == c.undelayed
        });
        let delayed = (n() - c.undelayed) as f64;
        let error = (n() as f64 * p * (1.0 - p)).sqrt();
        assert!(
            (delayed - n() as f64 * p).abs() < ERRORS * error,
            "{delayed} for {p}"
        );
        let mean = late.iter().sum::<f64>() / delayed;
        let sd = if jittered { 5e6 } else { 0.0 };
        assert!(
            (mean - 10e6).abs() <= ERRORS * sd / delayed.sqrt(),
            "mean {mean}"
        );
        assert!(c.reordered > 0, "the rest overtakes");
        assert_eq!(c.clamped, 0);
    }
}

#[test]
fn a_share_in_order_keeps_its_own_order() {
    let mut profile = jitter(50 * MS, 5e6, Distribution::Normal, Reorder::Never);
    profile.delay.share = Some(0.5);
    let b = Bench::new(&profile);
    let delays = delays(&b, 20_000, GAP);
    let mut last = 0.0f64;
    let mut at_once = 0;
    for (at, delay) in (0..).map(|i: u32| f64::from(i) * GAP as f64).zip(delays) {
        if delay == 0.0 {
            at_once += 1;
            continue;
        }
        assert!(at + delay >= last, "{at}");
        last = at + delay;
    }
    let c = b.counters();
    // All packets without a delay overtake, except the first few with no packet ahead of them.
    assert_eq!(c.undelayed, at_once);
    assert!(at_once - c.reordered < 20, "{at_once} {}", c.reordered);
}

/// Returns which of `n` packets are sent at once.
fn reordered(r: Reordering, n: u64) -> Vec<u64> {
    let profile = link(|l| {
        l.delay.mean_ns = 10 * MS;
        l.reorder = Some(r);
    });
    let b = Bench::new(&profile);
    let at_once: Vec<u64> = (0..)
        .zip(delays(&b, n, GAP))
        .filter(|(_, d)| *d == 0.0)
        .map(|(i, _)| i)
        .collect();
    assert_eq!(b.counters().undelayed, at_once.len() as u64);
    at_once
}

#[test]
fn every_gap_th_packet_is_sent_at_once() {
    let every = |gap| Reordering {
        probability: 1.0,
        correlation: 0.0,
        gap,
    };
    assert_eq!(
        reordered(every(5), 100),
        (4..100).step_by(5).collect::<Vec<_>>()
    );
    assert_eq!(reordered(every(1), 10).len(), 10);
}

#[test]
fn behind_a_gap_each_packet_has_its_chance() {
    let (p, gap) = (0.25, 5);
    let at = reordered(
        Reordering {
            probability: p,
            correlation: 0.0,
            gap,
        },
        n(),
    );
    assert!(at.windows(2).all(|w| w[1] - w[0] >= u64::from(gap)));
    // Renewals, gap - 1 + geometric(p) apart.
    let (mean, variance) = (f64::from(gap) - 1.0 + 1.0 / p, (1.0 - p) / (p * p));
    let want = n() as f64 / mean;
    let error = (n() as f64 * variance / mean.powi(3)).sqrt();
    assert!(
        (at.len() as f64 - want).abs() < ERRORS * error,
        "{} for {want}",
        at.len()
    );
}

#[test]
fn reordering_is_correlated_as_asked_and_its_share_stays() {
    let p = 0.3;
    for r in [0.0, 0.5, 0.9] {
        let at = reordered(
            Reordering {
                probability: p,
                correlation: r,
                gap: 1,
            },
            n(),
        );
        let mut marks = vec![0.0; n() as usize];
        at.iter().for_each(|i| marks[*i as usize] = 1.0);
        let error = (p * (1.0 - p) / n() as f64 * (1.0 + r) / (1.0 - r)).sqrt();
        let share = at.len() as f64 / n() as f64;
        assert!((share - p).abs() < ERRORS * error, "{r}: {share}");
        let got = correlation(&marks);
        assert!((got - r).abs() < 0.02, "{got} for {r}");
    }
}

/// Samples about two levels: a delay that falls from one to the other at once would be held
/// back for as long as they are apart, so it has to fall rarely.
#[test]
fn two_levels_are_seldom_held_back() {
    let theories = theories();
    let samples = theories.last().unwrap();
    let sd = 10e3;
    let profile = delayed(samples.mean * sd, sd, &samples.shape, Reorder::Never);
    let b = Bench::new(&profile);
    let coherence = b.maps.link(abi::EMUD_UP).unwrap().coherence_ns;
    delays(&b, n(), coherence / 300);
    // It jumps by a 70th of that: 5 packets. 333 coherence times have some 80 falls: 4.5 errors
    // are half of the 0.003, which a smooth fall may double.
    let held = b.counters().clamped as f64 / n() as f64;
    assert!((0.0015..0.0068).contains(&held), "{held}");
}
