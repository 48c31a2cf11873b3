// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ran: how programs ended, what they said, which files were kept.

use std::borrow::Cow;

use emud_monitor::log::{ArtefactLine, ExitLine, OutputLine, OutputStream, PhaseName};

use super::{Table, at, left_out};
use crate::experiment::results::{Metric, Run, Tail, count, number, time};

const PROGRAMS: &[[&str; 2]] = &[
    ["node", ""],
    ["command", "text code"],
    ["phase", ""],
    ["started, s", "n"],
    ["took", "n"],
    ["ended", ""],
];

const FILES: &[[&str; 2]] = &[
    ["node", ""],
    ["path", "text"],
    ["kept as", "text"],
    ["bytes", "n"],
];

const METRICS: &[[&str; 2]] = &[
    ["name", ""],
    ["unit", ""],
    ["reports", "n"],
    ["mean", "n"],
    ["lowest", "n"],
    ["highest", "n"],
];

pub struct Programs<'a> {
    pub programs: Table,
    pub programs_left_out: String,
    pub outputs: Vec<Output<'a>>,
    pub files: Table,
    pub files_left_out: String,
    pub metrics: Table,
    pub metrics_left_out: String,
}

/// Output of a node's programs.
pub struct Output<'a> {
    pub node: String,
    pub count: String,
    pub lines: Vec<Said<'a>>,
}

pub struct Said<'a> {
    pub at: String,
    pub is_error: bool,
    pub text: Cow<'a, str>,
}

impl<'a> Programs<'a> {
    pub fn of(runs: &'a [Run]) -> Self {
        let exits = |run: &Run| {
            let exits = run.exits.items.iter();
            exits.map(|exit| program(run, exit)).collect()
        };
        let files = |run: &Run| run.artefacts.items.iter().map(file).collect();
        let metrics = |run: &Run| run.metrics.items.iter().map(metric).collect();
        let outputs = |run: &'a Run| {
            let outputs = run.outputs.iter();
            outputs.map(move |(node, tail)| output(run, node, tail))
        };
        let more = |of: fn(&Run) -> u64, what| left_out(runs.iter().map(of).sum(), what);
        Self {
            programs: Table::of_hosts(PROGRAMS, runs, exits),
            programs_left_out: more(|run| run.exits.left_out, "commands"),
            outputs: runs.iter().flat_map(outputs).collect(),
            files: Table::of_hosts(FILES, runs, files),
            files_left_out: more(|run| run.artefacts.left_out, "files"),
            metrics: Table::of_hosts(METRICS, runs, metrics),
            metrics_left_out: more(|run| run.metrics.left_out, "reports of other figures"),
        }
    }
}

fn program(run: &Run, exit: &ExitLine) -> Vec<String> {
    let phase = match exit.phase {
        PhaseName::Preparation => "preparation",
        PhaseName::Measurement => "measurement",
        PhaseName::CleanUp => "clean-up",
    };
    let took = exit.mono_ns.saturating_sub(exit.started_mono_ns);
    vec![
        exit.node.clone(),
        exit.command.join(" "),
        phase.to_owned(),
        at(run, exit.started_mono_ns),
        time(took as f64),
        exit.status(),
    ]
}

fn output<'a>(run: &Run, node: &str, tail: &'a Tail<OutputLine>) -> Output<'a> {
    let said = |line: &'a OutputLine| Said {
        at: format!("{:>9}", at(run, line.mono_ns)),
        is_error: line.stream == OutputStream::Stderr,
        text: (&line.text).into(),
    };
    let gap = (tail.left_out > 0).then(|| Said {
        at: format!("{:>9}", "..."),
        is_error: false,
        text: format!(
            "{} lines are left out here, the log has them ...",
            count(tail.left_out)
        )
        .into(),
    });
    let first = tail.first.iter().map(said);
    Output {
        node: run.named(node),
        count: count(tail.count()),
        lines: first.chain(gap).chain(tail.last.iter().map(said)).collect(),
    }
}

fn metric(metric: &Metric) -> Vec<String> {
    vec![
        metric.name.clone(),
        metric.unit.clone().unwrap_or_default(),
        count(metric.count),
        number(metric.mean()),
        number(metric.min),
        number(metric.max),
    ]
}

fn file(file: &ArtefactLine) -> Vec<String> {
    let kept = match (&file.stored, &file.error) {
        (Some(stored), _) => stored.clone(),
        (None, Some(error)) => format!("not kept: {error}"),
        (None, None) => "not kept".to_owned(),
    };
    vec![
        file.node.clone(),
        file.path.clone(),
        kept,
        count(file.bytes),
    ]
}
