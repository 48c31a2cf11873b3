// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a shipped scenario with changes, and what its programs counted.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use emud_monitor::Config;
use emud_monitor::log::{ExitLine, Judgement, RunVerdict, Span};
use rustix::fs::{MemfdFlags, memfd_create};

use super::counts::{Counts, Logged, but_contended};
use super::netem::Netem;
use super::{Bench, ReproduceError};
use crate::experiment::run::{RunError, Settings, conduct, text};
use crate::experiment::scenario::{Overrides, Plan, shipped as scenarios};
use crate::medium::motion::Track;
use crate::monitor::session::experiment::{only_disordered, only_dropped, only_late};
use crate::profile::shipped as profiles;

/// Interval of the links' counters.
const SAMPLE: Duration = Duration::from_secs(1);

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
    /// The link that `set` changes; empty: all of them.
    pub link: &'a str,
    /// Environment of all commands.
    pub env: &'a [(&'a str, String)],
    /// Where the stations of its media are, instead of the motion of the scenario.
    pub tracks: &'a [Track],
    /// Whether to count what each link and each station passes.
    pub counted: bool,
    /// What replaces its links, for a comparison; `None`: nothing.
    pub netem: Option<Netem<'a>>,
}

impl Bench<'_> {
    /// Runs a variant until its verdict is clean, or all attempts are used up.
    pub(super) fn run(&self, variant: &Variant<'_>) -> Result<Counts, ReproduceError> {
        self.run_by(variant, &self.settings.config)
    }

    /// The same by other thresholds than those of all runs.
    pub(super) fn run_by(
        &self,
        variant: &Variant<'_>,
        config: &Config,
    ) -> Result<Counts, ReproduceError> {
        self.attempts(variant, config, self.attempts, |verdict| verdict)
    }

    /// Runs a variant with netem in place of its links; `None`: that is not requested, or the host had too little
    /// of a resource.
    pub(super) fn with_netem(
        &self,
        variant: &Variant<'_>,
        netem: Netem<'_>,
    ) -> Result<Option<Counts>, ReproduceError> {
        if !self.netem {
            return Ok(None);
        }
        let variant = Variant {
            title: &format!("{}, netem", variant.title),
            netem: Some(netem),
            // Only emud's links count.
            counted: false,
            ..*variant
        };
        let counts = self.run(&variant)?;
        Ok(Some(counts).filter(|counts| counts.verdict == RunVerdict::Clean))
    }

    /// Runs a variant whose result is contention by this definition: a contended run counts.
    pub(super) fn judged(
        &self,
        variant: &Variant<'_>,
        config: &Config,
    ) -> Result<Counts, ReproduceError> {
        self.attempts(variant, config, self.attempts, but_contended)
    }

    /// Runs a variant once that finds the limit of the host: another attempt would find the same host.
    pub(super) fn overloaded(
        &self,
        variant: &Variant<'_>,
        config: &Config,
    ) -> Result<Counts, ReproduceError> {
        self.attempts(variant, config, 1, but_contended)
    }

    fn attempts(
        &self,
        variant: &Variant<'_>,
        config: &Config,
        most: u32,
        judge: fn(RunVerdict) -> RunVerdict,
    ) -> Result<Counts, ReproduceError> {
        let mut attempt = 1;
        loop {
            (self.progress)(&match attempt {
                1 => format!("{}: {}", variant.scenario, variant.title),
                n => format!("{}: {}, attempt {n}", variant.scenario, variant.title),
            });
            let counts = self.once(variant, config)?;
            if judge(counts.verdict) == RunVerdict::Clean || attempt >= most {
                return Ok(counts);
            }
            attempt += 1;
        }
    }

    fn once(&self, variant: &Variant<'_>, config: &Config) -> Result<Counts, ReproduceError> {
        let plan = variant.plan()?;
        self.unless_interrupted()?;
        #[cfg(test)]
        if let Some(counts) = tests::recorded(variant, &plan) {
            return counts;
        }
        let system = |error| RunError::System {
            what: "a log in memory",
            error,
        };
        let log = memfd_create("emud-reproduce-log", MemfdFlags::CLOEXEC);
        let log = File::from(log.map_err(|e| system(e.into()))?);
        let path: PathBuf = format!("/proc/self/fd/{}", log.as_raw_fd()).into();
        let writes = log.try_clone().map_err(system)?;
        let settings = Settings {
            sample: variant.counted.then_some(SAMPLE),
            log_output: true,
            quiet: true,
            config: config.clone(),
            ..self.settings.clone()
        };
        let outcome = conduct(&plan, &settings, self.holder, Some(writes));
        // First: a run that failed does not have the signal that cut its clean-up short.
        self.unless_interrupted()?;
        let outcome = outcome?;
        let failed = |problem: String| ReproduceError::Program {
            scenario: variant.scenario.to_owned(),
            problem,
        };
        let logged = Logged::read(&path).map_err(|e| failed(format!("its log: {e}")))?;
        if let Some(exit) = outcome.exits.iter().find(|exit| ExitLine::failed(exit)) {
            let mut own = logged.outputs.iter().filter(|line| line.node == exit.node);
            let last = own.next_back().map_or("no output", |line| &line.text);
            let problem = format!("{}: {}: {last}", exit.node, exit.status());
            return Err(failed(problem));
        }
        let judgement = outcome.judgement();
        let counts = Counts::of(judgement.verdict, contention(judgement), logged);
        let mut counts = counts.map_err(failed)?;
        let of_host = match judgement.contention.is_empty() {
            true => RunVerdict::Clean,
            false => RunVerdict::Contended,
        };
        let disordered = only_disordered(judgement);
        if disordered.is_some_and(|number| is_slight(number, counts.packets()[0])) {
            counts.verdict = of_host;
        }
        if judgement.verdict != RunVerdict::Clean {
            let why = text(&outcome.finished);
            let accepted = match counts.verdict == judgement.verdict {
                true => "",
                false => " (so few are accepted)",
            };
            (self.progress)(&format!(
                "{}: {}: {}{accepted}",
                variant.scenario,
                variant.title,
                why.trim_end()
            ));
        }
        counts.only_late = only_late(judgement);
        counts.only_dropped = only_dropped(judgement).then_some(of_host);
        Ok(counts)
    }

    /// A signal ends all experiments, whenever it comes.
    fn unless_interrupted(&self) -> Result<(), ReproduceError> {
        match (self.signal)() {
            Ok(None) => Ok(()),
            Ok(Some(signal)) => Err(ReproduceError::Interrupted(signal)),
            Err(error) => Err(RunError::System {
                what: "catching signals",
                error,
            }
            .into()),
        }
    }
}

