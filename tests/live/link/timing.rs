// SPDX-License-Identifier: MIT OR Apache-2.0
//! When packets arrive: delay, its distribution, its order.

use std::fs;
use std::net::UdpSocket;

use support::clock;
use support::lab::{Engine, Lab, Verdict, packets_per_s, promised, scaled, sh};
use support::probe::{Arrivals, Probe, set_option};
use support::stats::{
    independent_values, ks_between, ks_bound, ks_distance, kurtosis_of_two, mean_error, median,
    normal_cdf, quantile, sd_error, share_error, uniform_cdf,
};
use support::{full, guest};

const UNIFORM: f64 = 1.8;
const NORMAL: f64 = 3.0;

/// A link that is pinged; milliseconds, one way.
struct Pinged {
    name: &'static str,
    profile: String,
    mean: f64,
    sd: f64,
    kurtosis: f64,
    /// Probability, one way.
    loss: f64,
    /// In standard errors.
    within: f64,
    bytes: u32,
}

impl Pinged {
    fn drawn(name: &'static str, distribution: &str, reorder: &str, spread: &str) -> Self {
        Self {
            name,
            profile: format!(
                "seed = 11\n[link]\ndelay = {{ mean = \"30ms\", {spread}, \
                 distribution = \"{distribution}\", reorder = \"{reorder}\" }}"
            ),
            mean: 30.0,
            sd: 6.0,
            kurtosis: if distribution == "uniform" {
                UNIFORM
            } else {
                NORMAL
            },
            loss: 0.0,
            within: 4.0,
            bytes: 56,
        }
    }

    /// Tiainen's table 5.6: pings of 1450 bytes.
    fn tiainen(name: &'static str, mean: f64, half_width: f64, loss: f64) -> Self {
        Self {
            name,
            profile: name.to_owned(),
            mean,
            sd: half_width / 3f64.sqrt(),
            kurtosis: UNIFORM,
            loss,
            within: 3.0,
            bytes: 1422,
        }
    }
}

/// What ping counted: sent, received, mean and standard deviation in ms.
struct RoundTrips {
    sent: f64,
    received: f64,
    mean: f64,
    sd: f64,
}

fn round_trips(said: &str) -> RoundTrips {
    let line = |with: &str| {
        said.lines()
            .find(|line| line.contains(with))
            .unwrap_or_else(|| panic!("no {with:?} in {said}"))
    };
    let number = |text: &str| -> f64 { text.parse().expect("a number") };
    let counts: Vec<&str> = line(" packets transmitted").split(' ').collect();
    let times: Vec<&str> = line("rtt min/avg/max/mdev = ").split(['=', '/']).collect();
    RoundTrips {
        sent: number(counts[0]),
        received: number(counts[3]),
        mean: number(times[5].trim()),
        sd: number(times[7].trim().split(' ').next().expect("a unit")),
    }
}

/// Round trips over uniform and normal delay, per packet and in order, and Tiainen's two access
/// links. All at the same time, because they are independent.
pub fn round_trip(engine: Engine) {
    const INTERVAL_MS: u32 = 20;
    // Few enough packets for any machine; most of the time passes idle.
    let pings = 2000;
    // A half-width of 10.3923 ms is a standard deviation of 6 ms.
    let uniform = "jitter = \"10.3923ms\"";
    let cases = [
        Pinged::drawn("uniform, per packet", "uniform", "jitter", uniform),
        Pinged::drawn("uniform, in order", "uniform", "never", uniform),
        Pinged::drawn("normal, per packet", "normal", "jitter", "sd = \"6ms\""),
        Pinged::drawn("normal, in order", "normal", "never", "sd = \"6ms\""),
        Pinged::tiainen("tiainen-mobile", 200.0, 50.0, 0.005),
        Pinged::tiainen("tiainen-landline", 20.0, 13.0, 0.001),
    ];
    let mut verdict = Verdict::default();
    let measured = std::thread::scope(|threads| {
        let running: Vec<_> = cases
            .iter()
            .map(|case| threads.spawn(move || pinged(engine, case, pings, INTERVAL_MS)))
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("pings"))
            .collect::<Vec<_>>()
    });
    for (case, (bare, link, coherence_ms)) in cases.iter().zip(measured) {
        judge_round_trip(
            &mut verdict,
            case,
            &bare,
            &link,
            coherence_ms,
            f64::from(INTERVAL_MS),
        );
    }
    verdict.end();
}

