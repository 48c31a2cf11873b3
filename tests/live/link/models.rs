// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each loss model and each kind of delay once, through an engine; the decisions per packet are
//! tested with the classifier alone.

use support::chain::Chain;
use support::lab::{Engine, Lab, Verdict, packets_per_s, scaled};
use support::probe::{Arrivals, Probe};
use support::stats::{ks_bound, ks_distance, mean_error, normal_cdf, share_error, uniform_cdf};

/// Ethernet, IP, UDP and payload.
const FRAME_BITS: f64 = 8.0 * 106.0;

fn probe(lab: &Lab) -> Probe {
    Probe::new(
        lab,
        scaled(10_000),
        1_000_000_000 / u64::from(packets_per_s(4000)),
    )
}

/// The link up with this key changed, and the results of a number of packets.
fn with(lab: &Lab, change: &str) -> Arrivals {
    lab.emud(&["set", "va", change]).expect(0);
    probe(lab).run()
}

/// A share of the packets, according to each model's theory.
fn drawn(n: f64) -> Vec<(&'static str, f64, f64)> {
    let chain = |chain: Chain| {
        let [share, _] = chain.expected(n);
        (share.value, share.error)
    };
    let alone = |p: f64| (p, share_error(p, n));
    let gilbert = Chain::gilbert_elliott(0.02, 0.2, 0.7, 0.01);
    let states = Chain::four_state(0.02, 0.2, 0.1, 0.3, 0.005);
    // Losses are less correlated than the values behind them.
    let (p, error) = alone(0.05);
    let correlated = (p, error * (1.3f64 / 0.7).sqrt());
    let of = |model, (share, error)| (model, share, error);
    vec![
        of("probability = \"5%\"", alone(0.05)),
        of("probability = \"5%\", correlation = \"30%\"", correlated),
        of(
            "model = \"gilbert-elliott\", p = \"2%\", r = \"20%\", bad = \"70%\", good = \"1%\"",
            chain(gilbert),
        ),
        of(
            "model = \"four-state\", p13 = \"2%\", p31 = \"20%\", p32 = \"10%\", p23 = \"30%\", \
             p14 = \"0.5%\"",
            chain(states),
        ),
        of(
            "model = \"bit-error\", ber = 1e-4",
            alone(1.0 - (1.0 - 1e-4f64).powf(FRAME_BITS)),
        ),
        of(
            "model = \"burst\", probability = \"1%\", length = 3",
            chain(Chain::burst(0.01, 3)),
        ),
    ]
}

pub fn losses(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, "[up]\ndelay = \"1ms\"", &["--seed", "1"]);
    let count = probe(&lab).count;
    let mut counted = 0;
    let mut lost = |verdict: &mut Verdict, model: &str| {
        let lost = with(&lab, &format!("up.loss={{ {model} }}")).lost(count);
        let before = std::mem::replace(&mut counted, lab.shown("/up/counters/lost"));
        let own = counted - before;
        verdict.same(
            &format!("{model}: lost by emud's count"),
            own,
            lost.len() as u64,
        );
        lost
    };
    for (model, share, error) in drawn(f64::from(count)) {
        let got = lost(&mut verdict, model).len() as f64 / f64::from(count);
        verdict.near(&format!("{model}: share lost"), share, got, 3.0 * error);
    }
    for (model, is_lost) in [
        (
            "model = \"every\", n = 10",
            (|n| n % 10 == 9) as fn(u32) -> bool,
        ),
        ("model = \"pattern\", pattern = \"0001000\"", |n| n % 7 == 3),
        (
            "model = \"pattern\", lost = [3, 7], length = 100, loop = false",
            |n| n == 3 || n == 7,
        ),
    ] {
        let theory: Vec<u32> = (0..count).filter(|n| is_lost(*n)).collect();
        let lost = lost(&mut verdict, model);
        verdict.same(&format!("{model}: as recorded"), true, lost == theory);
    }
    verdict.end();
}

