// SPDX-License-Identifier: MIT OR Apache-2.0
//! Criteria on busy intervals: CPUs and disks.

use std::collections::BTreeMap;

use super::Tally;
use crate::record::Interval;

#[derive(Debug)]
pub struct Intervals {
    theta_ns: u64,
    /// Thresholds of single members; `None`: not judged.
    own: BTreeMap<String, Option<u64>>,
    start_ns: u64,
    empty: Tally,
    pub total: Tally,
    pub members: BTreeMap<String, Tally>,
}

impl Intervals {
    pub fn new(
        theta_ns: u64,
        own: BTreeMap<String, Option<u64>>,
        start_ns: u64,
        empty: Tally,
    ) -> Self {
        Self {
            theta_ns,
            own,
            start_ns,
            total: empty.clone(),
            empty,
            members: BTreeMap::new(),
        }
    }

    pub fn threshold(&self) -> u64 {
        self.theta_ns
    }

    pub fn add(&mut self, name: &str, interval: Interval) {
        let own = match self.own.get(name) {
            Some(None) => return,
            Some(theta) => *theta,
            None => None,
        };
        let member = match self.members.get_mut(name) {
            Some(member) => member,
            None => self.members.entry(name.into()).or_insert_with(|| Tally {
                threshold: own,
                ..self.empty.clone()
            }),
        };
        let theta_ns = own.unwrap_or(self.theta_ns);
        for tally in [member, &mut self.total] {
            let duration = interval.duration_ns();
            tally.distribution.record(duration, interval.is_open());
            if duration >= theta_ns {
                let alarm_ns = interval.begin_ns + theta_ns;
                tally.alarm(alarm_ns.saturating_sub(self.start_ns));
            }
        }
    }
}
