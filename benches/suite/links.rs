// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many different links, by destination: emud's matrix against netem under HTB.
//!
//! The delays are 2 to 18 ms, so at 10,000 packets a second 100 wait. For each packet HTB polls
//! every leaf in which one waits, due or not: netem's cost here is determined by the number of
//! waiting packets, rate times delay, up to one per link. netem sustains 10,000; beyond that it
//! lags behind ("sent" shows it), so its cost there is that of a lower rate. Flat out, each side
//! runs as fast as it can.

use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use crate::htb::{self, Filter};
use crate::router::{Router, SOURCE, destination};
use crate::side::has_qdisc;
use crate::spare::Spare;
use crate::sums::print_added;
use crate::{Suite, pktgen};
use support::clock;
use support::lab::{Engine, Lab};

/// Packets/s, where there is such a limit.
const RATES: &[Option<u32>] = &[Some(10_000), Some(40_000), None];
const QUICK_RATES: &[Option<u32>] = &[Some(10_000), None];
const SIZES: &[u32] = &[1, 16, 1_000, 16_384, htb::MOST];
const QUICK_SIZES: &[u32] = &[1, 1_000];
/// Limit of the guest's time for netem's set-up: 22 s with 16,384 links, and it grows with the
/// square of their number. All 65,534 were not set up in 18 minutes of this machine's time.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
enum Kind {
    Bare,
    Netem(Filter),
    Emud(Engine),
}

struct Side {
    name: &'static str,
    kind: Kind,
    router: Router,
}

impl Side {
    fn new(name: &'static str, kind: Kind) -> Self {
        let router = Router::new();
        Self { name, kind, router }
    }

    fn lab(&self) -> &Lab {
        &self.router.site.lab
    }

    fn set_up(&self, delays_us: &[u32]) -> Result<(), String> {
        match self.kind {
            Kind::Bare => Ok(()),
            Kind::Netem(filter) => htb::set_up(self.lab(), filter, delays_us, LONGEST),
            Kind::Emud(engine) => {
                let capacity = delays_us.len();
                let profile = format!("[link]\n[matrix]\ncapacity = {capacity}\n");
                self.router.site.attach_by(engine, &profile);
                self.change(delays_us)
            }
        }
    }

    fn change(&self, delays_us: &[u32]) -> Result<(), String> {
        match self.kind {
            Kind::Bare => {}
            Kind::Netem(_) => htb::change(self.lab(), delays_us, LONGEST)?,
            Kind::Emud(_) => apply(self.lab(), delays_us),
        }
        Ok(())
    }

    fn tear_down(&self) {
        match self.kind {
            Kind::Bare => {}
            Kind::Netem(_) => drop(self.lab().in_a("tc qdisc del dev va root || true")),
            Kind::Emud(_) => self.lab().detach(),
        }
    }
}

fn apply(lab: &Lab, delays_us: &[u32]) {
    let path = std::env::temp_dir().join(format!("{}.csv", lab.a));
    let rows = (0..)
        .zip(delays_us)
        .map(|(link, delay)| format!("{SOURCE},{},,{delay}us,\n", destination(link)));
    fs::write(&path, rows.collect::<String>()).expect("write pairs");
    lab.emud(&["apply", path.to_str().unwrap(), "va"]).expect(0);
    fs::remove_file(&path).unwrap();
}

/// From 2 to 18 ms, all different to the microsecond.
fn delays_us(links: u32) -> Vec<u32> {
    (0..links)
        .map(|link| 2_000 + 8_000 * (2 * link + 1) / links)
        .collect()
}

pub fn run(suite: &mut Suite) {
    let _loaded = pktgen::load();
    let mut sides = vec![
        Side::new("bare", Kind::Bare),
        Side::new("netem under HTB, u32", Kind::Netem(Filter::U32)),
        Side::new("netem under HTB, flower", Kind::Netem(Filter::Flower)),
        Side::new("emud", Kind::Emud(Engine::Fq)),
    ];
    if has_qdisc(suite) {
        sides.push(Side::new("emud qdisc", Kind::Emud(Engine::Qdisc)));
    }
    let sizes = if suite.full { SIZES } else { QUICK_SIZES };
    for links in sizes {
        one_size(suite, &mut sides, *links);
    }
}

fn one_size(suite: &mut Suite, sides: &mut Vec<Side>, links: u32) {
    let case = format!("{links} links");
    let delays = delays_us(links);
    // A side that does not reach this will not reach more, either.
    sides.retain(|side| match set_up(suite, side, &case, &delays) {
        Ok(()) => true,
        Err(why) => {
            suite
                .results
                .miss(&format!("{}, {case} and more: {why}", side.name));
            side.tear_down();
            false
        }
    });
    let rates = if suite.full { RATES } else { QUICK_RATES };
    for rate in rates {
        costs(suite, sides, links, *rate);
    }
    changes(suite, sides, &case, delays);
    sides.iter().for_each(Side::tear_down);
}

