// SPDX-License-Identifier: MIT OR Apache-2.0
//! The attached programs in the kernel; [`Monitor::next`] returns what they detect.

mod attach;
mod error;
mod load;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use std::{fmt, io};

use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::Program;
use aya::{Btf, Ebpf};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::abi::{self, emud_counters, emud_emulated, emud_runs, emud_table};
use crate::candidates::TICK;
use crate::criteria::{CRITERIA, Config, Settings, with_links};
use crate::decode::Decoder;
use crate::empty;
use crate::event::{Cost, Dropped, Event, Hook, Resource, Share, Watched};
use crate::hooks::{Attached, Hooks};
use crate::log::mono_ns;
use crate::moments::Moments;
use crate::names::Names;
use crate::skipped;
use crate::swaps::Swaps;
use attach::{attach, attach_all};
pub use error::MonitorError;
use error::{at, system};
use load::{arm, load, take, tell_rules};

/// A device on which emud emulates a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Emulated {
    /// Inode number of the network namespace.
    pub netns: u32,
    /// Index of the device in its network namespace.
    pub ifindex: u32,
}

/// A running monitor; dropping it detaches everything.
pub struct Monitor {
    ring: AsyncFd<RingBuf<MapData>>,
    decoder: Decoder,
    queue: VecDeque<Event>,
    hooks: Hooks,
    watched: [Watched; Resource::ALL.len()],
    counters: Array<MapData, emud_counters>,
    /// Indexed by CPU.
    tables: Array<MapData, emud_table>,
    /// Indexed by CPU.
    runs: Array<MapData, emud_runs>,
    emulated: HashMap<MapData, emud_emulated, u32>,
    /// The devices in `emulated`, with their numbers.
    known: std::collections::HashMap<Emulated, u32>,
    swaps: Option<Swaps>,
    started_mono_ns: u64,
    empty_probe_ns: f64,
    bpf: Ebpf,
    _moments: Moments,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("hooks", &self.hooks.tried)
            .finish_non_exhaustive()
    }
}

impl Monitor {
    /// Loads the programs, attaches them hook by hook, and starts to judge. Must be called within a
    /// tokio runtime (with io enabled).
    ///
    /// # Errors
    /// This process lacks permission, or the kernel supports none of the configured criteria.
    pub fn start(config: &Config) -> Result<Self, MonitorError> {
        let cpus = aya::util::nr_cpus().map_err(|(what, source)| system(what, source))? as u32;
        let online = aya::util::online_cpus().map_err(|(what, source)| system(what, source))?;
        let settings = Settings::of(config, cpus).map_err(MonitorError::Config)?;
        let btf = Btf::from_sys_fs()?;
        let mut bpf = load(&settings, &btf)?;
        let statistics = aya::sys::enable_stats(aya::sys::Stats::RunTime);
        let empty_probe_ns = empty::call_ns(&mut bpf).unwrap_or(0.0);
        drop(statistics);
        tell_rules(&mut bpf, &settings)?;
        let ring = RingBuf::try_from(take(&mut bpf, "emud_ring")?).map_err(at("emud_ring"))?;
        let counters = take(&mut bpf, "emud_counters")?;
        let runs = take(&mut bpf, "emud_runs")?;
        let tables = take(&mut bpf, "emud_cpu_tables")?;
        let emulated = take(&mut bpf, "emud_emulated")?;
        let list = take(&mut bpf, "emud_swaps")?;
        let mut hooks = Hooks::new(btf, online);
        let watched = attach(&mut bpf, &mut hooks, config)?;
        let started_mono_ns = mono_ns();
        arm(&mut bpf, started_mono_ns)?;
        let swaps = match hooks.has("emud_page_in_bio") {
            true => {
                let list = HashMap::try_from(list).map_err(at("emud_swaps"))?;
                Some(Swaps::new(list).map_err(|e| system("/proc/swaps", e))?)
            }
            false => None,
        };
        Ok(Self {
            ring: watch(ring).map_err(|e| system("waiting for the ring buffer", e))?,
            decoder: Decoder::new(
                Names::new(config.alarms.group_by),
                hooks.raising.clone(),
                settings.devices,
                settings.config.window_ns,
            ),
            queue: VecDeque::new(),
            hooks,
            watched,
            counters: Array::try_from(counters).map_err(at("emud_counters"))?,
            tables: Array::try_from(tables).map_err(at("emud_cpu_tables"))?,
            runs: Array::try_from(runs).map_err(at("emud_runs"))?,
            emulated: HashMap::try_from(emulated).map_err(at("emud_emulated"))?,
            known: std::collections::HashMap::new(),
            swaps,
            started_mono_ns,
            empty_probe_ns,
            bpf,
            _moments: Moments::start().map_err(|e| system("a thread", e))?,
        })
    }

