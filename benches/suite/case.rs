// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sides of a case beside each other.

use crate::figure::{Figure, Results};

/// The base of comparisons: no qdisc, or a program that does nothing.
const BASES: [&str; 2] = ["bare", "empty probe"];

/// Units of quantities that add up on the path of a packet or an event. For others (goodput, an
/// error) a difference from bare has no meaning.
const COSTS: [&str; 4] = ["instructions/packet", "ns/packet", "ns/event", "us/packet"];

/// One metric of a case, with all its sides.
pub struct Case<'a> {
    pub name: &'a str,
    pub metric: &'a str,
    pub unit: &'a str,
    pub sides: Vec<&'a Figure>,
}

/// All of a section, those of the same metric together, in the order in which they were measured.
pub fn cases(results: &Results) -> Vec<Case<'_>> {
    let mut cases: Vec<Case> = Vec::new();
    for figure in &results.figures {
        let key = (&*figure.metric, &*figure.unit, &*figure.case);
        match cases.iter_mut().find(|c| (c.metric, c.unit, c.name) == key) {
            Some(case) => case.sides.push(figure),
            None => cases.push(Case {
                name: key.2,
                metric: key.0,
                unit: key.1,
                sides: vec![figure],
            }),
        }
    }
    let first = |case: &Case| {
        let same = |f: &Figure| (&*f.metric, &*f.unit) == (case.metric, case.unit);
        results.figures.iter().position(same)
    };
    cases.sort_by_cached_key(first);
    cases
}

pub fn is_base(side: &str) -> bool {
    BASES.contains(&side)
}

pub fn is_netem(side: &str) -> bool {
    side.starts_with("netem")
}

impl Case<'_> {
    /// The base's median, of a cost.
    pub fn base(&self) -> Option<f64> {
        let base = self.sides.iter().find(|f| is_base(&f.side));
        base.filter(|_| COSTS.contains(&self.unit))
            .map(|f| f.median())
    }

    /// What a side adds to the base.
    pub fn added(&self, figure: &Figure) -> Option<f64> {
        let base = self.base().filter(|_| !is_base(&figure.side));
        base.map(|base| figure.median() - base)
    }

    /// The relevant value of a figure: what it adds if there is a base, otherwise itself.
    pub fn net(&self, figure: &Figure) -> f64 {
        self.added(figure).unwrap_or_else(|| figure.median())
    }

    /// The best of several set-ups of netem.
    fn netem(&self) -> Option<f64> {
        let of = self.sides.iter().filter(|f| is_netem(&f.side));
        let values = of.map(|figure| self.net(figure));
        match self.unit.ends_with("/s") {
            true => values.max_by(f64::total_cmp),
            false => values.min_by(f64::total_cmp),
        }
    }

    /// Relative to netem's; `None` if that has no meaning.
    pub fn ratio(&self, figure: &Figure) -> Option<f64> {
        // Packets of one side may be early and those of the other late.
        let signed = self.metric.ends_with("earliest");
        let netem = self.netem().filter(|netem| *netem > 0.0 && !signed)?;
        let alone = self.sides.iter().filter(|f| is_netem(&f.side)).count() == 1;
        let itself = alone && is_netem(&figure.side);
        (!is_base(&figure.side) && !itself).then(|| self.net(figure) / netem)
    }
}
