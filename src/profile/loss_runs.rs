// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long runs of losses are: P(run >= n) of each loss model.

use crate::abi::{mix, uniform};
use crate::profile::quantile::normal_quantile;
use crate::profile::{Loss, LossModel, Pattern};

/// Shares of runs at which there is no use for more.
const LEAST: f64 = 1e-4;
/// Nor is there for longer ones.
const LONGEST: usize = 2000;
/// Packets of a run of the model, where there is no closed form.
const PACKETS: u32 = 1 << 20;

/// Of all runs of losses.
#[derive(Debug, Clone, PartialEq)]
pub struct LossRuns {
    /// The share that is of n packets or more, n = 1, 2, ...; it ends where few are left.
    pub at_least: Vec<f64>,
    /// Where that is from.
    pub from: String,
}

/// Returns the lengths of runs of losses; a bit-error rate applies to `frame` bytes. `None`: no packet is lost, or
/// all after the first loss.
pub fn loss_runs(loss: &Loss, frame: u32) -> Option<LossRuns> {
    let drawn = Cut {
        least: LEAST,
        longest: LONGEST,
    };
    let Some(max) = loss.max_run.map(|max| max as usize) else {
        let (at_least, from) = of_model(loss, frame, drawn)?;
        return Some(LossRuns { at_least, from });
    };
    let Some((runs, from)) = of_model(loss, frame, EXACT) else {
        // All is lost but what ends a run.
        return (loss.share_of(frame) > 0.0).then(|| LossRuns {
            at_least: vec![1.0; max.min(LONGEST)],
            from: "closed form".to_owned(),
        });
    };
    // A run of the model is cut into runs of `max`, a packet between them, and a rest.
    let of_length = |n: usize| -> f64 { runs.iter().skip(n - 1).step_by(max + 1).sum() };
    let all = of_length(1);
    let at_least = (1..=max.min(LONGEST)).map(|n| of_length(n) / all);
    Some(LossRuns {
        at_least: at_least.take_while(|share| *share >= LEAST).collect(),
        from,
    })
}

/// Returns the share of the packets lost by the model that `max_run` lets through.
pub(super) fn let_through(loss: &Loss, frame: u32) -> f64 {
    let Some(max) = loss.max_run.map(|max| max as usize) else {
        return 0.0;
    };
    // Each row of a trace, of which there may be millions, is another loss.
    if let LossModel::Bernoulli {
        probability: p,
        correlation: 0.0,
    } = loss.model
        && p < 1.0
    {
        let max = max as f64;
        return p.powf(max) * (1.0 - p) / -((max + 1.0) * p.ln()).exp_m1();
    }
    match of_model(loss, frame, EXACT) {
        Some((runs, _)) => {
            let passed: f64 = runs.iter().skip(max).step_by(max + 1).sum();
            passed / runs.iter().sum::<f64>()
        }
        // One run without an end.
        None => 1.0 / (max as f64 + 1.0),
    }
}

/// Where the runs of a model end: below this share of them, or at this length.
#[derive(Clone, Copy)]
struct Cut {
    least: f64,
    longest: usize,
}

/// For sums over all runs.
const EXACT: Cut = Cut {
    least: 1e-12,
    longest: 1 << 20,
};