    /// Waits for the next event. Cancel safe.
    ///
    /// # Errors
    /// The ring buffer can no longer be read.
    pub async fn next(&mut self) -> Result<Event, MonitorError> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            let swaps = async {
                match &mut self.swaps {
                    Some(swaps) => swaps.follow().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                ready = self.ring.readable_mut() => {
                    let mut ready = ready.map_err(|e| system("reading the ring buffer", e))?;
                    let ring = ready.get_inner_mut();
                    while let Some(record) = ring.next() {
                        self.queue.extend(self.decoder.record(&record));
                    }
                    ready.clear_ready();
                }
                followed = swaps => followed.map_err(|e| system("/proc/swaps", e))?,
            }
        }
    }

    /// Returns every hook that was tried, attached or not.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks.tried
    }

    /// Returns whether a resource is watched.
    pub fn watched(&self, resource: Resource) -> Watched {
        self.watched[resource as usize]
    }

    /// Returns the time at which the last program was attached, in ns of CLOCK_MONOTONIC.
    pub fn started_mono_ns(&self) -> u64 {
        self.started_mono_ns
    }

    /// Returns the longest time between two ticks of the monitor's timer on a CPU.
    pub fn tick(&self) -> Duration {
        TICK
    }

    /// Returns the counts of dropped events so far.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub fn dropped(&self) -> Result<Dropped, MonitorError> {
        let counters = self.counters()?;
        Ok(Dropped {
            ring_full: counters.ring_full,
            disks_unknown: counters.disks_unknown,
            skipped: self.skipped()?,
            suppressed: counters.suppressed,
        })
    }

    fn skipped(&self) -> Result<[u64; Resource::ALL.len()], MonitorError> {
        let mut skipped = [0; Resource::ALL.len()];
        for held in &self.hooks.attached {
            let n = skipped::skipped(self.program(held.program)?);
            let n = n.map_err(|e| system("reading the skipped events of a program", e))?;
            for criterion in &CRITERIA {
                if held
                    .resource
                    .map_or(criterion.ticks, |of| of == criterion.resource)
                {
                    skipped[criterion.resource as usize] += n;
                }
            }
        }
        Ok(skipped)
    }

    fn program(&self, name: &'static str) -> Result<&Program, MonitorError> {
        self.bpf.program(name).ok_or(MonitorError::Missing(name))
    }

    fn counters(&self) -> Result<emud_counters, MonitorError> {
        self.counters.get(&0, 0).map_err(at("emud_counters"))
    }

    /// Resets the limit of alarms for every resource.
    ///
    /// # Errors
    /// The kernel rejects the update.
    pub fn reset_limit(&mut self) -> Result<(), MonitorError> {
        let missing = MonitorError::Missing("emud_raised");
        let map = self.bpf.map_mut("emud_raised").ok_or(missing)?;
        let mut raised = Array::<_, u64>::try_from(map).map_err(at("emud_raised"))?;
        (0..raised.len()).try_for_each(|i| raised.set(i, 0, 0).map_err(at("emud_raised")))
    }

    /// Returns the shares so far, as in a [`Clear`](crate::Clear), of each CPU's episode that has not
    /// ended, by its number.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn shares_so_far(&mut self) -> Result<Vec<(u64, Vec<Share>)>, MonitorError> {
        let busy = self.decoder.busy_cpus();
        let shares = busy.into_iter().map(|(episode, cpu)| {
            let table = self.tables.get(&cpu, 0).map_err(at("emud_cpu_tables"))?;
            Ok((episode, self.decoder.shares_of_cpu(episode, table)))
        });
        shares.collect()
    }

    /// Returns the cost of the programs so far: all runs, with the time that was measured for some
    /// of them.
    ///
    /// # Errors
    /// The kernel does not return the statistics.
    pub fn costs(&self) -> Result<Vec<Cost>, MonitorError> {
        let of_cpus = (0..self.runs.len()).map(|cpu| self.runs.get(&cpu, 0));
        let of_cpus = of_cpus.collect::<Result<Vec<_>, _>>();
        let of_cpus = of_cpus.map_err(at("emud_runs"))?;
        let cost = |held: &Attached| {
            let name = held.program;
            let info = (self.program(name)?)
                .info()
                .map_err(|e| system("reading run statistics", io::Error::other(e)))?;
            Ok(Cost {
                program: name.into(),
                hook: held.name.clone(),
                events: of_cpus.iter().map(|cpu| cpu.of[held.hook as usize]).sum(),
                timed: info.run_count(),
                timed_ns: info.run_time().as_nanos() as u64,
            })
        };
        self.hooks.attached.iter().map(cost).collect()
    }

    /// Returns the cost of calling a program on this machine in ns, measured with an empty program
    /// at the start.
    pub fn empty_probe_ns(&self) -> f64 {
        self.empty_probe_ns
    }

    /// Sets the devices with emulated links, for the criterion `emulator`. The first device
    /// attaches the programs of the criterion, so hosts without a link do not pay for them.
    ///
    /// # Errors
    /// The kernel rejects the update or the programs.
    pub fn set_emulated(&mut self, devices: &[Emulated]) -> Result<(), MonitorError> {
        if self.watched(Resource::Emulator) != Watched::Yes {
            return Ok(());
        }
        let wanted: HashSet<Emulated> = devices.iter().copied().collect();
        let numbers = |known: &std::collections::HashMap<_, u32>| known.values().copied().collect();
        let before: HashSet<u32> = numbers(&self.known);
        let emulated = &mut self.emulated;
        self.known.retain(|known, _| {
            let stays = wanted.contains(known);
            if !stays {
                // An entry that is already gone is the intended result.
                let _ = emulated.remove(&key(known));
            }
            stays
        });
        let now = numbers(&self.known);
        let mut free = free_numbers(&before, &now);
        let mut numbered = vec![];
        for new in wanted.iter().filter(|new| !self.known.contains_key(new)) {
            // The map has room for as many devices as there are numbers.
            let number = free.next().unwrap_or(0);
            emulated
                .insert(key(new), number, 0)
                .map_err(at("emud_emulated"))?;
            numbered.push((*new, number));
        }
        if self.known.is_empty() && !wanted.is_empty() && !self.hooks.has("emud_late") {
            let resource = Resource::Emulator;
            if !attach_all(&mut self.bpf, &mut self.hooks, resource, &with_links()) {
                self.watched[Resource::Emulator as usize] = Watched::Unknown;
            }
            self.decoder.hooks.clone_from(&self.hooks.raising);
        }
        self.known.extend(numbered);
        Ok(())
    }
}

