// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two results of the same experiments: what the seed determines is identical, the rest within its noise.

use super::criterion::NODES;
use super::report::number;
use super::{Conditions, Figure, FigureVerdict, Reproduced, Reproduction, Tolerance};
use crate::text::columns;

/// How a figure of two results compares; the least favourable one last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Agreement {
    Identical,
    Near,
    /// Nothing is expected of it, so nothing is known of its noise.
    Reported,
    /// One of them has no value, or not of a clean run.
    Unknown,
    Differs,
}

impl Agreement {
    fn word(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Near => "within noise",
            Self::Reported => "only reported",
            Self::Unknown => "not comparable",
            Self::Differs => "differs",
        }
    }

    fn of(one: &Figure, other: &Figure, is_seeded: bool) -> Self {
        let known = |figure: &Figure| {
            let verdict = figure.verdict;
            let clean = [
                FigureVerdict::Within,
                FigureVerdict::Explained,
                FigureVerdict::Reported,
                FigureVerdict::Deviates,
            ];
            figure.measured.filter(|_| clean.contains(&verdict))
        };
        let Some((first, second)) = known(one).zip(known(other)) else {
            return Self::Unknown;
        };
        let only_reported = |figure: &&Figure| figure.verdict == FigureVerdict::Reported;
        if [one, other].iter().any(only_reported) {
            return Self::Reported;
        }
        let apart = (first - second).abs();
        // What theory takes from a measurement is not the same in both.
        let [first, second] = [one, other].map(|figure| figure.expected().unwrap_or(0.0).abs());
        let expected = first.max(second);
        let near = match one.tolerance {
            // A load more or less is the noise of a number of them.
            Tolerance::Absolute(most) if one.unit == NODES => apart <= most.max(1.0),
            Tolerance::Absolute(most) => apart <= most,
            Tolerance::Share(share) => apart <= share * expected,
            // They say nothing of the noise.
            Tolerance::Range(..) | Tolerance::AtLeast(_) | Tolerance::Any => {
                one.verdict == other.verdict
            }
        };
        match (apart == 0.0, is_seeded, near) {
            (true, ..) => Self::Identical,
            (false, false, true) => Self::Near,
            _ => Self::Differs,
        }
    }
}

/// Figures of two results beside each other.
#[derive(Debug)]
pub struct Comparison {
    rows: Vec<[String; 6]>,
    worst: Agreement,
}

impl Comparison {
    /// Compares all experiments of both.
    ///
    /// # Errors
    /// An experiment was carried out with another seed or length, another lateness of an invalid run, or only one of
    /// them with thresholds of a file. What these thresholds are is not known.
    pub fn of(one: &Reproduction, other: &Reproduction) -> Result<Self, String> {
        let mut comparison = Self {
            rows: vec![],
            worst: Agreement::Identical,
        };
        if one.experiments.is_empty() && other.experiments.is_empty() {
            comparison.worst = Agreement::Unknown;
        }
        for first in &one.experiments {
            match other
                .experiments
                .iter()
                .find(|second| second.name == first.name)
            {
                Some(second) => comparison.both(first, second)?,
                None => comparison.single(first, 0),
            }
        }
        let only = |second: &&Reproduced| {
            one.experiments
                .iter()
                .all(|first| first.name != second.name)
        };
        for second in other.experiments.iter().filter(only) {
            comparison.single(second, 1);
        }
        Ok(comparison)
    }

    fn both(&mut self, one: &Reproduced, other: &Reproduced) -> Result<(), String> {
        let of = |conditions: &Conditions| {
            (
                conditions.seed,
                conditions.quick,
                conditions.own_thresholds,
                conditions.late_ns,
            )
        };
        if of(&one.conditions) != of(&other.conditions) {
            return Err(format!(
                "{} was carried out with other conditions than in the first file ({}, not {}): carry it out with the \
                 same --seed, --quick and --monitor",
                one.name,
                other.conditions.text(),
                one.conditions.text()
            ));
        }
        let is_virtual = one.scenarios.is_empty();
        let beside = |figure: &Figure, all: &[Figure]| {
            let mut all = all.iter();
            all.find(|of| of.figure == figure.figure).cloned()
        };
        for first in &one.figures {
            let second = beside(first, &other.figures);
            let agreement = second.as_ref().map_or(Agreement::Unknown, |second| {
                Agreement::of(first, second, is_virtual || first.seeded)
            });
            let second = second.and_then(|second| second.measured);
            self.row(&one.name, first, [first.measured, second], agreement);
        }
        for second in other
            .figures
            .iter()
            .filter(|of| beside(of, &one.figures).is_none())
        {
            self.row(
                &one.name,
                second,
                [None, second.measured],
                Agreement::Unknown,
            );
        }
        Ok(())
    }