/// Returns P(run >= n) of the model alone, and its origin.
fn of_model(loss: &Loss, frame: u32, cut: Cut) -> Option<(Vec<f64>, String)> {
    if loss.is_none() {
        return None;
    }
    let closed = |at_least: Vec<f64>| (at_least, "closed form".to_owned());
    Some(match &loss.model {
        LossModel::Bernoulli {
            probability,
            correlation,
        } if *correlation > 0.0 => (
            counted(&correlated(*probability, *correlation), false, cut)?,
            format!("a seeded run of {PACKETS} packets"),
        ),
        LossModel::Bernoulli { probability, .. } => closed(powers(*probability, 1, cut)?),
        LossModel::BitError { .. } => (
            powers(loss.of_model(frame), 1, cut)?,
            format!("closed form, frames of {frame} bytes"),
        ),
        LossModel::Burst {
            probability,
            length,
        } => closed(powers(*probability, *length as usize, cut)?),
        LossModel::Every { n, .. } => closed(if *n > 1 { vec![1.0] } else { return None }),
        LossModel::Pattern { pattern, repeat } => {
            let from = format!("the pattern's {} packets", pattern.length());
            (counted(&lost_of(pattern), *repeat, cut)?, from)
        }
        LossModel::GilbertElliott { p, r, bad, good } => closed(
            Chain {
                moves: vec![vec![1.0 - p, *p], vec![*r, 1.0 - r]],
                lost: vec![*good, *bad],
            }
            .runs(cut)?,
        ),
        LossModel::FourState {
            p13,
            p31,
            p32,
            p23,
            p14,
        } => closed(four_state([*p13, *p31, *p32, *p23, *p14]).runs(cut)?),
    })
}

/// Returns P(run >= n) of runs that go on with probability `p` after each `length` packets.
fn powers(p: f64, length: usize, cut: Cut) -> Option<Vec<f64>> {
    if p <= 0.0 || p >= 1.0 {
        return None;
    }
    let share = |n: usize| p.powf((n / length) as f64);
    let worth = |share: &f64| *share >= cut.least;
    Some((0..cut.longest).map(share).take_while(worth).collect())
}

/// States with a probability of loss each; rows of `moves` say where to from each.
struct Chain {
    moves: Vec<Vec<f64>>,
    lost: Vec<f64>,
}

fn four_state([p13, p31, p32, p23, p14]: [f64; 5]) -> Chain {
    let stay = |ways: f64| (1.0 - ways).max(0.0);
    Chain {
        moves: vec![
            vec![stay(p13 + p14), 0.0, p13, p14],
            vec![0.0, stay(p23), p23, 0.0],
            vec![p31, p32, stay(p31 + p32), 0.0],
            vec![1.0, 0.0, 0.0, 0.0],
        ],
        lost: vec![0.0, 0.0, 1.0, 1.0],
    }
}

impl Chain {
    /// Returns where it is in the long run, beginning in the first state.
    fn in_the_long_run(&self) -> Vec<f64> {
        let n = self.moves.len();
        // Half as fast, so that it settles even where it would go round for ever.
        let mut all: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                let own = |j| if i == j { 0.5 } else { 0.0 };
                (0..n).map(|j| own(j) + self.moves[i][j] / 2.0).collect()
            })
            .collect();
        // 2^60 steps: more than any probability of a profile needs.
        for _ in 0..60 {
            all = (0..n).map(|i| step(&all[i], &all)).map(scaled).collect();
        }
        all.swap_remove(0)
    }

    /// Returns P(run >= n), exactly: from a packet that is sent to one that is lost, and on.
    fn runs(&self, cut: Cut) -> Option<Vec<f64>> {
        let with = |states: &[f64], share: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let shares = states.iter().zip(&self.lost);
            shares.map(|(state, lost)| state * share(*lost)).collect()
        };
        let sent = with(&self.in_the_long_run(), &|lost| 1.0 - lost);
        let mut run = with(&step(&sent, &self.moves), &|lost| lost);
        if run.iter().sum::<f64>() <= 0.0 {
            return None;
        }
        run = scaled(run);
        let mut at_least = Vec::new();
        while at_least.len() < cut.longest {
            let share = run.iter().sum::<f64>();
            if share < cut.least {
                break;
            }
            at_least.push(share);
            run = with(&step(&run, &self.moves), &|lost| lost);
        }
        Some(at_least)
    }
}

fn step(states: &[f64], moves: &[Vec<f64>]) -> Vec<f64> {
    let into = |j: usize| states.iter().zip(moves).map(|(s, row)| s * row[j]).sum();
    (0..states.len()).map(into).collect()
}

