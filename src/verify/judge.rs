// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the requested with the measured link.
//!
//! Each check has the same small probability of a false alarm on a correct link; all together have
//! at most [`FALSE_ALARM`] (Bonferroni). Errors of the machine are separate from chance and covered
//! by a stated resolution.

use schemars::JsonSchema;
use serde::Serialize;

use super::binomial::{clopper_pearson, most};
use super::bottleneck::{Bottleneck, SATURATES};
use super::probe::{Plan, Stream};
use super::simulate::{Chance, EDGES, Pace, latest_ns, moments, simulate};
use super::theory::{Asked, Cdf};
use super::thinning::{relative_sd, slots};
use crate::profile::quantile::normal_quantile;

/// Largest probability that a correct link is reported as wrong.
pub const FALSE_ALARM: f64 = 1e-3;
/// Maximum number of checks that are subject to chance: mean, sd, distribution, loss and rate in
/// both directions, or reordering in place of order. The distance of a distribution can only be too
/// large, not too small, so half of its probability is free; the losses of the train use that.
const CHECKS: f64 = 10.0;
pub const PER_CHECK: f64 = FALSE_ALARM / CHECKS;
/// Probability with which a deviation that is stated as detectable is detected.
const POWER: f64 = 0.99;

/// Share of probes that may be later than the resolution because of this machine.
const LATE_SHARE: f64 = 0.02;
/// Above this share the delays are those of this machine, not of the link.
const TOO_LATE_SHARE: f64 = 0.2;
/// Largest change of the distribution by the clamp that keeps the order (docs/design.md).
const CLAMP_SHARE: f64 = 0.003;
/// Largest error of a rate besides chance: emud's is exact, the ends of the train are not.
const RATE_SHARE: f64 = 0.01;
/// With fewer probes the delays are not judged.
const LEAST_PROBES: usize = 50;
/// A queue that was idle for more than this share of the train was not saturated.
const MOST_IDLE: f64 = 0.1;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The measured value is as configured.
    Agrees,
    /// The measured value differs from the configured one.
    Disagrees,
    /// The value could not be measured.
    NotMeasured,
    /// The link has something for which this check has no theory.
    NotJudged,
}

/// Measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Mean of the delay.
    DelayMean,
    /// Standard deviation of the delay.
    DelaySd,
    /// Kolmogorov distance of the delay; of a constant delay the share of probes that differ by more
    /// than the resolution.
    DelayDistribution,
    /// Share of lost probes.
    Loss,
    /// Share of duplicated probes.
    Duplicates,
    /// Share of probes that arrived after a later one.
    Overtaken,
    /// Rate; of a round trip that of the slower direction.
    Rate,
}

/// Unit of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bits per second.
    BitS,
    /// 0 to 1.
    Share,
}

/// A configured and a measured value.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Check {
    /// "up" is what the interface sends, "down" what it receives, "both" there and back.
    #[schemars(extend("enum" = ["up", "down", "both"]))]
    pub direction: &'static str,
    /// Measured quantity.
    pub what: What,
    /// Unit of the values.
    pub unit: Unit,
    /// Configured value; a delay includes the serialisation of the probe.
    pub asked: f64,
    /// Measured value; null: not measured.
    pub measured: Option<f64>,
    /// Confidence interval of the value of the link. Of `delay_distribution`, and of `duplicates` and
    /// `overtaken` if none is configured: 0 and the largest value that agrees. null: not measured or
    /// not judged.
    pub interval: Option<(f64, f64)>,
    /// A link with this value, or one farther off, disagrees in 99 of 100 runs; null: there is no such
    /// value, or the check was not measured or not judged.
    pub notices: Option<f64>,
    /// Result of the check.
    pub verdict: Verdict,
    /// Why the check was not measured or not judged; null otherwise.
    pub why: Option<String>,
}

