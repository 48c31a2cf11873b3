// SPDX-License-Identifier: MIT OR Apache-2.0
//! The attached programs in the kernel; [`Monitor::next`] returns what they detect.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use std::{fmt, io};

use aya::maps::{Array, HashMap, Map, MapData, MapError, RingBuf};
use aya::{Btf, Ebpf, EbpfLoader, Pod};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::abi::{self, emud_counters, emud_emulated, emud_runs};
use crate::criteria::{Attempt, CRITERIA, Config, Settings, tick, with_links};
use crate::decode::Decoder;
use crate::denied::{is_denied, with_causes};
use crate::empty;
use crate::event::{Cost, Dropped, Event, Hook, Resource, Watched};
use crate::hooks::{Attached, Hooks, TICK};
use crate::moments::Moments;
use crate::names::Names;
use crate::swaps::Swaps;

/// Why the monitor could not be started, or stopped working.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The kernel's types cannot be read.
    #[error(
        "cannot read the kernel's types from /sys/kernel/btf/vmlinux (the kernel needs CONFIG_DEBUG_INFO_BTF): {0}"
    )]
    Btf(#[from] aya::BtfError),
    /// The object cannot be loaded into the kernel.
    #[error("cannot load the monitor into the kernel: {}", with_causes(.0))]
    Load(#[from] aya::EbpfError),
    /// The process lacks the permission to load BPF programs.
    #[error("no permission to load BPF programs; run as root of the host ({})", with_causes(.0))]
    Permission(aya::EbpfError),
    /// A map cannot be read or written.
    #[error("map {name}: {source}")]
    Map {
        /// Name of the map.
        name: &'static str,
        /// Error of the BPF library.
        source: MapError,
    },
    /// The object lacks a map or a program of this name.
    #[error("the monitor's object has no {0}")]
    Missing(&'static str),
    /// None of the configured criteria found a hook; one line per hook.
    #[error("this kernel supports none of the configured criteria:\n{0}")]
    Blind(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
}

impl MonitorError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 64,
            Self::Permission(_) => 77,
            Self::Map { .. } | Self::Blind(_) if !rustix::process::geteuid().is_root() => 77,
            Self::Btf(_) | Self::Load(_) | Self::Blind(_) => 69,
            Self::Missing(_) => 70,
            Self::Map { .. } | Self::System { .. } => 71,
        }
    }
}

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
    runs: Array<MapData, emud_runs>,
    emulated: HashMap<MapData, emud_emulated, u32>,
    known: HashSet<Emulated>,
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
            runs: Array::try_from(runs).map_err(at("emud_runs"))?,
            emulated: HashMap::try_from(emulated).map_err(at("emud_emulated"))?,
            known: HashSet::new(),
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
            suppressed: counters.suppressed,
        })
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
            let program = self.bpf.program(name).ok_or(MonitorError::Missing(name))?;
            let info = program
                .info()
                .map_err(|e| system("reading run statistics", io::Error::other(e)))?;
            let (timed, time) = (info.run_count(), info.run_time());
            let events = of_cpus.iter().map(|cpu| cpu.of[held.hook as usize]).sum();
            Ok(Cost {
                program: name.into(),
                hook: held.name.clone(),
                events,
                timed,
                run_time_ns: (time.as_nanos() * u128::from(events) / u128::from(timed.max(1)))
                    as u64,
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
        for gone in self.known.difference(&wanted) {
            // An entry that is already gone is the intended result.
            let _ = self.emulated.remove(&key(gone));
        }
        for new in wanted.difference(&self.known) {
            self.emulated
                .insert(key(new), 1, 0)
                .map_err(at("emud_emulated"))?;
        }
        if self.known.is_empty() && !wanted.is_empty() && !self.hooks.has("emud_late") {
            if !attach_all(&mut self.bpf, &mut self.hooks, &with_links()) {
                self.watched[Resource::Emulator as usize] = Watched::Unknown;
            }
            self.decoder.hooks.clone_from(&self.hooks.raising);
        }
        self.known = wanted;
        Ok(())
    }
}

