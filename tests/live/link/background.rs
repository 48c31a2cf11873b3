// SPDX-License-Identifier: MIT OR Apache-2.0
//! A background that probes wait behind, and that nobody receives. Each wait is exact in
//! tests/kernel/classifier/background.rs; beside other tests a probe can also wait for a CPU.

use support::full;
use support::lab::{Engine, Lab, Verdict, scaled};
use support::probe::{HEADERS, Probe};

const PROFILE: &str = "[link]\nrate = \"2Mbit\"";
/// For half of the time a packet of 6.056 ms is on the wire.
const BACKGROUND: [&str; 4] = [
    "background.load=50%",
    "background.sources=1",
    "background.on=3600s",
    "background.off=1ms",
];
const SERVICE_MS: f64 = 1514.0 * 8.0 / 2e3;

/// The share of the probes that wait for longer than a quarter of such a packet.
fn waiting(probe: &Probe) -> f64 {
    let own_ms = (HEADERS + probe.payload_len) as f64 * 8.0 / 2e3;
    let delays = probe.run().delays_ms();
    assert_eq!(delays.len(), probe.count as usize, "none is lost");
    let long = delays.iter().filter(|ms| **ms > own_ms + SERVICE_MS / 4.0);
    long.count() as f64 / delays.len() as f64
}

pub fn waits(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, PROFILE, &["--seed", "3"]);
    let up = Probe {
        scattered: true,
        ..Probe::new(&lab, scaled(400).max(200), 20_000_000)
    };
    let down = Probe {
        from: lab.b.clone(),
        to: lab.a.clone(),
        address: Lab::A4.parse().expect("an address"),
        ..up.clone()
    };
    // Three quarters of a half, and 4.5 standard errors: with less, there is no background.
    let most_off = 4.5 * (0.375f64 * 0.625 / f64::from(up.count)).sqrt();
    let without = 0.375 - most_off;
    if full() {
        verdict.at_most("up: share that waits, without", without, waiting(&up));
    }
    lab.emud(&[&["set", "va"], &BACKGROUND[..]].concat())
        .expect(0);
    for (direction, probe) in [("up", &up), ("down", &down)] {
        let name = format!("{direction}: share that waits");
        let share = waiting(probe);
        verdict.at_least(&name, 0.375 - most_off, share);
        if full() {
            verdict.at_most(&name, 0.375 + most_off, share);
        }
        let background = &lab.show()[direction]["background"];
        let number = |key: &str| background[key].as_f64().unwrap_or(-1.0);
        verdict.near(&format!("{direction}: load"), 0.5, number("load"), 0.0);
        verdict.near(
            &format!("{direction}: drawn load"),
            0.5,
            number("drawn_load"),
            0.01,
        );
    }
    lab.emud(&["set", "va", "up.background=none"]).expect(0);
    assert!(lab.show()["up"]["background"].is_null());
    if full() {
        verdict.at_most("up: share that waits, after it", without, waiting(&up));
    }
    let still = waiting(&down);
    verdict.at_least("down: share that waits, still", 0.375 - most_off, still);
    verdict.end();
    lab.detach();
}