impl Variant<'_> {
    pub(super) fn plan(&self) -> Result<Plan, ReproduceError> {
        let mut plan = scenarios::find(self.scenario)?.plan(&Overrides {
            nodes: self.nodes,
            ..Overrides::default()
        })?;
        for link in &mut plan.links {
            if let Some(name) = self.profile {
                link.profile = profiles::find(name)?;
                link.asked = name.to_owned();
            }
            if !self.set.is_empty() && (self.link.is_empty() || self.link == link.name) {
                let set: Vec<_> = self.set.iter().map(|&set| set.to_owned()).collect();
                link.profile = link.profile.with_changes(&set)?;
            }
        }
        for medium in &mut plan.media {
            for (station, track) in medium.stations.iter_mut().zip(self.tracks) {
                station.track = track.clone();
            }
        }
        for node in &mut plan.nodes {
            let env = self.env.iter();
            node.env
                .extend(env.map(|(key, value)| ((*key).to_owned(), value.clone())));
        }
        if let Some(netem) = self.netem {
            netem.replace_links(&mut plan, self.scenario)?;
        }
        Ok(plan)
    }
}

/// Returns whether so few of all packets cannot change a figure: a CPU that stands still between the stamp of a packet
/// and its TAP makes a bottleneck, on another CPU, decide without it.
fn is_slight(disordered: u64, sent: u64) -> bool {
    disordered * 10_000 <= sent
}

/// Contention in the measured phase. A judgement also has contention that ended before it and explains a failure in
/// it; attaching a long chain is such a load.
fn contention(judgement: &Judgement) -> Vec<Span> {
    let Some([began, ended]) = judgement.measured_mono_ns else {
        return vec![];
    };
    let all = judgement.contention.iter();
    all.filter(|span| span.since_mono_ns <= ended && span.until_mono_ns >= began)
        .cloned()
        .collect()
}

