// SPDX-License-Identifier: MIT OR Apache-2.0
//! What counts as contention: the flags of `emud monitor` and `emud monitor calibrate`.

use std::path::PathBuf;

use emud::monitor::settings as watch;
use emud::monitor::settings::{Argument, COMMAND_LINE};
use emud::text::TextError;
use emud_monitor::Config;

use crate::cli::Failure;
use crate::cli::failure::EX_USAGE;

/// Thresholds and windows; the keys are those of docs/monitor.md.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Thresholds")]
pub struct Thresholds {
    /// Read thresholds from a TOML file (docs/monitor.md)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Set any key of the file: cpu.theta=50ms, network.device.eth0=900Mbit, memory=off
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Watch these alone: cpu, network, memory, disk, emulator, psi, application
    #[arg(long, value_name = "CRITERION,...")]
    only: Vec<String>,

    /// A CPU is contended when without idle for this long, or `off`
    #[arg(long, value_name = "TIME")]
    cpu_theta: Option<String>,

    /// What is idle: the idle task (task), or the CPU itself (idle), so that forwarding is work
    #[arg(long, value_name = "task|idle")]
    cpu_basis: Option<String>,

    /// Window in which transmitted bytes are counted
    #[arg(long, value_name = "TIME")]
    network_window: Option<String>,

    /// Contention at this rate of all external devices together, or `off`
    #[arg(long, value_name = "RATE")]
    external: Option<String>,

    /// Contention at this rate of all internal devices together, or `off`
    #[arg(long, value_name = "RATE")]
    internal: Option<String>,

    /// Class of an interface where the guess from its kind is wrong: external, internal, ignored
    #[arg(long, value_name = "IFACE=CLASS")]
    class: Vec<String>,

    /// Contention at this rate of one interface, on top of its class
    #[arg(long, value_name = "IFACE=RATE")]
    device: Vec<String>,

    /// Window in which pages read from and written to swap are counted
    #[arg(long, value_name = "TIME")]
    memory_window: Option<String>,

    /// Contention at this many pages read from swap in a window, or `off`
    #[arg(long, value_name = "N")]
    page_ins: Option<String>,

    /// Contention at this many pages written to swap in a window, or `off`
    #[arg(long, value_name = "N")]
    page_outs: Option<String>,

    /// A disk is contended when never without a request for this long, or `off`
    #[arg(long, value_name = "TIME")]
    disk_theta: Option<String>,

    /// Another theta for one disk, or `ignored`
    #[arg(long, value_name = "NAME=TIME")]
    disk: Vec<String>,

    /// A packet of an emulated link released later than this is contention, or `off`
    #[arg(long, value_name = "TIME")]
    late: Option<String>,

    /// Pressure stall information: contention when tasks stall this long within a window, or `off`
    #[arg(long, value_name = "STALL/WINDOW")]
    psi: Option<String>,

    /// Whose shares an alarm carries: netns, cgroup, command
    #[arg(long, value_name = "GROUP")]
    group_by: Option<String>,

    /// Who may report contention of programs: root, own (root and the user who called sudo), all
    #[arg(long, value_name = "USERS")]
    reporters: Option<String>,

    /// Alarms of one resource before the rest is only counted
    #[arg(long, value_name = "N")]
    limit: Option<String>,
}

impl Thresholds {
    /// What is to be watched for: the defaults, the file over them, the flags over both.
    ///
    /// # Errors
    /// Every mistake at once; 64 if all are on the command line, 65 if some are in the
    /// file, 66 without it.
    pub fn config(&self) -> Result<Config, Failure> {
        watch::config(self.config.as_deref(), &self.arguments()).map_err(|error| {
            let code = match &error {
                TextError::Mistakes(m) if m.iter().all(|one| m.origin(one) == COMMAND_LINE) => {
                    EX_USAGE
                }
                other => other.exit_code(),
            };
            Failure::new(code, error.to_string())
        })
    }

