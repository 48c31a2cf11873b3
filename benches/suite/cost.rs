// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions per packet: without a link, with netem, with emud.
//!
//! Flat out: each packet is sent as soon as the previous one was, and waiting packets are counted
//! until they have left.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::Suite;
use crate::local::{Sender, Socket};
use crate::pktgen::{self, Mix};
use crate::side::{has_qdisc, imported};
use crate::site::Site;
use crate::spare::Spare;
use crate::sums::print_added;
use support::lab::Engine;

const UNIT: &str = "instructions/packet";

/// A link in the syntax of tc-netem; emud's is the result of `emud import netem`. Netem's limit is
/// such that it drops nothing. No packet ever waits for the rate: only its computation is counted.
struct Link {
    name: &'static str,
    netem: &'static str,
    quick: Quick,
}

/// Its share in a quick run.
#[derive(PartialEq)]
enum Quick {
    AllWays,
    ManyFlows,
    No,
}

const LINKS: [Link; 5] = [
    Link {
        name: "delay 2 ms",
        netem: "delay 2ms",
        quick: Quick::AllWays,
    },
    Link {
        name: "delay 2 ms, jitter 0.5 ms normal",
        netem: "delay 2ms 0.5ms distribution normal",
        quick: Quick::ManyFlows,
    },
    Link {
        name: "delay 2 ms, jitter 0.5 ms normal, loss 0.1 %",
        netem: "delay 2ms 0.5ms distribution normal loss 0.1%",
        quick: Quick::ManyFlows,
    },
    Link {
        name: "delay 2 ms, jitter 0.5 ms normal, loss 0.1 %, rate 10 Gbit/s",
        netem: "delay 2ms 0.5ms distribution normal loss 0.1% rate 10gbit",
        quick: Quick::ManyFlows,
    },
    Link {
        name: "delay 2 ms, jitter 0.5 ms normal, loss in bursts, rate 10 Gbit/s",
        netem: "delay 2ms 0.5ms distribution normal loss gemodel 0.1% 25% rate 10gbit",
        quick: Quick::No,
    },
];

/// How packets are sent.
#[derive(Clone, Copy)]
pub struct Way {
    path: Path,
    flows: u16,
}

#[derive(Clone, Copy)]
enum Path {
    Forwarded,
    Local(Socket),
}

pub const WAYS: [Way; 6] = [
    Way::new(Path::Forwarded, 1),
    Way::new(Path::Forwarded, 1000),
    Way::new(Path::Local(Socket::Roomy), 1),
    Way::new(Path::Local(Socket::Roomy), 1000),
    Way::new(Path::Local(Socket::DefaultBuffer), 1),
    Way::new(Path::Local(Socket::Connected), 1),
];

impl Way {
    const fn new(path: Path, flows: u16) -> Self {
        Self { path, flows }
    }

    pub fn name(self) -> String {
        let path = match self.path {
            Path::Forwarded => "forwarded",
            Path::Local(Socket::Roomy) => "locally sent",
            Path::Local(Socket::DefaultBuffer) => "locally sent, default buffer",
            Path::Local(Socket::Connected) => "locally sent, connected",
        };
        let plural = if self.flows == 1 { "" } else { "s" };
        format!("{path}, {} flow{plural}", self.flows)
    }

    fn case(self, link: &Link) -> String {
        format!("{}, {}", self.name(), link.name)
    }
}

/// The same in a quick run and a full one, because the wait of the last packets is included.
const PACKETS: u64 = 10_000;

struct Bench {
    spare: Arc<Spare>,
    /// Whether this kernel has engine qdisc.
    qdisc: bool,
}

impl Bench {
    /// Instructions per packet, including those of its sender.
    fn cost(&self, site: &Site, way: Way, packets: u64) -> f64 {
        let spare = self.spare.clone();
        // Waiting packets leave meanwhile.
        let drain = || thread::sleep(Duration::from_millis(10));
        let busy = match way.path {
            Path::Local(socket) => {
                let sender = Sender::new(site, socket, way.flows);
                spare.busy_ns(|| {
                    sender.send(packets);
                    drain();
                })
            }
            Path::Forwarded => {
                let (busy, _) = site.pktgen(packets, Mix::flows(way.flows), move |send| {
                    spare.busy_ns(|| {
                        send();
                        drain();
                    })
                });
                busy
            }
        };
        busy / packets as f64
    }
}

