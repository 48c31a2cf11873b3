// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which packets are lost: the right share of them, and the same ones in every run.

use std::time::Duration;

use support::lab::{Engine, Lab, Verdict, packets_per_s};
use support::probe::Probe;
use support::stats::share_error;

const PROBES: u32 = 10_000;
const LOSS: f64 = 0.02;

/// The numbers lost of 10,000 probes over a new link with this seed.
fn lost(engine: Engine, seed: u64, source_port: u16) -> Vec<u32> {
    let lab = Lab::new();
    attach(&lab, engine, seed);
    probes(&lab, source_port)
}

fn attach(lab: &Lab, engine: Engine, seed: u64) {
    lab.attach(
        engine,
        "[link]\nloss = \"2%\"\ndelay = \"3ms\"",
        &["--seed", &seed.to_string()],
    );
}

fn probes(lab: &Lab, source_port: u16) -> Vec<u32> {
    let probe = Probe {
        source_port,
        payload_len: 16,
        patience: Duration::from_millis(500),
        ..Probe::new(lab, PROBES, 1_000_000_000 / u64::from(packets_per_s(8000)))
    };
    probe.run().lost(PROBES)
}

/// Same seed, same packets, same losses.
pub fn repeats(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    attach(&lab, engine, 1);
    let first = probes(&lab, 7001);
    let share = first.len() as f64 / f64::from(PROBES);
    let error = share_error(LOSS, f64::from(PROBES));
    verdict.near("share lost", LOSS, share, 3.0 * error);
    verdict.same(
        "lost by emud's own count",
        first.len() as u64,
        lab.shown("/up/counters/lost"),
    );
    alike(
        &mut verdict,
        "another interface",
        &first,
        &lost(engine, 1, 7001),
    );
    differ(&mut verdict, "another seed", &first, &lost(engine, 2, 7001));
    // The client's port differs in every run.
    let client = lost(engine, 1, 0);
    alike(
        &mut verdict,
        "ephemeral ports",
        &client,
        &lost(engine, 1, 0),
    );
    differ(&mut verdict, "ephemeral and fixed port", &first, &client);
    verdict.end();
}

fn alike(verdict: &mut Verdict, what: &str, a: &[u32], b: &[u32]) {
    verdict.same(
        &format!("{what}: first number lost that differs"),
        None,
        a.iter().zip(b).find(|(a, b)| a != b),
    );
    verdict.same(&format!("{what}: lost"), a.len(), b.len());
}

/// Independent losses have a share of `LOSS` in common, within chance.
fn differ(verdict: &mut Verdict, what: &str, a: &[u32], b: &[u32]) {
    let common = a.iter().filter(|n| b.binary_search(n).is_ok()).count() as f64;
    let n = a.len() as f64;
    verdict.near(
        &format!("{what}: share in common"),
        LOSS,
        common / n,
        4.0 * share_error(LOSS, n),
    );
}

/// All engines of this kernel lose the same packets.
pub fn same_under_all_engines(engines: &[Engine]) {
    let mut verdict = Verdict::default();
    let first = lost(engines[0], 1, 7001);
    for engine in &engines[1..] {
        let what = format!("{} and {}", engines[0].name(), engine.name());
        alike(&mut verdict, &what, &first, &lost(*engine, 1, 7001));
    }
    verdict.end();
}
