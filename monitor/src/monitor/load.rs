// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the programs into the kernel, and writes what they read.

use aya::maps::{Array, HashMap, Map};
use aya::{Btf, Ebpf, Pod};

use super::error::{MonitorError, at};
use crate::abi;
use crate::criteria::Settings;
use crate::denied::is_denied;
use crate::loader;

pub(super) fn load(settings: &Settings, btf: &Btf) -> Result<Ebpf, MonitorError> {
    let cpus = settings.config.cpus;
    let mut loader = loader(Some(btf));
    for (name, value) in &settings.globals {
        loader.override_global(name, value, true);
    }
    loader
        .override_global("emud_config", &settings.config, true)
        .map_max_entries("emud_ring", ring_len(cpus))
        .map_max_entries("emud_cpus", cpus)
        .map_max_entries("emud_txs", cpus)
        .map_max_entries("emud_runs", cpus)
        .map_max_entries("emud_cpu_tables", cpus)
        .map_max_entries("emud_window_tables", cpus * settings.windows())
        .load(abi::MONITOR_OBJECT)
        .map_err(|e| match is_denied(&e) {
            true => MonitorError::Permission(e),
            false => MonitorError::Load(e),
        })
}

/// Returns the size of the ring in bytes: an alarm about the network writes a table for each CPU
/// that has sent, and four such alarms must fit at once. One alarm of 203 CPUs would fill 1 MiB.
fn ring_len(cpus: u32) -> u32 {
    const LEAST: u32 = 1 << 20;
    const RECORD_HEADER: u32 = 8;
    let table = size_of::<abi::emud_table>() as u32 + RECORD_HEADER;
    let wanted = 4 * table.saturating_mul(cpus);
    wanted.max(LEAST).next_power_of_two()
}

pub(super) fn tell_rules(bpf: &mut Ebpf, settings: &Settings) -> Result<(), MonitorError> {
    write_all(bpf, "emud_netdev_rules", &settings.netdev_rules)?;
    write_all(bpf, "emud_disk_rules", &settings.disk_rules)
}

fn write_all<K: Pod, V: Pod>(
    bpf: &mut Ebpf,
    name: &'static str,
    entries: &[(K, V)],
) -> Result<(), MonitorError> {
    let map = bpf.map_mut(name).ok_or(MonitorError::Missing(name))?;
    let mut map = HashMap::<_, K, V>::try_from(map).map_err(at(name))?;
    entries
        .iter()
        .try_for_each(|(key, value)| map.insert(key, value, 0).map_err(at(name)))
}

/// Starts to judge CPUs.
pub(super) fn arm(bpf: &mut Ebpf, now_ns: u64) -> Result<(), MonitorError> {
    let name = "emud_armed";
    let map = bpf.map_mut(name).ok_or(MonitorError::Missing(name))?;
    let mut armed = Array::<_, u64>::try_from(map).map_err(at(name))?;
    armed.set(0, now_ns, 0).map_err(at(name))
}

pub(super) fn take(bpf: &mut Ebpf, name: &'static str) -> Result<Map, MonitorError> {
    bpf.take_map(name).ok_or(MonitorError::Missing(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_has_room_for_the_tables_of_all_cpus() {
        let table = size_of::<abi::emud_table>() + 8;
        for cpus in 1..=512 {
            let len = ring_len(cpus);
            assert!(len.is_power_of_two() && len >= 1 << 20, "{cpus}: {len}");
            assert!(len as usize >= 4 * table * cpus as usize, "{cpus}: {len}");
        }
        assert_eq!(ring_len(2), 1 << 20);
        assert_eq!(ring_len(202), 1 << 22);
        assert_eq!(ring_len(203), 1 << 23);
    }
}
