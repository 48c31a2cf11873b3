// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the classifier and the holder count: counters, queues, accounts.

use super::loaded::sets;
use super::{DatapathError, Maps, at};
use crate::abi;

impl Maps {
    /// Returns the counters of a direction, summed over the CPUs.
    pub fn counters(&self, direction: u32) -> Result<Box<abi::emud_counters>, DatapathError> {
        self.counters_of(0, direction)
    }

    /// Returns the counters of a direction of a link, by the link's number.
    pub fn counters_of(
        &self,
        number: u32,
        direction: u32,
    ) -> Result<Box<abi::emud_counters>, DatapathError> {
        let mut sum = Box::<abi::emud_counters>::default();
        for set in (direction..sets()).step_by(abi::EMUD_DIRECTIONS as usize) {
            let index = number * sets() + set;
            let per_cpu = self.counts.get(&index, 0).map_err(at("emud_counts"))?;
            for c in per_cpu.iter() {
                sum.add(c);
            }
        }
        Ok(sum)
    }

    /// Returns what the holder counts of a direction of a link: of packets that waited in a class.
    pub fn served_of(
        &self,
        number: u32,
        direction: u32,
    ) -> Result<abi::emud_served, DatapathError> {
        let served = self.holder(direction)?.served;
        Ok(served.get(number as usize).copied().unwrap_or_default())
    }

    /// Returns the queue of a direction of a link, by the link's number; for links with `per`, not
    /// those of instances.
    pub fn state_of(&self, number: u32, direction: u32) -> Result<abi::emud_state, DatapathError> {
        let index = number * abi::EMUD_DIRECTIONS + direction;
        self.states.get(&index, 0).map_err(at("emud_states"))
    }

    /// Returns the holder's account of a direction.
    pub fn holder(&self, direction: u32) -> Result<abi::emud_holder, DatapathError> {
        self.holders.get(&direction, 0).map_err(at("emud_holders"))
    }

    /// Writes the holder's account, which renews the lease; only the holder calls it.
    pub fn set_holder(
        &mut self,
        direction: u32,
        holder: &abi::emud_holder,
    ) -> Result<(), DatapathError> {
        self.holders
            .set(direction, holder, 0)
            .map_err(at("emud_holders"))
    }

    /// Returns the account of a class of a bottleneck, by its number from 1.
    pub fn class(&self, number: u32) -> Result<abi::emud_class, DatapathError> {
        let class = self.classes.get(&(number - 1), 0);
        class.map_err(at("emud_classes"))
    }

    /// Writes the account of a class, by its number from 1. Only the holder does.
    pub fn set_class(&mut self, number: u32, class: &abi::emud_class) -> Result<(), DatapathError> {
        let done = self.classes.set(number - 1, class, 0);
        done.map_err(at("emud_classes"))
    }

    /// Resets the queue of a pair that no packet can use now. The pairs' are the last ones.
    pub(crate) fn clear_state_of_pair(&mut self, number: u32) -> Result<(), DatapathError> {
        let first = self.states.len() - self.pairs.capacity();
        let anew = abi::emud_state::default();
        self.states
            .set(first + number, anew, 0)
            .map_err(at("emud_states"))
    }
}

impl abi::emud_counters {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.lost += other.lost;
        self.queue_dropped += other.queue_dropped;
        self.reordered += other.reordered;
        self.clamped += other.clamped;
        self.super_packets += other.super_packets;
        self.flows_forgotten += other.flows_forgotten;
        self.undelayed += other.undelayed;
        self.marked += other.marked;
        self.instances_forgotten += other.instances_forgotten;
        self.learned_forgotten += other.learned_forgotten;
        self.unattributed += other.unattributed;
        self.preempting += other.preempting;
        self.preempting_bytes += other.preempting_bytes;
        for (a, b) in self.aqm_dropped.iter_mut().zip(other.aqm_dropped) {
            *a += b;
        }
        for (a, b) in self.passed.iter_mut().zip(other.passed) {
            *a += b;
        }
        for (a, b) in self.delay_hist.iter_mut().zip(other.delay_hist) {
            *a += b;
        }
        self.down += other.down;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.reset += other.reset;
        self.unaltered += other.unaltered;
        self.sent_bytes += other.sent_bytes;
        self.classed += other.classed;
        self.delay_ns = self.delay_ns.wrapping_add(other.delay_ns);
    }
}
