// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effect of chance on a measurement: simulates the requested link many times.
//!
//! The delay in order is a correlated process and pareto has no fourth moment, so no formula gives
//! the error of a standard deviation or of a Kolmogorov distance. But the model is known: [`RUNS`]
//! measurements of it are simulated, and a real measurement outside all of them has a probability
//! of 1 in [`RUNS`] + 1 (Barnard's Monte Carlo test, exact for any distribution).

use super::cdf::Cdf;
use super::check::PER_CHECK;
use super::probe::slope;
use super::splitmix::Random;
use super::theory::{Asked, Source};

/// Number of simulated measurements: one beyond all of them, above or below, is as rare as a check may fail.
pub const RUNS: usize = (2.0 / PER_CHECK) as usize;

/// Edges, at equal shares, where distribution functions are compared.
pub const EDGES: usize = 512;

/// Values per coherence time; more of them add no information.
const PER_COHERENCE: f64 = 8.0;

/// Packets of a simulated train: with more of them chance is smaller than the errors of the machine.
const TRAIN: usize = 5_000;

/// A delay beyond this normal value is excluded.
const LATEST_Z: f64 = 4.5;

/// Probes at equal distances.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub count: usize,
    pub interval_ns: f64,
}

/// The values of a statistic over all runs.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub low: f64,
    pub high: f64,
    sum: f64,
    squares: f64,
    runs: f64,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            sum: 0.0,
            squares: 0.0,
            runs: 0.0,
        }
    }
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
        self.sum += value;
        self.squares += value * value;
        self.runs += 1.0;
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.runs
    }

    pub fn sd(&self) -> f64 {
        (self.squares / self.runs - self.mean().powi(2))
            .max(0.0)
            .sqrt()
    }
}

/// The spread of a measurement's statistics.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chance {
    pub mean_ns: Spread,
    pub sd_ns: Spread,
    /// Kolmogorov distance at [`EDGES`] edges.
    pub ks: Spread,
    /// Slope of the delay over time, of a fitted line.
    pub slope: Spread,
    /// Share of packets that a later one overtook.
    pub overtaken: Spread,
}

/// Simulates `runs` measurements of the sum of these directions' delays; of the probes at this pace, the
/// delays of the `known` ones are in the sample.
pub fn simulate(ways: &[&Asked], pace: Pace, known: &[bool], cdf: &Cdf, runs: usize) -> Chance {
    let all = pace.count;
    let pace = thinned(ways, pace);
    // One that stands for several is known if one of them is.
    let known: Vec<bool> = (0..pace.count)
        .map(|i| known[i * all / pace.count..(i + 1) * all / pace.count].contains(&true))
        .collect();
    let size = known.iter().filter(|known| **known).count();
    let mut random = Random::new(pace.count as u64);
    let mut chance = Chance::default();
    let mut delays = vec![0.0; pace.count];
    let latest = latest_ns(ways);
    let near = ways.iter().map(|way| way.mean_ns).sum();
    let loss = lost(ways);
    let reorders = ways.iter().any(|way| way.reorders());
    for _ in 0..runs {
        delays.fill(0.0);
        for way in ways {
            add(way, pace, &mut random, &mut delays);
        }
        let sums = Sums::of(&delays, &known, near, latest, cdf);
        let (mean, sd) = sums.moments();
        chance.mean_ns.add(near + mean);
        chance.sd_ns.add(sd);
        chance.ks.add(distance(&sums.cells, size, cdf));
        chance.slope.add(sums.slope(pace));
        chance.overtaken.add(match reorders {
            true => overtaken(&delays, pace, || loss > 0.0 && random.uniform() < loss),
            false => 0.0,
        });
    }
    chance
}

/// Simulates by which share delays lengthen a train at this pace: of a line through the arrivals in their order. Packets
/// that overtake are early at its beginning, and those that are overtaken late at its end.
pub fn stretch(ways: &[&Asked], pace: Pace, runs: usize) -> Spread {
    let count = pace.count.min(TRAIN);
    let interval_ns = pace.interval_ns * pace.count as f64 / count as f64;
    let pace = Pace { count, interval_ns };
    let mut random = Random::new(count as u64);
    let mut stretch = Spread::default();
    let mut times = vec![0.0; count];
    for _ in 0..runs {
        for (i, time) in times.iter_mut().enumerate() {
            *time = i as f64 * interval_ns;
        }
        for way in ways {
            add(way, pace, &mut random, &mut times);
        }
        times.sort_unstable_by(f64::total_cmp);
        stretch.add(slope(&times) / interval_ns - 1.0);
    }
    stretch
}

/// One measurement, added up in one pass, which is most of the time of a simulation. A value near the mean
/// is subtracted from each delay, so that no digits are lost.
struct Sums {
    /// Known delays that are not beyond the latest.
    kept: f64,
    sum: f64,
    squares: f64,
    /// Each times its number, counted from the middle.
    product: f64,
    /// How many known delays there are between the edges.
    cells: [u32; EDGES],
}

