// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes records of the ring buffer into [`Event`]s.

use std::collections::{BTreeMap, HashMap};

use crate::abi::{self, emud_alarm, emud_table};
use crate::event::{Alarm, Clear, Event, Resource, Scope, Share};
use crate::names::Names;

/// Maximum number of groups in an alarm.
const TOP: usize = 8;
/// Maximum number of tables that wait; more than that belong to records that the ring lost.
const WAITING: usize = 4096;

pub struct Decoder {
    pub names: Names,
    /// Names of the hooks, indexed by `enum emud_hook`.
    pub hooks: Vec<String>,
    /// Names of the devices with separate windows, from EMUD_WINDOW_DEVICES on.
    pub devices: Vec<String>,
    pub window_ns: [u64; abi::EMUD_WINDOWS as usize],
    /// Tables that wait for their alarm or clear.
    tables: Vec<Box<emud_table>>,
    /// Resource and scope of the reported episodes, for their ends.
    open: HashMap<u64, (Resource, Scope)>,
}

impl Decoder {
    pub fn new(
        names: Names,
        hooks: Vec<String>,
        devices: Vec<String>,
        window_ns: [u64; abi::EMUD_WINDOWS as usize],
    ) -> Self {
        Self {
            names,
            hooks,
            devices,
            window_ns,
            tables: vec![],
            open: HashMap::new(),
        }
    }

    /// Decodes a record; returns `None` if the record belongs to a later one.
    pub fn record(&mut self, bytes: &[u8]) -> Option<Event> {
        if let Some(table) = read::<emud_table>(bytes) {
            if self.tables.len() == WAITING {
                self.tables.clear();
            }
            self.tables.push(Box::new(table));
            return None;
        }
        let record = read::<emud_alarm>(bytes)?;
        match record.kind {
            abi::EMUD_RECORD_ALARM => Some(Event::Alarm(self.alarm(&record))),
            abi::EMUD_RECORD_CLEAR => self.clear(&record).map(Event::Clear),
            _ => None,
        }
    }

    fn alarm(&mut self, a: &emud_alarm) -> Alarm {
        let resource = resource(a.resource);
        let (scope, unit) = (resource.criterion().scope)(a, &self.devices);
        let (shares, rest) = self.shares(a);
        self.open.insert(a.episode, (resource, scope.clone()));
        Alarm {
            episode: a.episode,
            mono_ns: a.now,
            resource,
            unit,
            scope,
            since_mono_ns: a.since,
            value: a.value,
            threshold: a.threshold,
            hook: self.hook(a.hook),
            shares,
            rest,
        }
    }

    /// Returns `None` if the start of the episode was lost; the loss is counted.
    fn clear(&mut self, c: &emud_alarm) -> Option<Clear> {
        let (shares, rest) = self.shares(c);
        Some(Clear {
            episode: c.episode,
            mono_ns: c.now,
            resource: resource(c.resource),
            scope: self.open.remove(&c.episode)?.1,
            since_mono_ns: c.since,
            until_mono_ns: c.until,
            hook: self.hook(c.hook),
            shares,
            rest,
        })
    }

    /// Returns the CPUs that are in an episode, with its number.
    pub fn busy_cpus(&self) -> Vec<(u64, u32)> {
        // The hypervisor, not a group, takes what is stolen of a CPU.
        let cpu = |(episode, open): (&u64, &(Resource, Scope))| match open {
            (Resource::Cpu, Scope::Cpu { cpu }) => Some((*episode, *cpu)),
            _ => None,
        };
        self.open.iter().filter_map(cpu).collect()
    }

    /// Returns the shares of a CPU's episode, from its table.
    pub fn shares_of_cpu(&mut self, episode: u64, table: emud_table) -> Vec<Share> {
        self.tables.push(Box::new(emud_table { episode, ..table }));
        let cpu = emud_alarm {
            episode,
            resource: abi::EMUD_CPU,
            ..emud_alarm::default()
        };
        self.shares(&cpu).0
    }

    fn hook(&self, hook: u32) -> String {
        self.hooks.get(hook as usize).cloned().unwrap_or_default()
    }

