// SPDX-License-Identifier: MIT OR Apache-2.0
//! What classes of a bottleneck sent while packets waited in them, judged by what their figures promise.

use super::check::CheckVerdict;
use crate::bottleneck::{QUANTUM, Schedule};
use crate::profile::{Bottleneck, ServiceClass};

/// Counts of a bottleneck's classes at a time, in the order of the profile.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When they were read, ns.
    pub at_ns: u64,
    /// Bytes sent and bytes that wait.
    pub classes: Vec<(u64, u64)>,
}

/// A promise of a bottleneck and what was measured of it, bit/s.
#[derive(Debug, Clone)]
pub struct ShareCheck {
    /// The class; none: the bottleneck.
    pub class: Option<String>,
    /// `rate`, `ceil`, `guarantee`, `priority`, `share`.
    pub what: &'static str,
    /// The promised value: at least, at most, or about.
    pub asked: f64,
    /// The interval that agrees with it.
    pub interval: (f64, f64),
    /// The measured value.
    pub measured: f64,
    /// Whether both agree.
    pub verdict: CheckVerdict,
}

/// Judges what was sent from the second sample to the last by classes with packets all the time. Figures are up to `age_ns`
/// older than their sample, and no packet has more bytes than `longest`.
pub fn judge(of: &Bottleneck, samples: &[Sample], age_ns: u64, longest: u64) -> Vec<ShareCheck> {
    let (Some(begin), Some(end)) = (samples.get(1), samples.last()) else {
        return Vec::new();
    };
    let judge = Judge {
        of,
        ns: end.at_ns.saturating_sub(begin.at_ns).max(1) as f64,
        age_ns: age_ns as f64,
        longest: longest as f64,
        sent: (begin.classes.iter().zip(&end.classes))
            .map(|(begin, end)| end.0.saturating_sub(begin.0) as f64)
            .collect(),
        busy: (0..of.classes.len())
            .map(|class| is_busy(of, class, samples, age_ns))
            .collect(),
    };
    judge.all()
}

/// Returns whether a class was never empty: at each sample it had more bytes than the server can send until the next.
fn is_busy(of: &Bottleneck, class: usize, samples: &[Sample], age_ns: u64) -> bool {
    let rate = u128::from(of.rate.unwrap_or(1));
    !of.is_inner(&of.classes[class].name)
        && samples.windows(2).all(|pair| {
            let ns = pair[1].at_ns.saturating_sub(pair[0].at_ns) + age_ns;
            let most = rate * u128::from(ns) / 8_000_000_000;
            u128::from(pair[0].classes[class].1) > most
        })
}

struct Judge<'a> {
    of: &'a Bottleneck,
    ns: f64,
    age_ns: f64,
    longest: f64,
    sent: Vec<f64>,
    busy: Vec<bool>,
}

