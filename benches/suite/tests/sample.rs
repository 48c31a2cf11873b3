// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated results.

use crate::figure::{Machine, Results};

/// Instructions of the bare path.
pub const BARE: f64 = 8714.0;

const INSTRUCTIONS: &str = "instructions/packet";

fn empty(section: &str) -> Results {
    Results {
        section: section.to_owned(),
        full: true,
        machine: Machine {
            kernel: "7.2.3-cloud-amd64".to_owned(),
            place: "guest, 1 CPU, 1 ns an instruction".to_owned(),
            emud: "emud 0.1.0".to_owned(),
            iproute2: "tc utility, iproute2-6.1.0".to_owned(),
            date: "2000-01-01T00:00:00Z".to_owned(),
        },
        figures: Vec::new(),
        missing: Vec::new(),
    }
}

pub fn all() -> Vec<Results> {
    vec![cost(), links(), accuracy(), tcp(), cpus(), verifier()]
}

fn cost() -> Results {
    let mut results = empty("cost");
    let elsewhere = "bare, no clsact anywhere";
    results.add(
        "forwarded, 1000 flows",
        elsewhere,
        "cost",
        INSTRUCTIONS,
        BARE - 20.0,
    );
    for (case, netem, emud) in [
        ("forwarded, 1000 flows, delay 2 ms", 229.0, 912.0),
        (
            "forwarded, 1000 flows, delay 2 ms, jitter 0.5 ms normal",
            683.0,
            1020.0,
        ),
        (
            "forwarded, 1000 flows, delay 2 ms, jitter 0.5 ms normal, loss 0.1 %",
            742.0,
            1083.0,
        ),
        ("locally sent, 1 flow, delay 2 ms", 231.0, 1402.0),
    ] {
        for off in [0.0, -3.0, 3.0] {
            results.add(case, "bare", "cost", INSTRUCTIONS, BARE);
            results.add(case, "netem", "cost", INSTRUCTIONS, BARE + netem + off);
            results.add(case, "emud", "cost", INSTRUCTIONS, BARE + emud);
            results.add(
                case,
                "emud in order",
                "cost",
                INSTRUCTIONS,
                BARE + emud + 60.0,
            );
        }
    }
    results
}

fn links() -> Results {
    let mut results = empty("links");
    for (links, slow) in [
        (1, 600.0),
        (16, 2000.0),
        (1000, 50e3),
        (16_384, 61e3),
        (65_534, 64e3),
    ] {
        let case = match links {
            1 => "1 link".to_owned(),
            _ => format!("{links} links"),
        };
        results.add(&case, "bare", "cost", INSTRUCTIONS, BARE);
        for (side, cost, ms) in [
            ("netem, HTB and u32", slow, 0.05),
            ("netem, HTB and flower", slow * 1.04, 0.09),
            ("emud", 1000.0, 0.001),
        ] {
            results.add(&case, side, "cost", INSTRUCTIONS, BARE + cost);
            let set_up = ms * f64::from(links) + 3.0;
            results.add(&case, side, "set-up time", "ms", set_up);
            results.add(&case, side, "set-up time", "ms", set_up * 1.5);
        }
    }
    results
}

fn accuracy() -> Results {
    let mut results = empty("accuracy");
    for ms in [1, 10, 100] {
        for rate in [1000, 10_000, 100_000] {
            let case = format!("delay {ms} ms, {rate} packets/s asked for");
            for (side, median, p99, worst) in [
                ("bare", 1.5, 3.0, 20.0),
                ("netem", 2.0, 4.0, 31.0),
                ("emud", 3.0, 5.0, 30.0),
                ("emud hold", 60.0, 300.0, 1700.0),
            ] {
                results.add(&case, side, "departure error, median", "us", median);
                results.add(&case, side, "departure error, p99", "us", p99);
                results.add(&case, side, "departure error, worst", "us", worst);
            }
        }
    }
    results
}

fn tcp() -> Results {
    let mut results = empty("tcp");
    for case in [
        "1 flow, cubic",
        "10 flows, cubic",
        "1 flow, bbr",
        "10 flows, bbr",
    ] {
        let bare = format!("delay 0 ms, {case}");
        results.add(&bare, "bare", "goodput", "Mbit/s", 2000.0);
        for (ms, netem) in [
            (1, 900.0),
            (10, 850.0),
            (50, 520.0),
            (100, 260.0),
            (200, 130.0),
        ] {
            let case = format!("delay {ms} ms, {case}");
            results.add(&case, "netem", "goodput", "Mbit/s", netem);
            results.add(&case, "emud", "goodput", "Mbit/s", netem * 0.95);
        }
    }
    results
}

fn cpus() -> Results {
    let mut results = empty("cpus");
    results.miss("no second CPU");
    results
}

fn verifier() -> Results {
    let mut results = empty("verifier");
    results.add("emud_egress", "emud", "looked at", "instructions", 30_000.0);
    results.add("emud_egress", "emud", "size, translated", "By", 12_000.0);
    results
}
