// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bottlenecks as they are written to what their servers run.

use super::aqm::choice;
use super::{Bottleneck, Profile, Queue, ServiceClass};
use crate::abi::mix;
use crate::bottleneck::{Class, Limits, Plan, Schedule, Signals};

/// Whose draws these are.
const FOR_BOTTLENECKS: u64 = 0x3d0a_94e5_b7f2_186c;

impl Profile {
    /// As servers run them; `seed` is that of the link.
    pub fn plans(&self, seed: u64) -> Vec<Plan> {
        // Mixed again, since the number of a class is mixed in next.
        let seeds = (1..).map(|number| mix(mix(seed ^ FOR_BOTTLENECKS) ^ mix(number)));
        let all = self.bottlenecks.iter().zip(seeds);
        all.map(|(bottleneck, seed)| Plan {
            seed,
            ..bottleneck.plan()
        })
        .collect()
    }
}

impl Bottleneck {
    /// Returns the plan of the bottleneck with seed 0, see [`Profile::plans`].
    pub fn plan(&self) -> Plan {
        let rate = self.rate.unwrap_or(1);
        let class = |class: &ServiceClass| Class {
            parent: class.parent.as_ref().and_then(|name| self.place(name)),
            priority: class.priority as u8,
            weight: class.weight,
            rate: class.rate,
            ceil: class.ceil,
            limits: limits(&class.queue),
            signals: signals(&class.queue, self.nominal(class)),
        };
        let alone = Class {
            limits: limits(&self.queue),
            signals: signals(&self.queue, rate),
            ..Class::default()
        };
        Plan {
            rate,
            schedule: self.schedule,
            seed: 0,
            classes: match self.classes.is_empty() {
                true => vec![alone],
                false => self.classes.iter().map(class).collect(),
            },
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| class.name == name)
    }

    /// Returns the rate of a class while all others of its priority have packets, too: bit/s, 1 at least.
    /// Managers convert bytes to time with it.
    pub(crate) fn nominal(&self, class: &ServiceClass) -> u64 {
        let parent = class.parent.as_ref().and_then(|name| self.place(name));
        let above = match parent {
            Some(place) => self.nominal(&self.classes[place]),
            None => self.rate.unwrap_or(1),
        };
        let beside = self.classes.iter().filter(|other| {
            other.parent == class.parent
                && (self.schedule == Schedule::Drr || other.priority == class.priority)
        });
        let weights: u64 = beside.map(|other| u64::from(other.weight)).sum();
        let share = match self.schedule {
            Schedule::Fifo => above,
            Schedule::Htb | Schedule::Priority | Schedule::Drr => class.rate.unwrap_or_else(|| {
                let share = u128::from(above) * u128::from(class.weight);
                (share / u128::from(weights.max(1))) as u64
            }),
        };
        share.min(class.ceil.unwrap_or(share)).max(1)
    }
}

fn limits(queue: &Queue) -> Limits {
    let packets = queue.limit_packets();
    Limits {
        packets: (packets > 0).then_some(packets),
        bytes: queue.bytes,
        time_ns: queue.time_ns,
    }
}

fn signals(queue: &Queue, rate: u64) -> Signals {
    match (queue.aqm, queue.ecn_above_ns) {
        (Some(aqm), _) => Signals::Managed {
            by: choice(&aqm, rate),
            marks: aqm.marks(),
        },
        (None, Some(ns)) => Signals::MarkAbove(ns),
        (None, None) => Signals::None,
    }
}
