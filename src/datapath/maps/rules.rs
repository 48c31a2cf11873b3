// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules in the kernel: writes, counts and removes them.

use std::os::fd::AsRawFd as _;

use super::generation::of_links;
use super::{DatapathError, Maps, at};
use crate::abi::{self, DIRECTIONS};
use crate::datapath::stage::sizes::Sizes;
use crate::host::cgroup;
use crate::profile::hosts;
use crate::profile::rule_keys::Compiled;

/// Names by which the classifier knows them.
fn hashes(names: &[String]) -> [u64; abi::EMUD_CGROUPS_MAX as usize] {
    let mut all = [0; abi::EMUD_CGROUPS_MAX as usize];
    for (name, hash) in names.iter().zip(&mut all) {
        // The profile's reader has checked that it has one.
        *hash = hosts::hash(name).unwrap_or(0);
    }
    all
}

impl Maps {
    /// Writes the rules of an inactive generation.
    pub(crate) fn write_rules(
        &mut self,
        generation: u32,
        rules: &Compiled,
    ) -> Result<(), DatapathError> {
        // Left by a process that ended half-way.
        self.clear_rules(generation)?;
        let (ids, list) = self.write_cgroups(generation, &rules.cgroups)?;
        for (direction, table) in DIRECTIONS.into_iter().zip(&rules.tables) {
            let base = direction * abi::EMUD_GENERATIONS + generation;
            let masks = abi::emud_masks {
                cgroup: ids,
                list,
                name: hashes(&rules.names),
                ..*table.masks
            };
            self.masks.set(base, masks, 0).map_err(at("emud_masks"))?;
            for (mask, key, rule) in &table.entries {
                let key = abi::emud_key {
                    table: base * abi::EMUD_MASKS_MAX + mask,
                    ..*key
                };
                self.rules.insert(key, rule, 0).map_err(at("emud_rules"))?;
            }
        }
        Ok(())
    }

    /// Opens control groups for the classifier, which keeps them until others take their
    /// positions. Returns the kernel's ids, and a hash of them.
    fn write_cgroups(
        &mut self,
        generation: u32,
        paths: &[String],
    ) -> Result<([u64; abi::EMUD_CGROUPS_MAX as usize], u32), DatapathError> {
        let (mut ids, mut list) = ([0; abi::EMUD_CGROUPS_MAX as usize], 0);
        let first = generation * abi::EMUD_CGROUPS_MAX;
        for ((group, number), id) in cgroup::open(paths)?.iter().zip(first..).zip(&mut ids) {
            self.cgroups
                .set(number, group.folder.as_raw_fd(), 0)
                .map_err(at("emud_cgroups"))?;
            *id = group.id;
            list = abi::mix(list ^ group.id);
        }
        Ok((ids, list as u32))
    }

    /// Returns the kernel's ids of the control groups in force, in the order of
    /// [`Compiled::cgroups`].
    pub fn cgroups(&self) -> Result<Vec<u64>, DatapathError> {
        let generation = of_links(self.control()?);
        let masks = self.masks.get(&generation, 0).map_err(at("emud_masks"))?;
        Ok(masks.cgroup.into_iter().take_while(|id| *id != 0).collect())
    }

    /// Removes the rules of an inactive generation.
    pub(crate) fn clear_rules(&mut self, generation: u32) -> Result<(), DatapathError> {
        let of = |key: &abi::emud_key| key.table / abi::EMUD_MASKS_MAX % abi::EMUD_GENERATIONS;
        let keys: Result<Vec<_>, _> = self.rules.keys().collect();
        let keys = keys.map_err(at("emud_rules"))?;
        for key in keys.iter().filter(|key| of(key) == generation) {
            self.rules.remove(key).map_err(at("emud_rules"))?;
        }
        Ok(())
    }

    /// Returns the number of rule keys of both generations.
    pub fn rule_keys(&self) -> Result<usize, DatapathError> {
        let keys: Result<Vec<_>, _> = self.rules.keys().collect();
        Ok(keys.map_err(at("emud_rules"))?.len())
    }

    /// Returns the number of packets that matched a rule, by its position.
    pub fn rule_hits(&self, place: u32) -> Result<u64, DatapathError> {
        let per_cpu = self.hits.get(&place, 0).map_err(at("emud_hits"))?;
        Ok(per_cpu.iter().sum())
    }

    /// Returns how many instances of links with `per` are in use, and their maximum.
    pub fn instances(&self, sizes: &Sizes) -> Result<(u32, u32), DatapathError> {
        let mut used = 0;
        for set in self.instances.iter() {
            let set = set.map_err(at("emud_instances"))?;
            used += set.way.iter().filter(|way| way.key != 0).count() as u32;
        }
        Ok((used, sizes.instances))
    }

    /// Resets the counts for new rules.
    pub(crate) fn clear_hits(&mut self) -> Result<(), DatapathError> {
        for place in 0..self.hits.len() {
            let none = self.hits.get(&place, 0).map_err(at("emud_hits"))?;
            let none = vec![0; none.len()];
            let none = aya::maps::PerCpuValues::try_from(none)
                .map_err(|e| at("emud_hits")(aya::maps::MapError::IoError(e)))?;
            self.hits.set(place, none, 0).map_err(at("emud_hits"))?;
        }
        Ok(())
    }
}
