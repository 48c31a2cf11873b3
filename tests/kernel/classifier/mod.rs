// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real classifier under BPF_PROG_TEST_RUN: every figure exact.
//!
//! The clock is the test's, carried in the packet's hwtstamp: departures come out to the nanosecond, however
//! long the test takes.

mod alter;
mod aqm;
mod aqm_room;
mod background;
mod by_tcx;
mod cgroup;
mod clone;
mod delay;
mod ending;
pub mod fitted;
mod garbage;
mod lanes;
mod loss;
mod matrix;
mod names;
mod opportunities;
mod phases;
mod queue;
mod record;
mod report;
mod rules;
mod rules_random;
mod service;
mod short;
mod slot;
mod stamp;
mod theory;
mod timeline;
mod turning;

use aya::programs::{TestRun, TestRunOptions};
use emud::abi;
use emud::datapath::maps::{DatapathError, Loaded, Maps, Program};
use emud::datapath::stage::compile::{Compiled, PacketTarget, compile};
use emud::datapath::stage::features;
use emud::datapath::stage::sizes::Sizes;
use emud::histogram::{Delays, buckets};
use emud::profile::{Delay, Distribution, Jitter, Limit, Link, Neighbours, Reorder, rule_keys};

const TC_ACT_UNSPEC: i32 = -1;
const TC_ACT_OK: i32 = 0;
const TC_ACT_STOLEN: i32 = 4;
const TC_ACT_REDIRECT: i32 = 7;

/// Offsets in `struct __sk_buff` (include/uapi/linux/bpf.h).
const SKB_TSTAMP: usize = 152;
const SKB_GSO_SEGS: usize = 164;
const SKB_GSO_SIZE: usize = 176;
const SKB_HWTSTAMP: usize = 184;
const SKB_LEN: usize = 192;

/// Start of a test's time, ns since boot. The programs read the time from the packets.
const START: u64 = 1_000_000_000_000;
/// A burst at one instant, some time after the start.
const FAR: u64 = 7_500_000_000;

struct Bench {
    loaded: Loaded,
    program: Program,
    maps: Maps,
    sizes: Sizes,
    /// ns since boot.
    start: u64,
    /// Where profiles are compiled for.
    place: PacketTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fate {
    verdict: i32,
    departure: u64,
}

fn stamp_place() -> PacketTarget {
    PacketTarget {
        release: abi::EMUD_RELEASE_STAMP,
        ifindex: 0,
        l3: false,
    }
}

impl Bench {
    fn new(up: &Link) -> Self {
        Self::with(up, 42, stamp_place())
    }

    fn with(up: &Link, seed: u64, place: PacketTarget) -> Self {
        Self::for_link(up, seed, place, &Sizes::default())
    }

    fn sized(up: &Link, sizes: Sizes) -> Self {
        Self::for_link(up, 42, stamp_place(), &sizes)
    }

    /// As after an attach of this link.
    fn for_link(up: &Link, seed: u64, place: PacketTarget, sizes: &Sizes) -> Self {
        let [up, down] = both(up, seed, place, START);
        let both: [&[Compiled]; 2] = [&[up], &[down]];
        let mut bench = Self::for_features(sizes, features::of(both));
        bench.apply(both).unwrap();
        bench
    }

    /// As after an attach that needs nothing: what a link needs is loaded with it, as by a change.
    fn empty(sizes: &Sizes) -> Self {
        Self::for_features(sizes, 0)
    }

    fn for_features(sizes: &Sizes, features: u32) -> Self {
        Self::of(Program::Classify, sizes, features)
    }

    fn of(program: Program, sizes: &Sizes, features: u32) -> Self {
        let loaded = Loaded::load_test_run(program, sizes, features, None);
        let mut loaded = loaded.expect("load the classifier (root?)");
        let maps = loaded.maps().unwrap();
        let mut bench = Self {
            loaded,
            program,
            maps,
            sizes: *sizes,
            start: START,
            place: stamp_place(),
        };
        bench.maps.init(1, 0).unwrap();
        bench
    }

    fn set(&mut self, up: &Link, seed: u64, place: PacketTarget) {
        let [up, down] = both(up, seed, place, self.start);
        self.apply([&[up], &[down]]).unwrap();
    }

    fn apply(&mut self, both: [&[Compiled]; 2]) -> Result<(), DatapathError> {
        self.apply_with(both, &rule_keys::none())
    }