/// Delays that are independent per packet, without the part that the machine adds.
pub fn delays(engine: Engine) {
    const SD_MS: f64 = 5.0;
    // How much the machine may change a delay: engine hold's target for 99 of 100 packets.
    let machine_ms = match engine {
        Engine::Fq | Engine::Qdisc => 0.0,
        Engine::Hold => 0.5,
    };
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, "[up]\ndelay = \"20ms\"", &["--seed", "1"]);
    let count = probe(&lab).count;
    let n = f64::from(count);
    let added_ms = mean(&probe(&lab).run().delays_ms()) - 20.0;
    let measured = |delay: &str| -> Vec<f64> {
        // Otherwise the existing table would be merged into it.
        lab.emud(&["set", "va", "up.delay=none"]).expect(0);
        let each = with(&lab, &format!("up.delay={delay}")).of_each_ms(count);
        let delays = each.concat();
        assert_eq!(delays.len(), each.len(), "{delay}: lost or doubled");
        delays.iter().map(|delay| delay - added_ms).collect()
    };

    let got = measured(
        "{ mean = \"20ms\", sd = \"5ms\", distribution = \"lognormal\", reorder = \"jitter\" }",
    );
    let variance = (1.0 + (SD_MS / 20.0f64).powi(2)).ln();
    let of_logarithm = normal_cdf(20f64.ln() - variance / 2.0, variance.sqrt());
    let allowed = 3.0 * mean_error(SD_MS, n) + machine_ms;
    verdict.near("lognormal: mean, ms", 20.0, mean(&got), allowed);
    // The density of this one is below 0.5 / sd.
    verdict.at_most(
        "lognormal: KS distance",
        ks_bound(n) + machine_ms * 0.5 / SD_MS,
        ks_distance(&got, |x| of_logarithm(x.max(1e-9).ln())),
    );

    let got = measured(
        "{ samples = { values = \"10 10 10 10 12 12 12 12 20 20 20 20\", unit = \"ms\" }, reorder = \"jitter\" }",
    );
    // Mean 14; (16 + 4 + 36) / 3 is the variance.
    let sd = (56.0f64 / 3.0).sqrt();
    let allowed = 3.0 * mean_error(sd, n) + machine_ms;
    verdict.near("samples: mean, ms", 14.0, mean(&got), allowed);
    for (ms, share) in [(11.0, 1.0 / 3.0), (16.0, 2.0 / 3.0)] {
        let below = got.iter().filter(|delay| **delay < ms).count() as f64 / n;
        let name = format!("samples: share below {ms} ms");
        verdict.near(&name, share, below, 3.0 * share_error(share, n));
    }

    let got = measured("{ mean = \"20ms\", share = \"20%\" }");
    let delayed = got.iter().filter(|delay| **delay > 10.0).count() as f64 / n;
    verdict.near("share delayed", 0.2, delayed, 3.0 * share_error(0.2, n));

    lab.emud(&["set", "va", "up.delay=20ms"]).expect(0);
    let each = with(&lab, "up.reorder={ probability = \"100%\", gap = 5 }").of_each_ms(count);
    // The count of delayed packets continues, so the first one may have any position.
    let at_once: Vec<usize> = (0..each.len()).filter(|n| each[*n][0] < 10.0).collect();
    verdict.same(
        "reordered: every fifth",
        true,
        at_once[0] < 5 && at_once.windows(2).all(|pair| pair[1] - pair[0] == 5),
    );
    verdict.end();
}

/// Packets with such distances that most of them wait alone: each has its own random delay, even if
/// the previous one is due later.
pub fn sparse(engine: Engine) {
    const EVERY_NS: u64 = 29_000_000;
    if engine == Engine::Hold {
        println!("    for fq, where a packet may have to wait for its flow");
        return;
    }
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let delay = "delay = { mean = \"50ms\", jitter = \"50ms\", reorder = \"jitter\" }";
    let profile = format!("[link]\nduplicate = \"20%\"\n{delay}");
    lab.attach(engine, &profile, &["--seed", "1"]);
    let up = Probe {
        copies: 2,
        ..Probe::new(&lab, 2000, EVERY_NS)
    };
    let down = Probe {
        from: lab.b.clone(),
        to: lab.a.clone(),
        address: Lab::A4.parse().expect("an address"),
        ..up.clone()
    };
    let both = std::thread::scope(|threads| {
        let running = [&up, &down].map(|probe| threads.spawn(|| probe.run().delays_ms()));
        running.map(|thread| thread.join().expect("probes"))
    });
    for (name, delays) in ["up", "down"].into_iter().zip(both) {
        verdict.at_most(
            &format!("{name}: KS distance"),
            // The machine may add up to a millisecond.
            ks_bound(delays.len() as f64) + 1.0 / 100.0,
            ks_distance(&delays, uniform_cdf(50.0, 50.0)),
        );
    }

    lab.emud(&["set", "va", "duplicate=none", "delay=50ms"])
        .expect(0);
    lab.emud(&["set", "va", "reorder={ probability = \"100%\", gap = 2 }"])
        .expect(0);
    for (name, probe) in [("up", &up), ("down", &down)] {
        let probe = Probe {
            count: 50,
            copies: 1,
            ..probe.clone()
        };
        let delays = probe.run().delays_ms();
        let soon = delays.iter().filter(|delay| **delay < 10.0);
        verdict.same(&format!("{name}: sent at once"), 25, soon.count());
    }
    verdict.end();
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// `emud verify` passes for shipped links under fq, and fails for one of them after a change;
/// tests/kernel/verify covers hold.
pub fn verified() {
    let mut verdict = Verdict::default();
    for profile in ["hsdpa", "lte", "tiainen-mobile"] {
        let lab = Lab::new();
        lab.attach(Engine::Fq, profile, &["--seed", "1"]);
        let peer = ["verify", "va", "--peer-netns", &lab.b, "--duration", "6s"];
        let verify = |more: &[&str]| lab.emud(&[&peer[..], more].concat());
        let said = verify(&[]);
        verdict.same(&format!("{profile}: exit code"), 0, said.code);
        if said.code != 0 {
            println!("{}{}", said.out, said.err);
        }
        if profile == "lte" {
            lab.emud(&["set", "va", "down.rate=10Mbit"]).expect(0);
            let code = verify(&["--against", profile]).code;
            verdict.same("lte at another rate: exit code", 1, code);
        }
    }
    verdict.end();
}
