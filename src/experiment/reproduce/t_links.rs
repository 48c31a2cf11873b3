// SPDX-License-Identifier: MIT OR Apache-2.0
//! T: pings over one link of each class.

use super::live::{Variant, lacks};
use super::ping::{Class, Published};
use super::{Bench, Experiment, Figure, ReproduceError, ping, t_tree};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "t-links",
    description: "Round trips and losses of a mobile and of a landline link, as table 5.6",
    source: t_tree::EXPERIMENT.source,
    method: "10^5 pings of 1,450 bytes, every 2 ms, through the scenario t-links; --quick: 5,000",
    scenarios: &["t-links"],
    thresholds: None,
    measure,
};

pub(super) const MOBILE: Class = Class {
    delay_ms: 200.0,
    jitter_ms: 50.0,
    loss: 0.005,
};
pub(super) const LANDLINE: Class = Class {
    delay_ms: 20.0,
    jitter_ms: 13.0,
    loss: 0.001,
};
/// Between two pings, s: the least that ping allows every user.
const INTERVAL: &str = "0.002";

pub(super) fn pings(bench: &Bench<'_>) -> [(&'static str, String); 2] {
    let count = if bench.quick { 5_000 } else { 100_000 };
    [("PINGS", count.to_string()), ("INTERVAL", INTERVAL.into())]
}

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    if lacks("ping") {
        return Ok(vec![Figure::new("mean", "ms").lacking(ping::LACKS)]);
    }
    let mut figures = vec![];
    for (title, profile, class, published) in [
        (
            "mobile",
            "tiainen-mobile",
            MOBILE,
            Published {
                loss_percent: 0.9974,
                mean_ms: 401.60,
                sd_ms: Some(40.80),
            },
        ),
        (
            "landline",
            "tiainen-landline",
            LANDLINE,
            Published {
                loss_percent: 0.2008,
                mean_ms: 42.01,
                sd_ms: Some(10.75),
            },
        ),
    ] {
        let counts = bench.run(&Variant {
            title,
            scenario: "t-links",
            profile: Some(profile),
            // netem draws each delay by itself.
            set: &["delay.reorder=jitter"],
            env: &pings(bench),
            ..Variant::default()
        })?;
        figures.extend(class.figures(title, published, &counts, "client"));
    }
    Ok(figures)
}
