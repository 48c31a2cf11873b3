// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments on several hosts: everything that needs no network.

mod clock;
mod divided;
mod etcd;
mod keys;
mod merge;
mod placement;
mod start;
mod status;
mod underlay;
mod verdict;

use std::path::Path;

use emud::experiment::scenario::{Overrides, Plan, Scenario};
use emud::fleet::facts::{Facts, SystemClock, VERSION};
use emud::fleet::placement::Host;
use emud::fleet::plan::Options;

fn plan(text: &str) -> Plan {
    let scenario = Scenario::parse(text, "t", Path::new("")).unwrap_or_else(|e| panic!("{e}"));
    scenario
        .plan(&Overrides::default())
        .unwrap_or_else(|e| panic!("{e}"))
}

fn hosts(weights: &[f64]) -> Vec<Host> {
    let host = |(n, weight): (usize, &f64)| Host {
        name: format!("h{n}"),
        weight: *weight,
    };
    weights.iter().enumerate().map(host).collect()
}

fn facts(n: u8) -> Facts {
    Facts {
        version: VERSION.to_owned(),
        address: [192, 0, 2, n + 1].into(),
        probe_port: 1000 + u16::from(n),
        probe_token: format!("{n:016x}"),
        cpus: 2,
        memory_bytes: 1 << 30,
        weight: 1.0,
        allow_root: false,
        clock: SystemClock {
            synchronised: true,
            offset_ns: 0,
            bound_ns: 1000,
        },
        doctor: serde_json::json!({ "engines": ["fq"] }),
    }
}

fn options() -> Options {
    Options {
        seed: 7,
        size: None,
        port: 4789,
        mtu: 1500,
        tolerance_ns: 100_000,
        clock_bound_ns: 1_000_000,
        sample_ns: None,
        monitor: None,
    }
}
