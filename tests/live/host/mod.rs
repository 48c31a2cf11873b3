// SPDX-License-Identifier: MIT OR Apache-2.0
//! What concerns many or all links of the host: `emud metrics` beside a real Prometheus, `emud top`,
//! and links that end. The full run needs `tmux`, and Debian's `prometheus`, which `tests/prometheus.sh` fetches.

mod clock;
mod expiry;
mod prometheus;
mod thousand;
mod top;

use libtest_mimic::Trial;
use support::{named, trial};

pub fn tests() -> Vec<Trial> {
    named![fn();
        Here:
            clock::of_another_time_namespace,
            top::lines,
            top::ends_by_a_signal;
        Full:
            expiry::at_their_deadlines,
            prometheus::checks,
            prometheus::scrapes,
            thousand::links,
            top::changes_a_link;
    ]
    .map(|(when, name, test)| trial::test(when, format!("host::{name}"), test))
    .into()
}

/// Whether a process holds the packets of a link.
pub fn is_holder(pid: &str) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(b"hold-run")
}