    /// Returns the share of each group, over all tables of the record.
    fn shares(&mut self, a: &emud_alarm) -> (Vec<Share>, f64) {
        // Those of another CPU's alarm may be between this one and its tables.
        let own = |table: &mut Box<emud_table>| table.episode == a.episode;
        let tables: Vec<_> = self.tables.extract_if(.., own).collect();
        let sliding = resource(a.resource).criterion().sliding;
        let window = sliding.and_then(|_| self.window_ns.get(a.what as usize));
        let window = window.map(|window_ns| Sliding::at(a.now, *window_ns));
        let mut groups = BTreeMap::<String, f64>::new();
        let mut total = 0.0;
        for table in &tables {
            let counted = |interval, amount, prior| match &window {
                None if interval == table.interval => amount as f64,
                None => 0.0,
                Some(window) => window.amount(interval, amount, prior),
            };
            for slot in table.slots.iter().filter(|slot| slot.key != 0) {
                let amount = counted(slot.interval, slot.amount, slot.prior);
                if amount > 0.0 {
                    *groups.entry(self.names.group(slot)).or_default() += amount;
                    total += amount;
                }
            }
            let (amount, prior) = (table.elsewhere, table.elsewhere_prior);
            total += counted(table.elsewhere_interval, amount, prior);
        }
        if total == 0.0 {
            return (vec![], 0.0);
        }
        let mut shares: Vec<_> = groups
            .into_iter()
            .map(|(group, amount)| Share {
                group,
                share: amount / total,
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares.truncate(TOP);
        let named: f64 = shares.iter().map(|share| share.share).sum();
        (shares, (1.0 - named).max(0.0))
    }
}

/// A window that ends now, over intervals of its length: all of the current interval, and the
/// overlapping part of the previous one.
struct Sliding {
    interval: u32,
    overlap: f64,
}

impl Sliding {
    fn at(now_ns: u64, window_ns: u64) -> Self {
        let window_ns = window_ns.max(1);
        Self {
            interval: (now_ns / window_ns) as u32,
            overlap: 1.0 - (now_ns % window_ns) as f64 / window_ns as f64,
        }
    }

    /// Returns the amount of a group that counts. `interval` is the last one in which the group was seen.
    fn amount(&self, interval: u32, amount: u64, prior: u64) -> f64 {
        match self.interval.wrapping_sub(interval) {
            0 => amount as f64 + prior as f64 * self.overlap,
            1 => amount as f64 * self.overlap,
            _ => 0.0,
        }
    }
}

fn read<T: aya::Pod>(bytes: &[u8]) -> Option<T> {
    // SAFETY: as long as a T, and every bit pattern of it is valid.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

fn resource(number: u32) -> Resource {
    Resource::ALL[(number as usize).min(Resource::ALL.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GroupBy;

    const WINDOW_NS: u64 = 10_000_000;

    /// Returns the rest of an alarm, half of the way through interval 7, about a table in which one command and
    /// the groups without a slot had the same amount in these intervals.
    fn rest(resource: u32, slot_in: u32, elsewhere_in: u32) -> f64 {
        let window_ns = [WINDOW_NS; abi::EMUD_WINDOWS as usize];
        let mut decoder = Decoder::new(Names::new(GroupBy::Command), vec![], vec![], window_ns);
        let mut table = emud_table {
            kind: abi::EMUD_RECORD_TABLE,
            episode: 1,
            interval: slot_in.max(elsewhere_in),
            elsewhere: 100,
            elsewhere_interval: elsewhere_in,
            ..emud_table::default()
        };
        table.slots[0].key = 9;
        table.slots[0].amount = 100;
        table.slots[0].interval = slot_in;
        decoder.tables.push(Box::new(table));
        let alarm = emud_alarm {
            kind: abi::EMUD_RECORD_ALARM,
            episode: 1,
            resource,
            now: 7 * WINDOW_NS + WINDOW_NS / 2,
            ..emud_alarm::default()
        };
        decoder.alarm(&alarm).rest
    }

    /// The hypervisor takes what is stolen, not what ran on the CPU.
    #[test]
    fn an_open_episode_of_steal_has_no_shares() {
        let window_ns = [WINDOW_NS; abi::EMUD_WINDOWS as usize];
        let mut decoder = Decoder::new(Names::new(GroupBy::Command), vec![], vec![], window_ns);
        for (episode, resource) in [(7, abi::EMUD_STEAL), (8, abi::EMUD_CPU)] {
            let alarm = emud_alarm {
                kind: abi::EMUD_RECORD_ALARM,
                episode,
                resource,
                ..emud_alarm::default()
            };
            decoder.alarm(&alarm);
        }
        assert_eq!(decoder.busy_cpus(), [(8, 0)]);
    }

    #[test]
    fn groups_without_a_slot_count_as_those_with_one() {
        let share = |resource, slot_in, elsewhere_in| {
            (rest(resource, slot_in, elsewhere_in) * 1000.0).round()
        };
        assert_eq!(share(abi::EMUD_NETWORK, 7, 7), 500.0);
        assert_eq!(share(abi::EMUD_NETWORK, 7, 6), 333.0);
        assert_eq!(share(abi::EMUD_NETWORK, 7, 5), 0.0);
        assert_eq!(share(abi::EMUD_NETWORK, 6, 6), 500.0);
        assert_eq!(share(abi::EMUD_CPU, 7, 7), 500.0);
        assert_eq!(share(abi::EMUD_CPU, 7, 6), 0.0);
    }
}
