// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two CPUs send through a device with two queues. netem is one queue with one lock at the root, as are
//! engine qdisc and the fq of a link in order; if packets overtake, fq is one for each queue, under mq.
//!
//! Only if two CPUs really run at the same time. qemu can do that (a thread for each), but then the
//! guest must not change its own code while both run: so the second one is offline until everything
//! is set up, and again before anything is removed. The clock is the real one and other programs
//! run at the same time, so figures are only comparable with each other.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::side::{has_qdisc, imported};
use crate::site::Site;
use crate::{Suite, pktgen};
use support::lab::Engine;

const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";
const FLOWS: u16 = 1000;

/// Links in the syntax of tc-netem, and how many mq and fq engine fq has for them.
const LINKS: [(&str, &str, [usize; 2]); 2] = [
    ("delay 2 ms", "delay 2ms", [0, 1]),
    (
        "delay 2 ms, jitter 0.5 ms normal",
        "delay 2ms 0.5ms distribution normal",
        [1, 2],
    ),
];

/// A link, one side of the comparison, and its device.
type Sides = Vec<(&'static str, &'static str, Site)>;

pub fn run(suite: &mut Suite) {
    if let Err(e) = fs::metadata("/sys/devices/system/cpu/cpu1") {
        suite.results.miss(&format!("two CPUs: {e}"));
        return;
    }
    let sides = sides(suite);
    let was_offline = fs::read_to_string(ONLINE).is_ok_and(|now| now.trim() == "0");
    if was_offline {
        write(ONLINE, "1");
    }
    let gain = gain();
    println!("two busy CPUs do {gain:.2} times the work of one");
    if gain < 1.5 {
        suite.results.miss(&format!(
            "two CPUs: those of this machine share one, or it is busy: together they do {gain:.2} times \
             the work of one"
        ));
    } else {
        let _loaded = pktgen::load();
        measure(suite, &sides);
    }
    if was_offline {
        write(ONLINE, "0");
    }
}

/// Everything that changes code is done here: filters, qdiscs, their modules.
fn sides(suite: &mut Suite) -> Sides {
    let mut sides = Sides::new();
    let qdisc = has_qdisc(suite);
    for (link, netem, wanted) in LINKS {
        let profile = imported(netem);
        sides.push((link, "bare", two_queues()));
        let site = two_queues();
        site.qdisc(&format!("netem limit 10000000 {netem}"));
        sides.push((link, "netem", site));
        let site = two_queues();
        site.attach(&profile);
        let qdiscs = site.lab.in_a("tc qdisc show dev va");
        let count = |kind: &str| qdiscs.matches(&format!("qdisc {kind} ")).count();
        assert_eq!(["mq", "fq"].map(count), wanted, "{link}: {qdiscs}");
        sides.push((link, "emud", site));
        if qdisc {
            let site = two_queues();
            site.attach_by(Engine::Qdisc, &profile);
            sides.push((link, "emud qdisc", site));
        }
    }
    sides
}

/// A device with two queues.
fn two_queues() -> Site {
    let site = Site::with_queues(2);
    // The CPU determines the queue of a packet of pktgen.
    site.lab.in_a(
        "cd /sys/class/net/va/queues
         echo 1 >tx-0/xps_cpus
         echo 2 >tx-1/xps_cpus",
    );
    site
}

fn measure(suite: &mut Suite, sides: &Sides) {
    let packets = if suite.full { 200_000 } else { 50_000 };
    for turn in 0..=suite.turns {
        for cpus in [1, 2] {
            for (link, side, site) in sides {
                let before = site.delivered();
                let rate = site.pktgen_rate(cpus, packets, FLOWS);
                // Waiting packets leave meanwhile.
                thread::sleep(Duration::from_millis(200));
                let (sent, delivered) = (packets * cpus as u64, site.delivered() - before);
                // Where a CPU of the guest has to wait for one of the machine, a queue can be full.
                // (pktgen's own count is not usable: 7.2 reports one of 400,000 that netem
                // delivered.)
                let all = sent - sent / 1000..=sent;
                assert!(
                    all.contains(&delivered),
                    "{delivered} of {sent} through {side}, {link}"
                );
                // The first turn is warm-up.
                if turn > 0 {
                    let plural = if cpus == 1 { "" } else { "s" };
                    let case = format!("{cpus} sender{plural}, forwarded, {link}");
                    suite.results.add(&case, side, "rate", "packets/s", rate);
                }
            }
        }
    }
}

fn write(file: &str, text: &str) {
    fs::write(file, text).unwrap_or_else(|e| panic!("{file}: {e}"));
}

/// How much more two busy threads achieve on two CPUs than one on one.
fn gain() -> f64 {
    // Other load of this machine only reduces it.
    let most = |cpus: &[usize]| (0..5).map(|_| work(cpus)).fold(0.0, f64::max);
    most(&[0, 1]) / most(&[0])
}

fn work(cpus: &[usize]) -> f64 {
    let rounds = AtomicU64::new(0);
    thread::scope(|scope| {
        for cpu in cpus {
            scope.spawn(|| {
                let mut only = CpuSet::new();
                only.set(*cpu);
                sched_setaffinity(None, &only).unwrap();
                let mut mine = 0u64;
                let start = Instant::now();
                // The clock is protected by a lock of qemu.
                while start.elapsed() < Duration::from_millis(200) {
                    for n in 0..100_000u64 {
                        black_box(n);
                    }
                    mine += 1;
                }
                rounds.fetch_add(mine, Relaxed);
            });
        }
    });
    rounds.load(Relaxed) as f64
}
