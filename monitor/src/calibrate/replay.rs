// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays the events of a recording through the criteria.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use super::devices::{Device, Devices, Watch};
use super::findings::watched;
use super::intervals::Intervals;
use super::reorder::Reorder;
use super::{Distribution, Findings, Measure, Tally};
use crate::config::Config;
use crate::criteria::Measured;
use crate::criteria::table::ns;
use crate::record::{End, Event, Header, Kind, NetClass, ReadError, Reader};

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The histogram library rejects the parameters.
    #[error("a histogram: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

impl CalibrateError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read(e) => e.exit_code(),
            Self::Histogram(_) => 70, // EX_SOFTWARE
        }
    }
}

/// Judges all events of a recording like the kernel's programs with these thresholds.
///
/// # Errors
/// The recording cannot be read, or is damaged. A recording that is cut short is not an error, but
/// noted.
pub fn replay<R: Read>(
    mut reader: Reader<R>,
    thresholds: &Config,
) -> Result<Findings, CalibrateError> {
    let mut replay = Replay::new(reader.header(), thresholds)?;
    for event in &mut reader {
        replay.feed(event?);
    }
    let header = reader.header().clone();
    let end = reader.end().cloned();
    let end = end.unwrap_or(End::Cut { stray_bytes: 0 });
    Ok(replay.finish(header, end, reader.records()))
}

/// An event of a sliding window.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sample {
    Packet(Device, bool, u32),
    /// Pages of the measure with this name.
    Pages(&'static str, u32),
}

#[derive(Debug)]
struct Replay {
    start_ns: u64,
    last_ns: u64,
    cpu: Option<Intervals>,
    disk: Option<Intervals>,
    disk_names: HashMap<u32, String>,
    devices: Option<Devices>,
    window_ns: u64,
    paging: BTreeMap<&'static str, Watch>,
    samples: Reorder<Sample>,
    lost: BTreeMap<Kind, u64>,
}

impl Replay {
    fn new(header: &Header, config: &Config) -> Result<Self, CalibrateError> {
        let start_ns = header.start_mono_ns;
        let empty = Tally {
            distribution: Distribution::new()?,
            window_ns: None,
            threshold: None,
            alarms: 0,
            first_ns: None,
        };
        let cpu = config.cpu.map(|cpu| {
            let theta_ns = ns(cpu.theta);
            Intervals::new(theta_ns, BTreeMap::new(), start_ns, empty.clone())
        });
        let disk = config.disk.as_ref().map(|disk| {
            let own = disk.devices.iter();
            let own = own.map(|(name, theta)| (name.clone(), theta.map(ns)));
            Intervals::new(ns(disk.theta), own.collect(), start_ns, empty.clone())
        });
        let network = config.network.as_ref();
        let memory = config.memory.iter();
        let window_ns = config.memory.map_or(0, |memory| ns(memory.window));
        let paging = memory.flat_map(|m| [("page-in", m.page_ins), ("page-out", m.page_outs)]);
        let watch = |(name, pages): (_, Option<u64>)| {
            pages.map(|pages| (name, Watch::new(window_ns, Some(pages), &empty)))
        };
        Ok(Self {
            start_ns,
            last_ns: start_ns,
            cpu,
            disk,
            disk_names: HashMap::new(),
            devices: network.map(|n| Devices::new(n, start_ns, &empty)),
            window_ns,
            paging: paging.filter_map(watch).collect(),
            samples: Reorder::new(),
            lost: BTreeMap::new(),
        })
    }

    fn feed(&mut self, event: Event) {
        match event {
            Event::CpuBusy { cpu, interval } => {
                self.saw(interval.end_ns);
                if let Some(cpus) = &mut self.cpu {
                    cpus.add(&format!("cpu{cpu}"), interval);
                }
            }
            Event::DiskBusy { device, interval } => {
                self.saw(interval.end_ns);
                let name = self.disk_names.get(&device);
                let number = || format!("{}:{}", device >> 20, device & 0xf_ffff);
                let name = name.cloned().unwrap_or_else(number);
                if let Some(disks) = &mut self.disk {
                    disks.add(&name, interval);
                }
            }
            Event::Disk { device, name } => {
                self.disk_names.insert(device, name);
            }
            Event::Interface {
                ifindex,
                netns,
                name,
            } => {
                if let Some(devices) = &mut self.devices {
                    devices.name((netns, ifindex), name);
                }
            }
            Event::Packet {
                time_ns,
                bytes,
                ifindex,
                netns,
                class,
            } => {
                let external = class == NetClass::External;
                self.sample(time_ns, Sample::Packet((netns, ifindex), external, bytes));
            }
            Event::PageIn { time_ns, pages } => {
                self.sample(time_ns, Sample::Pages("page-in", pages))
            }
            Event::PageOut { time_ns, pages } => {
                self.sample(time_ns, Sample::Pages("page-out", pages))
            }
            Event::Lost { kind, count, .. } => *self.lost.entry(kind).or_default() += count,
        }
    }

    fn saw(&mut self, time_ns: u64) {
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn sample(&mut self, time_ns: u64, sample: Sample) {
        self.saw(time_ns);
        self.samples.push(time_ns, sample);
        while let Some((time_ns, sample)) = self.samples.next() {
            self.judge(time_ns, &sample);
        }
    }

    fn judge(&mut self, time_ns: u64, sample: &Sample) {
        match sample {
            Sample::Packet(device, external, bytes) => {
                let class = match external {
                    true => NetClass::External,
                    false => NetClass::Internal,
                };
                if let Some(devices) = &mut self.devices {
                    devices.add(*device, class, time_ns, *bytes);
                }
            }
            Sample::Pages(name, pages) => {
                if let Some(watch) = self.paging.get_mut(name) {
                    watch.add(time_ns, u64::from(*pages), self.start_ns);
                }
            }
        }
    }

    fn finish(mut self, header: Header, end: End, records: u64) -> Findings {
        while let Some((time_ns, sample)) = self.samples.pop() {
            self.judge(time_ns, &sample);
        }
        let end_ns = match &end {
            End::Complete(trailer) => trailer.end_mono_ns,
            End::Cut { .. } => self.last_ns,
        };
        let (late, lost, start_ns) = (self.samples.late(), self.lost.clone(), self.start_ns);
        Findings {
            measures: self.measures(&header),
            header,
            end,
            records,
            lost,
            late,
            duration_ns: end_ns.saturating_sub(start_ns),
        }
    }

    fn measures(self, header: &Header) -> BTreeMap<&'static str, Measure> {
        let intervals = |name, intervals: Intervals| {
            let threshold = Some(intervals.threshold());
            let total = Tally {
                threshold,
                ..intervals.total
            };
            (name, None, total, intervals.members)
        };
        let mut found = vec![];
        found.extend(self.cpu.map(|i| intervals("cpu", i)));
        found.extend(self.disk.map(|i| intervals("disk", i)));
        if let Some(devices) = self.devices {
            let window_ns = Some(devices.window_ns());
            let classes = devices.finish();
            found.extend(classes.map(|(name, total, of)| (name, window_ns, total, of)));
        }
        let window_ns = Some(self.window_ns);
        let paging = self.paging.into_iter();
        found.extend(paging.map(|(name, watch)| (name, window_ns, watch.tally, BTreeMap::new())));
        let measure = |(name, window_ns, total, members)| {
            let (_, measured) = Measured::all().find(|(_, measured)| measured.name == name)?;
            let measure = Measure {
                watched: watched(measured, &header.watched),
                window_ns,
                total,
                members,
            };
            Some((name, measure))
        };
        found.into_iter().filter_map(measure).collect()
    }
}
