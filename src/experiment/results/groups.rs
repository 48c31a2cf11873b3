// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats of three or more experiments.

use schemars::JsonSchema;
use serde::Serialize;

use super::compare::{counted, repeated_seeds};
use super::difference::{differences, mixed};
use super::summary::{fewer, rows};
use super::{
    Anova, CONFIDENCE, Difference, Estimate, FigureName, Losses, Run, RunEntry, anova, bonferroni,
    losses,
};

/// The number increases when a key is removed or changes its meaning.
pub const GROUPS_SCHEMA: &str = "emud-compare-groups/1";

/// Groups are named by letters.
pub const MOST_GROUPS: usize = 26;

/// Three or more experiments, each with its repeats.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Groups {
    /// Version of the format.
    #[schemars(extend("const" = GROUPS_SCHEMA))]
    pub schema: &'static str,
    /// The experiments, in the order of the arguments.
    pub groups: Vec<Group>,
    /// Confidence level of each interval.
    pub confidence: f64,
    /// Figures of the measured phase.
    pub figures: Vec<Grouped>,
    /// Whether the network repeated in all runs that count, of all groups.
    pub losses: Losses,
    /// All runs of all groups are clean, and no program failed.
    pub clean: bool,
    /// Sentences on the comparison.
    pub notes: Vec<String>,
}

/// The runs of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// "a" for the first group, "b" for the second one, and so on.
    pub name: String,
    /// Runs of this group, in the order of the logs.
    #[schemars(length(min = 1))]
    pub runs: Vec<RunEntry>,
    /// Number of runs of which the figures are: those that count, or all if none does.
    #[schemars(range(min = 1))]
    pub counted: usize,
    /// Differences of the configuration between the first run of the first group (a) and that of this
    /// group (b).
    pub differences: Vec<Difference>,
}

/// A figure of all groups.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Grouped {
    /// Link, direction, quantity and unit.
    #[serde(flatten)]
    pub name: FigureName,
    /// The groups in their order; null: a group has no such figure.
    pub groups: Vec<Option<Estimate>>,
    /// Analysis of variance of the groups that have the figure; null: fewer than two have it, or each in a
    /// single run.
    pub anova: Option<Anova>,
    /// p of the analysis of variance, corrected by Bonferroni for all figures that have one; null: none.
    #[schemars(range(min = 0, max = 1))]
    pub bonferroni: Option<f64>,
}

/// Groups of runs, up to [`MOST_GROUPS`]; none is empty.
pub fn compare_groups(groups: &[Vec<Run>]) -> Groups {
    let names: Vec<String> = ('a'..='z').map(String::from).take(groups.len()).collect();
    let of: Vec<Vec<&Run>> = groups.iter().map(|runs| counted(runs)).collect();
    let none = groups.iter().zip(&names);
    let none = none.filter(|(runs, _)| !runs.iter().any(Run::counts));
    let mut notes: Vec<String> = none
        .map(|(_, name)| format!("{name} has no run that counts: its figures are of all its runs"))
        .collect();
    let named = groups.iter().zip(&names);
    notes.extend(named.filter_map(|(runs, name)| mixed(Some(name), runs)));
    let first = groups.first().and_then(|runs| runs.first());
    let group = |((runs, counted), name): ((&Vec<Run>, &Vec<&Run>), &String)| Group {
        name: name.clone(),
        runs: RunEntry::of(runs, counted),
        counted: counted.len(),
        differences: first
            .zip(runs.first())
            .map(|(a, b)| differences(a, b))
            .unwrap_or_default(),
    };
    let all: Vec<&Run> = of.iter().flatten().copied().collect();
    notes.extend(fewer(&all));
    let figures = figures(&of, &names);
    if figures.iter().any(|figure| figure.anova.is_some()) {
        let experiments = names.iter().zip(&of);
        let experiments: Vec<_> = experiments.map(|(name, runs)| (&**name, &**runs)).collect();
        notes.extend(repeated_seeds(&experiments));
    }
    Groups {
        schema: GROUPS_SCHEMA,
        confidence: CONFIDENCE,
        figures,
        losses: losses(&all),
        clean: groups
            .iter()
            .flatten()
            .all(|run| run.is_clean() && run.counts()),
        groups: groups.iter().zip(&of).zip(&names).map(group).collect(),
        notes,
    }
}

fn figures(groups: &[Vec<&Run>], names: &[String]) -> Vec<Grouped> {
    let mut found: Vec<Grouped> = Vec::new();
    for (index, runs) in groups.iter().enumerate() {
        for row in rows(runs) {
            let place = found.iter().position(|other| other.name == row.name);
            let place = place.unwrap_or_else(|| {
                found.push(Grouped {
                    name: row.name,
                    groups: vec![None; groups.len()],
                    anova: None,
                    bonferroni: None,
                });
                found.len() - 1
            });
            found[place].groups[index] = Some(row.estimate);
        }
    }
    for figure in &mut found {
        let of = figure.groups.iter().zip(names);
        let of: Vec<_> = of
            .filter_map(|(estimate, name)| Some((name.as_str(), (*estimate)?)))
            .collect();
        figure.anova = anova(&of);
    }
    let tests = found.iter().filter(|figure| figure.anova.is_some()).count();
    for figure in &mut found {
        figure.bonferroni = figure.anova.as_ref().map(|test| bonferroni(test.p, tests));
    }
    found
}