fn pinged(
    engine: Engine,
    case: &Pinged,
    pings: u32,
    interval_ms: u32,
) -> (RoundTrips, RoundTrips, Option<f64>) {
    let lab = Lab::new();
    let options = |count: u32| {
        format!(
            "-q -s {} -c {count} -i {}",
            case.bytes,
            f64::from(interval_ms) / 1e3
        )
    };
    let bare = round_trips(&lab.ping(&options(100)));
    lab.attach(engine, &case.profile, &["--seed", "11"]);
    let coherence_ms = lab.show()["up"]["delay"]["coherence_ns"]
        .as_f64()
        .map(|ns| ns / 1e6);
    let link = round_trips(&lab.ping(&options(pings)));
    (bare, link, coherence_ms)
}

fn judge_round_trip(
    verdict: &mut Verdict,
    case: &Pinged,
    bare: &RoundTrips,
    link: &RoundTrips,
    coherence_ms: Option<f64>,
    interval_ms: f64,
) {
    let both = 2f64.sqrt();
    let n = match coherence_ms {
        Some(coherence) => {
            independent_values(link.sent * interval_ms, coherence).min(link.received)
        }
        None => link.received,
    };
    let mean_se = mean_error(case.sd * both, n);
    verdict.near(
        &format!("{}: mean of the round trip, ms", case.name),
        2.0 * case.mean + bare.mean,
        link.mean,
        // A millisecond, and the error of a sample of this size.
        (case.within * mean_se).max(1.0),
    );
    verdict.near(
        &format!("{}: sd of the round trip, ms", case.name),
        case.sd * both,
        link.sd,
        case.within * sd_error(case.sd * both, kurtosis_of_two(case.kurtosis), n),
    );
    let loss = 1.0 - (1.0 - case.loss).powi(2);
    verdict.near(
        &format!("{}: share lost", case.name),
        loss,
        1.0 - link.received / link.sent,
        3.0 * share_error(loss, link.sent),
    );
}

/// A probe from a to b at this number of packets per second.
fn probe(lab: &Lab, packets_per_s: u32, count: u32) -> Probe {
    Probe::new(lab, count, 1_000_000_000 / u64::from(packets_per_s))
}

/// The delay in order is the same at 10, 1,000 and 10,000 packets a second.
pub fn in_order_at_every_rate(engine: Engine) {
    let mut verdict = Verdict::default();
    for (distribution, spread, cdf) in [
        (
            "uniform",
            "jitter = \"8.66025ms\"",
            Box::new(uniform_cdf(25.0, 8.66025)) as Box<dyn Fn(f64) -> f64>,
        ),
        ("normal", "sd = \"5ms\"", Box::new(normal_cdf(25.0, 5.0))),
    ] {
        let profile = format!(
            "seed = 5\n[link]\ndelay = {{ mean = \"25ms\", {spread}, distribution = \"{distribution}\" }}"
        );
        let duration_s = scaled(12);
        let highest = packets_per_s(10_000);
        // The slow ones leave the machine idle for each other.
        let (slow, middle) = std::thread::scope(|threads| {
            let slow = threads.spawn(|| sample(engine, &profile, 10, duration_s));
            let middle = threads.spawn(|| sample(engine, &profile, 1000, duration_s));
            (slow.join().expect("probes"), middle.join().expect("probes"))
        });
        let fast = sample(engine, &profile, highest, duration_s);
        let all = [(10, slow), (1000, middle), (highest, fast)];
        for (rate, sample) in &all {
            let name = format!("{distribution} at {rate} packets/s");
            verdict.same(&format!("{name}: lost"), 0, sample.lost);
            verdict.same(&format!("{name}: reordered"), 0, sample.reordered);
            verdict.at_most(
                &format!("{name}: KS distance from theory"),
                ks_bound(sample.independent),
                ks_distance(&sample.delays_ms, &cdf),
            );
        }
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let ((rate, a), (other, b)) = (&all[i], &all[j]);
            let n = a.independent * b.independent / (a.independent + b.independent);
            verdict.at_most(
                &format!("{distribution}: KS distance of {rate} and {other} packets/s"),
                ks_bound(n),
                ks_between(&a.delays_ms, &b.delays_ms),
            );
        }
    }
    verdict.end();
}

struct Sample {
    delays_ms: Vec<f64>,
    reordered: usize,
    lost: usize,
    independent: f64,
}

fn sample(engine: Engine, profile: &str, packets_per_s: u32, duration_s: u32) -> Sample {
    let lab = Lab::new();
    lab.attach(engine, profile, &[]);
    let coherence_s = lab.shown("/up/delay/coherence_ns") as f64 / 1e9;
    let count = packets_per_s * duration_s;
    let arrivals = probe(&lab, packets_per_s, count).run();
    Sample {
        delays_ms: arrivals.delays_ms(),
        reordered: arrivals.reordered(),
        lost: arrivals.lost(count).len(),
        independent: independent_values(f64::from(duration_s), coherence_s).min(f64::from(count)),
    }
}

