// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effect of correlation on a distribution and on a probability: netem's against emud's.

use super::examples::{self, Example, NONE, measure};
use super::measure::What;
use super::model::{Link, Loss, Who, simulate};
use super::pairs::Pairs;
use support::lab::Verdict;
use support::probe::Arrivals;
use support::stats::{ks_between, ks_bound, ks_distance, uniform_cdf};

const MEAN_MS: f64 = 3000.0;
const JITTER_MS: f64 = 2147.0;
const CORRELATION: f64 = 0.5;

/// The widest jitter of netem (2^31 ns): there its numbers are not taken modulo anything, which
/// shows the effect of its filter.
const DELAY: Example = Example {
    command: "netem limit 65536 delay 3s 2147ms 50%",
    link: Link {
        delay_ms: MEAN_MS,
        jitter_ms: JITTER_MS,
        delay_correlation: CORRELATION,
        ..NONE
    },
    differs: &[What::DelaySd, What::Overtaken],
    reason: "netem's filter, (1 - r) new + r old, narrows the distribution by sqrt((1 - r) / (1 + r))",
};

/// Far enough apart to follow most packets for as long as a delay may be.
const INTERVAL_NS: u64 = 5_185_000;

/// Both have the same correlation; emud keeps the distribution, netem does not.
pub fn delay(pairs: &Pairs, count: u32) {
    let arrivals = measure(&DELAY, pairs, count, INTERVAL_NS);
    let machine = pairs.machine();
    let asked = uniform_cdf(MEAN_MS, JITTER_MS);
    let delays = |arrivals: &Arrivals, added_ms: f64| -> Vec<f64> {
        let delays = arrivals.delays_ms();
        delays.iter().map(|delay| delay - added_ms).collect()
    };
    let netem = delays(&arrivals[0], machine.added_ms[0]);
    let emud = delays(&arrivals[1], machine.added_ms[1]);
    let recurrence = simulate(&DELAY.link, Who::Netem, 1 << 16, 1.0).delays_ms();
    // The number of equivalent independent values.
    let n = f64::from(count) * (1.0 - CORRELATION) / (1.0 + CORRELATION);
    let mut verdict = Verdict::default();
    verdict.at_most(
        "KS distance, emud from the configured one",
        ks_bound(n),
        ks_distance(&emud, &asked),
    );
    verdict.at_most(
        "KS distance, netem from its recurrence",
        ks_bound(n),
        ks_between(&netem, &recurrence),
    );
    // Not the configured one, beyond any chance.
    verdict.at_least(
        "KS distance, netem from the configured one",
        ks_bound(n),
        ks_distance(&netem, &asked),
    );
    verdict.end();
}

/// Of a tenth of the packets netem loses a sixtieth.
pub fn loss(pairs: &Pairs, count: u32) {
    let link = Link {
        loss: Loss::Random {
            p: 0.1,
            correlation: 0.25,
        },
        ..Link::default()
    };
    let example = Example {
        command: "netem loss 10% 25%",
        link,
        differs: &[What::Lost],
        reason: "netem's filter leaves few numbers near zero",
    };
    measure(&example, pairs, count, examples::INTERVAL_NS);
}