impl Sums {
    fn of(delays: &[f64], known: &[bool], near: f64, latest: f64, cdf: &Cdf) -> Self {
        let mut sums = Self {
            kept: 0.0,
            sum: 0.0,
            squares: 0.0,
            product: 0.0,
            cells: [0; EDGES],
        };
        let mut number = -0.5 * (delays.len() as f64 - 1.0);
        for (delay, known) in delays.iter().zip(known) {
            let off = delay - near;
            sums.product += number * off;
            number += 1.0;
            if !known {
                continue;
            }
            if *delay <= latest {
                sums.kept += 1.0;
                sums.sum += off;
                sums.squares += off * off;
            }
            let cell = (cdf.at(*delay) * EDGES as f64) as usize;
            sums.cells[if cell < EDGES { cell } else { EDGES - 1 }] += 1;
        }
        sums
    }

    /// Returns the mean, less the value near it, and standard deviation (n - 1).
    fn moments(&self) -> (f64, f64) {
        let mean = self.sum / self.kept.max(1.0);
        let squares = self.squares - mean * self.sum;
        (mean, (squares.max(0.0) / (self.kept - 1.0).max(1.0)).sqrt())
    }

    fn slope(&self, pace: Pace) -> f64 {
        let n = pace.count as f64;
        self.product / (n * (n * n - 1.0) / 12.0) / pace.interval_ns
    }
}

/// Returns the probability that a probe is lost in one of these directions, if losses are independent.
pub fn lost(ways: &[&Asked]) -> f64 {
    let with = |lost: f64, way: &&Asked| lost + (1.0 - lost) * way.loss;
    ways.iter().fold(0.0, with)
}

/// Returns a pace with fewer probes if neighbours carry the same information.
fn thinned(ways: &[&Asked], pace: Pace) -> Pace {
    let mut spacing = f64::INFINITY;
    for way in ways {
        match &way.source {
            Source::Constant => {}
            Source::Process { coherence_ns, .. } => {
                spacing = spacing.min(coherence_ns / PER_COHERENCE);
            }
            Source::Independent { .. } => return pace,
        }
    }
    if !spacing.is_finite() || spacing <= pace.interval_ns {
        return pace;
    }
    let count = pace.count as f64 * pace.interval_ns / spacing;
    Pace {
        count: (count.ceil() as usize).max(2),
        interval_ns: spacing,
    }
}

fn add(way: &Asked, pace: Pace, random: &mut Random, delays: &mut [f64]) {
    let coherence_ns = match &way.source {
        Source::Constant => {
            delays.iter_mut().for_each(|d| *d += way.mean_ns);
            return;
        }
        Source::Independent { .. } => {
            for delay in delays {
                *delay += way.delay_ns(random.normal());
            }
            return;
        }
        Source::Process { coherence_ns, .. } => *coherence_ns,
    };
    let step = pace.interval_ns / coherence_ns;
    let mut w = random.uniform();
    let (mut a, mut b) = (random.normal(), random.normal());
    let (mut now, mut last) = (0.0, 0f64);
    for delay in delays {
        if w >= 2.0 {
            (a, b) = (random.normal(), random.normal());
        } else if w >= 1.0 {
            (a, b) = (b, random.normal());
        }
        w = w.fract();
        let v = 1.0 - w;
        // Held back until the previous one departs, as by the classifier.
        last = last.max(now + way.delay_ns((v * a + w * b) / (v * v + w * w).sqrt()));
        *delay += last - now;
        now += pace.interval_ns;
        w += step;
    }
}

/// Returns the longest delay that counts for mean and standard deviation: a link exceeds it once in 300,000
/// packets, a machine that pauses more often, and a few such delays would dominate the standard
/// deviation of a pareto.
pub fn latest_ns(ways: &[&Asked]) -> f64 {
    ways.iter().map(|w| w.delay_ns(LATEST_Z)).sum()
}

/// Returns mean and standard deviation (n - 1) of a sample.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// Returns the largest difference between the distribution function of `count` values and `cdf`, at the edges.
fn distance(cells: &[u32; EDGES], count: usize, cdf: &Cdf) -> f64 {
    // An edge that the function jumps over carries no information.
    let first = (cdf.atom() * EDGES as f64) as usize;
    // In shares of 1 / (count * EDGES).
    let (mut above, mut largest) = (0, 0);
    for (i, cell) in cells.iter().enumerate() {
        above += i64::from(*cell) * EDGES as i64 - count as i64;
        if i >= first && (above > largest || -above > largest) {
            largest = above.abs();
        }
    }
    largest as f64 / (count * EDGES) as f64
}

/// Returns the share of packets that arrive after one that was sent later, as the measurement counts them:
/// under a skewed delay this differs from the number of packets that overtake. A lost one neither
/// overtakes nor is overtaken.
fn overtaken(delays: &[f64], pace: Pace, mut lost: impl FnMut() -> bool) -> f64 {
    let mut earliest = f64::INFINITY;
    let (mut count, mut came) = (0, 0);
    for (i, delay) in delays.iter().enumerate().rev() {
        if lost() {
            continue;
        }
        came += 1;
        let arrival = i as f64 * pace.interval_ns + delay;
        count += i32::from(arrival > earliest);
        earliest = earliest.min(arrival);
    }
    f64::from(count) / f64::from(came.max(1))
}

