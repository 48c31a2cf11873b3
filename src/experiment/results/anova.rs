// SPDX-License-Identifier: MIT OR Apache-2.0
//! One-way analysis of variance: whether any of several groups of runs differs, and which.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::estimate::{mean_difference, without_rounding};
use super::{Estimate, TTest, bonferroni};

/// A one-way analysis of variance of the runs of several groups (Fisher), with the variances of the groups
/// assumed equal.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Anova {
    /// Variance between the groups as a multiple of that within them; null: the runs of no group vary.
    #[schemars(range(min = 0))]
    pub f: Option<f64>,
    /// Degrees of freedom between the groups.
    #[schemars(range(min = 1))]
    pub between: usize,
    /// Degrees of freedom within the groups.
    #[schemars(range(min = 1))]
    pub within: usize,
    /// Probability that runs of identical experiments differ by at least this much.
    #[schemars(range(min = 0, max = 1))]
    pub p: f64,
    /// Each two groups.
    #[schemars(length(min = 1))]
    pub pairs: Vec<Pairwise>,
}

/// Two of several groups.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pairwise {
    /// Name of the first group.
    pub a: String,
    /// Name of the second group.
    pub b: String,
    /// Mean of b minus mean of a.
    pub difference: f64,
    /// t-test with the variance within all groups.
    pub pooled: TTest,
    /// p of this test, corrected by Bonferroni for the pairs of this figure.
    #[schemars(range(min = 0, max = 1))]
    pub bonferroni: f64,
    /// Welch's t-test, which does not assume equal variances, uncorrected; null: a group is a single run.
    pub welch: Option<TTest>,
}

