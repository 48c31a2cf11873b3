// SPDX-License-Identifier: MIT OR Apache-2.0
//! When, where and how an experiment was carried out.

use std::fs;

use emud_monitor::log::{Clock, Host};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bench, Experiment};
use crate::host::{nanoseconds, now_ns};
use crate::text::quantity::time;
use crate::text::to_the_second;

/// Conditions of a figure besides its experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Time of its start in UTC (RFC 3339, with nanoseconds).
    pub began: String,
    /// Version of the emud that measured.
    pub version: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Number of CPUs that were online.
    pub cpus: u32,
    /// Architecture, and model of the CPUs if the kernel names it.
    pub machine: String,
    /// Whether runs were shortened.
    pub quick: bool,
    /// Seed of all links.
    pub seed: u64,
    /// Number of runs of each variant until one is clean.
    pub attempts: u32,
    /// Whether thresholds of contention from a file applied instead of those of `emud run`.
    pub own_thresholds: bool,
    /// Whether senders on netem made no super-packets; only if true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_gso: bool,
    /// Lateness of a packet that makes a run invalid, in ns; null: none does.
    #[serde(default = "late_of_run")]
    pub late_ns: Option<u64>,
}

/// The limit in results that lack the key.
fn late_of_run() -> Option<u64> {
    Some(5_000_000)
}

impl Conditions {
    pub(super) fn now(experiment: &Experiment, bench: &Bench<'_>) -> Self {
        let host = Host::now();
        let fixed = experiment.thresholds.map(|thresholds| thresholds());
        let own_thresholds = bench.own_thresholds && fixed.is_none();
        let config = fixed.as_ref().unwrap_or(&bench.settings.config);
        let emulator = config.emulator.as_ref();
        Self {
            began: Clock::now().time(now_ns()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: host.kernel,
            cpus: host.cpus,
            machine: machine(),
            quick: bench.quick,
            seed: bench.settings.seed,
            attempts: bench.attempts,
            own_thresholds,
            no_gso: bench.no_gso,
            late_ns: emulator.map(|emulator| nanoseconds(emulator.late)),
        }
    }

    /// Returns them as a line.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} UTC, Linux {}, {} CPU{} ({}), emud {}, {}, seed {}, up to {} attempts",
            to_the_second(&self.began),
            self.kernel,
            self.cpus,
            if self.cpus == 1 { "" } else { "s" },
            self.machine,
            self.version,
            self.length(),
            self.seed,
            self.attempts,
        );
        if self.own_thresholds {
            text += ", thresholds of contention from a file";
        }
        if self.no_gso {
            text += ", netem without super-packets";
        }
        if let Some(late_ns) = self.late_ns {
            text += &format!(", packets late from {} on", time(late_ns));
        }
        text
    }

    /// Returns `quick` or `full`.
    pub fn length(&self) -> &'static str {
        if self.quick { "quick" } else { "full" }
    }
}

fn machine() -> String {
    let uname = rustix::system::uname();
    let architecture = uname.machine().to_string_lossy().into_owned();
    // On most architectures it has no such line.
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| {
        let (key, model) = line.split_once(':')?;
        (key.trim() == "model name").then(|| model.trim().to_owned())
    });
    match model {
        Some(model) => format!("{architecture}, {model}"),
        None => architecture,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use emud_monitor::Config;

    use super::*;
    use crate::experiment::run::Settings;

    #[test]
    fn thresholds_of_an_experiment_go_before_those_of_the_caller() {
        let mut config = Config::default();
        config.emulator.as_mut().unwrap().late = Duration::from_millis(30);
        let settings = Settings::quiet(1, config);
        let bench = Bench {
            own_thresholds: true,
            ..Bench::tests(&settings, true)
        };
        let of = |name: &str| {
            let experiment = Experiment::named(name).unwrap();
            let conditions = Conditions::now(&experiment, &bench);
            (conditions.own_thresholds, conditions.late_ns)
        };
        assert_eq!(of("t-tree"), (true, Some(30_000_000)));
        for name in ["m-chain", "m-contention"] {
            assert_eq!(of(name), (false, Some(1_000_000)), "{name}");
        }
    }

    #[test]
    fn netem_without_super_packets_is_not_stock() {
        let settings = Settings::quiet(1, Config::default());
        let of = |no_gso| {
            let bench = Bench {
                netem: true,
                no_gso,
                ..Bench::tests(&settings, true)
            };
            let conditions = Conditions::now(&Experiment::named("s-ring").unwrap(), &bench);
            let json = serde_json::to_string(&conditions).unwrap();
            [
                conditions.text().contains(", netem without super-packets"),
                json.contains("\"no_gso\":true"),
            ]
        };
        assert_eq!([of(true), of(false)], [[true; 2], [false; 2]]);
    }
}