impl Judge<'_> {
    fn all(&self) -> Vec<ShareCheck> {
        let free = (0..self.busy.len()).any(|c| self.busy[c] && self.is_free(c));
        let mut checks: Vec<_> = free.then(|| self.server()).into_iter().collect();
        for (at, class) in self.of.classes.iter().enumerate() {
            checks.extend(class.ceil.map(|ceil| self.ceil(at, ceil)));
            checks.extend(class.rate.and_then(|rate| self.guarantee(at, rate)));
            checks.extend(self.priority(at));
            checks.extend(self.share(at));
        }
        checks
    }

    fn server(&self) -> ShareCheck {
        let all = (0..self.sent.len()).filter(|c| self.is_leaf(*c));
        let sent: f64 = all.map(|c| self.sent[c]).sum();
        let rate = self.of.rate.unwrap_or(1) as f64;
        let least = self.at_least(rate, self.longest);
        self.check(
            None,
            "rate",
            rate,
            (least, self.at_most(rate, self.longest)),
            sent,
        )
    }

    fn ceil(&self, at: usize, ceil: u64) -> ShareCheck {
        let most = self.at_most(ceil as f64, self.longest);
        self.check(Some(at), "ceil", ceil as f64, (0.0, most), self.below(at))
    }

    /// Returns the bound of docs/queues.md, with classes of better priority.
    fn guarantee(&self, at: usize, rate: u64) -> Option<ShareCheck> {
        if !self.busy[at] || !self.is_free(at) || !self.keeps_promises() {
            return None;
        }
        let own = &self.of.classes[at];
        let better = |c: &&ServiceClass| c.priority < own.priority && !self.of.is_inner(&c.name);
        let better: Vec<_> = self.of.classes.iter().filter(better).collect();
        let promised: u64 = better.iter().filter_map(|class| class.rate).sum();
        let (server, rate) = (self.of.rate.unwrap_or(1) as f64, rate as f64);
        let rest = (server - promised as f64).max(rate);
        let bound = self.longest * (2.0 + (1 + better.len()) as f64 * rate / rest);
        let interval = (self.at_least(rate, bound), f64::INFINITY);
        Some(self.check(Some(at), "guarantee", rate, interval, self.sent[at]))
    }

    /// Checks the priority: beside a better class with packets a class sends at most its guarantee and what it lacked
    /// of it before: the server lets a class lag by a packet of each (`Tree::charge`).
    fn priority(&self, at: usize) -> Option<ShareCheck> {
        let own = &self.of.classes[at];
        let is_better = |c: usize| {
            let other = &self.of.classes[c];
            let same = other.parent == own.parent && other.priority < own.priority;
            same && self.busy[c] && other.ceil.is_none_or(|ceil| Some(ceil) >= self.of.rate)
        };
        let is_by_priority = matches!(self.of.schedule, Schedule::Priority | Schedule::Htb);
        let any = self.is_leaf(at) && is_by_priority && (0..self.busy.len()).any(is_better);
        let rate = own.rate.unwrap_or(0) as f64;
        let most = match own.rate {
            Some(_) => self.at_most(rate, (self.busy.len() + 3) as f64 * self.longest),
            None => self.longest,
        };
        any.then(|| self.check(Some(at), "priority", rate, (0.0, most), self.sent[at]))
    }

    /// Checks the share of what the loaded classes of the same priority sent: a turn of difference in a round, and a
    /// packet at either end; with guarantees the bound of `guarantee` more.
    fn share(&self, at: usize) -> Option<ShareCheck> {
        let own = &self.of.classes[at];
        let by_priority = self.of.schedule != Schedule::Drr;
        let is_beside = |c: &ServiceClass| {
            c.parent == own.parent && (!by_priority || c.priority == own.priority)
        };
        let weight = |c: &ServiceClass| c.rate.map_or(f64::from(c.weight), |rate| rate as f64);
        let beside = || self.of.classes.iter().filter(|c| is_beside(c));
        let competes = |c: &usize| {
            let class = &self.of.classes[*c];
            is_beside(class)
                && self.busy[*c]
                && class.ceil.is_none_or(|ceil| Some(ceil) >= self.of.rate)
        };
        let all: Vec<usize> = (0..self.busy.len()).filter(competes).collect();
        let is_by_weight =
            self.of.schedule != Schedule::Fifo && (own.rate.is_none() || self.keeps_promises());
        if !is_by_weight || !all.contains(&at) || all.len() < 2 {
            return None;
        }
        let least = beside().map(weight).fold(f64::INFINITY, f64::min);
        let packets = match own.rate {
            Some(_) => (self.busy.len() + 3) as f64,
            None => 2.0,
        };
        let each = |c: &usize| packets * self.longest / weight(&self.of.classes[*c]);
        let worst = all
            .iter()
            .filter(|c| **c != at)
            .map(each)
            .fold(0.0, f64::max);
        let bound = weight(own) * (QUANTUM as f64 / least + each(&at) + worst);
        let sent: f64 = all.iter().map(|c| self.sent[*c]).sum();
        let weights: f64 = all.iter().map(|c| weight(&self.of.classes[*c])).sum();
        let share = sent * weight(own) / weights;
        // Each figure is as old as all others, but for one report.
        let bound = bound + share * self.age_ns / self.ns;
        let asked = share * 8e9 / self.ns;
        let interval = ((share - bound).max(0.0), share + bound);
        Some(self.check(Some(at), "share", asked, interval, self.sent[at]))
    }

    /// `interval` and `sent` are in bytes.
    fn check(
        &self,
        at: Option<usize>,
        what: &'static str,
        asked: f64,
        interval: (f64, f64),
        sent: f64,
    ) -> ShareCheck {
        let rate = |bytes: f64| bytes * 8e9 / self.ns;
        ShareCheck {
            class: at.map(|at| self.of.classes[at].name.clone()),
            what,
            asked,
            interval: (rate(interval.0), rate(interval.1)),
            measured: rate(sent),
            verdict: match (interval.0..=interval.1).contains(&sent) {
                true => CheckVerdict::Agrees,
                false => CheckVerdict::Disagrees,
            },
        }
    }

    fn at_least(&self, rate: f64, less: f64) -> f64 {
        (rate * (self.ns - self.age_ns) / 8e9 - less).max(0.0)
    }

    fn at_most(&self, rate: f64, more: f64) -> f64 {
        rate * (self.ns + self.age_ns) / 8e9 + more
    }

    fn is_leaf(&self, at: usize) -> bool {
        !self.of.is_inner(&self.of.classes[at].name)
    }

    fn above(&self, at: usize) -> impl Iterator<Item = usize> {
        let place = |name: &String| self.of.classes.iter().position(|c| c.name == *name);
        let parent = move |at: &usize| self.of.classes[*at].parent.as_ref().and_then(place);
        std::iter::successors(Some(at), parent)
    }

    fn is_free(&self, at: usize) -> bool {
        let ceil = |c: usize| self.of.classes[c].ceil;
        self.above(at)
            .all(|c| ceil(c).is_none_or(|ceil| Some(ceil) >= self.of.rate))
    }

    /// Returns the bytes that a class and all below it sent.
    fn below(&self, at: usize) -> f64 {
        let is_below = |c: &usize| self.is_leaf(*c) && self.above(*c).any(|above| above == at);
        let all = (0..self.sent.len()).filter(is_below);
        all.map(|c| self.sent[c]).sum()
    }

    /// Returns whether the guarantees add up to no more than the server has.
    fn keeps_promises(&self) -> bool {
        let classes = || self.of.classes.iter();
        let is_lowest = |c: &&ServiceClass| {
            let mut below = classes().filter(|other| other.parent.as_deref() == Some(&c.name));
            below.all(|other| other.rate.is_none())
        };
        let sum: u64 = classes().filter(is_lowest).filter_map(|c| c.rate).sum();
        let has_ceils = classes().any(|c| self.of.is_inner(&c.name) && c.ceil.is_some());
        Some(sum) <= self.of.rate && !has_ceils
    }
}