/// A constant delay at 10,000 packets a second: the deviation of arrivals from it.
pub fn departure_error(engine: Engine) {
    const DELAY_MS: f64 = 20.0;
    /// The target of engine hold, 99 of 100 packets.
    const P99_MS: f64 = 0.5;
    let rate = packets_per_s(10_000);
    let count = 3 * rate;
    let lab = Lab::new();
    let bare = probe(&lab, rate, count).run();
    lab.attach(engine, "[link]\ndelay = \"20ms\"", &[]);
    let held = probe(&lab, rate, count).run();
    let errors = |arrivals: &Arrivals, asked: f64| -> Vec<f64> {
        let delays = arrivals.delays_ms();
        delays.iter().map(|delay| delay - asked).collect()
    };
    let (bare_ms, held_ms) = (errors(&bare, 0.0), errors(&held, DELAY_MS));
    for share in [0.01, 0.5, 0.9, 0.99, 0.999] {
        println!(
            "    error at {share}: bare {:.3} ms, emulated {:.3} ms",
            quantile(&bare_ms, share),
            quantile(&held_ms, share)
        );
    }
    let mut verdict = Verdict::default();
    verdict.same("lost", 0, held.lost(count).len());
    verdict.same("reordered", 0, held.reordered());
    verdict.at_least(
        "least error, ms",
        -engine.early_ms(),
        quantile(&held_ms, 0.0),
    );
    // The bare path's median is the time of the path, not of emud.
    verdict.at_most(
        "99th percentile of the error, ms",
        P99_MS,
        quantile(&held_ms, 0.99) - median(&bare_ms),
    );
    verdict.end();
}

/// At the receiver, a constant delay is no further from the configured one than netem's. Engine fq
/// in guests, whose clock counts instructions: the two are compared in one boot, in turn.
pub fn against_netem(engine: Engine) {
    if engine == Engine::Hold || !guest() {
        return;
    }
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    for rate in [1_000u64, 10_000] {
        // The delay is a multiple of the interval: sent evenly, each would be due while the next is on
        // its way to the qdisc, and wait for that (7.5 us at 1,000/s).
        let probe = Probe {
            scattered: true,
            ..Probe::new(&lab, scaled(10_000), 1_000_000_000 / rate)
        };
        let error_us = |delays_ms: Vec<f64>| 1e3 * (median(&delays_ms) - 20.0);
        let (mut stock, mut emulated) = (vec![], vec![]);
        for _ in 0..2 {
            sh(&format!(
                "tc -n {} qdisc add dev va root netem delay 20ms limit 100000",
                lab.a
            ));
            stock.push(error_us(probe.run().delays_ms()));
            sh(&format!("tc -n {} qdisc del dev va root", lab.a));
            lab.attach(engine, "[up]\ndelay = \"20ms\"", &["--direction", "up"]);
            emulated.push(error_us(probe.run().delays_ms()));
            lab.detach();
        }
        println!("    {rate}/s: us late: netem {stock:.2?}, emud {emulated:.2?}");
        let name = format!("{rate}/s: median error, us");
        verdict.at_most(&name, median(&stock), median(&emulated));
        verdict.at_least(&name, 0.0, median(&emulated));
    }
    verdict.end();
}

const FLOWS: u16 = 16;

/// Sends packets of several flows from these CPUs at once, as one in order. Returns how many were overtaken, and
/// how many came.
fn overtakings(lab: &Lab, packets: u32, cpus: usize) -> [usize; 2] {
    let each = packets / u32::from(FLOWS);
    let interval_ns = 1_000_000_000 * u64::from(FLOWS) / u64::from(packets_per_s(100_000));
    let flow = |n: u16| Probe {
        source_port: 7_100 + n,
        port: 7_200 + n,
        ..Probe::new(lab, each, interval_ns)
    };
    let probes: Vec<Probe> = (0..FLOWS).map(flow).collect();
    let mut all: Vec<(u64, u64)> = std::thread::scope(|threads| {
        // A sender must not lose its CPU between its clock and the device. Threads inherit both.
        let run = |n: usize, probe: &Probe| {
            clock::pin(n % cpus);
            clock::real_time(1);
            probe.run()
        };
        let runs: Vec<_> = (probes.iter().enumerate())
            .map(|(n, probe)| threads.spawn(move || run(n, probe)))
            .collect();
        let runs = runs.into_iter().map(|run| run.join().expect("a flow"));
        runs.flat_map(|run| run.0)
            .map(|a| (a.arrived_ns, a.sent_ns))
            .collect()
    });
    all.sort_unstable();
    let mut latest = 0;
    let late = all.iter().filter(|(_, sent)| {
        let overtaken = *sent < latest;
        latest = latest.max(*sent);
        overtaken
    });
    [late.count(), all.len()]
}

