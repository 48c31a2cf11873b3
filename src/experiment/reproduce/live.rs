// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a shipped scenario with changes, and what its programs counted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use emud_monitor::Config;
use emud_monitor::event::Resource;
use emud_monitor::log::{ExitLine, OutputLine, OutputStream, RunVerdict, Verdict};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::Deserialize;

use super::iperf::Iperf;
use super::ping::Echoed;
use super::{Bench, ReproduceError};
use crate::experiment::run::{RunError, Settings, conduct, text};
use crate::experiment::scenario::{Overrides, Plan, shipped as scenarios};
use crate::experiment::traffic::{BIN_NS, Count, Received, Sent, Transferred};
use crate::profile::shipped as profiles;

/// Rates settle within this time after all have begun to send.
const WARM_UP_NS: u64 = 1_000_000_000;

/// A variant of a scenario.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Variant<'a> {
    /// For the progress.
    pub title: &'a str,
    pub scenario: &'a str,
    /// Size of the topology, instead of that of the scenario.
    pub nodes: Option<u32>,
    /// Shipped profile for the only link with a profile, instead of that of the scenario.
    pub profile: Option<&'a str>,
    /// Changes of the profile, as for `emud set`.
    pub set: &'a [&'a str],
    /// Environment of all commands.
    pub env: &'a [(&'a str, String)],
}

/// What the programs of a run counted.
#[derive(Debug)]
pub(super) struct Counts {
    pub verdict: RunVerdict,
    /// Resources of which the host had too little.
    pub contended: Vec<Resource>,
    sent: Vec<Sent>,
    received: Vec<Received>,
    transferred: Vec<Transferred>,
    echoed: Vec<Echoed>,
    iperf: Vec<Iperf>,
}

impl Bench<'_> {
    /// Runs a variant until its verdict is clean, or all attempts are used up.
    pub(super) fn run(&self, variant: &Variant<'_>) -> Result<Counts, ReproduceError> {
        let mut attempt = 1;
        loop {
            (self.progress)(&match attempt {
                1 => format!("{}: {}", variant.scenario, variant.title),
                n => format!("{}: {}, attempt {n}", variant.scenario, variant.title),
            });
            let counts = self.once(variant, &self.settings.config)?;
            if counts.verdict == RunVerdict::Clean || attempt >= self.attempts {
                return Ok(counts);
            }
            attempt += 1;
        }
    }

    /// Runs a variant once, with this definition of contention, which is what it measures.
    pub(super) fn judged(
        &self,
        variant: &Variant<'_>,
        config: Config,
    ) -> Result<Counts, ReproduceError> {
        (self.progress)(&format!("{}: {}", variant.scenario, variant.title));
        self.once(variant, &config)
    }

    fn once(&self, variant: &Variant<'_>, config: &Config) -> Result<Counts, ReproduceError> {
        let plan = variant.plan()?;
        let system = |error| RunError::System {
            what: "a log in memory",
            error,
        };
        let log = memfd_create("emud-reproduce-log", MemfdFlags::CLOEXEC);
        let log = File::from(log.map_err(|e| system(e.into()))?);
        let path: PathBuf = format!("/proc/self/fd/{}", log.as_raw_fd()).into();
        let writes = log.try_clone().map_err(system)?;
        let settings = Settings {
            sample: None,
            log_output: true,
            quiet: true,
            config: config.clone(),
            ..self.settings.clone()
        };
        let outcome = conduct(&plan, &settings, self.holder, Some(writes))?;
        if let Some(signal) = outcome.signal {
            return Err(ReproduceError::Interrupted(signal));
        }
        let failed = |problem: String| ReproduceError::Program {
            scenario: variant.scenario.to_owned(),
            problem,
        };
        let outputs = outputs(&path).map_err(|e| failed(format!("its log: {e}")))?;
        if let Some(exit) = outcome.exits.iter().find(|exit| ExitLine::failed(exit)) {
            let mut own = outputs.iter().filter(|line| line.node == exit.node);
            let last = own.next_back().map_or("no output", |line| &line.text);
            let problem = format!("{}: {}: {last}", exit.node, exit.status());
            return Err(failed(problem));
        }
        let verdict = outcome.judgement().verdict;
        if verdict != RunVerdict::Clean {
            let why = text(&outcome.finished);
            (self.progress)(&format!(
                "{}: {}: {}",
                variant.scenario,
                variant.title,
                why.trim_end()
            ));
        }
        let verdicts = &outcome.finished.verdicts;
        let contended = verdicts.iter().filter(|(_, v)| **v == Verdict::Contended);
        let mut counts = Counts {
            verdict,
            contended: contended.map(|(resource, _)| *resource).collect(),
            sent: vec![],
            received: vec![],
            transferred: vec![],
            echoed: vec![],
            iperf: vec![],
        };
        let mut others = BTreeMap::<&str, String>::new();
        for line in outputs
            .iter()
            .filter(|line| line.stream == OutputStream::Stdout)
        {
            match serde_json::from_str(&line.text) {
                Ok(Count::Sent(sent)) => counts.sent.push(sent),
                Ok(Count::Received(received)) => counts.received.push(received),
                Ok(Count::Transferred(transferred)) => counts.transferred.push(transferred),
                Err(_) => *others.entry(&line.node).or_default() += &format!("{}\n", line.text),
            }
        }
        for (node, output) in others {
            if let Some(echoed) = Echoed::parse(node, &output) {
                counts.echoed.push(echoed);
            } else if let Some(iperf) = Iperf::parse(node, &output) {
                counts.iperf.push(iperf);
            } else {
                return Err(failed(format!("{node}: {}", output.trim_end())));
            }
        }
        Ok(counts)
    }
}