    fn arguments(&self) -> Vec<Argument> {
        let keys = [
            ("--cpu-theta", ("cpu", "theta"), &self.cpu_theta),
            ("--cpu-basis", ("cpu", "basis"), &self.cpu_basis),
            (
                "--network-window",
                ("network", "window"),
                &self.network_window,
            ),
            ("--external", ("network", "external"), &self.external),
            ("--internal", ("network", "internal"), &self.internal),
            ("--memory-window", ("memory", "window"), &self.memory_window),
            ("--page-ins", ("memory", "page-ins"), &self.page_ins),
            ("--page-outs", ("memory", "page-outs"), &self.page_outs),
            ("--disk-theta", ("disk", "theta"), &self.disk_theta),
            ("--late", ("emulator", "late"), &self.late),
            ("--group-by", ("alarms", "group-by"), &self.group_by),
            ("--reporters", ("alarms", "reporters"), &self.reporters),
            ("--limit", ("alarms", "limit"), &self.limit),
        ];
        let named = [
            ("--class", ("network", "class"), &self.class),
            ("--device", ("network", "device"), &self.device),
            ("--disk", ("disk", "device"), &self.disk),
        ];
        let key = |(flag, path, value): (&str, _, &Option<String>)| {
            value.as_ref().map(|value| Argument::key(flag, path, value))
        };
        let mut arguments: Vec<_> = self.set.iter().map(|set| Argument::set(set)).collect();
        arguments.extend(keys.into_iter().filter_map(key));
        for (flag, path, assignments) in named {
            arguments.extend(assignments.iter().map(|a| Argument::named(flag, path, a)));
        }
        arguments.extend(self.psi.iter().map(|psi| Argument::psi(psi)));
        arguments.extend(self.only.iter().map(|only| Argument::only(only)));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        thresholds: Thresholds,
    }

    fn config(line: &str) -> Result<Config, Failure> {
        let words = ["emud"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().thresholds.config()
    }

    /// Each flag sets its key and nothing else.
    #[test]
    fn every_flag_is_its_key() {
        let flags = [
            ("--cpu-theta 5ms", "cpu.theta = \"5ms\""),
            ("--cpu-basis idle", "cpu.basis = \"idle\""),
            ("--network-window 5ms", "network.window = \"5ms\""),
            ("--external 5Gbit", "network.external = \"5Gbit\""),
            ("--internal 5Gbit", "network.internal = \"5Gbit\""),
            (
                "--class a=external --class b=ignored",
                "network.class = { a = \"external\", b = \"ignored\" }",
            ),
            (
                "--device a=5Gbit --device b.1=1Gbit",
                "network.device = { a = \"5Gbit\", \"b.1\" = \"1Gbit\" }",
            ),
            ("--memory-window 5ms", "memory.window = \"5ms\""),
            ("--page-ins 5", "memory.page-ins = 5"),
            ("--page-outs off", "memory.page-outs = \"off\""),
            ("--disk-theta 5ms", "disk.theta = \"5ms\""),
            ("--disk sda=5ms", "disk.device.sda = \"5ms\""),
            ("--late 5ms", "emulator.late = \"5ms\""),
            ("--psi 5ms/1s", "psi = { stall = \"5ms\", window = \"1s\" }"),
            ("--group-by command", "alarms.group-by = \"command\""),
            ("--reporters all", "alarms.reporters = \"all\""),
            ("--limit 5", "alarms.limit = 5"),
            (
                "--set cpu.theta=5ms --set disk=off",
                "cpu.theta = \"5ms\"\ndisk = \"off\"",
            ),
            (
                "--only cpu,memory --only cpu,memory",
                "network = \"off\"\ndisk = \"off\"\nemulator = \"off\"",
            ),
        ];
        for (flag, toml) in flags {
            let expected = watch::parse(toml, "").unwrap();
            assert_ne!(expected, Config::default());
            assert_eq!(config(flag).unwrap(), expected, "{flag}");
        }
    }

    #[test]
    fn exit_codes() {
        assert_eq!(config("--cpu-theta 0ms").unwrap_err().code, 64);
        assert_eq!(config("--config /no/such").unwrap_err().code, 66);
        let file = std::env::temp_dir().join(format!("emud-thresholds-{}", std::process::id()));
        std::fs::write(&file, "[gpu]").unwrap();
        let line = format!("--config {} --limit 0", file.display());
        assert_eq!(config(&line).unwrap_err().code, 65);
        std::fs::remove_file(&file).unwrap();
    }
}