fn add_netem(lab: &Lab) {
    let netem = "root netem delay 20ms limit 100000";
    sh(&format!("tc -n {} qdisc add dev va {netem}", lab.a));
}

fn attach_in_order(lab: &Lab, engine: Engine) {
    lab.attach(engine, "[up]\ndelay = \"20ms\"", &["--direction", "up"]);
}

/// What is lost overtakes nothing. A receiver's buffer may be full for a moment.
fn judge_counts(verdict: &mut Verdict, netem: [usize; 2], emud: [usize; 2]) {
    let ([stock, came], [emulated, all]) = (netem, emud);
    println!("    netem: {stock} of {came} packets overtaken; emud: {emulated} of {all}");
    verdict.at_least("packets that came", 0.999 * came as f64, all as f64);
}

/// A link in order keeps the order of all its flows, whichever transmit queue each uses: at most twice
/// as many packets overtake as with netem.
pub fn order_across_queues(engine: Engine) {
    if engine == Engine::Hold || !guest() {
        return;
    }
    let mut verdict = Verdict::default();
    let lab = Lab::with_queues(2);
    let packets = match full() {
        true => 1_000_000,
        false => scaled(1_000_000),
    };
    add_netem(&lab);
    let netem = overtakings(&lab, packets, 1);
    sh(&format!("tc -n {} qdisc del dev va root", lab.a));
    attach_in_order(&lab, engine);
    let emud = overtakings(&lab, packets, 1);
    lab.detach();
    judge_counts(&mut verdict, netem, emud);
    let [stock, emulated] = [netem[0], emud[0]].map(|n| n as f64);
    // The count of rare events is off by its root; 4 of them.
    let most = 2.0 * (stock + 4.0 * stock.max(1.0).sqrt());
    verdict.at_most("overtaken", most, emulated);
    verdict.end();
}

/// The second CPU of a guest; offline when dropped.
struct SecondCpu;

impl SecondCpu {
    const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

    fn online() -> Self {
        fs::write(Self::ONLINE, "1").expect(Self::ONLINE);
        Self
    }
}

impl Drop for SecondCpu {
    fn drop(&mut self) {
        if let Err(e) = fs::write(Self::ONLINE, "0") {
            println!("    {}: {e}", Self::ONLINE);
        }
    }
}

/// The same with two CPUs that send at the same time, in a guest that has them. A packet is late if its sender
/// loses its CPU between its clock and the device, also with netem. These are independent events, so the
/// variance of each count is its mean.
pub fn order_across_cpus(engine: Engine) {
    const ROUNDS: u32 = 4;
    if engine == Engine::Hold || !promised("EMUD_EXPECT", "cpus") {
        return;
    }
    let mut verdict = Verdict::default();
    // The guest must not change its code while both CPUs run (tests/vm/run.sh), as it does for a qdisc, a filter and
    // the first socket that wants times.
    let stamped = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    set_option(&stamped, libc::SO_TIMESTAMPNS, 1);
    let [stock, emulated] = [(); 2].map(|()| Lab::with_queues(2));
    // Otherwise each CPU that takes out packets delivers them itself, and one can be ahead of the other.
    for lab in [&stock, &emulated] {
        lab.in_b("for queue in /sys/class/net/vb/queues/rx-*; do echo 1 >$queue/rps_cpus; done");
    }
    add_netem(&stock);
    attach_in_order(&emulated, engine);
    let second = SecondCpu::online();
    let [mut netem, mut emud] = [[0; 2]; 2];
    // In turn: other programs of the machine make packets late, too.
    for _ in 0..ROUNDS {
        for (lab, sum) in [(&stock, &mut netem), (&emulated, &mut emud)] {
            let counts = overtakings(lab, scaled(500_000), 2);
            println!("    {counts:?}");
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum += count;
            }
        }
    }
    drop(second);
    emulated.detach();
    judge_counts(&mut verdict, netem, emud);
    let [stock, emulated] = [netem[0], emud[0]].map(|n| n as f64);
    let error = (emulated + 4.0 * stock).sqrt();
    verdict.at_most(
        "overtaken, beyond twice those of netem",
        4.0 * error,
        emulated - 2.0 * stock,
    );
    verdict.end();
}