/// Compares groups by name; `None`: fewer than two, or each is a single run, or the means differ and the runs of
/// no group vary.
pub fn anova(groups: &[(&str, Estimate)]) -> Option<Anova> {
    let runs: usize = groups.iter().map(|(_, group)| group.n).sum();
    let between = groups.len().checked_sub(1).filter(|df| *df > 0)?;
    let within = runs.checked_sub(groups.len()).filter(|df| *df > 0)?;
    let grand = groups.iter().map(|(_, g)| g.n as f64 * g.mean).sum::<f64>() / runs as f64;
    let of_means = |(_, g): &(&str, Estimate)| g.n as f64 * (g.mean - grand).powi(2);
    let of_runs = |(_, g): &(&str, Estimate)| (g.n - 1) as f64 * g.sd.unwrap_or(0.0).powi(2);
    let mean_square_between = groups.iter().map(of_means).sum::<f64>() / between as f64;
    let deviation = (groups.iter().map(of_runs).sum::<f64>() / within as f64).sqrt();
    let mean_square_within =
        without_rounding(deviation, groups.iter().map(|(_, g)| g.mean)).powi(2);
    let same = groups
        .iter()
        .all(|(_, g)| mean_difference(&groups[0].1, g) == 0.0);
    let (f, p) = if mean_square_within > 0.0 {
        let f = mean_square_between / mean_square_within;
        let of_none = FisherSnedecor::new(between as f64, within as f64).ok()?;
        (Some(f), of_none.sf(f))
    } else {
        // Groups that do not vary say nothing of chance, but that the same is no difference.
        (None, same.then_some(1.0)?)
    };
    let count = groups.len() * between / 2;
    let mut pairs = Vec::new();
    for (i, (a, of_a)) in groups.iter().enumerate() {
        for (b, of_b) in &groups[i + 1..] {
            let difference = mean_difference(of_a, of_b);
            let inverse = 1.0 / of_a.n as f64 + 1.0 / of_b.n as f64;
            let error = (mean_square_within * inverse).sqrt();
            let pooled = TTest::of(difference, error, within as f64)?;
            pairs.push(Pairwise {
                a: (*a).to_owned(),
                b: (*b).to_owned(),
                difference,
                pooled,
                bonferroni: bonferroni(pooled.p, count),
                welch: super::welch(of_a, of_b),
            });
        }
    }
    Some(Anova {
        f,
        between,
        within,
        p: p.clamp(0.0, 1.0),
        pairs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(groups: &[&[f64]]) -> Option<Anova> {
        let names = ["a", "b", "c", "d"];
        let groups = names.iter().zip(groups);
        let groups: Vec<_> = groups
            .map(|(name, values)| (*name, Estimate::of(values).unwrap()))
            .collect();
        anova(&groups)
    }

    fn near(got: f64, expected: f64, tolerance: f64) {
        assert!(
            (got - expected).abs() <= tolerance * expected.abs(),
            "{got} {expected}"
        );
    }

    /// By hand: means 5, 9, 10 and 8 of all; squares between 6 (9 + 1 + 4) = 84, within 16 + 24 + 28 = 68;
    /// F = (84 / 2) / (68 / 15) = 9.2647. With 2 degrees of freedom above it, the F distribution has the
    /// closed form p = (1 + 2 F / 15)^-7.5 = 0.0023988.
    #[test]
    fn three_groups_by_hand() {
        let found = of(&[
            &[6.0, 8.0, 4.0, 5.0, 3.0, 4.0],
            &[8.0, 12.0, 9.0, 11.0, 6.0, 8.0],
            &[13.0, 9.0, 11.0, 8.0, 7.0, 12.0],
        ])
        .unwrap();
        let f = 42.0 / (68.0 / 15.0);
        near(found.f.unwrap(), f, 1e-12);
        assert_eq!((found.between, found.within), (2, 15));
        near(found.p, (1.0 + 2.0 * f / 15.0).powf(-7.5), 1e-9);
        near(found.p, 0.002_398_8, 1e-4);
        let named: Vec<_> = found
            .pairs
            .iter()
            .map(|p| format!("{}{}", p.a, p.b))
            .collect();
        assert_eq!(named, ["ab", "ac", "bc"]);
        let differences: Vec<_> = found.pairs.iter().map(|p| p.difference).collect();
        assert_eq!(differences, [4.0, 5.0, 1.0]);
        // t = 4 / sqrt(68 / 15 / 3) = 3.2540 with 15 degrees of freedom, of which t(0.975) = 2.13145.
        let half = 2.131_45 * (68.0f64 / 45.0).sqrt();
        near(found.pairs[0].pooled.interval[0], 4.0 - half, 1e-4);
        near(
            found.pairs[0].bonferroni,
            3.0 * found.pairs[0].pooled.p,
            1e-12,
        );
    }

    /// PlantGrowth of R's `datasets` (Dobson, 1983): `anova(lm(weight ~ group))` prints F = 4.8461 with 2 and
    /// 27 degrees of freedom and p = 0.01591; `pairwise.t.test(weight, group, "bonferroni")` prints 0.583,
    /// 0.263 and 0.013.
    #[test]
    fn a_published_data_set() {
        let found = of(&[
            &[4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14],
            &[4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69],
            &[6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80, 5.26],
        ])
        .unwrap();
        near(found.f.unwrap(), 4.8461, 1e-5);
        assert_eq!((found.between, found.within), (2, 27));
        near(found.p, 0.015_91, 1e-4);
        let p: Vec<_> = found
            .pairs
            .iter()
            .map(|p| format!("{:.3}", p.bonferroni))
            .collect();
        assert_eq!(p, ["0.583", "0.263", "0.013"]);
    }

    /// Of two groups, F is the square of Student's t, and both have the same p.
    #[test]
    fn two_groups_are_students_t_test() {
        let found = of(&[&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0, 8.0]]).unwrap();
        let [pair] = &found.pairs[..] else { panic!() };
        near(found.p, pair.pooled.p, 1e-9);
        assert_eq!(pair.bonferroni, pair.pooled.p);
    }

    #[test]
    fn runs_without_chance_and_too_few_runs() {
        let same = of(&[&[2.0, 2.0], &[2.0, 2.0], &[2.0]]).unwrap();
        assert_eq!((same.f, same.p), (None, 1.0));
        assert_eq!(of(&[&[2.0, 2.0], &[2.0, 2.0], &[3.0]]), None);
        // Ten times 0.1 is not 1, so that the means differ in their last digit.
        let rounded = of(&[&[0.1; 10], &[0.1; 3]]).unwrap();
        assert_eq!(
            (rounded.f, rounded.p, rounded.pairs[0].pooled.p),
            (None, 1.0, 1.0)
        );
        // A single run has no deviation, but takes part.
        assert_eq!(of(&[&[1.0, 2.0], &[3.0]]).unwrap().within, 1);
        assert_eq!(of(&[&[1.0], &[2.0], &[3.0]]), None);
        assert_eq!(of(&[&[1.0, 2.0]]), None);
    }
}
