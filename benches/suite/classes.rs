// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine hold with 8 classes of a bottleneck beside hold without: packets per second, and how late
//! packets arrive.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use crate::Suite;
use crate::accuracy::{reached, sending_rate, spread};
use crate::local::{PORT, Sender};
use emud::bottleneck::{Arrival, Server};
use emud::profile::Profile;
use support::lab::{Engine, Lab, inside};
use support::probe::Probe;

const CLASSES: u8 = 8;
const DELAY_MS: f64 = 20.0;

/// A profile by its name. No class is ever the limit: only its computation is measured.
fn profiles() -> Vec<(&'static str, String)> {
    let link = format!("[up]\ndelay = \"{DELAY_MS}ms\"\n");
    let numbers = || 0..CLASSES;
    let rules: String = numbers()
        .map(|n| format!("[[rule]]\nmatch = {{ dscp = \"{n}\" }}\nclass = \"b.c{n}\"\n"))
        .collect();
    let classes = |schedule: &str, of: fn(u8) -> String| {
        let class = |n| format!("[bottleneck.b.class.c{n}]\nqueue = \"60000p\"\n{}\n", of(n));
        let all: String = numbers().map(class).collect();
        format!(
            "{link}class = \"b.c0\"\n[bottleneck.b]\nrate = \"10Gbit\"\n\
             schedule = \"{schedule}\"\n{all}{rules}"
        )
    };
    let priority = |n: u8| format!("priority = {}\nweight = {}", n / 2, n + 1);
    let htb = |_: u8| "rate = \"1Gbit\"\nceil = \"10Gbit\"".to_owned();
    vec![
        ("hold", link.clone()),
        ("hold, 8 classes, fifo", classes("fifo", |_| String::new())),
        ("hold, 8 classes, priority", classes("priority", priority)),
        ("hold, 8 classes, drr", classes("drr", |_| String::new())),
        ("hold, 8 classes, htb", classes("htb", htb)),
    ]
}

/// Packets of the server alone.
const ALONE: u64 = 1_000_000;

/// The server without a kernel: 100,000 packets of 106 bytes a second, read 10 at a time, at a rate
/// far above that, and at half of it, where the queues are full.
fn alone(suite: &mut Suite) {
    for (name, profile) in profiles().into_iter().skip(1) {
        let profile = Profile::parse(&profile, "x.toml").expect("a profile");
        for (rate, case) in [
            (10_000_000_000, "server alone, idle"),
            (42_400_000, "server alone, full"),
        ] {
            let mut plan = profile.plans(1).remove(0);
            plan.rate = rate;
            for class in &mut plan.classes {
                class.limits.packets = Some(100);
            }
            let mut server = Server::new(&plan);
            let start = Instant::now();
            let mut decided = 0;
            for number in 0..ALONE {
                let at_ns = number * 10_000;
                let arrival = Arrival {
                    at_ns,
                    class: (number % u64::from(CLASSES)) as usize,
                    bytes: 106,
                    ds: 0,
                };
                server.arrive(arrival, number);
                if number % 10 == 9 {
                    decided += std::iter::from_fn(|| server.decide(at_ns)).count();
                }
            }
            let ns = start.elapsed().as_nanos() as f64 / decided as f64;
            suite.results.add(case, name, "cost", "ns/packet", ns);
        }
    }
}

pub fn run(suite: &mut Suite) {
    (0..suite.turns).for_each(|_| alone(suite));
    let lab = Lab::new();
    // Nobody reads it: what it has no room for is dropped behind the device that counts.
    let sink = inside(&lab.b, || UdpSocket::bind((Lab::B4, PORT)).expect("bind"));
    let sink = sink.join().expect("a socket");
    for _ in 0..suite.turns {
        for (name, profile) in profiles() {
            lab.attach(Engine::Hold, &profile, &["--direction", "up"]);
            throughput(suite, &lab, name);
            lateness(suite, &lab, name);
            check(&lab, name);
            lab.detach();
        }
    }
    drop(sink);
}

/// Otherwise a class was not used.
fn check(lab: &Lab, name: &str) {
    if name == "hold" {
        return;
    }
    thread::sleep(Duration::from_millis(100));
    for class in 0..CLASSES {
        let sent = lab.shown(&format!("/bottlenecks/0/classes/{class}/sent_packets"));
        assert!(sent > 100, "{name}: class {class} sent {sent}");
    }
}

/// As many small packets as one sender sends; what the holder cannot take, its TAP drops.
fn throughput(suite: &mut Suite, lab: &Lab, name: &str) {
    let senders: Vec<_> = (0..CLASSES).map(|n| Sender::with_dscp(lab, n)).collect();
    let delivered = || -> u64 {
        let count = lab.in_b("cat /sys/class/net/vb/statistics/rx_packets");
        count.trim().parse().expect("a count")
    };
    let send_for = |duration: Duration| {
        let start = Instant::now();
        while start.elapsed() < duration {
            senders.iter().for_each(|sender| sender.send(8));
        }
    };
    send_for(Duration::from_millis(300));
    let (start, before, work) = (Instant::now(), delivered(), holder(lab));
    send_for(Duration::from_millis(if suite.full { 2000 } else { 1000 }));
    let per_s = (delivered() - before) as f64 / start.elapsed().as_secs_f64();
    let case = "as many small packets as one sender sends";
    suite
        .results
        .add(case, name, "delivered", "packets/s", per_s);
    // What waits is written, too.
    let mut after = holder(lab);
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = holder(lab);
        if std::mem::replace(&mut after, now).1 == now.1 {
            break;
        }
    }
    let ns = (after.0 - work.0) as f64 / (after.1 - work.1) as f64;
    suite
        .results
        .add(case, name, "the holder's CPU time", "ns/packet", ns);
}

/// CPU time of the holder so far, in ns, with that of receivers in its writes, and what it wrote.
fn holder(lab: &Lab) -> (u64, u64) {
    let pid = lab.shown("/up/holder/pid");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a holder");
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.expect("a thread").path().join("schedstat"));
        let text = text.expect("a thread");
        let ns = text.split(' ').next().expect("its time");
        ns.parse::<u64>().expect("ns")
    };
    (tasks.map(of_task).sum(), lab.shown("/up/holder/released"))
}

fn lateness(suite: &mut Suite, lab: &Lab, name: &str) {
    for packets_per_s in [10_000, 100_000] {
        let probe = Probe {
            dscps: CLASSES,
            patience: Duration::from_millis(300),
            scattered: true,
            ..Probe::new(lab, packets_per_s, 1_000_000_000 / u64::from(packets_per_s))
        };
        let arrivals = probe.run();
        let case = format!("delay {DELAY_MS} ms, {packets_per_s} packets/s for a second");
        let results = &mut suite.results;
        let rate = sending_rate(&arrivals);
        let Some(sent) = rate else {
            results.miss(&format!("{case}: {name}: nothing came"));
            continue;
        };
        let mut add = |metric: &str, unit: &str, value: f64| {
            results.add(&case, name, metric, unit, value);
        };
        add("sent", "packets/s", sent);
        add("lost", "packets", arrivals.lost(packets_per_s).len() as f64);
        if !reached(rate, packets_per_s) {
            let why = format!("{case}: {name}: this machine sent {sent:.0} packets/s");
            results.miss(&why);
            continue;
        }
        for (name, value) in spread(&arrivals, DELAY_MS) {
            add(&format!("arrival error, {name}"), "us", value);
        }
    }
}