/// What emud is measured against besides netem.
fn emuds(netem: &str, full: bool, qdisc: bool) -> Vec<(&'static str, Engine, String)> {
    let same = imported(netem);
    let ordered = same.replace(r#"reorder = "jitter""#, r#"reorder = "never""#);
    // netem with a rate also keeps the order. With a loss in the quick run: this is stated
    // elsewhere.
    let mut emuds = vec![("emud", Engine::Fq, same.clone())];
    if qdisc {
        emuds.push(("emud qdisc", Engine::Qdisc, same.clone()));
    }
    if ordered == same || !full && same.contains("loss") {
        return emuds;
    }
    emuds.push(("emud in order", Engine::Fq, ordered.clone()));
    if qdisc {
        emuds.push(("emud qdisc in order", Engine::Qdisc, ordered));
    }
    emuds
}

pub fn run(suite: &mut Suite) {
    let _loaded = pktgen::load();
    let bench = Bench {
        spare: Arc::new(Spare::start()),
        qdisc: has_qdisc(suite),
    };
    let (bare, netem) = (Site::new(), Site::new());
    before(suite, &bench, &bare);
    for link in &LINKS {
        if suite.full || link.quick != Quick::No {
            one_link(suite, &bench, link, (&bare, &netem));
        }
    }
}

/// While emud is attached anywhere, the kernel checks on all devices for hooks on their egress.
/// Bare and netem include that below; this is its cost.
fn before(suite: &mut Suite, bench: &Bench, bare: &Site) {
    for way in WAYS {
        bench.cost(bare, way, 1000);
        let cost = bench.cost(bare, way, PACKETS);
        let side = "bare, no clsact anywhere";
        suite.results.add(&way.name(), side, "cost", UNIT, cost);
    }
}

fn one_link(suite: &mut Suite, bench: &Bench, link: &Link, (bare, netem): (&Site, &Site)) {
    netem.qdisc(&format!("netem limit 1000000 {}", link.netem));
    let emuds: Vec<_> = emuds(link.netem, suite.full, bench.qdisc)
        .into_iter()
        .map(|(side, engine, profile)| {
            let site = Site::new();
            site.attach_by(engine, &profile);
            (side, site)
        })
        .collect();
    let mut sides = vec![("bare", bare), ("netem", netem)];
    sides.extend(emuds.iter().map(|(side, site)| (*side, site)));
    let all = suite.full || link.quick == Quick::AllWays;
    let ways: Vec<_> = WAYS.into_iter().filter(|w| all || w.flows > 1).collect();
    let mut sent = 0;
    let start = sides.iter().map(|(_, site)| site.delivered()).collect();
    // The first turn is warm-up for flows, memory and code.
    for turn in 0..=turns(suite) {
        let packets = if turn > 0 { PACKETS } else { 1_000 };
        for way in &ways {
            let case = way.case(link);
            for (side, site) in &sides {
                let cost = bench.cost(site, *way, packets);
                if turn > 0 {
                    suite.results.add(&case, side, "cost", UNIT, cost);
                }
            }
            sent += packets;
        }
    }
    check(&sides, start, sent);
    for way in ways {
        print_added(&suite.results, &way.case(link));
    }
}

/// Instructions repeat nearly to the last, so more turns are for the full run.
fn turns(suite: &Suite) -> usize {
    if suite.full { suite.turns } else { 2 }
}

/// Each side has handled all packets, and only those that its link lost are missing.
fn check(sides: &[(&str, &Site)], start: Vec<u64>, sent: u64) {
    for ((side, site), start) in sides.iter().zip(start) {
        let lost = match *side {
            "bare" => 0,
            "netem" => site.dropped(),
            _ => {
                let (handled, lost) = site.handled();
                assert_eq!(handled, sent, "handled by {side}");
                lost
            }
        };
        assert_eq!(site.delivered() - start + lost, sent, "through {side}");
        assert!(lost * 50 < sent, "{side} lost {lost} of {sent}");
    }
}
