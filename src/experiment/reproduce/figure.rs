// SPDX-License-Identifier: MIT OR Apache-2.0
//! A figure of an experiment: what was published, what theory says, what was measured.

use emud_monitor::log::RunVerdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::words;

words! {
    #[derive(Deserialize)]
    /// How a measured figure compares with what is expected.
    pub enum FigureVerdict {
        /// Within the tolerance, on a host without contention.
        Within = "within",
        /// It differs as it is known to, for a known reason.
        Explained = "explained",
        /// Not judged: nothing is expected of it, or it depends on the host alone.
        Reported = "reported",
        /// Outside the tolerance.
        Deviates = "deviates",
        /// Not measured.
        Missing = "not measured",
        /// The emulation failed during the run: nothing is known.
        Invalid = "invalid",
        /// The host was contended during the run: nothing is known.
        Contended = "contended",
    }
}

/// How far a measured figure may be from theory, or without theory from what was published.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tolerance {
    /// Share of the expected value.
    Share(f64),
    /// In the unit of the figure.
    Absolute(f64),
    /// From the first to the second value, whatever the expected one.
    Range(f64, f64),
    /// This value or a larger one, whatever the expected one.
    AtLeast(f64),
    /// None: the value is only reported.
    Any,
}

/// A figure and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Name of the figure.
    pub figure: String,
    /// Unit of all values; 1 Mibit is 1,048,576 bits.
    pub unit: String,
    /// Value in the source; null: it has none.
    pub published: Option<f64>,
    /// Value that follows from the configuration; null: none is known.
    pub theory: Option<f64>,
    /// Accepted difference from theory, or without theory from the published value.
    pub tolerance: Tolerance,
    /// The value follows from the seed, so that a run with the same seed has the same one; only if true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seeded: bool,
    /// Value of the same run with stock netem instead of emud; absent: it was not compared, or could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netem: Option<f64>,
    /// Measured value; null: it could not be measured.
    pub measured: Option<f64>,
    /// Value of each flow, of which the measured one is the mean; absent: it is no mean of flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<f64>,
    /// The same with netem.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub netem_flows: Vec<f64>,
    /// How they compare.
    pub verdict: FigureVerdict,
    /// Reason for a known difference, or why the figure cannot be measured here; null: neither.
    pub explanation: Option<String>,
    #[serde(skip)]
    known: Option<Known>,
}

/// Share of what the host does at most from which on that is the reason of a smaller value: emulation costs time, too.
const BY_HOST: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    from: f64,
    to: f64,
    why: &'static str,
}

impl Figure {
    pub(super) fn new(figure: impl Into<String>, unit: &'static str) -> Self {
        Self {
            figure: figure.into(),
            unit: unit.to_owned(),
            published: None,
            theory: None,
            tolerance: Tolerance::Share(0.03),
            seeded: false,
            netem: None,
            measured: None,
            flows: vec![],
            netem_flows: vec![],
            verdict: FigureVerdict::Missing,
            explanation: None,
            known: None,
        }
    }

    pub(super) fn published(self, published: f64) -> Self {
        Self {
            published: Some(published),
            ..self
        }
    }

    pub(super) fn theory(self, theory: f64) -> Self {
        Self {
            theory: Some(theory),
            ..self
        }
    }

    /// A limit that is no number, as of nothing that was counted, does not replace the one before: JSON cannot keep it.
    pub(super) fn within(self, tolerance: Tolerance) -> Self {
        let [from, to] = match tolerance {
            Tolerance::Range(from, to) => [from, to],
            Tolerance::Share(of) | Tolerance::Absolute(of) | Tolerance::AtLeast(of) => [of; 2],
            Tolerance::Any => [0.0; 2],
        };
        match from.is_finite() && to.is_finite() {
            true => Self { tolerance, ..self },
            false => self,
        }
    }

    /// Its value with netem, for the reader: the verdict is emud's.
    pub(super) fn netem(self, netem: Option<f64>) -> Self {
        let netem = netem.filter(|value| value.is_finite());
        Self { netem, ..self }
    }

    /// It is the mean of these flows, with emud and with netem.
    pub(super) fn flows(self, [flows, netem_flows]: [Vec<f64>; 2]) -> Self {
        Self {
            flows,
            netem_flows,
            ..self
        }
    }

    /// Its value is a count of fates, which the seed determines: of packets whose number does not depend on time.
    pub(super) fn seeded(self) -> Self {
        Self {
            seeded: true,
            ..self
        }
    }

    /// Explains a measured value outside the tolerance but in this range.
    pub(super) fn known(self, from: f64, to: f64, why: &'static str) -> Self {
        let known = Some(Known { from, to, why });
        Self { known, ..self }
    }

