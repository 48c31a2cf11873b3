// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running link: `set`, directions, and rejected changes.

use std::time::Duration;

use serde_json::Value;
use support::lab::{Engine, Lab, Verdict, packets_per_s};
use support::probe::{Arrivals, Probe};
use support::stats::median;

fn reversed(mut probe: Probe) -> Probe {
    probe.address = Lab::A4.parse().expect("an address");
    std::mem::swap(&mut probe.from, &mut probe.to);
    probe
}

/// Two links that differ in two keys, exchanged under traffic: a packet with the delay of one and
/// the loss of the other would reveal half a change.
pub fn set_is_atomic(engine: Engine) {
    const LONG_MS: f64 = 1000.0;
    let rate = packets_per_s(2000);
    // 4 s: the first change loads another classifier, for which a busy machine may take a second.
    let count = 4 * rate;
    let lab = Lab::new();
    lab.attach(engine, "[link]\ndelay = \"20ms\"", &[]);
    let mut changes = 0;
    let arrivals = Probe::new(&lab, count, 1_000_000_000 / u64::from(rate)).run_while(|sent| {
        while sent.load(std::sync::atomic::Ordering::Acquire) < u64::from(count) {
            let change = match changes % 2 {
                0 => ["set", "va", "loss=100%", "delay=1000ms"],
                _ => ["set", "va", "loss=0%", "delay=20ms"],
            };
            lab.emud(&change).expect(0);
            changes += 1;
            // Time for a few packets under each.
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let lost = arrivals.lost(count).len();
    println!("    {changes} changes, {lost} of {count} lost");
    let mut verdict = Verdict::default();
    let delays = arrivals.delays_ms();
    verdict.same(
        "packets that met half a change",
        0,
        delays.iter().filter(|ms| **ms >= LONG_MS).count(),
    );
    verdict.same(
        "packets that came too early",
        0,
        delays
            .iter()
            .filter(|ms| **ms < 20.0 - engine.early_ms())
            .count(),
    );
    verdict.at_least("changes", 2.0, f64::from(changes));
    verdict.at_least("lost", 1.0, lost as f64);
    // The counters continue. Neighbour discovery may send packets, also between two readings.
    let counters = &lab.show()["up"]["counters"];
    let of = |pointer| counters.pointer(pointer).and_then(Value::as_u64);
    let probes = of("/packets")
        .zip(of("/passed/neighbour"))
        .map(|(all, others)| all - others);
    verdict.same("packets by emud's count", Some(u64::from(count)), probes);
    verdict.same("lost by emud's count", Some(lost as u64), of("/lost"));
    verdict.end();
}

/// Packets in the queue stay there when the link changes.
pub fn queue_lives_on(engine: Engine) {
    // A guest takes a second to load the classifier that the change needs.
    const PACKETS: u32 = 75;
    // 64 bytes of payload make a frame of 106 bytes.
    const PACKET_MS: f64 = 106.0 * 8.0 / 20.0;
    let lab = Lab::new();
    lab.attach(engine, "[up]\nrate = \"20kbit\"\nqueue = \"100p\"", &[]);
    let arrivals = Probe::new(&lab, PACKETS, 0).run_while(|_| {
        std::thread::sleep(Duration::from_millis(100));
        lab.emud(&["set", "va", "up.loss=100%", "up.queue=80p"])
            .expect(0);
        let shown = lab.show();
        let backlog_ms = shown["up"]["backlog_ns"].as_f64().expect("a number") / 1e6;
        assert!(
            backlog_ms > 0.1 * f64::from(PACKETS) * PACKET_MS,
            "{backlog_ms} ms of backlog are left"
        );
    });
    let mut verdict = Verdict::default();
    verdict.same("arrived", PACKETS as usize, arrivals.0.len());
    let gaps: Vec<f64> = arrivals
        .0
        .windows(2)
        .map(|pair| (pair[1].arrived_ns - pair[0].arrived_ns) as f64 / 1e6)
        .collect();
    let duration = f64::from(PACKETS - 1) * PACKET_MS;
    verdict.near(
        "ms between two packets",
        PACKET_MS,
        median(&gaps),
        0.01 * PACKET_MS,
    );
    verdict.near("ms for all", duration, gaps.iter().sum(), 0.01 * duration);
    verdict.end();
}

/// Rounded down to whole milliseconds: the time of a direction.
fn delay_ms(arrivals: &Arrivals) -> f64 {
    median(&arrivals.delays_ms())
}

/// Which direction is up, and what `--direction` does not change.
pub fn directions(engine: Engine) {
    const UP_MS: f64 = 20.0;
    const DOWN_MS: f64 = 60.0;
    let profile = "[up]\ndelay = \"20ms\"\n[down]\ndelay = \"60ms\"";
    let lab = Lab::new();
    let both = || {
        let probe = Probe::new(&lab, 200, 2_000_000);
        (delay_ms(&probe.run()), delay_ms(&reversed(probe).run()))
    };
    let bare = both();
    let mut verdict = Verdict::default();
    for (options, up, down) in [
        (&[][..], UP_MS, DOWN_MS),
        (&["--reverse"], DOWN_MS, UP_MS),
        (&["--direction", "up"], UP_MS, 0.0),
        (&["--direction", "down"], 0.0, DOWN_MS),
        (&["--direction", "down", "--reverse"], 0.0, UP_MS),
    ] {
        lab.attach(engine, profile, options);
        let got = both();
        lab.detach();
        // A median that is late by a millisecond would be a different link.
        verdict.near(&format!("{options:?} up, ms"), up + bare.0, got.0, 1.0);
        verdict.near(&format!("{options:?} down, ms"), down + bare.1, got.1, 1.0);
    }
    verdict.end();
}

/// `set` of one direction and of both, and what it rejects.
pub fn set(engine: Engine) {
    let lab = Lab::new();
    lab.emud(&["set", "va", "loss=1%"]).expect(66);
    lab.attach(engine, "adsl24", &[]);
    lab.emud(&["set", "va", "up.delay=80ms", "loss=1%", "down.rate=2Mbit"])
        .expect(0);
    let shown = lab.show();
    let number = |pointer: &str| shown.pointer(pointer).and_then(|v| v.as_f64());
    let mut verdict = Verdict::default();
    verdict.near("up.delay", 80e6, number("/up/delay/mean_ns").unwrap(), 0.5);
    verdict.near("up.loss", 0.01, number("/up/loss").unwrap(), 1e-12);
    verdict.near("down.loss", 0.01, number("/down/loss").unwrap(), 1e-12);
    verdict.near("up.rate", 2e6, number("/up/rate_bit_s").unwrap(), 1e-3);
    verdict.near("down.rate", 2e6, number("/down/rate_bit_s").unwrap(), 1e-3);
    let in_force = |lab: &Lab| {
        let shown = lab.show();
        ["up", "down"].map(|d| {
            let mut direction = shown[d].clone();
            // Counts and times continue.
            for moving in ["counters", "holder", "backlog_ns"] {
                direction[moving].take();
            }
            direction
        })
    };
    let before = in_force(&lab);
    for wrong in ["loss=101%", "delay=5", "dealy=5ms", "up.rate=5mbps", "loss"] {
        // The first one is valid: all or nothing.
        let said = lab.emud(&["set", "va", "delay=1ms", wrong]).expect(65);
        println!("    {wrong}: {}", said.err.lines().next().unwrap_or(""));
        verdict.same(wrong, &before, &in_force(&lab));
    }
    verdict.end();
}

/// Another profile with the engine, seed, directions and end of the link. What cannot be attached leaves the
/// link as it is; what fails later, too, except for the counters.
pub fn exchange(engine: Engine) {
    let lab = Lab::new();
    let given = ["--seed", "7", "--direction", "up", "--for", "1h"];
    lab.attach(engine, "[link]\ndelay = \"5ms\"", &given);
    let take = |profile: &str| lab.emud(&["attach", "va", "--exchange", "--profile", profile]);
    let keeps_all = |delay_ns: u64| {
        let shown = lab.show();
        assert_eq!(shown["up"]["delay"]["mean_ns"], delay_ns);
        assert_eq!(shown["engine"], engine.name());
        assert_eq!((&shown["seed"], &shown["down"]), (&7.into(), &Value::Null));
        assert!(shown["ends_in_s"].as_f64().expect("an end") > 3000.0);
        shown["up"]["counters"]["packets"]
            .as_u64()
            .expect("packets")
    };
    lab.ping("-c 3 -i 0.2 -W 2");
    let nowhere =
        "[link]\ndelay = \"9ms\"\n[[rule]]\nmatch = { cgroup = \"/emud-none\" }\nlink = \"none\"";
    // Only hold has managers of classes.
    let managed =
        "[up]\nclass = \"b\"\n[bottleneck.b]\nrate = \"1Mbit\"\nqueue = { aqm = \"codel\" }\n";
    let examined = [(66, lab.profile(nowhere)), (69, lab.profile(managed))];
    for (code, profile) in &examined[..if engine == Engine::Hold { 1 } else { 2 }] {
        take(profile).expect(*code);
        assert!(keeps_all(5_000_000) >= 3);
    }
    let other = lab.profile("[link]\ndelay = \"6ms\"\nloss = \"50%\"");
    if engine == Engine::Hold {
        // It would be in the way of both attaches.
        lab.in_a("tc qdisc add dev va root pfifo limit 7");
        take(&other).expect(73);
        assert!(keeps_all(5_000_000) >= 3);
        lab.in_a("tc qdisc del dev va root");
    } else {
        // The name of a device that only the other profile needs.
        let name = format!(
            "emud-sa-{}",
            lab.in_a("cat /sys/class/net/va/ifindex").trim()
        );
        lab.in_a(&format!("ip link add {name} type dummy"));
        let said = take(&other).expect(73).err;
        assert!(said.contains("va has its previous profile again"), "{said}");
        keeps_all(5_000_000);
        lab.in_a(&format!("ip link del {name}"));
    }
    take(&other).expect(0);
    keeps_all(6_000_000);
    lab.detach();
    take(&other).expect(66);
}

/// A change that fails leaves nothing for the next one to forget, and none changes what is not emud's.
pub fn fails_without_a_trace(engine: Engine) {
    if engine == Engine::Hold {
        // It segments whatever the link does, and leaves the root to others.
        return;
    }
    let lab = Lab::new();
    lab.attach(engine, "[link]\ndelay = \"5ms\"\n", &[]);
    let max_segs = || lab.in_a("ip -d link show va").contains("gso_max_segs 1 ");
    assert!(!max_segs());
    let index = lab.in_a("cat /sys/class/net/va/ifindex");
    let name = format!("emud-sa-{}", index.trim());
    lab.in_a(&format!("ip link add {name} type dummy"));
    lab.emud(&["set", "va", "loss=1%"]).expect(73);
    lab.in_a(&format!("ip link del {name}"));
    lab.emud(&["set", "va", "loss=1%"]).expect(0);
    assert!(max_segs(), "super-packets have one fate");

    // Another process takes the root.
    lab.in_a("tc qdisc replace dev va root handle 5: fq limit 77 maxrate 10mbit");
    let theirs = || lab.in_a("tc qdisc show dev va root");
    let before = theirs();
    lab.emud(&["set", "va", "up.delay=20ms"]);
    assert_eq!(before, theirs());
    lab.detach();
    assert_eq!(before, theirs());
}