    /// An experiment of one of the two.
    fn single(&mut self, one: &Reproduced, at: usize) {
        for figure in &one.figures {
            let mut measured = [None; 2];
            measured[at] = figure.measured;
            self.row(&one.name, figure, measured, Agreement::Unknown);
        }
    }

    fn row(
        &mut self,
        name: &str,
        figure: &Figure,
        measured: [Option<f64>; 2],
        agreement: Agreement,
    ) {
        let [first, second] = measured.map(|value| value.map_or_else(|| "-".to_owned(), number));
        let cells = [
            name,
            &figure.figure,
            &figure.unit,
            &first,
            &second,
            agreement.word(),
        ];
        self.rows.push(cells.map(str::to_owned));
        self.worst = self.worst.max(agreement);
    }

    /// Returns the table.
    pub fn text(&self) -> String {
        let head = [
            "experiment",
            "figure",
            "unit",
            "first",
            "second",
            "agreement",
        ];
        columns(std::iter::once(head.map(str::to_owned)).chain(self.rows.iter().cloned()))
    }

    /// Returns 0 if all agree, 1 if one differs, 2 if one cannot be compared.
    pub fn exit_code(&self) -> u8 {
        match self.worst {
            Agreement::Identical | Agreement::Near | Agreement::Reported => 0,
            Agreement::Differs => 1,
            Agreement::Unknown => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use emud_monitor::log::RunVerdict;

    use super::*;

    fn agreement(tolerance: Tolerance, [one, other]: [f64; 2], is_seeded: bool) -> Agreement {
        let figure = |value| {
            let figure = Figure::new("x", "s").theory(10.0).within(tolerance);
            figure.measured(Some(value), Some(RunVerdict::Clean))
        };
        Agreement::of(&figure(one), &figure(other), is_seeded)
    }

    #[test]
    fn noise_is_the_tolerance_and_fates_have_none() {
        use Agreement::{Differs, Identical, Near};
        let share = Tolerance::Share(0.1);
        let of = |values, is_seeded| agreement(share, values, is_seeded);
        assert_eq!(
            [of([9.5, 9.5], false), of([9.5, 9.5], true)],
            [Identical; 2]
        );
        assert_eq!(of([9.5, 10.5], false), Near);
        assert_eq!(of([9.5, 10.6], false), Differs);
        assert_eq!(of([9.5, 9.500_001], true), Differs);
        // Both deviate, but in the same way.
        assert_eq!(of([20.0, 20.5], false), Near);
        let exact = agreement(Tolerance::Absolute(0.0), [9.0, 10.0], false);
        assert_eq!(exact, Differs);
        let nodes = |other, is_seeded| {
            let figure = Figure::new("x", NODES).theory(4.0);
            let figure = figure.within(Tolerance::Absolute(0.0));
            let of = |value| {
                let figure = figure.clone().known(4.0, 16.0, "why");
                figure.measured(Some(value), Some(RunVerdict::Clean))
            };
            Agreement::of(&of(7.0), &of(other), is_seeded)
        };
        assert_eq!([nodes(8.0, false), nodes(6.0, false)], [Near; 2]);
        assert_eq!([nodes(9.0, false), nodes(8.0, true)], [Differs; 2]);
        let range = Tolerance::Range(1.0, 2.0);
        let of = |values| agreement(range, values, false);
        assert_eq!([of([1.0, 2.0]), of([1.0, 3.0])], [Near, Differs]);
        let any = agreement(Tolerance::Any, [1.0, 99.0], false);
        assert_eq!(any, Agreement::Reported);
    }

    #[test]
    fn a_run_that_is_not_clean_agrees_with_nothing() {
        let of = |value, run| Figure::new("x", "s").theory(1.0).measured(value, Some(run));
        let clean = of(Some(1.0), RunVerdict::Clean);
        for other in [
            of(Some(1.0), RunVerdict::Contended),
            of(Some(1.0), RunVerdict::Invalid),
            of(None, RunVerdict::Clean),
        ] {
            for (one, other) in [(&clean, &other), (&other, &clean)] {
                assert_eq!(Agreement::of(one, other, false), Agreement::Unknown);
            }
        }
    }
}