    fn apply_with(
        &mut self,
        both: [&[Compiled]; 2],
        rules: &rule_keys::Compiled,
    ) -> Result<(), DatapathError> {
        let has = self.maps.control()?.features;
        let needed = has | features::of(both);
        if needed != has {
            let before = self.loaded.main_id()?;
            let again = Loaded::load_test_run(self.program, &self.sizes, needed, Some(before))?;
            self.loaded = again;
            self.maps = self.loaded.maps()?;
        }
        self.maps.apply_with(both, rules)
    }

    fn compile(&self, link: &Link, seed: u64, direction: u32, place: PacketTarget) -> Compiled {
        compiled(link, seed, direction, place, self.start)
    }

    /// Sends one frame that arrives `at` ns after the start.
    fn send(&self, frame: &[u8], at: u64) -> Fate {
        self.send_gso(frame, at, 0)
    }

    fn send_gso(&self, frame: &[u8], at: u64, gso_size: u32) -> Fate {
        let mut ctx = arriving(self.start + at);
        ctx[SKB_GSO_SIZE..][..4].copy_from_slice(&gso_size.to_ne_bytes());
        run_program(&self.loaded, self.program, frame, &ctx).fate(self.start)
    }

    fn counters(&self) -> abi::emud_counters {
        *self.maps.counters(abi::EMUD_UP).unwrap()
    }
}

fn compiled(link: &Link, seed: u64, direction: u32, place: PacketTarget, start: u64) -> Compiled {
    let mut c = compile(link, seed, direction, start, place).unwrap();
    // The test run has a socket and no device to clone to.
    c.link.flags &= !abi::EMUD_F_CLONE;
    c
}

/// This link, and the other direction, which does nothing.
fn both(up: &Link, seed: u64, place: PacketTarget, start: u64) -> [Compiled; 2] {
    let up = compiled(up, seed, abi::EMUD_UP, place, start);
    let down = compiled(&Link::default(), seed, abi::EMUD_DOWN, place, start);
    [up, down]
}

/// The context of a packet that arrives then.
fn arriving(ns: u64) -> [u8; SKB_LEN] {
    let mut ctx = [0u8; SKB_LEN];
    ctx[SKB_HWTSTAMP..][..8].copy_from_slice(&ns.to_ne_bytes());
    // Not in the future; a packet that passes without emulation leaves with it.
    ctx[SKB_TSTAMP..][..8].copy_from_slice(&ns.to_ne_bytes());
    ctx
}

/// A packet after a program.
struct Left {
    verdict: i32,
    ctx: [u8; SKB_LEN],
    frame: Vec<u8>,
}

impl Left {
    /// Its stamp.
    fn departure(&self) -> u64 {
        u64::from_ne_bytes(self.ctx[SKB_TSTAMP..][..8].try_into().unwrap())
    }