    /// Judges a value of a run with this verdict; `None`: computed in virtual time, where the host
    /// has no influence.
    pub(super) fn measured(self, measured: Option<f64>, run: Option<RunVerdict>) -> Self {
        let measured = measured.filter(|value| value.is_finite());
        let known = self
            .known
            .filter(|known| measured.is_some_and(|value| (known.from..=known.to).contains(&value)));
        let verdict = match (run, measured) {
            (Some(RunVerdict::Contended), _) => FigureVerdict::Contended,
            // Unwatched is not clean.
            (Some(RunVerdict::Invalid | RunVerdict::Unwatched), _) => FigureVerdict::Invalid,
            (_, None) => FigureVerdict::Missing,
            (_, Some(value)) if self.accepts(value) => FigureVerdict::Within,
            _ if known.is_some() => FigureVerdict::Explained,
            _ if self.tolerance == Tolerance::Any => FigureVerdict::Reported,
            _ => FigureVerdict::Deviates,
        };
        let explained = known.filter(|_| verdict == FigureVerdict::Explained);
        Self {
            measured,
            verdict,
            explanation: explained.map(|known| known.why.to_owned()),
            ..self
        }
    }

    /// Returns whether its value is too small, or not known because the run was not clean.
    pub(super) fn is_missed(&self) -> bool {
        match self.verdict {
            FigureVerdict::Contended | FigureVerdict::Invalid => true,
            FigureVerdict::Deviates => self.measured.is_some_and(|of| self.needs_more_than(of)),
            _ => false,
        }
    }

    /// Returns whether a value is below all that it accepts.
    pub(super) fn needs_more_than(&self, value: f64) -> bool {
        self.expected().is_some_and(|expected| value < expected) && !self.accepts(value)
    }

    /// Explains it by the most that the host does. A value far below that has another reason, and one of a run that
    /// was not clean is not known.
    pub(super) fn beyond_host(self, most: f64, why: String) -> Self {
        let verdict = match (self.verdict, self.measured) {
            (FigureVerdict::Deviates, Some(value)) if value < BY_HOST * most => return self,
            (FigureVerdict::Deviates, _) => FigureVerdict::Explained,
            _ => FigureVerdict::Missing,
        };
        let measured = self.measured;
        Self {
            measured: measured.filter(|_| verdict == FigureVerdict::Explained),
            verdict,
            explanation: Some(why),
            ..self
        }
    }

    /// Marks a part of the experiment for which this host lacks a program.
    pub(super) fn lacking(self, remedy: &'static str) -> Self {
        Self {
            verdict: FigureVerdict::Missing,
            explanation: Some(remedy.to_owned()),
            ..self
        }
    }

    /// Returns theory, or without theory the published value.
    pub fn expected(&self) -> Option<f64> {
        self.theory.or(self.published)
    }

