// SPDX-License-Identifier: MIT OR Apache-2.0
//! Criteria on bytes in a sliding window: classes of network devices, and single devices.

use std::collections::{BTreeMap, HashMap};

use super::Tally;
use super::crossing::Crossing;
use super::window::SlidingSum;
use crate::config::{Class, Network};
use crate::criteria::table::ns;
use crate::record::NetClass;

/// Identity of a device: the inode number of its network namespace, and its ifindex.
pub type Device = (u32, u32);

/// A sliding sum and its results.
#[derive(Debug)]
pub struct Watch {
    sum: SlidingSum,
    crossing: Crossing,
    pub tally: Tally,
}

impl Watch {
    pub fn new(window_ns: u64, threshold: Option<u64>, empty: &Tally) -> Self {
        Self {
            sum: SlidingSum::new(window_ns),
            crossing: Crossing::new(window_ns, threshold),
            tally: Tally {
                threshold,
                ..empty.clone()
            },
        }
    }

    pub fn add(&mut self, time_ns: u64, amount: u64, start_ns: u64) {
        let sum = self.sum.push(time_ns, amount);
        self.tally.distribution.record(sum, false);
        if self.crossing.begins(time_ns, sum) {
            self.tally.alarm(time_ns.saturating_sub(start_ns));
        }
    }
}

#[derive(Debug)]
pub struct Devices {
    config: Network,
    window_ns: u64,
    start_ns: u64,
    empty: Tally,
    names: HashMap<Device, String>,
    classes: BTreeMap<&'static str, Watch>,
    devices: HashMap<Device, Option<Watched>>,
}

/// A device that counts.
#[derive(Debug)]
struct Watched {
    name: String,
    class: &'static str,
    watch: Watch,
}

impl Devices {
    pub fn new(config: &Network, start_ns: u64, empty: &Tally) -> Self {
        let window_ns = ns(config.window);
        let class = |rate: Option<u64>| {
            let threshold = rate.map(|rate| bytes(rate, window_ns));
            Watch::new(window_ns, threshold, empty)
        };
        Self {
            config: config.clone(),
            window_ns,
            start_ns,
            empty: empty.clone(),
            names: HashMap::new(),
            classes: BTreeMap::from([
                ("external", class(config.external_bit_s)),
                ("internal", class(config.internal_bit_s)),
            ]),
            devices: HashMap::new(),
        }
    }

    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    pub fn name(&mut self, device: Device, name: String) {
        self.names.insert(device, name);
    }

    pub fn add(&mut self, device: Device, guess: NetClass, time_ns: u64, bytes: u32) {
        if !self.devices.contains_key(&device) {
            let watched = self.classify(device, guess);
            self.devices.insert(device, watched);
        }
        let Some(Some(watched)) = self.devices.get_mut(&device) else {
            return;
        };
        let bytes = u64::from(bytes);
        watched.watch.add(time_ns, bytes, self.start_ns);
        if let Some(class) = self.classes.get_mut(watched.class) {
            class.add(time_ns, bytes, self.start_ns);
        }
    }

    /// Returns the classes, each with its devices; devices of the same class and name are merged.
    pub fn finish(self) -> impl Iterator<Item = (&'static str, Tally, BTreeMap<String, Tally>)> {
        let mut members: BTreeMap<&'static str, BTreeMap<String, Tally>> = BTreeMap::new();
        for device in self.devices.into_values().flatten() {
            let named = members.entry(device.class).or_default();
            match named.get_mut(&device.name) {
                None => {
                    named.insert(device.name, device.watch.tally);
                }
                Some(tally) => {
                    let first = [tally.first_ns, device.watch.tally.first_ns];
                    tally.merge(&device.watch.tally);
                    tally.first_ns = first.into_iter().flatten().min();
                }
            }
        }
        self.classes.into_iter().map(move |(class, watch)| {
            let members = members.remove(&class).unwrap_or_default();
            (class, watch.tally, members)
        })
    }

    /// Returns `None` for an ignored device.
    fn classify(&self, device: Device, guess: NetClass) -> Option<Watched> {
        let (netns, ifindex) = device;
        let name = match self.names.get(&device) {
            Some(name) => name.clone(),
            None => format!("{ifindex}@{netns}"),
        };
        let class = match (self.config.classes.get(&name), guess) {
            (Some(Class::Ignored), _) => return None,
            (Some(Class::External), _) | (None, NetClass::External) => "external",
            (Some(Class::Internal), _) | (None, NetClass::Internal) => "internal",
        };
        let own_ns = self.config.device_windows.get(&name).copied().map(ns);
        let window_ns = own_ns.unwrap_or(self.window_ns);
        let own = self.config.devices.get(&name);
        let threshold = own.map(|rate| bytes(*rate, window_ns));
        let empty = Tally {
            window_ns: own_ns,
            ..self.empty.clone()
        };
        Some(Watched {
            watch: Watch::new(window_ns, threshold, &empty),
            name,
            class,
        })
    }
}

/// Returns the smallest number of bytes in a window that reaches a rate.
pub fn bytes(bit_s: u64, window_ns: u64) -> u64 {
    let bytes = (u128::from(bit_s) * u128::from(window_ns)).div_ceil(8_000_000_000);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