/// One stream of probes, or the round trip of one.
pub struct Judge<'a> {
    pub direction: &'static str,
    pub ways: Vec<&'a Asked>,
    pub probe_bytes: usize,
    pub train_bytes: usize,
    pub resolution_ns: f64,
    /// Share of the packets released meanwhile that the engine reports as late.
    pub late_share: f64,
    pub runs: usize,
}

impl Judge<'_> {
    /// The effect of chance on the delays of probes at this pace.
    pub fn chance(&self, plan: Plan) -> (Cdf, Chance) {
        let pace = Pace {
            count: plan.count as usize,
            interval_ns: plan.interval_ns as f64,
        };
        let cdf = Cdf::of(&self.ways);
        let chance = simulate(&self.ways, pace, &cdf, self.runs());
        (cdf, chance)
    }

    /// Delay, loss, copies and order, from probes at a rate well below the link's.
    pub fn paced(&self, stream: &Stream, (cdf, chance): &(Cdf, Chance)) -> Vec<Check> {
        let mut checks = self.delay(stream, cdf, chance);
        checks.push(self.loss(stream));
        checks.push(self.copies(stream));
        checks.push(self.order(stream, chance));
        checks.into_iter().map(|check| self.judged(check)).collect()
    }

    /// The check; without a verdict if it is not valid for this link.
    fn judged(&self, check: Check) -> Check {
        let Some(why) = self.ways.iter().find_map(|w| w.unjudged(check.what)) else {
            return check;
        };
        Check {
            interval: None,
            notices: None,
            verdict: Verdict::NotJudged,
            why: Some(format!("the link has {why}")),
            ..check
        }
    }

    /// The rate of a link whose rate is not judged, for which no train is sent.
    pub fn rate_unjudged(&self) -> Option<Check> {
        let queue = Bottleneck::of(&self.ways, self.train_bytes)?;
        let check = self.check(What::Rate, Unit::BitS, queue.way.rate_bit_s?);
        Some(self.judged(check)).filter(|check| check.verdict == Verdict::NotJudged)
    }

    fn check(&self, what: What, unit: Unit, asked: f64) -> Check {
        Check {
            direction: self.direction,
            what,
            unit,
            asked,
            measured: None,
            interval: None,
            notices: None,
            verdict: Verdict::NotMeasured,
            why: None,
        }
    }

    fn varies(&self) -> bool {
        self.ways.iter().any(|w| w.sd_ns > 0.0)
    }

    /// A constant delay needs one run.
    fn runs(&self) -> usize {
        if self.varies() { self.runs } else { 1 }
    }

    fn serialisation_ns(&self) -> f64 {
        let each = |w: &&Asked| w.serialisation_ns(self.probe_bytes);
        self.ways.iter().map(each).sum()
    }

    fn delay(&self, stream: &Stream, cdf: &Cdf, chance: &Chance) -> Vec<Check> {
        let serialisation = self.serialisation_ns();
        let propagation: f64 = self.ways.iter().map(|w| w.mean_ns).sum();
        let variance: f64 = self.ways.iter().map(|w| w.sd_ns.powi(2)).sum();
        let mut checks = vec![
            self.check(What::DelayMean, Unit::Ns, propagation + serialisation),
            self.check(What::DelaySd, Unit::Ns, variance.sqrt()),
            self.check(What::DelayDistribution, Unit::Share, 0.0),
        ];
        let mut delays = stream.delays_ns();
        if delays.len() < LEAST_PROBES {
            let why = format!("only {} probes with a known delay arrived", delays.len());
            checks.iter_mut().for_each(|c| c.why = Some(why.clone()));
            return checks;
        }
        if self.late_share > TOO_LATE_SHARE {
            let late = self.late_share * 100.0;
            let why = format!("this machine released {late:.0} % of the packets late");
            checks.iter_mut().for_each(|c| c.why = Some(why.clone()));
            return checks;
        }
        delays.sort_by(f64::total_cmp);
        if self.varies() {
            let kept = delays.len() - self.beyond(&delays, cdf);
            self.random(&mut checks, &delays[..kept], serialisation, cdf, chance);
        } else {
            self.constant(&mut checks, &delays);
        }
        checks
    }

    /// Counts the delays that the link exceeds only once in 300,000: this machine paused, and a few
    /// pauses of 100 ms double the standard deviation. No more of them are excluded than the
    /// machine is allowed (of the delayed packets, if only a share is delayed), so a link that is
    /// too late still counts.
    pub(super) fn beyond(&self, sorted: &[f64], cdf: &Cdf) -> usize {
        let latest = latest_ns(&self.ways) + self.serialisation_ns() + self.resolution_ns;
        let beyond = sorted.len() - sorted.partition_point(|d| *d <= latest);
        let most = self.late_allowed() * (1.0 - cdf.atom()) * sorted.len() as f64;
        if beyond as f64 > most || !self.varies() {
            return 0;
        }
        beyond
    }

    fn late_allowed(&self) -> f64 {
        LATE_SHARE + self.late_share
    }

    /// For checks that are subject to chance.
    fn random(
        &self,
        checks: &mut [Check],
        sorted: &[f64],
        serialisation: f64,
        cdf: &Cdf,
        chance: &Chance,
    ) {
        let (mean, sd) = moments(sorted);
        let r = self.resolution_ns;
        let asked = checks[0].asked;
        let off = chance.mean_ns;
        let propagation = asked - serialisation;
        let around = (
            mean - (off.high - propagation) - r,
            mean + (propagation - off.low) + r,
        );
        checks[0].decide(mean, around);
        checks[0].notices = Some(off.high + serialisation + r + z_power() * off.sd());
        // The spread of a sample's sd is proportional to the sd.
        let asked = checks[1].asked;
        let scale = &chance.sd_ns;
        let around = ((sd - r) * asked / scale.high, (sd + r) * asked / scale.low);
        checks[1].decide(sd, around);
        let least = asked - z_power() * (asked / scale.mean()) * scale.sd();
        checks[1].notices = (least > 0.0).then(|| (scale.high + r) * asked / least);
        let allowed = chance.ks.high + self.late_allowed() + CLAMP_SHARE;
        checks[2].decide_up_to(self.distance(sorted, serialisation, cdf), allowed);
        checks[2].notices = Some(allowed + z_power() * chance.ks.sd());
    }

    /// Every deviation is due to the machine: medians reduce the effect of a pause.
    fn constant(&self, checks: &mut [Check], sorted: &[f64]) {
        let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
        let (median, r) = (at(0.5), self.resolution_ns);
        checks[0].decide(median, (median - r, median + r));
        checks[0].notices = Some(checks[0].asked + 2.0 * r);
        // As the sd of a normal distribution.
        let sd = (at(0.95) - at(0.05)) / (2.0 * normal_quantile(0.95));
        checks[1].decide(sd, ((sd - r).max(0.0), sd + r));
        checks[1].notices = Some(2.0 * r);
        let off = |d: &&f64| (**d - checks[0].asked).abs() > r;
        let share = sorted.iter().filter(off).count() as f64 / sorted.len() as f64;
        checks[2].decide_up_to(share, self.late_allowed());
        checks[2].notices = Some(2.0 * self.late_allowed());
    }

    /// The Kolmogorov distance at the edges of the simulation; a delay may be too long by the
    /// resolution.
    fn distance(&self, sorted: &[f64], serialisation: f64, cdf: &Cdf) -> f64 {
        let first = (cdf.atom() * EDGES as f64) as usize;
        (first + 1..=EDGES)
            .map(|i| {
                let share = i as f64 / EDGES as f64;
                let edge = cdf.quantile(share);
                let below = sorted.partition_point(|d| d - serialisation <= edge) as f64;
                let below = below / sorted.len() as f64;
                let at_least = cdf.at(edge - self.resolution_ns);
                (below - share).max(at_least - below)
            })
            .fold(0.0, f64::max)
    }

    fn loss(&self, stream: &Stream) -> Check {
        let kept: f64 = self.ways.iter().map(|w| 1.0 - w.loss).product();
        let mut check = self.check(What::Loss, Unit::Share, 1.0 - kept);
        let (n, lost) = (stream.sent.len() as u64, stream.lost() as u64);
        if n == 0 {
            check.why = Some("no probe was sent".to_owned());
            return check;
        }
        check.decide(lost as f64 / n as f64, clopper_pearson(lost, n, PER_CHECK));
        check.notices = noticed_loss(check.asked, n);
        check
    }

    fn copies(&self, stream: &Stream) -> Check {
        let mut check = self.check(What::Duplicates, Unit::Share, 0.0);
        let came = stream.different();
        if came == 0 {
            check.why = Some("no probe arrived".to_owned());
            return check;
        }
        check.decide_up_to(stream.copies() as f64 / came as f64, 0.0);
        check.notices = noticed_loss(0.0, came as u64);
        check
    }

    fn order(&self, stream: &Stream, chance: &Chance) -> Check {
        let reorders = self.ways.iter().any(|w| w.reorders());
        let asked = if reorders {
            chance.overtaken.mean()
        } else {
            0.0
        };
        let mut check = self.check(What::Overtaken, Unit::Share, asked);
        let came = stream.came.len();
        if came == 0 {
            check.why = Some("no probe arrived".to_owned());
            return check;
        }
        let measured = stream.overtaken() as f64 / came as f64;
        if reorders {
            let (low, high) = (chance.overtaken.low, chance.overtaken.high);
            let around = (
                measured - (high - asked) - LATE_SHARE,
                measured + (asked - low) + LATE_SHARE,
            );
            check.decide(measured, around);
            check.notices = Some(high + LATE_SHARE + z_power() * chance.overtaken.sd());
        } else {
            check.decide_up_to(measured, 0.0);
            check.notices = noticed_loss(0.0, came as u64);
        }
        check
    }

    /// The rate, from a train that is faster than it; of a round trip, the rate of the direction
    /// that limits it. The `paced` probes show how much is lost on the way.
    pub fn train(&self, plan: Plan, stream: &Stream, paced: &Stream) -> Option<Check> {
        let queue = Bottleneck::of(&self.ways, self.train_bytes)?;
        let rate = queue.way.rate_bit_s?;
        let mut check = self.check(What::Rate, Unit::BitS, rate);
        let bits = 8.0 * (self.train_bytes as f64 + f64::from(queue.way.overhead)).max(1.0);
        let idle = match self.idle(plan, stream, &queue, bits) {
            Ok(idle) => idle,
            Err(why) => {
                check.why = Some(why);
                return Some(check);
            }
        };
        let (n, span_ns) = (stream.came.len(), stream.span_ns().max(1.0));
        let pace = Pace {
            count: n,
            interval_ns: span_ns / n as f64,
        };
        let slope = simulate(&self.ways, pace, &Cdf::of(&self.ways), self.runs()).slope;
        // A gap counts up to 1.5 fold in the slope: in the middle.
        let machine = RATE_SHARE + 2.0 * self.resolution_ns / span_ns + 1.5 * idle;
        let raw = stream.came_per_s() * bits;
        let (asked, lost) = thinned(&queue, paced);
        let slots = slots(n, lost, PER_CHECK / 2.0);
        // A delay that grows by s a second spreads the packets by 1 + s.
        let around = (
            raw * slots.0 * (1.0 + slope.low) / (1.0 + machine),
            raw * slots.1 * (1.0 + slope.high) * (1.0 + machine),
        );
        check.decide(raw / (1.0 - asked), around);
        let highest = slots.1 * (1.0 - asked) * (1.0 + slope.high);
        // The loss is known only from the paced probes, whose chance is independent.
        let sd = slope.sd().hypot(relative_sd(n, asked));
        let sd = sd.hypot(relative_loss_sd(paced.sent.len(), asked));
        let least = (1.0 - machine) * (1.0 - z_power() * sd) / highest;
        check.notices = (least > 0.0).then_some(rate * least);
        Some(check)
    }

    /// How long the queue may have been idle, or why the train does not show the rate.
    fn idle(
        &self,
        plan: Plan,
        stream: &Stream,
        queue: &Bottleneck,
        bits: f64,
    ) -> Result<f64, String> {
        let came = stream.different();
        if came < LEAST_PROBES.min(plan.count as usize / 2) {
            return Err(format!("only {came} of the train arrived"));
        }
        if queue.way.queue_packets < 2.0 {
            // Such a queue is empty again before the next packet arrives.
            return Err("the queue holds one packet at a time".to_owned());
        }
        if queue.rival {
            return Err("with these losses both directions limit the rate alternately".to_owned());
        }
        let offered = stream.offered_per_s() * bits;
        if offered * queue.ahead < SATURATES * queue.way.rate_bit_s.unwrap_or_default() {
            let offered = crate::profile::Rate(offered as u64);
            return Err(format!("this machine sends no more than {offered}"));
        }
        let idle = queue.idle(&stream.sent, self.train_bytes, self.runs);
        if idle > MOST_IDLE {
            let share = idle * 100.0;
            return Err(format!(
                "the queue may have been empty for {share:.0} % of the train"
            ));
        }
        Ok(idle)
    }
}

