// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the requested with the measured link.

mod delay;
mod rate;
#[cfg(test)]
mod tests;

use super::binomial::clopper_pearson;
use super::cdf::Cdf;
use super::check::{Check, CheckVerdict, PER_CHECK, Unit, What, noticed_loss, z_power};
use super::probe::{Plan, Stream};
use super::simulate::{Chance, Pace, lost, simulate};
use super::theory::{Asked, unjudged};

/// Share of probes that may be later than the resolution because of this machine.
const LATE_SHARE: f64 = 0.02;
/// With fewer probes the delays are not judged.
const LEAST_PROBES: usize = 50;

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
    /// Returns the effect of chance on the delays of probes at this pace, of which those arrived that did in
    /// `stream`: losses and a link's delays are independent.
    pub fn chance(&self, plan: Plan, stream: &Stream) -> (Cdf, Chance) {
        let known = stream.known();
        let pace = Pace {
            count: known.len(),
            interval_ns: plan.interval_ns as f64,
        };
        let cdf = Cdf::of(&self.ways);
        let chance = simulate(&self.ways, pace, &known, &cdf, self.runs());
        (cdf, chance)
    }

    /// Checks delay, loss, copies and order, from probes at a rate well below the link's.
    pub fn paced(&self, stream: &Stream, (cdf, chance): &(Cdf, Chance)) -> Vec<Check> {
        let mut checks = self.delay(stream, cdf, chance);
        checks.push(self.loss(stream));
        checks.push(self.copies(stream));
        checks.push(self.order(stream, chance));
        checks.into_iter().map(|check| self.judged(check)).collect()
    }

    fn judged(&self, check: Check) -> Check {
        let Some(why) = self.unjudged(check.what) else {
            return check;
        };
        Check {
            interval: None,
            notices: None,
            verdict: CheckVerdict::NotJudged,
            why: Some(format!("the link has {why}")),
            ..check
        }
    }

    fn unjudged(&self, what: What) -> Option<&'static str> {
        unjudged(&self.ways, what)
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
            verdict: CheckVerdict::NotMeasured,
            why: None,
        }
    }

    fn reorders(&self) -> bool {
        self.ways.iter().any(|w| w.reorders())
    }

    fn varies(&self) -> bool {
        self.ways.iter().any(|w| w.sd_ns > 0.0)
    }

    /// A constant delay needs one.
    fn runs(&self) -> usize {
        if self.varies() { self.runs } else { 1 }
    }

    fn serialisation_ns(&self) -> f64 {
        let each = |w: &&Asked| w.serialisation_ns(self.probe_bytes);
        self.ways.iter().map(each).sum()
    }

    fn loss(&self, stream: &Stream) -> Check {
        let mut check = self.check(What::Loss, Unit::Share, lost(&self.ways));
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
        let reorders = self.reorders();
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
}