    fn fate(&self, start: u64) -> Fate {
        Fate {
            verdict: self.verdict,
            departure: self.departure().wrapping_sub(start),
        }
    }
}

fn run(loaded: &Loaded, frame: &[u8], ctx: &[u8; SKB_LEN]) -> Left {
    run_program(loaded, Program::Classify, frame, ctx)
}

fn run_program(loaded: &Loaded, program: Program, frame: &[u8], ctx: &[u8; SKB_LEN]) -> Left {
    let mut out = [0u8; SKB_LEN];
    let mut data = vec![0u8; 4096];
    let options = TestRunOptions {
        data_in: Some(frame),
        data_out: Some(&mut data),
        ctx_in: Some(ctx),
        ctx_out: Some(&mut out),
        ..TestRunOptions::new()
    };
    let result = loaded.program(program).unwrap().test_run(options).unwrap();
    data.truncate(result.data_size_out as usize);
    Left {
        verdict: result.return_value as i32,
        ctx: out,
        frame: data,
    }
}

/// An Ethernet frame of `len` bytes: IPv4, UDP, from port `source` to port 9.
fn udp4(len: usize, source: u16) -> Vec<u8> {
    let mut f = vec![0u8; len];
    f[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    f[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
    f[14] = 0x45;
    f[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    f[22] = 64;
    f[23] = 17;
    f[26..30].copy_from_slice(&[10, 0, 0, 1]);
    f[30..34].copy_from_slice(&[10, 0, 0, 2]);
    f[34..36].copy_from_slice(&source.to_be_bytes());
    f[36..38].copy_from_slice(&9u16.to_be_bytes());
    f
}

fn ip6(next_header: u8, first_payload_byte: u8) -> Vec<u8> {
    let mut f = vec![0u8; 100];
    f[12..14].copy_from_slice(&0x86ddu16.to_be_bytes());
    f[14] = 0x60;
    f[18..20].copy_from_slice(&46u16.to_be_bytes());
    f[20] = next_header;
    f[21] = 255;
    f[37] = 1;
    f[53] = 2;
    f[54] = first_payload_byte;
    f
}

fn link(f: impl FnOnce(&mut Link)) -> Link {
    let mut l = Link::default();
    f(&mut l);
    l
}

fn jitter(mean_ns: u64, sd_ns: f64, distribution: Distribution, reorder: Reorder) -> Link {
    link(|l| {
        l.delay = Delay {
            mean_ns,
            jitter: Some(Jitter {
                sd_ns,
                distribution: distribution.into(),
                reorder,
                ..Jitter::default()
            }),
            ..Delay::default()
        };
    })
}

const MS: u64 = 1_000_000;

#[test]
fn a_constant_delay_is_added_to_the_arrival() {
    let b = Bench::new(&link(|l| l.delay.mean_ns = 50 * MS));
    for at in [0, 1, 999, 12_345_678] {
        let fate = b.send(&udp4(100, 1000), at);
        assert_eq!(
            fate,
            Fate {
                verdict: TC_ACT_UNSPEC,
                departure: at + 50 * MS
            }
        );
    }
    let c = b.counters();
    assert_eq!((c.packets, c.bytes), (4, 400));
    assert_eq!(buckets(&c.delay_hist)[0].packets, 4);
}

/// From 31 * 2^40 ns on, 34,085 s: 80 s for each packet.
#[test]
fn the_last_bucket_has_all_longer_delays() {
    let b = Bench::new(&link(|l| l.rate = Some(100)));
    for _ in 0..500 {
        b.send(&udp4(1000, 1), 0);
    }
    let hist = b.counters().delay_hist;
    assert_eq!((hist[511], hist[..100].iter().sum::<u64>()), (74, 0));
}

#[test]
fn delays_are_counted_in_sixteenths_of_an_octave() {
    let delays = [
        0,
        1_023,
        32_767,
        32_768,
        10_500_000,
        700 * MS,
        3_600_000 * MS,
    ];
    for delay in delays {
        let b = Bench::new(&link(|l| l.delay.mean_ns = delay));
        for at in 0..100 {
            b.send(&udp4(100, 1000), at * MS);
        }
        let c = b.counters();
        let counted = Delays::counted(buckets(&c.delay_hist), c.delay_ns);
        let [bucket] = counted.buckets() else {
            panic!("{delay}: {counted:?}");
        };
        assert!(
            (bucket.from_ns..bucket.to_ns).contains(&delay),
            "{bucket:?}"
        );
        assert!(
            bucket.to_ns - bucket.from_ns <= (delay / 16).max(1_024),
            "{bucket:?}"
        );
        let median = counted.quantile_ns(0.5).unwrap();
        assert!((median - delay as f64).abs() <= 1.0, "{delay}: {median}");
    }
}

#[test]
fn serialisation_is_exact_and_does_not_drift() {
    // 384 kbit/s, 1000 bytes and 24 of overhead: 21,333,333 1/3 ns each.
    let b = Bench::new(&link(|l| {
        l.rate = Some(384_000);
        l.overhead = 24;
        l.queue = Limit::Packets(65_536).into();
    }));
    for n in 1..=3_000u64 {
        let fate = b.send(&udp4(1000, 1000), 0);
        assert_eq!(
            fate.departure,
            n * 8 * 1024 * 1_000_000_000 / 384_000,
            "packet {n}"
        );
    }
}

#[test]
fn an_idle_link_starts_at_the_arrival() {
    let b = Bench::new(&link(|l| l.rate = Some(8_000_000)));
    assert_eq!(b.send(&udp4(1000, 1), 0).departure, MS);
    assert_eq!(
        b.send(&udp4(1000, 1), 500_000).departure,
        2 * MS,
        "behind the first"
    );
    assert_eq!(
        b.send(&udp4(1000, 1), 10 * MS).departure,
        11 * MS,
        "after a pause"
    );
}

#[test]
fn a_queue_of_n_packets_holds_n() {
    for n in [1u32, 2, 7, 100, 65_536] {
        let b = Bench::new(&link(|l| {
            l.rate = Some(8_000_000);
            l.queue = Limit::Packets(n).into();
        }));
        let burst = u64::from(n) + 5;
        let admitted = (0..burst)
            .filter(|_| b.send(&udp4(100, 1), FAR).verdict == TC_ACT_UNSPEC)
            .count();
        assert_eq!(admitted as u32, n);
        assert_eq!(b.counters().queue_dropped, 5);
        // 100 us each: when the first has left there is room for one.
        assert_eq!(b.send(&udp4(100, 1), FAR + 100_000).verdict, TC_ACT_UNSPEC);
        assert_eq!(b.send(&udp4(100, 1), FAR + 100_000).verdict, TC_ACT_STOLEN);
    }
}

#[test]
fn a_queue_in_bytes_and_in_time_holds_that_much() {
    let bytes = Bench::new(&link(|l| {
        l.rate = Some(8_000_000);
        l.queue = Limit::Bytes(10_000).into();
    }));
    let sent = (0..20)
        .filter(|_| bytes.send(&udp4(1000, 1), 0).verdict == TC_ACT_UNSPEC)
        .count();
    assert_eq!(sent, 10);
    let time = Bench::new(&link(|l| {
        l.rate = Some(8_000_000);
        l.queue = Limit::Time(5 * MS).into();
    }));
    let sent = (0..20)
        .filter(|_| time.send(&udp4(1000, 1), 0).verdict == TC_ACT_UNSPEC)
        .count();
    assert_eq!(sent, 6, "waits of 0, 1, 2, 3, 4 and 5 ms");
}

/// Which of `n` packets from `source` are lost.
fn losses(b: &Bench, source: u16, n: u64) -> Vec<u64> {
    let frame = udp4(100, source);
    (0..n)
        .filter(|i| b.send(&frame, i * 1000).verdict == TC_ACT_STOLEN)
        .collect()
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let lossy = link(|l| l.loss = 0.02.into());
    let b = Bench::new(&lossy);
    let first = losses(&b, 1000, 10_000);
    assert_eq!(b.counters().lost, first.len() as u64);
    let again = Bench::new(&lossy);
    // A different flow in between changes nothing.
    let frame = udp4(100, 2000);
    let mixed: Vec<u64> = (0..10_000)
        .filter(|i| {
            again.send(&frame, i * 1000);
            again.send(&udp4(100, 1000), i * 1000).verdict == TC_ACT_STOLEN
        })
        .collect();
    assert_eq!(first, mixed);
    assert_ne!(
        first,
        losses(&Bench::with(&lossy, 43, stamp_place()), 1000, 10_000)
    );
    assert_ne!(
        first,
        losses(&again, 3000, 10_000),
        "another flow, another fate"
    );
}

#[test]
fn an_ephemeral_port_does_not_change_the_fate() {
    let lossy = link(|l| l.loss = 0.02.into());
    let one = losses(&Bench::new(&lossy), 40_001, 5_000);
    let b = Bench::new(&lossy);
    assert_eq!(one, losses(&b, 51_999, 5_000));
    assert_ne!(
        one,
        losses(&b, 52_000, 5_000),
        "the second client is another flow"
    );
}

/// A service that had to make room for others does not count its connections from the first again.
#[test]
fn a_connection_does_not_repeat_one_that_was_forgotten() {
    let lossy = link(|l| l.loss = 0.5.into());
    let one = losses(&Bench::new(&lossy), 40_001, 200);
    let b = Bench::new(&lossy);
    assert_eq!(losses(&b, 40_001, 200), one);
    let mut other = udp4(100, 40_001);
    for n in 0..20_000u16 {
        other[31..33].copy_from_slice(&n.to_be_bytes());
        other[30] = 11;
        b.send(&other, 0);
    }
    assert_ne!(losses(&b, 40_002, 200), one);
}

#[test]
fn losses_are_as_many_as_asked_and_independent() {
    let n = 100_000u64;
    for p in [0.001f64, 0.01, 0.1, 0.5] {
        let lost = losses(&Bench::new(&link(|l| l.loss = p.into())), 1000, n);
        let sd = (n as f64 * p * (1.0 - p)).sqrt();
        let off = (lost.len() as f64 - n as f64 * p).abs();
        assert!(
            off < 3.5 * sd,
            "p {p}: {} lost, off by {:.1} sd",
            lost.len(),
            off / sd
        );
        // Two in a row: p^2 if independent.
        let pairs = lost.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64;
        let want = n as f64 * p * p;
        let sd = (want * (1.0 + 2.0 * p)).sqrt().max(1.0);
        assert!(
            (pairs - want).abs() < 4.0 * sd,
            "p {p}: {pairs} pairs for {want}"
        );
    }
}

#[test]
fn no_loss_and_full_loss_have_no_exception() {
    assert!(losses(&Bench::new(&link(|l| l.loss = 0.0.into())), 1, 2000).is_empty());
    assert_eq!(
        losses(&Bench::new(&link(|l| l.loss = 1.0.into())), 1, 2000).len(),
        2000
    );
}

fn moments(v: &[f64]) -> (f64, f64) {
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    let var = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64;
    (mean, var.sqrt())
}

#[test]
fn per_packet_jitter_has_the_mean_and_the_deviation_asked_for() {
    use Distribution::{Normal, Pareto, ParetoNormal, Uniform};
    for distribution in [Uniform, Normal, Pareto, ParetoNormal] {
        let (mean, sd) = (100e6, 10e6);
        let b = Bench::new(&jitter(mean as u64, sd, distribution, Reorder::Jitter));
        let n = 50_000u64;
        let frame = udp4(100, 1000);
        let d: Vec<f64> = (0..n)
            .map(|i| (b.send(&frame, i * 1000).departure - i * 1000) as f64)
            .collect();
        let (m, s) = moments(&d);
        let se = sd / (n as f64).sqrt();
        assert!((m - mean).abs() < 4.0 * se, "{distribution:?}: mean {m}");
        // The sample deviation's own deviation, from the sample's fourth moment.
        let m4 = d.iter().map(|x| (x - m).powi(4)).sum::<f64>() / n as f64;
        let se = ((m4 - s.powi(4)) / n as f64).sqrt() / (2.0 * s);
        assert!(
            (s - sd).abs() < 4.0 * se,
            "{distribution:?}: sd {s}, se {se}"
        );
        assert!(b.counters().reordered > 0);
    }
}

/// Kolmogorov-Smirnov distance of two samples.
fn ks(a: &mut [f64], b: &mut [f64]) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    a.iter()
        .enumerate()
        .map(|(i, x)| {
            let below = b.partition_point(|y| y <= x);
            ((i + 1) as f64 / a.len() as f64 - below as f64 / b.len() as f64).abs()
        })
        .fold(0.0, f64::max)
}

#[test]
fn in_order_jitter_is_the_same_at_every_packet_rate() {
    let profile = jitter(50 * MS, 5e6, Distribution::Normal, Reorder::Never);
    // The same 8 s of the process, at 10,000, 1,000 and 100 packets/s.
    let mut samples: Vec<Vec<f64>> = [100_000u64, 1_000_000, 10_000_000]
        .into_iter()
        .map(|gap| {
            let b = Bench::new(&profile);
            let frame = udp4(100, 1000);
            let mut last = 0;
            let d = (0..8_000_000_000 / gap)
                .map(|i| {
                    let fate = b.send(&frame, i * gap);
                    assert!(fate.departure >= last, "reordered");
                    last = fate.departure;
                    (fate.departure - i * gap) as f64
                })
                .collect();
            assert_eq!(b.counters().reordered, 0);
            d
        })
        .collect();
    let mut slow = samples.pop().unwrap();
    // 800 instants of one process against all of it: what remains is the
    // clamp's 0.003 and the sampling of 800 of a process with 400 knots.
    for fast in &mut samples {
        let d = ks(fast, &mut slow);
        assert!(d < 0.03, "{d}");
    }
    let (fast, middle) = samples.split_at_mut(1);
    let d = ks(&mut fast[0], &mut middle[0]);
    assert!(d < 0.006, "10,000 against 1,000 packets/s: {d}");
}

#[test]
fn in_order_jitter_has_the_distribution_asked_for() {
    // Knots are 20 ms apart: 4000 coherence times in 80 s. Arrivals beyond the horizon of a stamp
    // are ignored, so the epoch moves instead.
    let mut d = Vec::new();
    for part in 0..10u64 {
        let mut b = Bench::new(&link(|_| {}));
        b.start -= part * 8_000_000_000;
        let epoch = b.start;
        b.start += part * 8_000_000_000;
        let mut c = compile(
            &jitter(50 * MS, 5e6, Distribution::Normal, Reorder::Never),
            7,
            abi::EMUD_UP,
            epoch,
            stamp_place(),
        )
        .unwrap();
        c.link.flags &= !abi::EMUD_F_CLONE;
        let c = [c];
        b.apply([&c, &c]).unwrap();
        let frame = udp4(100, 1000);
        let gap = 5 * MS;
        d.extend((0..1600).map(|i| (b.send(&frame, i * gap).departure - i * gap) as f64));
    }
    let (m, s) = moments(&d);
    // About one independent value a coherence time of 4 sd = 20 ms.
    let n = 4000f64;
    assert!((m - 50e6).abs() < 4.0 * 5e6 / n.sqrt(), "mean {m}");
    assert!((s - 5e6).abs() < 4.0 * 5e6 / (2.0 * n).sqrt(), "sd {s}");
}

#[test]
fn a_shorter_delay_does_not_let_packets_overtake() {
    let mut b = Bench::new(&link(|l| l.delay.mean_ns = 200 * MS));
    assert_eq!(b.send(&udp4(100, 1), 0).departure, 200 * MS);
    b.set(&link(|l| l.delay.mean_ns = 10 * MS), 42, stamp_place());
    assert_eq!(b.send(&udp4(100, 1), MS).departure, 200 * MS, "held back");
    assert_eq!(b.send(&udp4(100, 1), 195 * MS).departure, 205 * MS);
    let c = b.counters();
    assert_eq!(
        (c.packets, c.clamped),
        (3, 1),
        "counters live on through a change"
    );
}

#[test]
fn a_change_keeps_the_queue() {
    let slow = link(|l| l.rate = Some(8_000_000));
    let mut b = Bench::new(&slow);
    for _ in 0..10 {
        b.send(&udp4(1000, 1), 0);
    }
    b.set(&link(|l| l.rate = Some(80_000_000)), 42, stamp_place());
    assert_eq!(b.send(&udp4(1000, 1), 0).departure, 10 * MS + MS / 10);
}

#[test]
fn neighbour_discovery_passes_untouched() {
    let slow = |neighbours| {
        link(|l| {
            l.delay.mean_ns = 50 * MS;
            l.loss = 0.0.into();
            l.neighbours = neighbours;
        })
    };
    let mut arp = vec![0u8; 60];
    arp[12..14].copy_from_slice(&0x0806u16.to_be_bytes());
    let pass = Bench::new(&slow(Neighbours::Pass));
    for kind in 133..=137 {
        assert_eq!(pass.send(&ip6(58, kind), 0).departure, 0, "ICMPv6 {kind}");
    }
    assert_eq!(pass.send(&arp, 0).departure, 0);
    assert_eq!(pass.counters().passed[abi::EMUD_PASS_NEIGHBOUR as usize], 6);
    assert_eq!(
        pass.send(&ip6(58, 128), 0).departure,
        50 * MS,
        "an echo is traffic"
    );
    let all = Bench::new(&slow(Neighbours::Emulate));
    assert_eq!(all.send(&ip6(58, 135), 0).departure, 50 * MS);
    assert_eq!(all.send(&arp, 0).departure, 50 * MS);
}

/// A PTP port fails if it waits in vain for a transmit time stamp, and a clone has no socket for
/// it.
#[test]
fn ptp_events_pass_untouched() {
    let slow = |neighbours| {
        link(|l| {
            l.delay.mean_ns = 50 * MS;
            l.neighbours = neighbours;
        })
    };
    let to = |port: u16, mut frame: Vec<u8>, at: usize| {
        frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
        frame
    };
    let over_ip4 = |port| to(port, udp4(86, 319), 36);
    let over_ip6 = |port| to(port, ip6(17, 0), 56);
    let over_ethernet = to(0x88f7, vec![0; 60], 12);
    let mut tagged = over_ip4(319);
    tagged.splice(12..12, [0x81, 0x00, 0, 7]);
    // A TCP port of this number is different.
    let mut tcp = over_ip4(319);
    tcp[23] = 6;
    let delays = |neighbours, frames: &[&Vec<u8>]| -> Vec<u64> {
        let b = Bench::new(&slow(neighbours));
        let departures = frames.iter().map(|frame| b.send(frame, 0).departure / MS);
        departures.collect()
    };
    let events = [&over_ip4(319), &over_ip6(319), &over_ethernet, &tagged];
    assert_eq!(delays(Neighbours::Pass, &events), [0; 4]);
    assert_eq!(delays(Neighbours::Emulate, &events), [50; 4]);
    // Messages without a time stamp, and replies of another port.
    let others = [&over_ip4(320), &over_ip6(320), &tcp];
    assert_eq!(delays(Neighbours::Pass, &others), [50; 3]);
}

#[test]
fn vlan_tags_and_other_protocols_are_delayed_too() {
    let b = Bench::new(&link(|l| l.delay.mean_ns = 5 * MS));
    let plain = udp4(100, 1000);
    let mut tagged = plain[..12].to_vec();
    tagged.extend_from_slice(&[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 7]);
    tagged.extend_from_slice(&plain[12..]);
    assert_eq!(b.send(&tagged, 0).departure, 5 * MS);
    let mut lldp = vec![0u8; 60];
    lldp[12..14].copy_from_slice(&0x88ccu16.to_be_bytes());
    assert_eq!(b.send(&lldp, 0).departure, 5 * MS);
    assert_eq!(b.counters().bytes, 108 + 60);
}

/// On egress they wait with their socket, which may slow the sender down.
#[test]
fn what_is_not_ip_waits_with_its_socket_and_is_counted() {
    for release in [abi::EMUD_RELEASE_STAMP, abi::EMUD_RELEASE_QDISC] {
        let place = PacketTarget {
            release,
            ..stamp_place()
        };
        let b = Bench::with(&link(|l| l.delay.mean_ns = 5 * MS), 42, place);
        let mut lldp = vec![0u8; 60];
        lldp[12..14].copy_from_slice(&0x88ccu16.to_be_bytes());
        for frame in [&lldp, &udp4(100, 1000)] {
            assert_eq!(b.send(frame, 0).departure, 5 * MS);
        }
        let c = b.counters();
        let sent: u64 = c.delay_hist.iter().sum();
        let not_ip = c.passed[abi::EMUD_PASS_NOT_IP as usize];
        assert_eq!((c.packets, not_ip, sent), (2, 1, 1));
    }
}

/// The kernel takes a stamp for IP only: fq on an ifb cannot delay these, and says so.
#[test]
fn what_is_not_ip_to_the_kernel_passes_an_ifb_and_is_counted() {
    let with = |header: &[u8]| {
        let mut frame = udp4(100, 1000);
        frame.splice(12..14, header.iter().copied());
        frame
    };
    let two_tags = with(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0]);
    let pppoe = with(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 88, 0, 0x21]);
    let mpls = with(&[0x88, 0x47, 0, 1, 1, 64]);
    let delaying = link(|l| l.delay.mean_ns = 5 * MS);
    let slow = link(|l| {
        l.rate = Some(8_000_000);
        l.delay.mean_ns = 5 * MS;
    });
    for (release, untouched) in [
        (abi::EMUD_RELEASE_IFB, TC_ACT_UNSPEC),
        (abi::EMUD_RELEASE_QDISC_IFB, TC_ACT_UNSPEC),
        (abi::EMUD_RELEASE_MIRRED, TC_ACT_OK),
    ] {
        for l in [&delaying, &slow] {
            let place = PacketTarget {
                release,
                // There is none: nothing is sent.
                ifindex: 1_000_000,
                l3: false,
            };
            let mut b = Bench::with(l, 42, place);
            let links = abi::DIRECTIONS.map(|d| b.compile(l, 42, d, place));
            b.apply(links.each_ref().map(std::slice::from_ref)).unwrap();
            let mut ctx = arriving(b.start);
            ctx[rules::SKB_CB..][..4].copy_from_slice(&abi::EMUD_DOWN.to_ne_bytes());
            let not_ip = || {
                let counters = b.maps.counters(abi::EMUD_DOWN).unwrap();
                counters.passed[abi::EMUD_PASS_NOT_IP as usize]
            };
            for (n, frame) in (1..).zip([&two_tags, &pppoe, &mpls]) {
                let left = run(&b.loaded, frame, &ctx);
                let passed = (untouched, b.start, n);
                assert_eq!((left.verdict, left.departure(), not_ip()), passed);
            }
            run(&b.loaded, &udp4(100, 1000), &ctx);
            assert_eq!(not_ip(), 3, "IP waits");
            assert_eq!(b.maps.counters(abi::EMUD_DOWN).unwrap().packets, 4);
        }
    }
}

#[test]
fn a_tag_does_not_make_another_flow() {
    let lossy = link(|l| l.loss = 0.1.into());
    let plain = losses(&Bench::new(&lossy), 1000, 500);
    let frame = udp4(100, 1000);
    let mut tagged = frame[..12].to_vec();
    tagged.extend_from_slice(&[0x81, 0x00, 0, 7]);
    tagged.extend_from_slice(&frame[12..]);
    let b = Bench::new(&lossy);
    let lost: Vec<u64> = (0..500)
        .filter(|i| b.send(&tagged, i * 1000).verdict == TC_ACT_STOLEN)
        .collect();
    assert_eq!(plain, lost);
}

#[test]
fn a_super_packet_takes_the_wire_time_of_its_packets() {
    // 2 * 1000 bytes of payload behind 42 of headers: two frames of 1042.
    let b = Bench::new(&link(|l| l.rate = Some(8_000_000)));
    let fate = b.send_gso(&udp4(2042, 1000), 0, 1000);
    assert_eq!(fate.departure, 2 * 1_042_000);
    let c = b.counters();
    assert_eq!((c.packets, c.bytes, c.super_packets), (2, 2084, 1));
}

/// Of a tunnel only the outer headers are parsed: the kernel counts the packets, and what their payload
/// leaves is header.
#[test]
fn every_packet_of_a_super_packet_has_the_headers_of_its_tunnel() {
    // VXLAN, Ethernet, IPv4 and TCP behind the 42 bytes of UDP.
    const INNER: usize = 8 + 14 + 20 + 32;
    let sent = |payload: usize, segs: u32| {
        let b = Bench::new(&link(|l| l.rate = Some(8_000_000)));
        let mut ctx = arriving(b.start);
        ctx[SKB_GSO_SIZE..][..4].copy_from_slice(&1000u32.to_ne_bytes());
        ctx[SKB_GSO_SEGS..][..4].copy_from_slice(&segs.to_ne_bytes());
        let left = run(&b.loaded, &udp4(42 + INNER + payload, 4789), &ctx);
        let (c, sent_ns) = (b.counters(), left.departure() - b.start);
        assert_eq!(sent_ns, c.bytes * 1000, "{payload}");
        (c.packets, c.bytes)
    };
    let full = |packets: usize| (packets as u64, (packets * (42 + INNER + 1000)) as u64);
    assert_eq!(sent(2000, 2), full(2));
    assert_eq!(sent(3000, 3), full(3));
    // With a shorter last packet the length of the inner headers is not known.
    assert_eq!(sent(2990, 3), (3, full(3).1 - 10 - 2 * 10));
    assert_eq!(sent(2100, 3), (3, (42 * 3 + INNER + 2100) as u64));
    // A sender that is not trusted (0), and a number that cannot be right.
    for segs in [0, 9] {
        assert_eq!(sent(1900, segs), (2, (42 * 2 + INNER + 1900) as u64));
    }
}

/// The packets of SCTP (GSO_BY_FRAGS) have no common length: their mean counts, where the kernel counts them.
#[test]
fn a_super_packet_of_sctp_counts_as_its_packets() {
    const GSO_BY_FRAGS: u32 = 0xffff;
    const HEADERS: usize = 14 + 20 + 12;
    for (segs, packets) in [(3, 3), (0, 1)] {
        let b = Bench::new(&link(|l| l.rate = Some(8_000_000)));
        let mut ctx = arriving(b.start);
        ctx[SKB_GSO_SIZE..][..4].copy_from_slice(&GSO_BY_FRAGS.to_ne_bytes());
        ctx[SKB_GSO_SEGS..][..4].copy_from_slice(&u32::to_ne_bytes(segs));
        let mut frame = udp4(HEADERS + 2990, 1000);
        frame[14 + 9] = libc::IPPROTO_SCTP as u8;
        let left = run(&b.loaded, &frame, &ctx);
        let c = b.counters();
        assert_eq!(
            (c.packets, c.bytes),
            (packets, packets * HEADERS as u64 + 2990)
        );
        assert_eq!(left.departure() - b.start, c.bytes * 1000);
    }
}

#[test]
fn hold_pushes_a_header_and_stops_when_the_lease_ends() {
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_HOLD,
        ifindex: 1,
        l3: false,
    };
    let mut b = Bench::with(&link(|l| l.delay.mean_ns = 5 * MS), 42, place);
    assert_eq!(
        b.send(&udp4(100, 1), 0).verdict,
        TC_ACT_UNSPEC,
        "no holder yet"
    );
    assert_eq!(b.counters().passed[abi::EMUD_PASS_NO_HOLDER as usize], 1);
    let holder = abi::emud_holder {
        lease_ns: START + 500 * MS,
        ..Default::default()
    };
    b.maps.set_holder(abi::EMUD_UP, &holder).unwrap();
    assert_eq!(b.send(&udp4(100, 1), 500 * MS).verdict, TC_ACT_REDIRECT);
    assert_eq!(
        b.send(&udp4(100, 1), 500 * MS + 1).verdict,
        TC_ACT_UNSPEC,
        "the lease has run out"
    );
}

#[test]
fn an_inactive_link_passes_everything() {
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_NONE,
        ifindex: 0,
        l3: false,
    };
    let b = Bench::with(&link(|l| l.loss = 1.0.into()), 42, place);
    assert_eq!(
        b.send(&udp4(100, 1), 0),
        Fate {
            verdict: TC_ACT_UNSPEC,
            departure: 0
        }
    );
    assert_eq!(b.counters().passed[abi::EMUD_PASS_INACTIVE as usize], 1);
}