fn watch(ring: RingBuf<MapData>) -> io::Result<AsyncFd<RingBuf<MapData>>> {
    // SAFETY: the map's descriptor is open as long as the RingBuf, which the AsyncFd owns.
    Ok(unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE)? })
}

fn load(settings: &Settings, btf: &Btf) -> Result<Ebpf, MonitorError> {
    let cpus = settings.config.cpus;
    let mut loader = EbpfLoader::new();
    for (name, value) in &settings.globals {
        loader.override_global(name, value, true);
    }
    loader
        .btf(Some(btf))
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
/// that has sent, and four such alarms must fit at once. One alarm of 225 CPUs would fill 1 MiB.
fn ring_len(cpus: u32) -> u32 {
    const LEAST: u32 = 1 << 20;
    const RECORD_HEADER: u32 = 8;
    let table = size_of::<abi::emud_table>() as u32 + RECORD_HEADER;
    let wanted = 4 * table.saturating_mul(cpus);
    wanted.max(LEAST).next_power_of_two()
}

fn tell_rules(bpf: &mut Ebpf, settings: &Settings) -> Result<(), MonitorError> {
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
fn arm(bpf: &mut Ebpf, now_ns: u64) -> Result<(), MonitorError> {
    let name = "emud_armed";
    let map = bpf.map_mut(name).ok_or(MonitorError::Missing(name))?;
    let mut armed = Array::<_, u64>::try_from(map).map_err(at(name))?;
    armed.set(0, now_ns, 0).map_err(at(name))
}

/// Attaches the hooks of each configured criterion.
///
/// # Errors
/// [`MonitorError::Blind`]: none of the criteria that are judged in the kernel found a hook.
fn attach(
    bpf: &mut Ebpf,
    hooks: &mut Hooks,
    config: &Config,
) -> Result<[Watched; Resource::ALL.len()], MonitorError> {
    let mut watched = [Watched::No; Resource::ALL.len()];
    let mut in_kernel = vec![];
    for criterion in &CRITERIA {
        let Some(attempts) = (criterion.hooks)(config) else {
            continue;
        };
        let index = criterion.resource as usize;
        watched[index] = match attach_all(bpf, hooks, &attempts) {
            true => Watched::Yes,
            false => Watched::Unknown,
        };
        if !attempts.is_empty() {
            in_kernel.push(index);
        }
    }
    // Last: the tick would judge a CPU as busy before the hooks that detect its idle time are
    // attached.
    if !hooks.attach_first(bpf, &tick::hooks()) {
        let blind = (CRITERIA.iter().zip(&mut watched)).filter(|(of, _)| of.ticks);
        let asked_for = blind.filter(|(_, state)| **state == Watched::Yes);
        asked_for.for_each(|(_, state)| *state = Watched::Unknown);
    }
    if in_kernel.is_empty() || in_kernel.iter().any(|i| watched[*i] == Watched::Yes) {
        return Ok(watched);
    }
    let refused = hooks.tried.iter().filter_map(|hook| {
        let why = hook.refused.as_ref()?;
        Some(format!(
            "  {}: {} rejected: {why}",
            hook.criterion, hook.hook
        ))
    });
    Err(MonitorError::Blind(refused.collect::<Vec<_>>().join("\n")))
}

/// Tries all of them, so that the log lists every one; returns true if each works.
fn attach_all(bpf: &mut Ebpf, hooks: &mut Hooks, attempts: &[Attempt]) -> bool {
    let mut holds = true;
    for attempt in attempts {
        holds &= hooks.attach_first(bpf, attempt);
    }
    holds
}

fn take(bpf: &mut Ebpf, name: &'static str) -> Result<Map, MonitorError> {
    bpf.take_map(name).ok_or(MonitorError::Missing(name))
}

fn at(name: &'static str) -> impl Fn(MapError) -> MonitorError {
    move |source| MonitorError::Map { name, source }
}

fn system(what: &'static str, source: io::Error) -> MonitorError {
    MonitorError::System { what, source }
}

fn key(device: &Emulated) -> emud_emulated {
    emud_emulated {
        netns: device.netns,
        ifindex: device.ifindex,
    }
}

fn mono_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
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
        assert_eq!(ring_len(225), 1 << 22);
        assert_eq!(ring_len(226), 1 << 23);
    }
}