/// The reduction of the saturated stream by losses: the requested one, and its interval. A wrong
/// share of lost packets is reported by the check of the loss, at whatever point they are lost, and
/// is not a wrong rate. For a correct link this fails together with that check, so it needs no
/// separate probability.
fn thinned(queue: &Bottleneck, paced: &Stream) -> (f64, (f64, f64)) {
    let asked = 1.0 - queue.behind;
    let (n, lost) = (paced.sent.len() as u64, paced.lost() as u64);
    if n == 0 {
        return (asked, (asked, asked));
    }
    let (low, high) = clopper_pearson(lost, n, PER_CHECK);
    let behind = |all: f64| (1.0 - (1.0 - all) / queue.ahead).clamp(0.0, 1.0);
    (asked, (behind(low).min(asked), behind(high).max(asked)))
}

/// Standard deviation of the share of packets that arrive according to `n` probes, as a share of
/// it.
fn relative_loss_sd(n: usize, lost: f64) -> f64 {
    (lost / (1.0 - lost) / n.max(1) as f64).sqrt()
}

fn z_power() -> f64 {
    normal_quantile(POWER)
}

impl Check {
    fn decide(&mut self, measured: f64, interval: (f64, f64)) {
        let agrees = (interval.0..=interval.1).contains(&self.asked);
        self.set(measured, interval, agrees);
    }

    fn decide_up_to(&mut self, measured: f64, most: f64) {
        self.set(measured, (0.0, most), measured <= most);
    }

    fn set(&mut self, measured: f64, interval: (f64, f64), agrees: bool) {
        self.measured = Some(measured);
        self.interval = Some(interval);
        self.verdict = if agrees {
            Verdict::Agrees
        } else {
            Verdict::Disagrees
        };
    }
}

/// The smallest loss above the requested one that is detected.
fn noticed_loss(asked: f64, n: u64) -> Option<f64> {
    // The first count that disagrees.
    let (mut low, mut high) = ((asked * n as f64) as u64, n + 1);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if clopper_pearson(middle.min(n), n, PER_CHECK).0 > asked {
            high = middle;
        } else {
            low = middle;
        }
    }
    if high > n {
        return None;
    }
    Some(most(high - 1, n, 1.0 - POWER))
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