    fn accepts(&self, value: f64) -> bool {
        let near = |most: f64| {
            let expected = self.expected();
            expected.is_some_and(|expected| (value - expected).abs() <= most)
        };
        match self.tolerance {
            Tolerance::Range(from, to) => (from..=to).contains(&value),
            Tolerance::AtLeast(least) => value >= least,
            Tolerance::Absolute(most) => near(most),
            Tolerance::Share(share) => near(share * self.expected().unwrap_or(0.0).abs()),
            Tolerance::Any => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(figure: &Figure, value: f64) -> FigureVerdict {
        figure.clone().measured(Some(value), None).verdict
    }

    #[test]
    fn theory_goes_before_what_was_published() {
        let figure = Figure::new("x", "s").published(100.0);
        assert_eq!(judged(&figure, 102.9), FigureVerdict::Within);
        let figure = figure.theory(200.0);
        assert_eq!(judged(&figure, 100.0), FigureVerdict::Deviates);
        assert_eq!(judged(&figure, 194.1), FigureVerdict::Within);
        assert_eq!(judged(&figure, 206.1), FigureVerdict::Deviates);
        // Without any there is nothing to agree with.
        let nothing = Figure::new("x", "s");
        assert_eq!(judged(&nothing, 1.0), FigureVerdict::Deviates);
    }

    #[test]
    fn tolerances() {
        let zero = Figure::new("x", "s")
            .theory(0.0)
            .within(Tolerance::Absolute(0.0));
        assert_eq!(judged(&zero, 0.0), FigureVerdict::Within);
        assert_eq!(judged(&zero, 0.1), FigureVerdict::Deviates);
        let range = Figure::new("x", "s").within(Tolerance::Range(1.0, 2.0));
        let of = [0.9, 1.0, 2.0, 2.1].map(|value| judged(&range, value));
        let [within, deviates] = [FigureVerdict::Within, FigureVerdict::Deviates];
        assert_eq!(of, [deviates, within, within, deviates]);
        assert_eq!(judged(&range, f64::NAN), FigureVerdict::Missing);
        let least = Figure::new("x", "s").within(Tolerance::AtLeast(1.0));
        let of = [0.9, 1.0, 99.0].map(|value| judged(&least, value));
        assert_eq!(of, [deviates, within, within]);
        let any = Figure::new("x", "s").published(1.0).within(Tolerance::Any);
        let of = [0.0, 1.0, 99.0].map(|value| judged(&any, value));
        assert_eq!(of, [FigureVerdict::Reported; 3]);
    }

    /// JSON has null for what is no number, and null is no limit.
    #[test]
    fn limits_are_numbers() {
        let (nan, infinite) = (f64::NAN, f64::INFINITY);
        let figure = Figure::new("x", "s").within(Tolerance::Range(1.0, 2.0));
        for tolerance in [
            Tolerance::Range(nan, 2.0),
            Tolerance::Range(1.0, infinite),
            Tolerance::Share(nan),
            Tolerance::Absolute(infinite),
            Tolerance::AtLeast(nan),
        ] {
            assert_eq!(figure.clone().within(tolerance), figure);
        }
    }

    /// A reason covers the difference that it is known for, and no other.
    #[test]
    fn an_explanation_has_a_range() {
        let figure = Figure::new("x", "s").published(10.0).known(5.0, 7.0, "why");
        let of = |value| {
            let figure = figure.clone().measured(Some(value), None);
            (figure.verdict, figure.explanation)
        };
        assert_eq!(of(6.0), (FigureVerdict::Explained, Some("why".to_owned())));
        assert_eq!(of(10.0), (FigureVerdict::Within, None));
        assert_eq!(of(4.9), (FigureVerdict::Deviates, None));
    }

    /// 128 KiB through 1 Gbit/s had 78.28 % of the rate.
    #[test]
    fn a_host_that_does_less_is_a_reason_and_never_agreement() {
        use FigureVerdict::{Contended, Deviates, Explained, Invalid, Missing, Within};
        let figure = Figure::new("x", "% of the rate").theory(94.15);
        let figure = figure.within(Tolerance::Share(0.05));
        assert!(figure.needs_more_than(89.0));
        assert!(!figure.needs_more_than(90.0) && !figure.needs_more_than(120.0));
        let of = |value, run| figure.clone().measured(Some(value), Some(run));
        for (value, run, verdict, is_missed) in [
            (90.0, RunVerdict::Clean, Within, false),
            (78.28, RunVerdict::Clean, Deviates, true),
            (120.0, RunVerdict::Clean, Deviates, false),
            (90.0, RunVerdict::Contended, Contended, true),
            (90.0, RunVerdict::Invalid, Invalid, true),
        ] {
            let figure = of(value, run);
            let judged = (figure.verdict, figure.is_missed());
            assert_eq!(judged, (verdict, is_missed), "{value}");
        }
        let of = |value, run, most| {
            let figure = of(value, run).beyond_host(most, "why".to_owned());
            let why = figure.explanation.is_some();
            (figure.verdict, figure.measured, why)
        };
        let clean = RunVerdict::Clean;
        assert_eq!(of(78.28, clean, 80.0), (Explained, Some(78.28), true));
        assert_eq!(of(50.0, clean, 80.0), (Deviates, Some(50.0), false));
        for run in [RunVerdict::Contended, RunVerdict::Invalid] {
            assert_eq!(of(90.0, run, 80.0), (Missing, None, true));
        }
    }

    #[test]
    fn a_run_that_is_not_clean_agrees_with_nothing() {
        let figure = Figure::new("x", "s").published(10.0).known(5.0, 7.0, "why");
        for (run, wanted) in [
            (RunVerdict::Contended, FigureVerdict::Contended),
            (RunVerdict::Invalid, FigureVerdict::Invalid),
            (RunVerdict::Unwatched, FigureVerdict::Invalid),
        ] {
            for value in [10.0, 6.0, 1.0] {
                let any = figure.clone().within(Tolerance::Any);
                assert_eq!(any.measured(Some(value), Some(run)).verdict, wanted);
                let judged = figure.clone().measured(Some(value), Some(run));
                assert_eq!((judged.verdict, judged.measured), (wanted, Some(value)));
                assert_eq!(judged.explanation, None);
            }
        }
        let clean = figure.measured(None, Some(RunVerdict::Clean));
        assert_eq!(clean.verdict, FigureVerdict::Missing);
    }
}
