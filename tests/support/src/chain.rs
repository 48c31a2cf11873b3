// SPDX-License-Identifier: MIT OR Apache-2.0
//! The theoretical results of a Markov chain of losses, with the standard errors of a sequence of
//! dependent packets.

/// A chain that loses a packet in state i with probability `loss[i]` and then moves by `moves[i]`.
pub struct Chain {
    pub moves: Vec<Vec<f64>>,
    pub loss: Vec<f64>,
}

/// A figure and its standard error.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub value: f64,
    pub error: f64,
}

impl Expected {
    #[track_caller]
    pub fn meets(self, what: &str, got: f64) {
        // What does not vary has an error of 0, give or take rounding.
        if (got - self.value).abs() < 1e-9 {
            return;
        }
        let off = (got - self.value).abs() / self.error;
        println!(
            "{what}: {got:.6} for {:.6}, off by {off:.2} standard errors",
            self.value
        );
        assert!(
            off < 3.0,
            "{what}: {got} for {}, off by {off:.2}",
            self.value
        );
    }
}

impl Chain {
    pub fn gilbert_elliott(p: f64, r: f64, bad: f64, good: f64) -> Self {
        Self {
            moves: vec![vec![1.0 - p, p], vec![r, 1.0 - r]],
            loss: vec![good, bad],
        }
    }

    /// Salsano's states 1 to 4.
    pub fn four_state(p13: f64, p31: f64, p32: f64, p23: f64, p14: f64) -> Self {
        Self {
            moves: vec![
                vec![1.0 - p13 - p14, 0.0, p13, p14],
                vec![0.0, 1.0 - p23, p23, 0.0],
                vec![p31, p32, 1.0 - p31 - p32, 0.0],
                vec![1.0, 0.0, 0.0, 0.0],
            ],
            loss: vec![0.0, 0.0, 1.0, 1.0],
        }
    }

    /// State 0: none; then the packets of a burst of `length` that begins with probability `p`.
    pub fn burst(p: f64, length: usize) -> Self {
        let mut moves = vec![vec![0.0; length + 1]; length + 1];
        for state in [0, length] {
            moves[state][0] = 1.0 - p;
            moves[state][1] = p;
        }
        for state in 1..length {
            moves[state][state + 1] = 1.0;
        }
        let mut loss = vec![1.0; length + 1];
        loss[0] = 0.0;
        Self { moves, loss }
    }

    /// Share lost and mean length of a run of losses over `n` packets.
    pub fn expected(&self, n: f64) -> [Expected; 2] {
        let seen = Seen::of(self);
        let (lost, begun) = (seen.mean(&seen.lost), seen.mean(&seen.begun));
        let (v11, v22) = (
            seen.long_run(&seen.lost, &seen.lost),
            seen.long_run(&seen.begun, &seen.begun),
        );
        let v12 =
            (seen.long_run(&seen.lost, &seen.begun) + seen.long_run(&seen.begun, &seen.lost)) / 2.0;
        let run = lost / begun;
        // The ratio of two means, to first order.
        let variance = (v11 - 2.0 * run * v12 + run * run * v22) / (begun * begun);
        [
            Expected {
                value: lost,
                error: (v11 / n).sqrt(),
            },
            Expected {
                value: run,
                error: (variance.max(0.0) / n).sqrt(),
            },
        ]
    }
}

/// The chain of what can be seen: the state, whether the packet is lost, and whether the one before
/// was. A mean over it has a variance of the sum of all autocovariances, over n.
struct Seen {
    moves: Vec<Vec<f64>>,
    /// Stationary.
    at: Vec<f64>,
    lost: Vec<f64>,
    /// A run of losses begins.
    begun: Vec<f64>,
}

impl Seen {
    fn of(chain: &Chain) -> Self {
        let states = chain.loss.len();
        let index = |s: usize, before: usize, now: usize| s * 4 + before * 2 + now;
        let mut moves = vec![vec![0.0; states * 4]; states * 4];
        let (mut lost, mut begun) = (vec![0.0; states * 4], vec![0.0; states * 4]);
        for s in 0..states {
            for (before, now) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let from = index(s, before, now);
                lost[from] = now as f64;
                begun[from] = f64::from(u8::from(before == 0 && now == 1));
                for t in 0..states {
                    moves[from][index(t, now, 1)] = chain.moves[s][t] * chain.loss[t];
                    moves[from][index(t, now, 0)] = chain.moves[s][t] * (1.0 - chain.loss[t]);
                }
            }
        }
        let mut at = vec![1.0 / (states * 4) as f64; states * 4];
        for _ in 0..100_000 {
            at = step(&at, &moves);
        }
        Self {
            moves,
            at,
            lost,
            begun,
        }
    }

    fn mean(&self, f: &[f64]) -> f64 {
        self.at.iter().zip(f).map(|(p, f)| p * f).sum()
    }

    /// Sum over all lags, in both directions, of the covariance of f now and g later.
    fn long_run(&self, f: &[f64], g: &[f64]) -> f64 {
        let product = self.mean(f) * self.mean(g);
        let mut weighted: Vec<f64> = self.at.iter().zip(f).map(|(p, f)| p * f).collect();
        let mut sum = 0.0;
        for lag in 0..20_000 {
            let covariance = weighted.iter().zip(g).map(|(p, g)| p * g).sum::<f64>() - product;
            sum += if lag == 0 {
                covariance
            } else {
                2.0 * covariance
            };
            weighted = step(&weighted, &self.moves);
        }
        sum
    }
}

fn step(at: &[f64], moves: &[Vec<f64>]) -> Vec<f64> {
    let mut next = vec![0.0; at.len()];
    for (p, row) in at.iter().zip(moves) {
        for (n, q) in next.iter_mut().zip(row) {
            *n += p * q;
        }
    }
    next
}

/// P(two standard normal values of correlation `r` are both below `t`) - P(one is)^2: the
/// tetrachoric series.
pub fn both_below(t: f64, r: f64) -> f64 {
    let density = (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    // Hermite polynomials over the root of n!.
    let (mut before, mut now) = (0.0, 1.0);
    let mut sum = 0.0;
    for n in 1..2000 {
        let n = f64::from(n);
        sum += r.powf(n) / n * (density * now).powi(2);
        let next = (t * now - (n - 1.0).sqrt() * before) / n.sqrt();
        (before, now) = (now, next);
    }
    sum
}

/// Runs of losses: how many, and how many packets.
pub fn runs(lost: &[u64]) -> (usize, f64) {
    let begun = (0..lost.len()).filter(|i| *i == 0 || lost[*i] != lost[*i - 1] + 1);
    let count = begun.count();
    (count, lost.len() as f64 / count as f64)
}
