// SPDX-License-Identifier: MIT OR Apache-2.0
//! The criteria of the monitor in the tables 4.1 and 4.2 of the source of m-contention and m-chain.

use emud_monitor::event::Resource;
use emud_monitor::log::{RunVerdict, Span};

use super::counts::but_contended;
use super::{Figure, Tolerance};

/// Unit of what is looked for in one number of nodes after the other.
pub(super) const NODES: &str = "nodes";

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Criterion {
    Network,
    Cpu,
    PageIn,
    PageOut,
    Disk,
}

impl Criterion {
    pub const ALL: [Self; 5] = [
        Self::Network,
        Self::Cpu,
        Self::PageIn,
        Self::PageOut,
        Self::Disk,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Cpu => "cpu",
            Self::PageIn => "page-in",
            Self::PageOut => "page-out",
            Self::Disk => "disk",
        }
    }

    /// Returns whether it has an alarm among these.
    pub fn alarms(self, contention: &[Span]) -> bool {
        contention.iter().any(|span| match self {
            // Both directions are one resource of the monitor.
            Self::PageIn | Self::PageOut => {
                span.resource == Resource::Memory.name() && span.what == self.name()
            }
            other => span.resource == other.name(),
        })
    }
}

/// A cell: the smallest number of nodes with which a criterion alarms.
pub(super) struct Cell {
    pub criterion: Criterion,
    pub published: f64,
    pub theory: Option<f64>,
    pub tolerance: Tolerance,
    pub known: Option<(f64, f64, &'static str)>,
    /// A host may be too strong for an alarm with any number of nodes.
    pub may_be_silent: bool,
}

pub(super) const fn cell(criterion: Criterion, published: f64, tolerance: Tolerance) -> Cell {
    Cell {
        criterion,
        published,
        theory: None,
        tolerance,
        known: None,
        may_be_silent: false,
    }
}

impl Cell {
    /// Judges the fewest nodes with an alarm, of runs with up to `most`; the titles are those with and without an
    /// alarm. Contention is what is measured; in a run that failed, an alarm may be missing.
    pub fn judged(
        &self,
        [alarm, silence]: [String; 2],
        fewest: Option<f64>,
        most: f64,
        runs: &[RunVerdict],
    ) -> Figure {
        let (title, value) = match fewest {
            None if self.may_be_silent => (silence, Some(most)),
            fewest => (alarm, fewest),
        };
        let figure = Figure::new(title, NODES).published(self.published);
        let figure = match self.theory {
            Some(nodes) => figure.theory(nodes),
            None => figure,
        };
        let figure = match self.known {
            Some((from, to, why)) => figure.known(from, to, why),
            None => figure,
        };
        let figure = figure.within(self.tolerance);
        figure.measured(value, worst(runs))
    }
}

/// Returns the least favourable verdict of runs in which contention is what is measured.
pub(super) fn worst(runs: &[RunVerdict]) -> Option<RunVerdict> {
    runs.iter().map(|run| but_contended(*run)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emud_monitor::event::Scope;

    #[test]
    fn names_are_those_of_the_monitor() {
        let span = |resource: Resource, scope: Scope| {
            let [_, what] = resource.words(&scope);
            Span {
                resource: resource.name().to_owned(),
                what,
                since_mono_ns: 0,
                until_mono_ns: 1,
                duration_ns: 1,
                by: vec![],
            }
        };
        let paging = |direction| span(Resource::Memory, Scope::Paging { direction });
        let all = [
            span(Resource::Network, Scope::Class { class: "external" }),
            span(Resource::Cpu, Scope::Cpu { cpu: 0 }),
            paging("page-in"),
            paging("page-out"),
            span(
                Resource::Disk,
                Scope::Disk {
                    name: "sda".to_owned(),
                    major: 8,
                    minor: 0,
                },
            ),
        ];
        for (index, span) in all.into_iter().enumerate() {
            let alarms =
                Criterion::ALL.map(|criterion| criterion.alarms(std::slice::from_ref(&span)));
            assert_eq!(alarms, [0, 1, 2, 3, 4].map(|n| n == index), "{span:?}");
        }
        assert!(!Criterion::Cpu.alarms(&[]));
    }
}
