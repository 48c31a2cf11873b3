// SPDX-License-Identifier: GPL-2.0-only
//! What correlation does to a distribution and to a probability: netem's against emud's.

use super::examples::{Example, measure};
use super::lab::Verdict;
use super::model::{Link, Loss, Who, simulate};
use super::pairs::{INTERVAL_MS, INTERVAL_NS, Pairs};
use super::probe::{Arrivals, Probe};
use super::stats::{ks_between, ks_bound, ks_distance, uniform_cdf};

const MEAN_MS: f64 = 3000.0;
const JITTER_MS: f64 = 2147.0;
const CORRELATION: f64 = 0.5;

/// The widest jitter that netem has (2^31 ns): there its numbers are not taken modulo anything,
/// and what its filter makes of them is to be seen.
const DELAY: Example = Example {
    command: "netem limit 65536 delay 3s 2147ms 50%",
    link: Link {
        delay_ms: MEAN_MS,
        jitter_ms: JITTER_MS,
        normal: false,
        delay_correlation: CORRELATION,
        loss: Loss::None,
        duplicate: 0.0,
        corrupt: 0.0,
        reorder: 0.0,
        reorder_correlation: 0.0,
        gap: 0,
    },
    differs: Some("netem's filter, (1 - r) new + r old, narrows the distribution by sqrt((1 - r) / (1 + r))"),
};

/// Both correlate by as much; emud keeps the distribution, netem does not.
pub fn delay(pairs: &Pairs, count: u32) {
    measure(&DELAY, pairs, count);
    let probe = |lab: &_| Probe {
        patience: std::time::Duration::from_secs(6),
        ..Probe::new(lab, count, INTERVAL_NS)
    };
    let arrivals = pairs.run(DELAY.command, probe);
    let machine = pairs.machine();
    let asked = uniform_cdf(MEAN_MS, JITTER_MS);
    let delays = |arrivals: &Arrivals, added_ms: f64| -> Vec<f64> {
        let delays = arrivals.delays_ms();
        delays.iter().map(|delay| delay - added_ms).collect()
    };
    let netem = delays(&arrivals[0], machine.netem_ms);
    let emud = delays(&arrivals[1], machine.emud_ms);
    let recurrence = simulate(&DELAY.link, Who::Netem, 1 << 16, INTERVAL_MS).delays_ms();
    // So many independent values are these worth.
    let n = f64::from(count) * (1.0 - CORRELATION) / (1.0 + CORRELATION);
    let mut verdict = Verdict::default();
    verdict.at_most(
        "KS distance, emud from what is asked for",
        ks_bound(n),
        ks_distance(&emud, &asked),
    );
    verdict.at_most(
        "KS distance, netem from its recurrence",
        ks_bound(n),
        ks_between(&netem, &recurrence),
    );
    // Not what is asked for, whatever chance may do.
    verdict.at_least(
        "KS distance, netem from what is asked for",
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
        differs: Some("netem's filter leaves few numbers near zero"),
    };
    measure(&example, pairs, count);
}
