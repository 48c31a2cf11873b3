// SPDX-License-Identifier: MIT OR Apache-2.0
//! T: peers of two classes and a server around one emulator.

use super::live::{Variant, lacks};
use super::ping::Published;
use super::t_links::{LANDLINE, MOBILE, pings};
use super::{Bench, Experiment, Figure, ReproduceError, ping, t_tree};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "t-star",
    description: "Mobile and landline peers and a server: one class of link for each packet",
    source: t_tree::EXPERIMENT.source,
    method: "10^5 pings, every 2 ms, of three pairs at once through the scenario t-star; --quick: 5,000",
    scenarios: &["t-star"],
    thresholds: None,
    measure,
};

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    if lacks("ping") {
        return Ok(vec![Figure::new("mean", "ms").lacking(ping::LACKS)]);
    }
    let counts = bench.run(&Variant {
        title: "three pairs",
        scenario: "t-star",
        env: &pings(bench),
        ..Variant::default()
    })?;
    let mobile = Published {
        loss_percent: 0.9974,
        mean_ms: 400.0,
        sd_ms: None,
    };
    let landline = Published {
        loss_percent: 0.2,
        mean_ms: 40.0,
        sd_ms: None,
    };
    let pairs = [
        ("mobile to mobile", MOBILE, mobile, "mobile1"),
        ("landline to landline", LANDLINE, landline, "landline1"),
        ("mobile to the server", LANDLINE, landline, "mobile2"),
    ];
    let figures = pairs
        .into_iter()
        .flat_map(|(title, class, published, node)| class.figures(title, published, &counts, node));
    Ok(figures.collect())
}
