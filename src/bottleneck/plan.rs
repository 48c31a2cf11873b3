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
        let rate = self.guarantee(class);
        rate.unwrap_or(class.weight.into()).max(1)
    }

    /// Returns the priority of a class, 0 for all if the schedule has no priorities.
    pub fn priority(&self, class: &Class) -> u8 {
        match self.schedule {
            Schedule::Priority | Schedule::Htb => class.priority,
            Schedule::Fifo | Schedule::Drr => 0,
        }
    }

    /// Returns the guaranteed rate of a class, if the schedule has any.
    pub fn guarantee(&self, class: &Class) -> Option<u64> {
        class.rate.filter(|_| self.schedule == Schedule::Htb)
    }

    /// Returns the most that a class gets, if the schedule limits it.
    pub fn ceil(&self, class: &Class) -> Option<u64> {
        class.ceil.filter(|_| self.schedule != Schedule::Fifo)
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

    /// Returns the level of a class: 0 if nothing is guaranteed below it; of the others the deepest has the least.
    pub fn level(&self, index: usize) -> usize {
        let is_guaranteed = |class: &Class| class.parent == Some(index) && class.rate.is_some();
        match self.classes.iter().any(is_guaranteed) {
            false => 0,
            true => 1 + self.deepest() - self.depth(index),
        }
    }

    /// Returns the largest number of classes above one.
    pub fn deepest(&self) -> usize {
        let depths = (0..self.classes.len()).map(|class| self.depth(class));
        depths.max().unwrap_or(0)
    }

    /// Returns whether packets wait in a class, and not in classes below it.
    pub fn is_leaf(&self, index: usize) -> bool {
        !self.classes.iter().any(|class| class.parent == Some(index))
    }

    /// Returns the number of classes above a class.
    fn depth(&self, mut index: usize) -> usize {
        let mut depth = 0;
        while let Some(parent) = self.classes[index].parent {
            index = parent;
            depth += 1;
        }
        depth
    }
}