fn scaled(row: Vec<f64>) -> Vec<f64> {
    let sum: f64 = row.iter().sum();
    row.iter().map(|share| share / sum).collect()
}

fn lost_of(pattern: &Pattern) -> Vec<bool> {
    let mut lost = vec![false; pattern.length() as usize];
    for i in pattern.lost() {
        lost[*i as usize] = true;
    }
    lost
}

/// Returns the runs of a sequence; `round`: its end continues at its beginning.
fn counted(lost: &[bool], round: bool, cut: Cut) -> Option<Vec<f64>> {
    // So that no run goes over the end.
    let start = match round {
        true => lost.iter().position(|lost| !lost)?,
        false => 0,
    };
    let around = lost[start..].iter().chain(&lost[..start]);
    let mut lengths = vec![0u32; cut.longest.min(lost.len().max(1))];
    let longest = lengths.len();
    let mut length = 0;
    for lost in around.chain([&false]) {
        match (lost, length) {
            (true, _) => length += 1,
            (false, 0) => {}
            (false, n) => {
                lengths[n.min(longest) - 1] += 1;
                length = 0;
            }
        }
    }
    let all: u32 = lengths.iter().sum();
    let mut left = all;
    let mut at_least = Vec::new();
    for n in lengths {
        if left == 0 {
            break;
        }
        at_least.push(f64::from(left) / f64::from(all));
        left -= n;
    }
    (all > 0).then_some(at_least)
}