/// Simulates one measurement, with a uniform value for each probe that determines its fate.
#[cfg(test)]
pub fn one(way: &Asked, pace: Pace, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random::new(seed << 32);
    let mut delays = vec![0.0; pace.count];
    add(way, pace, &mut random, &mut delays);
    let fates = delays.iter().map(|_| random.uniform()).collect();
    (delays, fates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::quantile::table_x;

    fn normal(source: fn(Vec<f64>) -> Source) -> Asked {
        let table_ns = (0..=4096).map(|i| 100e6 + 10e6 * table_x(i)).collect();
        Asked {
            mean_ns: 100e6,
            sd_ns: 10e6,
            source: source(table_ns),
            ..Asked::nothing()
        }
    }

    fn simulated(way: &Asked, pace: Pace, runs: usize) -> Chance {
        let known = vec![true; pace.count];
        simulate(&[way], pace, &known, &Cdf::of(&[way]), runs)
    }

    const PACE: Pace = Pace {
        count: 1000,
        interval_ns: 5e6,
    };

    #[test]
    fn independent_values_spread_as_theory_says() {
        let way = normal(|table_ns| Source::Independent { table_ns });
        let chance = simulated(&way, PACE, 4000);
        // Errors of the sd of 4000 runs: 1.1 %; four of them.
        let near =
            |got: f64, asked: f64| assert!((got / asked - 1.0).abs() < 0.045, "{got} {asked}");
        near(chance.mean_ns.sd(), 10e6 / 1000f64.sqrt());
        near(chance.sd_ns.sd(), 10e6 / 2000f64.sqrt());
        near(
            chance.slope.sd(),
            10e6 * (12.0 / 1000f64.powi(3)).sqrt() / 5e6,
        );
        // Kolmogorov: the mean of sqrt(n) D is sqrt(pi/2) ln 2; edges make it a little smaller.
        let ks = chance.ks.mean() * 1000f64.sqrt();
        assert!((0.80..0.88).contains(&ks), "{ks}");
    }

    /// Its time does not grow with the number of coherence times between two probes: 10^9.
    #[test]
    fn a_process_that_is_faster_than_probes_is_independent_values() {
        let way = normal(|table_ns| Source::Process {
            table_ns,
            coherence_ns: 1.0,
        });
        let pace = Pace {
            count: 5_000,
            interval_ns: 1e9,
        };
        let chance = simulated(&way, pace, 400);
        // Errors of the sd of 400 runs: 3.5 %; four of them.
        let near =
            |got: f64, asked: f64| assert!((got / asked - 1.0).abs() < 0.14, "{got} {asked}");
        near(chance.mean_ns.sd(), 10e6 / 5_000f64.sqrt());
        near(chance.sd_ns.sd(), 10e6 / 10_000f64.sqrt());
        assert!((chance.mean_ns.mean() / 100e6 - 1.0).abs() < 1e-3);
        assert!((chance.sd_ns.mean() / 10e6 - 1.0).abs() < 1e-2);
    }

    #[test]
    fn the_process_is_worth_as_many_values_as_theory_says() {
        let way = normal(|table_ns| Source::Process {
            table_ns,
            coherence_ns: 40e6,
        });
        let chance = simulated(&way, PACE, 4000);
        let worth = way.independent_values(5e9).unwrap();
        let got = (10e6 / chance.mean_ns.sd()).powi(2);
        // Twice the 1.1 % of the sd, four of them; the ends of the 5 s count for another 1 %.
        assert!((got / worth - 1.0).abs() < 0.1, "{got} {worth}");
        assert_eq!(chance.overtaken.high, 0.0);
    }

    #[test]
    fn packets_overtake_with_a_chance_that_is_known() {
        // Two packets: the second overtakes if its delay is shorter by the interval.
        let way = normal(|table_ns| Source::Independent { table_ns });
        let pace = Pace {
            count: 2,
            interval_ns: 10e6,
        };
        let chance = simulated(&way, pace, 40_000);
        let p = 2.0 * chance.overtaken.mean();
        let asked = crate::profile::quantile::normal_cdf(-1.0 / 2f64.sqrt());
        assert!(
            (p - asked).abs() < 4.0 * (0.25f64 / 40_000.0).sqrt(),
            "{p} {asked}"
        );
    }

    #[test]
    fn who_is_overtaken_is_counted_and_not_who_overtakes() {
        let pace = |count| Pace {
            count,
            interval_ns: 1.0,
        };
        // The first arrives last: three overtake, one is overtaken.
        assert_eq!(overtaken(&[9.0, 0.0, 0.0, 0.0], pace(4), || false), 0.25);
        // The last arrives first.
        assert_eq!(overtaken(&[5.0, 5.0, 5.0, 0.0], pace(4), || false), 0.75);
    }
}