/// Returns whether no folder of the search path has the program.
pub(super) fn lacks(program: &str) -> bool {
    #[cfg(test)]
    if tests::RECORDED.with_borrow(Option::is_some) {
        return false;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    !std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use emud_monitor::event::Resource;

    use super::super::EXPERIMENTS;
    use super::*;

    /// Title, scenario, number of nodes and plan.
    type Recorded = (String, String, u32, Plan);

    thread_local! {
        /// Variants of another size; then none of any size runs.
        pub(super) static RECORDED: RefCell<Option<Vec<Recorded>>> = const { RefCell::new(None) };
    }

    pub(super) fn recorded(
        variant: &Variant<'_>,
        plan: &Plan,
    ) -> Option<Result<Counts, ReproduceError>> {
        RECORDED.with_borrow_mut(|recorded| {
            let recorded = recorded.as_mut()?;
            if let Some(nodes) = variant.nodes {
                let of = (variant.title.to_owned(), variant.scenario.to_owned());
                recorded.push((of.0, of.1, nodes, plan.clone()));
            }
            // The others of m-manet differ in motion only, of which the figures take minutes.
            if variant.scenario == "broch" {
                return Some(Err(ReproduceError::Interrupted(0)));
            }
            let nothing = Logged::parse("").unwrap();
            Some(Ok(Counts::of(RunVerdict::Clean, vec![], nothing).unwrap()))
        })
    }

    #[test]
    fn one_packet_in_ten_thousand_is_slight() {
        assert!(is_slight(1, 10_000) && is_slight(5, 58_000));
        assert!(!is_slight(1, 9_999) && !is_slight(6, 58_000) && !is_slight(1, 0));
    }

    /// Each variant of another size has the nodes that its experiment counts.
    #[test]
    fn variants_have_the_nodes_that_are_counted() {
        let settings = Settings::quiet(1, Config::default());
        // Of m-switch, the first figures need BPF programs, and root.
        let live = EXPERIMENTS
            .iter()
            .filter(|experiment| !experiment.scenarios.is_empty() && experiment.name != "m-switch");
        let mut met = BTreeSet::new();
        for (experiment, quick) in
            live.flat_map(|experiment| [(experiment, true), (experiment, false)])
        {
            RECORDED.set(Some(vec![]));
            let bench = Bench::tests(&settings, quick);
            let interrupted = Bench {
                signal: &|| Ok(Some(2)),
                ..bench
            };
            let done = experiment.reproduce(&interrupted);
            assert!(matches!(done, Err(ReproduceError::Interrupted(2))));
            let done = experiment.reproduce(&bench);
            assert!(done.is_ok() || experiment.name == "m-manet");
            for (title, scenario, nodes, plan) in RECORDED.take().unwrap() {
                let count = |group: &str| {
                    let names = plan
                        .nodes
                        .iter()
                        .map(|node| node.name.trim_end_matches(char::is_numeric));
                    names.filter(|name| *name == group).count() as u32
                };
                let expected = match &*scenario {
                    "m-chain" | "m-adhoc" => vec![("r", nodes), ("client", 1), ("server", 1)],
                    "broch" | "s-ring" => vec![("n", nodes)],
                    "t-p2p" => vec![
                        ("peer", if quick { 16 } else { 40 }),
                        ("landline", 1),
                        ("sds", 1),
                    ],
                    other => panic!("{other}: what does it count?"),
                };
                for (group, expected) in expected {
                    assert_eq!(count(group), expected, "{scenario}, {title}: {group}");
                }
                // ip_forward() of Linux drops what arrives with a TTL of 1, and packets begin with 64.
                if ["m-chain", "m-adhoc"].contains(&&*scenario) {
                    assert!(nodes < 64, "{scenario}, {title}");
                }
                met.insert((scenario, quick));
            }
        }
        let both = |name: &str| [false, true].map(|quick| (name.to_owned(), quick));
        let expected = ["broch", "m-adhoc", "m-chain", "s-ring", "t-p2p"].map(both);
        assert_eq!(Vec::from_iter(met), expected.concat());
    }

    #[test]
    fn an_alarm_outside_of_the_measured_phase_is_no_result() {
        let of = |resource: Resource, since: u64, until: u64, measured| {
            let found = contention(&Judgement {
                verdict: RunVerdict::Contended,
                contention: vec![Span {
                    resource: resource.name().to_owned(),
                    what: String::new(),
                    since_mono_ns: since,
                    until_mono_ns: until,
                    duration_ns: until - since,
                    by: vec![],
                }],
                contended_seconds: vec![],
                invalid: vec![],
                measured_mono_ns: measured,
                exit_code: 0,
            });
            found
                .into_iter()
                .map(|span| span.resource)
                .collect::<Vec<_>>()
        };
        let measured = Some([100, 200]);
        assert!(of(Resource::Cpu, 10, 99, measured).is_empty());
        assert!(of(Resource::Cpu, 201, 300, measured).is_empty());
        assert!(of(Resource::Cpu, 10, 300, None).is_empty());
        // One that lasts is.
        assert_eq!(of(Resource::Cpu, 10, 100, measured), ["cpu"]);
        assert_eq!(of(Resource::Disk, 150, 300, measured), ["disk"]);
    }

    #[test]
    fn programs_are_found_or_missing() {
        assert!(!lacks("sh"));
        assert!(lacks("no-such-program"));
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