/// Packets of the AR(1) process behind a correlated loss.
fn correlated(probability: f64, correlation: f64) -> Vec<bool> {
    let below = normal_quantile(probability);
    let fresh = (1.0 - correlation * correlation).sqrt();
    let normal = |i: u32| {
        let uniform = uniform(mix(u64::from(i) + 1));
        normal_quantile(uniform.max(f64::MIN_POSITIVE))
    };
    let mut z = normal(0);
    (1..=PACKETS)
        .map(|i| {
            z = correlation * z + fresh * normal(i);
            z < below
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn runs(loss: &str) -> Option<LossRuns> {
        let profile = Profile::parse(&format!("[link]\nloss = {loss}"), "test").unwrap();
        loss_runs(&profile.up.loss, 1514)
    }

    fn near(got: &[f64], want: &[f64], within: f64) {
        assert!(got.len() >= want.len(), "{got:?}");
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < within, "{got} {want}");
        }
    }

    #[test]
    fn independent_losses_are_powers() {
        let got = runs("\"10%\"").unwrap().at_least;
        near(&got, &[1.0, 0.1, 0.01, 0.001], 1e-12);
        assert!(got.len() <= 5, "{got:?}");
        assert!(runs("\"0%\"").is_none() && runs("\"100%\"").is_none());
        let burst = runs("{ model = \"burst\", probability = \"10%\", length = 3 }").unwrap();
        near(
            &burst.at_least,
            &[1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.01],
            1e-12,
        );
        let bits = runs("{ model = \"bit-error\", ber = 1e-5 }").unwrap();
        // 1 - (1 - 1e-5)^12112
        near(&bits.at_least, &[1.0, 0.114_073], 1e-5);
        let every = runs("{ model = \"every\", n = 7 }").unwrap();
        assert_eq!(every.at_least, [1.0]);
        assert!(runs("{ model = \"every\", n = 1 }").is_none());
    }

    /// With bad = 100 %, good = 0 a run lasts as long as the bad state: (1 - r)^(n-1).
    #[test]
    fn chains_have_the_runs_of_their_states() {
        let ge = "{ model = \"gilbert-elliott\", p = \"0.0001%\", r = \"25%\" }";
        near(
            &runs(ge).unwrap().at_least,
            &[1.0, 0.75, 0.5625, 0.421_875],
            1e-9,
        );
        // One state is a Bernoulli loss, whatever it is called.
        let same = "{ model = \"gilbert-elliott\", p = \"3%\", r = \"7%\", bad = \"20%\", good = \"20%\" }";
        near(&runs(same).unwrap().at_least, &[1.0, 0.2, 0.04], 1e-12);
        let four =
            "{ model = \"four-state\", p13 = \"1%\", p31 = \"20%\", p32 = \"30%\", p23 = \"50%\" }";
        near(&runs(four).unwrap().at_least, &[1.0, 0.5, 0.25], 1e-9);
        // Lost alone: never two.
        let alone = "{ model = \"four-state\", p13 = \"0%\", p14 = \"5%\" }";
        assert_eq!(runs(alone).unwrap().at_least, [1.0]);
        // Never out of the bad state: one run without an end.
        assert!(runs("{ model = \"gilbert-elliott\", p = \"1%\", r = \"0%\" }").is_none());
        // It goes round for ever.
        let round = "{ model = \"gilbert-elliott\", p = \"100%\", r = \"100%\" }";
        assert_eq!(runs(round).unwrap().at_least, [1.0]);
    }

    #[test]
    fn patterns_are_counted() {
        let got = |loop_: bool| {
            let text = format!("{{ model = \"pattern\", pattern = \"1011001\", loop = {loop_} }}");
            runs(&text).unwrap().at_least
        };
        // Once: 1, 11, 1; over and over the last and the first are one: 11, 11.
        near(&got(false), &[1.0, 1.0 / 3.0], 1e-12);
        assert_eq!(got(true), [1.0, 1.0]);
    }

    /// Runs of 1, 2, 3 and more are 1/2, 1/4, 1/4; longer ones are cut: of those of 3 and more, 4
    /// is (3) and nothing, 5 (3) and (1) ... by hand for p = 1/2.
    #[test]
    fn no_run_is_longer_than_the_longest() {
        let got = runs("{ probability = \"50%\", max-run = 3 }").unwrap();
        // a(n) = 2^-(n-1): sums of every fourth one, all over that of n = 1.
        near(&got.at_least, &[1.0, 0.5, 0.25], 1e-9);
        assert_eq!(got.at_least.len(), 3);
        let share = |loss: &str| {
            let profile = Profile::parse(&format!("[link]\nloss = {loss}"), "test").unwrap();
            profile.up.loss.share().unwrap()
        };
        // p(1 - p^m) / (1 - p) lost for one that passes.
        let lost: f64 = 0.5 * (1.0 - 0.125) / 0.5;
        let half = share("{ probability = \"50%\", max-run = 3 }");
        assert!((half - lost / (1.0 + lost)).abs() < 1e-9, "{half}");
        assert_eq!(share("{ probability = \"100%\", max-run = 4 }"), 0.8);
        assert_eq!(
            runs("{ probability = \"100%\", max-run = 4 }")
                .unwrap()
                .at_least,
            [1.0; 4]
        );
        // Bursts of 5, two of which hardly ever touch: 2 and 1 pass, 4 of 5 are lost.
        let burst = "{ model = \"burst\", probability = \"0.0001%\", length = 5, max-run = 2 }";
        let whole = "{ model = \"burst\", probability = \"0.0001%\", length = 5 }";
        assert!((share(burst) / share(whole) - 0.8).abs() < 1e-5);
        near(&runs(burst).unwrap().at_least, &[1.0, 1.0], 1e-5);
        assert_eq!(
            share("{ model = \"every\", n = 7, max-run = 1 }"),
            1.0 / 7.0
        );
    }

    /// Below the median: asin(r) of two and of three normal values (Sheppard) give P(LL) = 1/3,
    /// P(LLL) = 0.228441, and P(NLL) / P(NL) = (1/3 - 0.228441) / (1/2 - 1/3).
    #[test]
    fn correlated_losses_are_simulated() {
        let got = runs("{ model = \"bernoulli\", probability = \"50%\", correlation = \"50%\" }");
        let got = got.unwrap();
        near(&got.at_least, &[1.0, 0.629_354], 4e-3);
        assert!(got.from.contains("seeded run"), "{}", got.from);
    }
}