/// Lines of output in a log, which [`crate::experiment::results`] would shorten.
fn outputs(log: &Path) -> io::Result<Vec<OutputLine>> {
    #[derive(Deserialize)]
    struct Head {
        r#type: String,
    }
    let mut all = vec![];
    for line in fs::read_to_string(log)?.lines() {
        if serde_json::from_str::<Head>(line)?.r#type == "output" {
            all.push(serde_json::from_str(line)?);
        }
    }
    Ok(all)
}

impl Variant<'_> {
    fn plan(&self) -> Result<Plan, ReproduceError> {
        let mut plan = scenarios::load(self.scenario)?.plan(&Overrides {
            nodes: self.nodes,
            ..Overrides::default()
        })?;
        for link in &mut plan.links {
            if let Some(name) = self.profile {
                link.profile = profiles::find(name)?;
                link.asked = name.to_owned();
            }
            if !self.set.is_empty() {
                let set: Vec<_> = self.set.iter().map(|&set| set.to_owned()).collect();
                link.profile = link.profile.with_changes(&set)?;
            }
        }
        for node in &mut plan.nodes {
            let env = self.env.iter();
            node.env
                .extend(env.map(|(key, value)| ((*key).to_owned(), value.clone())));
        }
        Ok(plan)
    }
}

impl Counts {
    pub fn sent(&self, port: u16) -> Option<&Sent> {
        self.sent.iter().find(|sent| sent.port == port)
    }

    pub fn received(&self, port: u16) -> Option<&Received> {
        self.received.iter().find(|received| received.port == port)
    }

    /// Of the ping in a node.
    pub fn echoed(&self, node: &str) -> Option<&Echoed> {
        self.echoed.iter().find(|echoed| echoed.node == node)
    }

    /// Of the clients of iperf3 in a node.
    pub fn iperf(&self, node: &str) -> Option<&Iperf> {
        self.iperf.iter().find(|iperf| iperf.node == node)
    }

    pub fn transferred(&self) -> Option<&Transferred> {
        self.transferred.first()
    }

    /// Of the sender to a port.
    pub fn transferred_to(&self, port: u16) -> Option<&Transferred> {
        self.transferred
            .iter()
            .find(|transferred| transferred.port == port)
    }

    /// Acknowledged data of the transfer to a port, bytes/s.
    pub fn goodput(&self, port: u16) -> Option<f64> {
        let one = self.transferred_to(port)?;
        Some(one.bytes as f64 * 1e9 / one.duration_ns as f64)
    }

    /// Share of the packets to a port that did not arrive.
    pub fn lost(&self, port: u16) -> Option<f64> {
        let (sent, received) = (self.sent(port)?, self.received(port)?);
        Some((sent.packets as f64 - received.packets as f64) / sent.packets as f64)
    }

    /// Data that arrived at a port while all senders sent, without the first second, bit/s.
    pub fn rate(&self, port: u16) -> Option<f64> {
        let from = self.sent.iter().map(|sent| sent.first_ns).max()? + WARM_UP_NS;
        let to = self.sent.iter().map(|sent| sent.last_ns).min()?;
        let (from, to) = (from.div_ceil(BIN_NS), to / BIN_NS);
        let received = self.received(port)?;
        let bytes = (from..to).filter_map(|bin| {
            let index = bin.checked_sub(received.first_bin)?;
            received.bins.get(usize::try_from(index).ok()?)
        });
        let seconds = to.checked_sub(from).filter(|bins| *bins > 0)? as f64 * BIN_NS as f64 / 1e9;
        Some(bytes.sum::<u64>() as f64 * 8.0 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        let second = 1_000_000_000;
        let sent = |port, first_ns, last_ns, packets| Sent {
            port,
            unroutable: 0,
            packets,
            size: 100,
            first_ns,
            last_ns,
        };
        let received = |port, first_bin, bins: usize, each| Received {
            port,
            packets: 90,
            first_bin,
            bins: vec![each; bins],
            ..Received::default()
        };
        Counts {
            verdict: RunVerdict::Clean,
            contended: vec![],
            sent: vec![
                sent(1, 10 * second, 15 * second, 100),
                sent(2, 11 * second, 14 * second, 90),
            ],
            received: vec![received(1, 100, 60, 1000), received(2, 125, 3, 500)],
            transferred: vec![],
            echoed: vec![],
            iperf: vec![],
        }
    }

    #[test]
    fn rates_are_of_the_time_in_which_all_send() {
        let counts = counts();
        assert_eq!(counts.rate(1), Some(80_000.0));
        // 12 s to 14 s; three intervals of it from 12.5 s.
        assert_eq!(counts.rate(2), Some(1500.0 * 8.0 / 2.0));
        assert_eq!(counts.rate(3), None);
        assert_eq!(counts.lost(1), Some(0.1));
        assert_eq!(counts.lost(2), Some(0.0));
    }

    #[test]
    fn a_variant_changes_the_profile_and_the_environment() {
        let variant = Variant {
            scenario: "c-diffserv",
            profile: Some("diffserv-priority"),
            set: &["bottleneck.hub.class.other.priority=0"],
            env: &[("PACKETS", "3".to_owned())],
            ..Variant::default()
        };
        let plan = variant.plan().unwrap();
        let [link] = &plan.links[..] else { panic!() };
        let priorities = link.profile.bottlenecks[0].plan().classes;
        let priorities: Vec<_> = priorities.iter().map(|class| class.priority).collect();
        assert_eq!(priorities, [1, 0]);
        let env = |key: &str| plan.nodes[0].env.iter().any(|(k, v)| k == key && v == "3");
        assert!(env("PACKETS"));
    }
}
