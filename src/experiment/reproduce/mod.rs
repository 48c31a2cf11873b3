// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published experiments, carried out again. Each is a shipped scenario that runs as `emud run`
//! runs it, or a model in virtual time, and yields figures that are judged by theory or by what was
//! published.

mod air_flows;
mod c_aqm;
mod c_diffserv;
mod c_red;
mod c_wireless;
mod compare;
mod conditions;
mod counts;
mod criterion;
mod csv;
mod disk_use;
mod echoed;
mod figure;
mod host_limit;
mod iperf;
mod live;
mod m_chain;
mod m_contention;
mod m_manet;
mod m_switch;
mod m_updates;
mod markdown;
mod netem;
mod newreno;
mod ping;
mod report;
mod s_choke;
mod s_overhead;
mod s_ring;
mod s_snake;
mod s_window;
mod search;
mod small_memory;
mod t_links;
mod t_p2p;
mod t_scale;
mod t_star;
mod t_tree;
mod v_badnet;

use std::io;
use std::path::PathBuf;

use emud_monitor::Config;

use crate::datapath::attach::HolderStart;
use crate::experiment::run::{RunError, Settings};
use crate::experiment::scenario::ScenarioError;
use crate::host::signals::exit_code;
use crate::profile::ProfileError;
use crate::text::closest;

pub use compare::Comparison;
pub use conditions::Conditions;
pub use figure::{Figure, FigureVerdict, Tolerance};
pub use report::{REPRODUCE_SCHEMA, Reproduced, Reproduction};
pub(crate) use report::{counts, table};

/// A published experiment.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// As on the command line.
    pub name: &'static str,
    /// Subject of the experiment in one line.
    pub description: &'static str,
    /// Where its figures were published.
    pub source: &'static str,
    /// How its figures are measured.
    pub method: &'static str,
    /// Shipped scenarios that it runs; empty: it is computed in virtual time.
    pub scenarios: &'static [&'static str],
    /// The definition of contention of all its runs; `None`: that of the bench.
    thresholds: Option<fn() -> Config>,
    measure: fn(&Bench<'_>) -> Result<Vec<Figure>, ReproduceError>,
}

/// All experiments. Those in virtual time come first.
pub const EXPERIMENTS: &[Experiment] = &[
    c_aqm::EXPERIMENT,
    c_wireless::EXPERIMENT,
    c_diffserv::EXPERIMENT,
    m_chain::EXPERIMENT,
    m_contention::EXPERIMENT,
    m_manet::EXPERIMENT,
    m_switch::EXPERIMENT,
    m_updates::EXPERIMENT,
    s_choke::EXPERIMENT,
    s_overhead::EXPERIMENT,
    s_ring::EXPERIMENT,
    s_snake::EXPERIMENT,
    s_window::EXPERIMENT,
    t_links::EXPERIMENT,
    t_p2p::EXPERIMENT,
    t_scale::EXPERIMENT,
    t_star::EXPERIMENT,
    t_tree::EXPERIMENT,
    v_badnet::LATENCY,
    v_badnet::LOSS,
];

/// How to carry out an experiment.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// Shorter runs and fewer variants.
    pub quick: bool,
    /// Settings of every run.
    pub settings: &'a Settings,
    /// Returns the command line of a holder, engine hold's process.
    pub holder: fn(HolderStart) -> std::process::Command,
    /// Whether thresholds of contention of the caller apply instead of those of `emud run`.
    pub own_thresholds: bool,
    /// Whether experiments whose source compares with netem also run with it, in place of emud's links.
    pub netem: bool,
    /// Whether the senders of these runs make no super-packets.
    pub no_gso: bool,
    /// Whether m-contention also has loads that occupy swap space.
    pub swap: bool,
    /// How often a run is repeated until its verdict is clean.
    pub attempts: u32,
    /// Called with each step.
    pub progress: &'a dyn Fn(&str),
    /// Returns a signal that came since the last call.
    pub signal: &'a dyn Fn() -> io::Result<Option<i32>>,
}

/// Why an experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ReproduceError {
    #[error("no experiment is called `{name}`{help}")]
    Unknown { name: String, help: String },
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Run(Box<RunError>),
    #[error("{scenario}: {problem}")]
    Program { scenario: String, problem: String },
    #[error("{what}: {error}")]
    Kernel { what: &'static str, error: String },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {problem}", path.display())]
    Saved { path: PathBuf, problem: String },
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
}

impl ReproduceError {
    /// Returns the exit code from sysexits.h; for a signal that of shells.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::Unknown { .. } | Self::Read { .. } => 66,
            Self::Saved { .. } => 65,
            Self::Scenario(e) => e.exit_code(),
            Self::Profile(e) => e.exit_code(),
            Self::Run(e) => e.exit_code(),
            Self::Program { .. } => 69,
            Self::Kernel { .. } => 71,
            Self::Interrupted(signal) => exit_code(*signal),
        }
    }
}

impl From<RunError> for ReproduceError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl Experiment {
    /// Returns the experiment of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, ReproduceError> {
        let found = EXPERIMENTS
            .iter()
            .find(|experiment| experiment.name == name);
        found.copied().ok_or_else(|| {
            let names = EXPERIMENTS.iter().map(|experiment| experiment.name);
            let near = closest(name, names.clone());
            let near = near.map(|near| format!("did you mean `{near}`? "));
            ReproduceError::Unknown {
                name: name.to_owned(),
                help: format!(
                    ": {}available are {}",
                    near.unwrap_or_default(),
                    names.collect::<Vec<_>>().join(", ")
                ),
            }
        })
    }

    /// Carries the experiment out.
    ///
    /// # Errors
    /// A run could not take place.
    pub fn reproduce(&self, bench: &Bench<'_>) -> Result<Reproduced, ReproduceError> {
        let conditions = Conditions::now(self, bench);
        let figures = (self.measure)(bench)?;
        Ok(Reproduced::new(self, conditions, figures))
    }
}

#[cfg(test)]
impl<'a> Bench<'a> {
    /// One attempt, without progress and signals.
    fn tests(settings: &'a Settings, quick: bool) -> Self {
        Self {
            quick,
            settings,
            holder: |_| unreachable!(),
            own_thresholds: false,
            netem: false,
            no_gso: false,
            swap: false,
            attempts: 1,
            progress: &|_| {},
            signal: &|| Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::scenario::shipped;

    #[test]
    fn names_are_known_and_mistakes_have_suggestions() {
        for experiment in EXPERIMENTS {
            assert_eq!(
                Experiment::named(experiment.name).unwrap().name,
                experiment.name
            );
            for scenario in experiment.scenarios {
                assert!(shipped::find(scenario).is_ok(), "{scenario}");
            }
        }
        let error = Experiment::named("t-tre").unwrap_err();
        assert_eq!(error.exit_code(), 66);
        assert!(
            error.to_string().contains("did you mean `t-tree`"),
            "{error}"
        );
    }

    /// A signal ends a run, but not a computation: tokio keeps its handlers.
    #[test]
    fn those_in_virtual_time_come_first() {
        let is_live = |experiment: &Experiment| !experiment.scenarios.is_empty();
        assert!(EXPERIMENTS.is_sorted_by_key(is_live));
    }
}
