// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration of a bottleneck.

use super::aqm::Choice;

/// Bytes of the class of least share in a round: a full Ethernet frame with preamble, gap and tags.
pub const QUANTUM: u64 = 1600;

/// A server and its classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// bit/s, 1 at least.
    pub rate: u64,
    /// How the server chooses between classes.
    pub schedule: Schedule,
    /// Seed of the random decisions of its classes' managers.
    pub seed: u64,
    /// At least one; a class follows its parent.
    pub classes: Vec<Class>,
}

/// Which class is served next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// In the order of arrival, whatever the class.
    #[default]
    Fifo,
    /// By priority; those of one priority by weight.
    Priority,
    /// By weight.
    Drr,
    /// Guaranteed rates first, then by priority, then in proportion to the rates.
    Htb,
}

/// Figures of a class; which of them count depends on the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Index of the class above; none: the wire.
    pub parent: Option<usize>,
    /// 0 is served first.
    pub priority: u8,
    /// 1 at least.
    pub weight: u32,
    /// Guaranteed, bit/s, 1 at least; counts with [`Schedule::Htb`], where classes beside each other all have it or,
    /// below another class, none: then they share what that one sends, by priority and by weight.
    pub rate: Option<u64>,
    /// The most, bit/s, 1 at least.
    pub ceil: Option<u64>,
    /// The most that may wait.
    pub limits: Limits,
    /// How congestion is signalled before the queue is full.
    pub signals: Signals,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            parent: None,
            priority: 0,
            weight: 1,
            rate: None,
            ceil: None,
            limits: Limits::default(),
            signals: Signals::None,
        }
    }
}

/// Limits of the queue of a class without classes below it; all that are given hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Packets, the one on the wire included.
    pub packets: Option<u32>,
    /// Bytes not yet sent, the arriving packet included.
    pub bytes: Option<u64>,
    /// Longest wait in ns before transmission.
    pub time_ns: Option<u64>,
}

/// Signals of congestion before a queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signals {
    /// Only a full queue drops.
    #[default]
    None,
    /// Packets that have waited for longer than this, in ns, are marked when they are sent.
    MarkAbove(u64),
    /// A manager (AQM) drops or marks packets.
    Managed {
        /// The manager with its figures.
        by: Choice,
        /// Whether it marks packets whose sender understands that, instead of dropping them.
        marks: bool,
    },
}

impl Plan {
    /// Returns the share of a class, relative to the classes with the same parent.
    fn share(&self, class: &Class) -> u64 {
        let rate = class.rate.filter(|_| self.schedule == Schedule::Htb);
        rate.unwrap_or(class.weight.into()).max(1)
    }

    /// Returns the priority of a class, 0 for all if the schedule has no priorities.
    pub(super) fn priority(&self, class: &Class) -> u8 {
        match self.schedule {
            Schedule::Priority | Schedule::Htb => class.priority,
            Schedule::Fifo | Schedule::Drr => 0,
        }
    }

    /// Returns the bytes that a class may send in a round of the classes with its parent and priority.
    pub fn quantum(&self, class: &Class) -> u64 {
        let beside = self.classes.iter().filter(|other| {
            other.parent == class.parent && self.priority(other) == self.priority(class)
        });
        let least = beside.map(|other| self.share(other)).min().unwrap_or(1);
        let quantum = u128::from(QUANTUM) * u128::from(self.share(class)) / u128::from(least);
        u64::try_from(quantum).unwrap_or(u64::MAX).min(1 << 48)
    }

    /// Returns the number of classes above a class.
    pub(super) fn depth(&self, mut index: usize) -> usize {
        let mut depth = 0;
        while let Some(parent) = self.classes[index].parent {
            index = parent;
            depth += 1;
        }
        depth
    }
}