fn set_up(suite: &mut Suite, side: &Side, case: &str, delays_us: &[u32]) -> Result<(), String> {
    let (held, start) = (kernel_mib(), clock::now());
    side.set_up(delays_us)?;
    let took = seconds_since(start);
    if !matches!(side.kind, Kind::Bare) {
        let memory = kernel_mib() - held;
        suite.results.add(case, side.name, "set-up time", "s", took);
        suite
            .results
            .add(case, side.name, "kernel memory", "MiB", memory);
    }
    Ok(())
}

fn costs(suite: &mut Suite, sides: &[Side], links: u32, rate: Option<u32>) {
    let case = match rate {
        Some(rate) => format!("{links} links, {rate} packets/s"),
        None => format!("{links} links, flat out"),
    };
    // Not running while anything else is measured: it keeps the kernel from idling.
    let spare = Arc::new(Spare::start());
    let tallies: Vec<_> = sides.iter().map(Tally::start).collect();
    let mut sent = 0;
    // The first turn is warm-up for links, memory and code.
    for turn in 0..=turns(suite) {
        let packets = match turn {
            0 => 1_000,
            // The same in a quick run and a full one, because the wait of the last packets is
            // included.
            _ => 5_000,
        };
        sent += packets;
        for side in sides {
            let cost = match rate {
                Some(rate) => {
                    let interval_ns = 1_000_000_000 / u64::from(rate);
                    side.router.cost(&spare, packets, interval_ns, links)
                }
                None => side.router.flat_out(&spare, packets, links),
            };
            if turn > 0 {
                let (name, results) = (side.name, &mut suite.results);
                let unit = "instructions/packet";
                results.add(&case, name, "cost", unit, cost.instructions);
                results.add(&case, name, "sent", "packets/s", cost.packets_per_s);
            }
        }
    }
    for (side, tally) in sides.iter().zip(tallies) {
        tally.check(side, sent);
    }
    print_added(&suite.results, &case);
}

/// No packet may be lost, and each must have passed its link.
struct Tally {
    delivered: u64,
    handled: Option<u64>,
}

impl Tally {
    fn start(side: &Side) -> Self {
        let site = &side.router.site;
        Self {
            delivered: site.delivered(),
            handled: matches!(side.kind, Kind::Emud(_)).then(|| site.handled().0),
        }
    }

    fn check(&self, side: &Side, sent: u64) {
        let now = Self::start(side);
        assert_eq!(
            now.delivered - self.delivered,
            sent,
            "through {}",
            side.name
        );
        let handled = now.handled.zip(self.handled).map(|(now, then)| now - then);
        assert!(
            handled.is_none_or(|n| n == sent),
            "handled by {}",
            side.name
        );
    }
}

/// Instructions repeat nearly to the last.
fn turns(suite: &Suite) -> usize {
    suite.turns.min(if suite.full { 3 } else { 2 })
}

fn changes(suite: &mut Suite, sides: &[Side], case: &str, mut delays_us: Vec<u32>) {
    for _ in 0..turns(suite) {
        delays_us.reverse();
        for side in sides.iter().filter(|s| !matches!(s.kind, Kind::Bare)) {
            let start = clock::now();
            let done = side.change(&delays_us);
            let took = seconds_since(start);
            match done {
                Ok(()) => suite
                    .results
                    .add(case, side.name, "time to change all", "s", took),
                Err(why) => suite
                    .results
                    .miss(&format!("{}, {case}, changing all: {why}", side.name)),
            }
        }
    }
}

pub fn seconds_since(start_ns: u64) -> f64 {
    (clock::now() - start_ns) as f64 / 1e9
}

/// Memory of the kernel's objects: qdiscs, filters, maps, programs. Free memory shows less: caches
/// and background freeing change it by more than this.
pub fn kernel_mib() -> f64 {
    // Objects that are freed after a grace period are freed then.
    thread::sleep(Duration::from_millis(300));
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let kib = text.lines().filter_map(|line| {
        let (name, size) = line.split_once(':')?;
        let counts = ["SUnreclaim", "VmallocUsed", "Percpu"].contains(&name);
        counts.then(|| size.trim_end_matches("kB").trim().parse::<f64>().unwrap())
    });
    kib.sum::<f64>() / 1024.0
}
