// SPDX-License-Identifier: MIT OR Apache-2.0
//! T: peers that stream to each other, and probes among them: the load must not change what a probe
//! meets.

use super::counts::Counts;
use super::live::{Variant, lacks};
use super::ping::Published;
use super::t_links::{LANDLINE, MOBILE};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, ping, t_tree};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "t-p2p",
    description: "Peers that join one after the other, each with streams from 8 others, and probes under that load, \
                  as table 5.9",
    source: t_tree::EXPERIMENT.source,
    method: "40 peers instead of 160, whose 23,000 packets/s need more CPUs, one every 5 s instead of 20, and 3,600 \
             pings of 200 bytes in 6 minutes instead of an hour, through the scenario t-p2p; --quick: 16 peers, \
             one every second, and 1,200 pings in a minute",
    scenarios: &["t-p2p"],
    thresholds: None,
    measure,
};

/// Of each stream.
const PACKETS_S: f64 = 18.0;
const NEIGHBOURS: f64 = 8.0;
const SIZE: f64 = 174.0;
/// Beside the peers: a landline node and the server.
const OTHERS: u32 = 2;

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    if lacks("ping") {
        return Ok(vec![Figure::new("mean", "ms").lacking(ping::LACKS)]);
    }
    let (peers, step, pings, interval, seconds) = match bench.quick {
        true => (16, 1, 1_200, "0.05", 60),
        false => (40, 5, 3_600, "0.1", 360),
    };
    let counts = bench.run(&Variant {
        title: &format!("{peers} peers"),
        scenario: "t-p2p",
        nodes: Some(peers + OTHERS),
        env: &[
            ("STEP", step.to_string()),
            ("JOINED", (step * peers).to_string()),
            // The last join is one step before that.
            ("LOAD", (seconds + step + 5).to_string()),
            ("PINGS", pings.to_string()),
            ("INTERVAL", interval.to_owned()),
        ],
        ..Variant::default()
    })?;
    let mut figures = streams(peers, &counts);
    let peer = Published {
        loss_percent: 0.94,
        mean_ms: 411.0,
        sd_ms: None,
    };
    let server = Published {
        loss_percent: 0.28,
        mean_ms: 50.0,
        sd_ms: None,
    };
    figures.extend(MOBILE.figures("probe of a peer", peer, &counts, "peer1"));
    figures.extend(LANDLINE.figures("probe of the server", server, &counts, "landline1"));
    Ok(figures)
}

fn streams(peers: u32, counts: &Counts) -> Vec<Figure> {
    let run = Some(counts.verdict);
    // While all of them send.
    let rates = (1..=peers as u16).map(|peer| counts.rate(6000 + peer));
    let rates: Option<Vec<f64>> = rates.collect();
    let mean = rates.map(|rates| rates.iter().sum::<f64>() / 8e3 / f64::from(peers));
    let arrives = PACKETS_S * NEIGHBOURS * SIZE * (1.0 - MOBILE.loss) / 1e3;
    let data = Figure::new("data to each peer", "kB/s").published(25.0);
    let [sent, arrived] = counts.packets().map(|packets| packets as f64);
    let lost = Some(100.0 * (sent - arrived) / sent);
    let error = (MOBILE.loss * (1.0 - MOBILE.loss) / sent.max(1.0)).sqrt();
    let loss = Figure::new("streams: loss", "%").theory(100.0 * MOBILE.loss);
    vec![
        data.theory(arrives).measured(mean, run),
        // A correct link is outside in 1 of 15,000 runs.
        loss.within(Tolerance::Absolute(100.0 * 4.0 * error))
            .measured(lost, run),
    ]
}
