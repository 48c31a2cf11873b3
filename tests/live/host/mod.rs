// SPDX-License-Identifier: MIT OR Apache-2.0
//! What reads all links of the host: `emud metrics` beside a real Prometheus, and `emud top`. The full
//! run needs `tmux`, and Debian's `prometheus`, which `tests/prometheus.sh` fetches.

mod prometheus;
mod thousand;
mod top;

use libtest_mimic::Trial;
use support::{named, trial};

pub fn tests() -> Vec<Trial> {
    named![fn();
        Here:
            top::lines;
        Full:
            prometheus::checks,
            prometheus::scrapes,
            thousand::links,
            top::changes_a_link;
    ]
    .map(|(when, name, test)| trial::test(when, format!("host::{name}"), test))
    .into()
}