fn watch(ring: RingBuf<MapData>) -> io::Result<AsyncFd<RingBuf<MapData>>> {
    // SAFETY: the map's descriptor is open as long as the RingBuf, which the AsyncFd owns.
    Ok(unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE)? })
}

/// Returns numbers for devices. Those of devices that have just ended come last: an episode of
/// one may be open, and failures of the next device of that number would count for it.
fn free_numbers(before: &HashSet<u32>, now: &HashSet<u32>) -> impl Iterator<Item = u32> {
    let all = || 0..abi::EMUD_EMULATED;
    let free = all().filter(|n| !before.contains(n));
    free.chain(all().filter(|n| before.contains(n) && !now.contains(n)))
}

fn key(device: &Emulated) -> emud_emulated {
    emud_emulated {
        netns: device.netns,
        ifindex: device.ifindex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_device_has_not_the_number_of_one_that_has_just_ended() {
        let first = |before: &[u32], now: &[u32]| {
            let [before, now] = [before, now].map(|of| of.iter().copied().collect());
            free_numbers(&before, &now).next()
        };
        assert_eq!(first(&[], &[]), Some(0));
        assert_eq!(first(&[0, 1], &[1]), Some(2));
        let all: Vec<u32> = (0..abi::EMUD_EMULATED).collect();
        assert_eq!(first(&all, &all[1..]), Some(0));
        assert_eq!(first(&all, &all), None);
    }
}
